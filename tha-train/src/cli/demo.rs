//! `tha-train demo`: the whole path on synthetic data, in under a minute.

mod next;
mod stream;

use super::args::{Replace, Speech, Threads};
use super::error::CliError;
use super::interrupt;
use super::speak::{self, Progress, figure};
use super::synth::stage;
use crate::analysis::{self, Analysis, Setting};
use crate::data::Dataset;
use crate::ensemble::{self, Combine, Strategy};
use crate::export::{self, SourceFile};
use crate::fit::{self, Validation};
use crate::model::Model;
use crate::output::{self, LISTING, Staging};
use crate::report;
use crate::solve::{self, Observer};
use crate::synth::{self, Kind, Synthetic};
use next::Commands;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;
use stream::Streamed;
use tha_core::RangePolicy;

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
    replace: Replace,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
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

/// One line of the table.
#[derive(Serialize)]
struct Line {
    model: &'static str,
    heads: usize,
    val_nrmse: f64,
    test_nrmse: f64,
    /// Distance from the full model, and that of the truncated ensemble; standardised.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_full: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_from_full: Option<f64>,
    flash_bytes: usize,
    macs_per_sample: usize,
    seconds: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    models: Vec<Line>,
    chosen: &'a str,
    stream: Streamed,
    out: String,
    files: Vec<String>,
    next: [String; 3],
    seconds: f64,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let start = Instant::now();
    args.threads.apply();
    output::check_folder(&args.out, &FILES, args.replace.force)?;
    let progress = Progress::new(args.speech, Vec::new());
    let data = synth::generate(&synth::SynthParams {
        channels: CHANNELS,
        outputs: 2,
        samples: 3000,
        test_samples: 1500,
        seed: args.seed,
        ..synth::SynthParams::new(Kind::Array)
    })?;
    let mut candidates = fit_all(args.seed, &data, &progress)?;
    analyze(&mut candidates, &data.test, &progress)?;
    let best = best(&candidates);
    let chosen = &candidates[best];
    progress.now(|| format!("streaming {} through tha-core", chosen.name));
    let stream = stream::stream(&chosen.model, &data.test)?;
    let expected = data.test.scored_rows(chosen.model.spec().settled()).len();
    if !stream.ok(expected) {
        return Err(CliError::Check(format!("{}: the stream is not the batch", chosen.name)));
    }

    let files = write(args, &data, &candidates, best)?;
    progress.done();
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
    speak::summary(args.speech, &report, || words(args, &report));
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
fn fit_all(seed: u64, data: &Synthetic, progress: &Progress) -> Result<Vec<Candidate>, CliError> {
    let options = |max_rank, restarts| fit::FitParams {
        memory: 4,
        solve: solve::SolveParams { degree: 3, max_rank, restarts, seed, ..solve::SolveParams::default() },
        refit: true,
        range: RangePolicy::Clamp,
    };
    let judge = Validation::End(0.2);
    let ways = [
        ("full", None),
        ("average", Some(Combine::Average)),
        ("stack", Some(Combine::Stack)),
        ("additive", Some(Combine::Additive)),
    ];
    let mut candidates = Vec::new();
    for (name, combine) in ways {
        let clock = Instant::now();
        let watch = Watch { progress, name };
        let outcome = match combine {
            None => fit::fit(&data.train, judge, &options(4, 2), &watch)?,
            Some(combine) => {
                let strategy = Strategy::Given(neighbours());
                let plan =
                    ensemble::EnsembleParams { strategy, combine, ..ensemble::EnsembleParams::default() };
                ensemble::fit(&data.train, judge, &options(2, 1), &plan, &watch)?.fit
            }
        };
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
fn analyze(candidates: &mut [Candidate], data: &Dataset, progress: &Progress) -> Result<(), CliError> {
    let Some((full, ensembles)) = candidates.split_first_mut() else { return Ok(()) };
    for ensemble in ensembles {
        progress.now(|| format!("analysing {}", ensemble.name));
        let setting = Setting::from_models(&full.model, &ensemble.model, data)?;
        let analysis = analysis::analyze(&setting, &analysis::AnalysisParams::default());
        if !analysis.failures().is_empty() {
            return Err(CliError::Check(format!("{}: {}", ensemble.name, analysis.failures().join("; "))));
        }
        ensemble.analysis = Some(analysis);
        if interrupt::requested() {
            return Err(CliError::Interrupted);
        }
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
    let mut sources: Vec<SourceFile> = export::c(chosen.name, chosen.model.spec()).into();
    sources.push(export::rust(chosen.name, chosen.model.spec(), &chosen.bytes));
    let page = page(candidates, best, &data.test);
    if interrupt::requested() {
        return Err(CliError::Interrupted);
    }
    let mut staging = Staging::among_others(args.replace.force);
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
            macs: candidate.model.parameters(),
        })
        .collect();
    report::html(&report::Report {
        title: format!("A sensor array: {} against {}", shown.name, full.name),
        model: &shown.model,
        bytes: shown.bytes.len(),
        data,
        data_name: "test.csv (seen by no fit)".into(),
        convergence: None,
        full: Some((&full.model, full.bytes.len())),
        analysis: shown.analysis.as_ref(),
        compared: &compared,
    })
}

impl From<&Candidate> for Line {
    fn from(candidate: &Candidate) -> Self {
        Self {
            model: candidate.name,
            heads: candidate.model.spec().heads.len(),
            val_nrmse: candidate.validation,
            test_nrmse: candidate.test,
            from_full: candidate.analysis.as_ref().map(|analysis| analysis.error),
            truncated_from_full: candidate.analysis.as_ref().map(|analysis| analysis.bias),
            flash_bytes: candidate.bytes.len(),
            macs_per_sample: candidate.model.parameters(),
            seconds: candidate.seconds,
        }
    }
}

fn words(args: &Args, report: &Report<'_>) -> String {
    let head = ["model", "heads", "val NRMSE", "test NRMSE", "from full", "flash bytes", "MACs", "seconds"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for line in &report.models {
        rows.push(vec![
            line.model.to_owned(),
            line.heads.to_string(),
            figure(line.val_nrmse),
            figure(line.test_nrmse),
            line.from_full.map_or_else(|| "-".into(), figure),
            line.flash_bytes.to_string(),
            line.macs_per_sample.to_string(),
            format!("{:.1}", line.seconds),
        ]);
    }
    let (folder, chosen, stream) = (args.out.display(), report.chosen, &report.stream);
    format!(
        "A sensor array: 16 inputs, 2 outputs, 3000 samples to learn from, 1500 to test on. Memory 4, degree 3; the\n\
         full model sees all inputs, the heads of the ensembles four neighbours each.\n\n\
         {}\n\
         NRMSE: error as a part of the output's standard deviation. From full: distance from the full model.\n\
         Chosen on held-out samples: {chosen}. Streamed through the code of the device: {} samples, every bit as specified,\n\
         at most {:.0} % of the rounding bound away from the batch.\n\n\
         In {folder}: {PAGE} (open it in a browser), {chosen}.tha, {EXPORT}/{chosen}.rs and .c, the data, the other models.\n\n\
         Try next:\n  {}",
        speak::table(&rows),
        stream.samples,
        (100.0 * stream.bound_used).ceil(),
        report.next.join("\n  "),
    )
}

/// Passes the progress of a fit on, and Ctrl-C back.
struct Watch<'a> {
    progress: &'a Progress,
    name: &'static str,
}

impl Observer for Watch<'_> {
    fn progress(&self, step: &solve::Step) {
        self.progress.now(|| format!("{}: {step}", self.name));
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}

impl ensemble::Watch for Watch<'_> {
    fn head(&self, _: usize, done: usize, of: usize, validation: f64, _: f64) {
        self.progress
            .now(|| format!("{}: {done} of {of} heads, held-out residual {}", self.name, figure(validation)));
    }

    fn joint(&self, step: usize, validation: f64) {
        self.progress
            .now(|| format!("{}: joint step {step}, held-out residual {}", self.name, figure(validation)));
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}
