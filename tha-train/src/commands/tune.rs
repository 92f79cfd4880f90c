//! `tha-train tune`: settings for `fit`, found on the data.

use super::args::{ColumnArgs, Threads, ValidationArgs, read};
use super::error::{CliError, go_on};
use super::tune_report::{Found, Report, words};
use super::watch::Watch;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tha_cli::{DataArgs, Replace, Speech, Status, interrupt, summary};
use tha_train::output::{self, Kind, Staging};
use tha_train::tune::{self, TuneParams};

/// Search settings for `fit`: memory, degree, rank and, with five inputs or more, heads.
///
/// Memories are tried by doubling for every degree, then smaller ranks and ensembles where that is promising, each as
/// `fit` does it. The result is the Pareto front of error against flash and against multiply-accumulates per sample, with the `fit` command
/// for each point; DIR/front.json and DIR/front.svg hold it too. Ridge and rank below the cap are chosen inside every
/// fit.
///
/// Settings are compared by the error on held-out samples, which also choose inside every fit: too good for the best of
/// many. Beside it stands the NRMSE of validation, on samples that chose nothing; with --folds every sample has helped
/// to compare settings, so judge the model you take on another file.
///
/// DIR keeps every finished fit: the same command goes on where the last one ended, after Ctrl-C too. With --trials the
/// result is the same for any number of threads; with --minutes it is as much of it as there was time for.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Folder for the front and for every finished fit.
    #[arg(long, value_name = "DIR", default_value = "tune")]
    pub out: PathBuf,
    #[command(flatten)]
    pub validation: ValidationArgs,
    /// Stop after this time, with what there is [default: 10, or no limit with --trials].
    #[arg(long, value_name = "T")]
    minutes: Option<f64>,
    /// Stop after this many fits.
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Largest memory [default: 32, or an eighth of the shortest record].
    #[arg(long, value_name = "M")]
    max_memory: Option<usize>,
    /// Largest degree.
    #[arg(long, value_name = "D", default_value_t = TuneParams::MAX_DEGREE)]
    max_degree: usize,
    /// Largest tensor-train rank.
    #[arg(long, value_name = "R", default_value_t = TuneParams::MAX_RANK)]
    max_rank: usize,
    /// Most heads of an ensemble; 0 for full models only.
    #[arg(long, value_name = "K", default_value_t = TuneParams::MAX_HEADS)]
    max_heads: usize,
    /// Only models whose file has at most so many bytes.
    #[arg(long, value_name = "BYTES")]
    pub budget_flash: Option<usize>,
    /// Only models with at most so many multiply-accumulates per sample.
    #[arg(long, value_name = "N")]
    pub budget_macs: Option<usize>,
    /// Seed of every fit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    replace: Replace,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
}

const EXAMPLES: &str = "\
Examples:
  tha-train tune data/train.csv
  tha-train tune plant.csv --inputs 'valve*,T_in' --outputs T_out --minutes 30
  tha-train tune data/train.csv --folds 5 --max-memory 64 --out tuned
  tha-train tune array.csv --budget-flash 16384 --trials 100 --json";

const USUAL_MINUTES: f64 = 10.0;

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let start = Instant::now();
    args.threads.apply();
    let minutes = args.minutes.or(args.trials.is_none().then_some(USUAL_MINUTES));
    let limit = match minutes.map(|minutes| Duration::try_from_secs_f64(60.0 * minutes)) {
        None => None,
        Some(Ok(limit)) if !limit.is_zero() => Some(limit),
        Some(_) => {
            return Err(CliError::Usage(format!(
                "--minutes: {} is out of range; expected a number above 0",
                args.minutes.unwrap_or_default()
            )));
        }
    };
    let files = [("front.json", Kind::Text), ("front.svg", Kind::Text)];
    output::check_folder(&args.out, &files, args.replace.force)?;
    let data = read(&args.data, &args.columns.columns())?;
    let validation = args.validation.read(&data)?;
    let status = Status::new(args.speech, args.validation.warnings(&data, validation.as_ref()));
    let deadline = limit.and_then(|limit| start.checked_add(limit));
    let watch = Watch { deadline, ..Watch::new(&status) };
    interrupt::wait_for_me();
    let params = TuneParams::new()
        .max_memory(args.max_memory)
        .max_degree(args.max_degree)
        .max_rank(args.max_rank)
        .max_heads(args.max_heads)
        .trials(args.trials)
        .budget_flash(args.budget_flash)
        .budget_macs(args.budget_macs)
        .seed(args.seed)
        .checkpoint(args.out.join("trials"))
        .validation(args.validation.meant(validation.as_ref()));
    let tuning = params.check(&data)?.tune(&data, &watch)?;

    let found = Found::new(args, &tuning);
    let text = serde_json::to_vec_pretty(&found)?;
    let picture = tune::svg(&tuning);
    let mut staging = Staging::among_others(args.replace.force);
    staging.write(&args.out.join("front.json"), |to| to.write_all(&text))?;
    staging.write(&args.out.join("front.svg"), |to| to.write_all(picture.as_bytes()))?;
    staging.commit()?;
    status.done();
    let report = Report { found: &found, seconds: start.elapsed().as_secs_f64() };
    summary(args.speech, &report, || words(args, &tuning, &report));
    go_on()?;
    if found.front.is_empty() {
        let why = match tuning.complete {
            true if args.budget_flash.or(args.budget_macs).is_some() => {
                "no setting keeps the budgets; raise --budget-flash or --budget-macs".into()
            }
            true => {
                "no error is a number; are the outputs constant in the samples held out to compare settings?"
                    .into()
            }
            false => format!(
                "no setting was fitted to its end; the same command goes on from {}, or raise --minutes or --trials",
                args.out.display()
            ),
        };
        return Err(CliError::Check(why));
    }
    Ok(())
}
