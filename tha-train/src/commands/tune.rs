//! `tha-train tune`: the search of `fit --auto`, with error against size as its result.

use super::args::{ColumnArgs, Manner, read};
use super::auto::{Failed, MINUTES, command, expected};
use super::error::{CliError, go_on};
use super::watch::Watch;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tha_cli::{DataArgs, Status, count, figure, interrupt, summary, table};
use tha_train::internals::{Candidate, Setting, Tried};
use tha_train::output::{self, Kind, MARK, Staging};
use tha_train::{AutoParams, Tuning};

/// Search as `fit --auto` does, and show what error costs in flash and operations.
///
/// The result is the Pareto front of error against flash and against multiply-accumulates per sample, with the `fit` command that
/// delivers each point; DIR/front.json and DIR/front.svg hold it too.
///
/// Models are compared by their error on held-out blocks, which also chose them: too good for the best of many. Beside it
/// stands the NRMSE to expect, on blocks that chose nothing.
///
/// DIR/trials keeps what was tried: the same command goes on where the last one ended, after Ctrl-C too, and `fit --auto
/// --checkpoint DIR/trials` starts from it. With --trials the result is the same for any number of threads; with --minutes it is
/// as much of it as there was time for.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Folder for the front.
    #[arg(long, value_name = "DIR", default_value = "tune")]
    out: PathBuf,
    /// Time for the search: best effort [default: 3, unless there is --trials].
    #[arg(long, value_name = "T", conflicts_with = "trials")]
    minutes: Option<f64>,
    /// Settings to try on all inputs, at most: the same front every time.
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Heads on subsets of the inputs that are tried [default: 12 from 5 inputs on, else 0].
    #[arg(long, value_name = "K")]
    heads: Option<usize>,
    /// Only models whose file has at most so many bytes.
    #[arg(long, value_name = "BYTES", default_value_t = AutoParams::BUDGET_FLASH)]
    budget_flash: usize,
    /// Only models with at most so many multiply-accumulates per sample.
    #[arg(long, value_name = "N")]
    budget_macs: Option<usize>,
    /// Folder that keeps what was tried [default: trials in the folder of --out].
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Seed of everything.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    manner: Manner,
}

const EXAMPLES: &str = "\
Examples:
  tha-train tune data/train.csv
  tha-train tune plant.csv --inputs 'valve*,T_in' --outputs T_out --minutes 30
  tha-train tune array.csv --budget-flash 16384 --trials 60 --json";

/// The contents of front.json. No times: the same search gives the same bytes.
#[derive(Serialize)]
struct Found<'a> {
    note: String,
    /// The recommended point and those on a front, by rising flash.
    front: Vec<Entry<'a>>,
    /// Which of them is recommended, from 0.
    recommended: Option<usize>,
    /// Models that can be delivered and are on no front.
    others: Vec<Entry<'a>>,
    tried: &'a [Tried],
    failed: Vec<Failed>,
    complete: bool,
}

#[derive(Serialize)]
struct Entry<'a> {
    held_out_nrmse: f64,
    held_out_standard_error: f64,
    nrmse: f64,
    standard_error: f64,
    flash_bytes: usize,
    macs_per_sample: usize,
    settings: &'a [Setting],
    on_flash_front: bool,
    on_macs_front: bool,
    fit: String,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    found: &'a Found<'a>,
    seconds: f64,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let start = Instant::now();
    args.manner.threads.apply();
    let files = [("front.json", Kind::Text), ("front.svg", Kind::Text)];
    output::check_folder(&args.out, &files, args.manner.replace.force)?;
    let data = read(&args.data, &args.columns.columns())?;
    let minutes = args.minutes.or(args.trials.is_none().then_some(MINUTES));
    let params = AutoParams::new()
        .minutes(minutes)
        .trials(args.trials)
        .heads(args.heads)
        .budget_flash(args.budget_flash)
        .budget_macs(args.budget_macs)
        .checkpoint(args.checkpoint.clone().unwrap_or_else(|| args.out.join("trials")))
        .seed(args.seed);
    params.check(&data)?;
    let status = Status::new(args.manner.speech, [data.warnings(), data.device_warnings()].concat());
    let mut watch = Watch::new(&status);
    watch.until = minutes.map(|minutes| start + Duration::from_secs_f64(60.0 * minutes));
    interrupt::wait_for_me();
    let tuning = params.search(&data, &watch)?;

    let found = Found::new(args, &tuning);
    let text = serde_json::to_vec_pretty(&found)?;
    let mut staging = Staging::among_others(args.manner.replace.force);
    staging.folder(&args.out)?;
    staging.write(&args.out.join("front.json"), |to| to.write_all(&text))?;
    staging.write(&args.out.join("front.svg"), |to| to.write_all(tuning.svg().as_bytes()))?;
    staging.commit()?;
    status.done();
    let report = Report { found: &found, seconds: start.elapsed().as_secs_f64() };
    summary(args.manner.speech, &report, || words(args, &tuning, &report));
    go_on()
}

/// The candidates that are shown first, and the others.
fn shown(tuning: &Tuning, yes: bool) -> impl Iterator<Item = &Candidate> {
    tuning.candidates.iter().filter(move |one| (one.on_front() || one.recommended) == yes)
}

impl<'a> Found<'a> {
    fn new(args: &Args, tuning: &'a Tuning) -> Self {
        let entry = |one: &'a Candidate| Entry {
            held_out_nrmse: one.held_out,
            held_out_standard_error: one.standard_error,
            nrmse: one.nested.error,
            standard_error: one.nested.standard_error,
            flash_bytes: one.flash_bytes,
            macs_per_sample: one.macs_per_sample,
            settings: &one.settings,
            on_flash_front: one.on_flash_front,
            on_macs_front: one.on_macs_front,
            fit: command(&args.data, &args.columns, Path::new("model.tha"), args.seed, &one.recipe),
        };
        Self {
            note: format!("{MARK}train tune`"),
            front: shown(tuning, true).map(entry).collect(),
            recommended: shown(tuning, true).position(|one| one.recommended),
            others: shown(tuning, false).map(entry).collect(),
            tried: &tuning.tried,
            failed: tuning.failures.iter().map(Failed::new).collect(),
            complete: tuning.complete,
        }
    }
}

/// The front in words, and what there is to say about the search.
fn words(args: &Args, tuning: &Tuning, report: &Report<'_>) -> String {
    let mut rows = Vec::new();
    let mut text = String::from("\n");
    for (k, (one, entry)) in shown(tuning, true).zip(&report.found.front).enumerate() {
        let fronts = match (one.on_flash_front, one.on_macs_front) {
            (true, true) => "both",
            (true, false) => "flash",
            (false, true) => "MACs",
            (false, false) => "-",
        };
        rows.push(vec![
            format!("{}{}", k + 1, if one.recommended { " *" } else { "" }),
            figure(one.held_out),
            format!("{} ± {}", figure(one.nested.error), figure(one.nested.standard_error)),
            one.flash_bytes.to_string(),
            one.macs_per_sample.to_string(),
            fronts.into(),
            one.to_string(),
        ]);
        text += &format!("{:>2}  {}\n", k + 1, entry.fit);
    }
    text = table(", held out, NRMSE, flash bytes, MACs, front, model", &rows) + &text + "\n";
    if let Some((k, one)) = shown(tuning, true).enumerate().find(|(_, one)| one.recommended) {
        let nrmse = expected(&one.nested, tuning.linear.as_ref(), tuning.nothing_better);
        text += &format!(
            "recommended: {}; expected on new data, from blocks that chose nothing: {nrmse}\n",
            k + 1
        );
    }
    if let Some(Failed { setting, reason }) = report.found.failed.first() {
        let failed = count(tuning.failures.len(), "setting");
        text += &format!("{failed} could not be fitted, the first: {setting}: {reason}\n");
    }
    if !tuning.complete {
        text +=
            "stopped before the end; the same command with more --minutes or --trials goes on from here\n";
    }
    let (tried, folder) = (count(tuning.tried.len(), "setting"), args.out.display());
    let seconds = report.seconds;
    text + &format!(
        "{tried} tried, {seconds:.0} s; the front is in {folder}/front.json and {folder}/front.svg"
    )
}
