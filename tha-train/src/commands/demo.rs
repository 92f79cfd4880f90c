//! `tha-train demo`: the whole path on synthetic data, in under a minute.

mod next;
mod stream;
mod words;

use super::args::Manner;
use super::error::{CliError, go_on};
use super::synth::stage;
use super::watch::Watch;
use next::Commands;
use std::path::PathBuf;
use std::time::Instant;
use tha_cli::{Status, summary};
use tha_core::RangePolicy;
use tha_train::analysis;
use tha_train::export::{self, SourceFile};
use tha_train::output::{self, LISTING, Staging};
use tha_train::{
    Analysis, Combine, Dataset, FitParams, Model, Pair, Strategy, SynthKind as Kind, SynthParams, Synthetic,
    generate, report,
};
use words::{Line, Report, words};

/// The whole path on a synthetic sensor array: fit it in four ways, compare, stream the best through the code of the
/// device, write models, report and source code.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-train demo --out demo")]
pub(super) struct Args {
    /// Folder for everything; made when it does not exist.
    #[arg(long, value_name = "DIR", default_value = "demo")]
    out: PathBuf,
    /// Seed of everything.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    manner: Manner,
}

/// The folder for the source code, inside the folder of the demo.
const EXPORT: &str = "export";
/// The page.
const PAGE: &str = "report.html";
/// The subsets of the heads, as `fit --subsets file:PATH` reads them.
const SUBSETS: &str = "neighbours.json";
/// What is written in any case: refused at once where something else has the name.
const FILES: [(&str, output::Kind); 9] = [
    ("train.csv", output::Kind::Data),
    ("test.csv", output::Kind::Data),
    (SUBSETS, output::Kind::Data),
    (LISTING, output::Kind::Text),
    ("full.tha", output::Kind::Model),
    ("average.tha", output::Kind::Model),
    ("stack.tha", output::Kind::Model),
    ("additive.tha", output::Kind::Model),
    (PAGE, output::Kind::Text),
];
const CHANNELS: usize = 16;
/// Inputs of a head: a channel hears its neighbours, and the outputs have products of two neighbours.
const NEIGHBOURS: usize = 4;

/// A model and what is known of it.
struct Candidate {
    name: &'static str,
    model: Model,
    bytes: Vec<u8>,
    /// NRMSE on the validation samples and on the test file.
    held_out: f64,
    validation: f64,
    test: f64,
    seconds: f64,
    /// Against the full model, for the ensembles.
    analysis: Option<Analysis>,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let start = Instant::now();
    args.manner.threads.apply();
    output::check_folder(&args.out, &FILES, args.manner.replace.force)?;
    let status = Status::new(args.manner.speech, Vec::new());
    let data = generate(&SynthParams {
        channels: CHANNELS,
        outputs: 2,
        samples: 3000,
        test_samples: 1500,
        seed: args.seed,
        ..SynthParams::new(Kind::Array)
    })?;
    let mut candidates = fit_all(args.seed, &data, &status)?;
    analyze(&mut candidates, &data.test, &status)?;
    let best = best(&candidates);
    let chosen = &candidates[best];
    status.now(|| format!("streaming {} through tha-core", chosen.name));
    let stream = stream::stream(&chosen.model, &data.test)?;
    let expected = data.test.scored_rows(chosen.model.spec().settled()).len();
    if !stream.ok(expected) {
        return Err(CliError::Check(format!("{}: the stream is not the batch", chosen.name)));
    }

    let files = write(args, &data, &candidates, best)?;
    status.done();
    let commands = Commands::of_this_process();
    let report = Report {
        models: candidates.iter().map(Line::from).collect(),
        chosen: chosen.name,
        stream,
        out: args.out.display().to_string(),
        files,
        next: commands.next(&args.out, chosen.name),
        seconds: start.elapsed().as_secs_f64(),
    };
    summary(args.manner.speech, &report, || words(args, &report));
    Ok(())
}

/// Every stretch of neighbours, the array being a ring.
fn neighbours() -> Vec<Vec<usize>> {
    let stretch = |first: usize| {
        let mut subset: Vec<usize> = (first..first + NEIGHBOURS).map(|channel| channel % CHANNELS).collect();
        subset.sort_unstable();
        subset
    };
    (0..CHANNELS).map(stretch).collect()
}

/// The full model, and three ensembles of heads that see neighbours.
fn fit_all(seed: u64, data: &Synthetic, status: &Status) -> Result<Vec<Candidate>, CliError> {
    let params = FitParams::new().memory(4).degree(3).seed(seed).range(RangePolicy::Clamp);
    let ways = [
        ("full", None),
        ("average", Some(Combine::Average)),
        ("stack", Some(Combine::Stack)),
        ("additive", Some(Combine::Additive)),
    ];
    let mut candidates = Vec::new();
    for (name, combine) in ways {
        let clock = Instant::now();
        let watch = Watch { name, ..Watch::new(status) };
        let params = match combine {
            None => params.clone().restarts(2),
            Some(combine) => {
                params.clone().max_rank(2).subsets(Strategy::Given(neighbours())).combine(combine)
            }
        };
        let outcome = params.check(&data.train)?.fit(&data.train, &watch)?;
        candidates.push(Candidate {
            name,
            bytes: outcome.model.to_bytes()?,
            test: outcome.model.evaluate(&data.test).nrmse,
            model: outcome.model,
            held_out: outcome.held_out.nrmse,
            validation: outcome.validation.nrmse,
            seconds: clock.elapsed().as_secs_f64(),
            analysis: None,
        });
    }
    Ok(candidates)
}

/// Compares every ensemble with the full model, which is the first.
fn analyze(candidates: &mut [Candidate], data: &Dataset, status: &Status) -> Result<(), CliError> {
    let Some((full, ensembles)) = candidates.split_first_mut() else { return Ok(()) };
    for ensemble in ensembles {
        status.now(|| format!("analysing {}", ensemble.name));
        let pair = Pair::from_models(&full.model, &ensemble.model, data)?;
        let analysis = analysis::analyze(&pair, &analysis::AnalysisParams::default());
        if !analysis.failures().is_empty() {
            return Err(CliError::Check(format!("{}: {}", ensemble.name, analysis.failures().join("; "))));
        }
        ensemble.analysis = Some(analysis);
        go_on()?;
    }
    Ok(())
}

/// The one with the least error on the samples that are held out to choose on.
fn best(candidates: &[Candidate]) -> usize {
    (0..candidates.len())
        .min_by(|&a, &b| candidates[a].held_out.total_cmp(&candidates[b].held_out))
        .unwrap_or(0)
}

/// Writes everything or nothing; gives the names of the files.
fn write(
    args: &Args,
    data: &Synthetic,
    candidates: &[Candidate],
    best: usize,
) -> Result<Vec<String>, CliError> {
    let chosen = &candidates[best];
    let mut sources: Vec<SourceFile> = export::c(chosen.name, &chosen.model).into();
    sources.push(export::rust(chosen.name, chosen.model.spec(), &chosen.bytes));
    let page = page(candidates, best, &data.test);
    go_on()?;
    let mut staging = Staging::among_others(args.manner.replace.force);
    staging.folder(&args.out.join(EXPORT))?;
    staging.write(&args.out.join(SUBSETS), |to| Ok(serde_json::to_writer(to, &neighbours())?))?;
    let mut names = vec![SUBSETS.to_owned()];
    names.extend(stage(&mut staging, &args.out, data)?.map(String::from));
    let mut put = |name: String, content: &dyn Fn(&mut dyn std::io::Write) -> std::io::Result<()>| {
        let written = staging.write(&args.out.join(&name), content);
        names.push(name);
        written
    };
    for candidate in candidates {
        put(format!("{}.tha", candidate.name), &|to| to.write_all(&candidate.bytes))?;
    }
    put(PAGE.into(), &|to| to.write_all(page.as_bytes()))?;
    for source in &sources {
        put(format!("{EXPORT}/{}", source.name), &|to| to.write_all(source.text.as_bytes()))?;
    }
    staging.commit()?;
    Ok(names)
}

/// The report on the chosen model on the test data; when that is the full model, on the best ensemble.
fn page(candidates: &[Candidate], best: usize, data: &Dataset) -> String {
    let full = &candidates[0];
    let shown = match candidates.get(1..) {
        Some(ensembles) if best == 0 && !ensembles.is_empty() => &ensembles[self::best(ensembles)],
        _ => &candidates[best],
    };
    let compared: Vec<report::Compared> = candidates
        .iter()
        .map(|candidate| report::Compared {
            name: candidate.name.into(),
            shown: std::ptr::eq(candidate, shown),
            heads: candidate.model.spec().heads.len(),
            nrmse: candidate.test,
            bytes: candidate.bytes.len(),
            macs: candidate.model.macs(),
        })
        .collect();
    let title = format!("A sensor array: {} against {}", shown.name, full.name);
    report::html(&report::Report {
        full: Some((&full.model, full.bytes.len())),
        analysis: shown.analysis.as_ref(),
        compared: &compared,
        ..report::Report::new(title, (&shown.model, shown.bytes.len()), data, "test.csv (seen by no fit)")
    })
}
