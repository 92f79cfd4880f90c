//! `tha-train tune`: settings for `fit`, found on the data.

use super::args::{ColumnArgs, DataArgs, JudgeArgs, Speech, Threads};
use super::error::CliError;
use super::interrupt;
use super::speak::{self, Progress, count, figure};
use crate::fit::FitError;
use crate::output::Staging;
use crate::tune::{self, Point, Setting, Trial, Tuning};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Search settings for `fit`: memory, degree, rank and, with five inputs or more, heads.
///
/// Many settings are fitted to a part of the data, the promising ones to more of it, the best as `fit` does it. The
/// result is the Pareto front of validation error against flash and against multiply-accumulates per sample, with the
/// `fit` command for each point; DIR/front.json and DIR/front.svg hold it too. Ridge and rank below the cap are chosen
/// inside every fit.
///
/// DIR keeps every finished fit: the same command goes on where the last one ended, after Ctrl-C too. With --trials the
/// result is the same on every machine and for any number of threads; with --minutes it is as much of it as there was
/// time for. The validation error of the best of many is a little too good: judge the model you take on other data.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Folder for the front and for every finished fit.
    #[arg(long, value_name = "DIR", default_value = "tune")]
    out: PathBuf,
    #[command(flatten)]
    judge: JudgeArgs,
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
    #[arg(long, value_name = "D", default_value_t = 3)]
    max_degree: usize,
    /// Largest tensor-train rank.
    #[arg(long, value_name = "R", default_value_t = 4)]
    max_rank: usize,
    /// Most heads of an ensemble; 0 for full models only.
    #[arg(long, value_name = "K", default_value_t = 64)]
    max_heads: usize,
    /// Only models whose file has at most so many bytes.
    #[arg(long, value_name = "BYTES")]
    budget_flash: Option<usize>,
    /// Only models with at most so many multiply-accumulates per sample.
    #[arg(long, value_name = "N")]
    budget_macs: Option<usize>,
    /// Seed of every fit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
}

const EXAMPLES: &str = "\
Examples:
  tha-train tune data/train.csv
  tha-train tune plant.csv --inputs 'valve*,T_in' --outputs T_out --folds 5 --max-memory 64 --minutes 30
  tha-train tune array.csv --budget-flash 16384 --trials 100 --out tuned --json";

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
    let options = tune::Options {
        max_memory: args.max_memory,
        max_degree: args.max_degree,
        max_rank: args.max_rank,
        max_heads: args.max_heads,
        trials: args.trials,
        budget_flash: args.budget_flash,
        budget_macs: args.budget_macs,
        seed: args.seed,
        checkpoint: Some(args.out.join("trials")),
    };
    let data = args.data.source()?.read(&args.columns.columns())?;
    let validation = args.judge.read(&data)?;
    let progress = Progress::new(args.speech, data.warnings());
    let deadline = limit.and_then(|limit| start.checked_add(limit));
    let watch = Watch { progress: &progress, deadline, best: Mutex::new(None) };
    interrupt::wait_for_me();
    let tuning = tune::tune(&data, args.judge.judge(validation.as_ref()), &options, &watch)?;

    let found = Found::new(args, &tuning);
    let text = serde_json::to_vec_pretty(&found).map_err(|error| CliError::Usage(error.to_string()))?;
    let picture = tune::svg(&tuning);
    let guard = interrupt::writing();
    let mut staging = Staging::new();
    staging.write(&args.out.join("front.json"), |to| to.write_all(&text))?;
    staging.write(&args.out.join("front.svg"), |to| to.write_all(picture.as_bytes()))?;
    staging.commit()?;
    drop(guard);
    progress.done();
    let report = Report { found: &found, seconds: start.elapsed().as_secs_f64() };
    if args.speech.json || !args.speech.quiet {
        speak::result(args.speech.json, &report, || words(args, &tuning, &report));
    }
    if interrupt::requested() {
        return Err(CliError::Interrupted);
    }
    if found.front.is_empty() {
        let why = match tuning.complete {
            true if tuning.points.is_empty() => {
                "no setting keeps the budgets; raise --budget-flash or --budget-macs".into()
            }
            true => {
                "no validation error is a number; are the outputs constant in the validation samples?".into()
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

/// Passes the progress of the search on, and Ctrl-C and the time limit back.
struct Watch<'a> {
    progress: &'a Progress,
    deadline: Option<Instant>,
    best: Mutex<Option<f64>>,
}

impl tune::Watch for Watch<'_> {
    fn trial(
        &self,
        done: usize,
        setting: &Setting,
        (rung, of): (usize, usize),
        result: Result<&Trial, &FitError>,
    ) {
        let mut best = speak::lock(&self.best);
        let said = match result {
            Ok(trial) => {
                if rung + 1 == of {
                    *best = Some(best.map_or(trial.nrmse, |least: f64| least.min(trial.nrmse)));
                }
                format!("validation NRMSE {}", figure(trial.nrmse))
            }
            Err(error) => error.to_string(),
        };
        let best = best.map_or_else(String::new, |least| format!("; best so far {}", figure(least)));
        self.progress.now(|| format!("fit {done}, rung {} of {of}: {setting}: {said}{best}", rung + 1));
    }

    fn stop(&self) -> bool {
        interrupt::requested() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// The contents of front.json. No times: the same search gives the same bytes.
#[derive(Serialize)]
struct Found {
    /// Points on a front, by rising flash.
    front: Vec<Entry>,
    /// Which of them is recommended, from 0.
    recommended: Option<usize>,
    /// Models that were fitted on all of the data and are on no front.
    others: Vec<Entry>,
    complete: bool,
    fits: usize,
    untried: usize,
    failed: Vec<Failure>,
    hint: Option<String>,
}

#[derive(Serialize)]
struct Failure {
    setting: String,
    reason: String,
}

#[derive(Serialize)]
struct Entry {
    nrmse: f64,
    relative_residual: f64,
    flash_bytes: usize,
    macs_per_sample: usize,
    memory: usize,
    degree: usize,
    max_rank: usize,
    ranks: Vec<usize>,
    heads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    subset_size: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    combine: Option<&'static str>,
    on_flash_front: bool,
    on_macs_front: bool,
    fit: String,
}

impl Entry {
    fn new(args: &Args, point: &Point) -> Self {
        let Point { setting, trial, .. } = point;
        Self {
            nrmse: trial.nrmse,
            relative_residual: trial.relative_residual,
            flash_bytes: trial.flash_bytes,
            macs_per_sample: trial.macs_per_sample,
            memory: setting.memory,
            degree: setting.degree,
            max_rank: setting.max_rank,
            ranks: trial.ranks.clone(),
            heads: trial.heads,
            subset_size: setting.heads.as_ref().map(|heads| heads.subset_size),
            combine: setting.heads.as_ref().map(|heads| heads.combine_name()),
            on_flash_front: point.on_flash_front,
            on_macs_front: point.on_macs_front,
            fit: command(args, setting),
        }
    }
}

impl Found {
    fn new(args: &Args, tuning: &Tuning) -> Self {
        let front: Vec<&Point> = tuning.points.iter().filter(|point| point.on_front()).collect();
        Self {
            recommended: front.iter().position(|point| point.recommended),
            front: front.into_iter().map(|point| Entry::new(args, point)).collect(),
            others: tuning
                .points
                .iter()
                .filter(|point| !point.on_front())
                .map(|p| Entry::new(args, p))
                .collect(),
            complete: tuning.complete,
            fits: tuning.fits,
            untried: tuning.untried.len(),
            failed: tuning
                .failures
                .iter()
                .map(|(setting, reason)| Failure { setting: setting.to_string(), reason: reason.clone() })
                .collect(),
            hint: tuning.hint.clone(),
        }
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    found: &'a Found,
    seconds: f64,
}

/// The command that fits this setting, for a POSIX shell.
fn command(args: &Args, setting: &Setting) -> String {
    let mut words: Vec<String> = vec!["tha-train".into(), "fit".into()];
    let path = |path: &Path| path.display().to_string();
    words.extend(args.data.data.as_deref().map(path));
    let mut option =
        |name: &str, value: Option<String>| words.extend(value.into_iter().flat_map(|v| [name.into(), v]));
    option("--u", args.data.u.as_deref().map(path));
    option("--y", args.data.y.as_deref().map(path));
    option("--inputs", (!args.columns.inputs.is_empty()).then(|| args.columns.inputs.join(",")));
    option("--outputs", (!args.columns.outputs.is_empty()).then(|| args.columns.outputs.join(",")));
    option("--val", args.judge.val.as_deref().map(path));
    option("--val-fraction", args.judge.val_fraction.map(|fraction| fraction.to_string()));
    option("--folds", args.judge.folds.map(|folds| folds.to_string()));
    option("--seed", (args.seed != 0).then(|| args.seed.to_string()));
    if setting.heads.is_some() {
        option("--budget-flash", args.budget_flash.map(|budget| budget.to_string()));
        option("--budget-macs", args.budget_macs.map(|budget| budget.to_string()));
    }
    words.extend(setting.arguments());
    words.extend(["--out".into(), "model.tha".into()]);
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word that a POSIX shell takes as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn words(args: &Args, tuning: &Tuning, report: &Report<'_>) -> String {
    let Found { front, recommended, .. } = report.found;
    let head = ["", "NRMSE", "flash bytes", "MACs", "memory", "degree", "ranks", "heads", "combine", "front"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (k, entry) in front.iter().enumerate() {
        let ranks: Vec<String> = entry.ranks.iter().map(ToString::to_string).collect();
        let fronts = match (entry.on_flash_front, entry.on_macs_front) {
            (true, true) => "both",
            (true, false) => "flash",
            _ => "MACs",
        };
        rows.push(vec![
            format!("{}{}", k + 1, if *recommended == Some(k) { " *" } else { "" }),
            figure(entry.nrmse),
            entry.flash_bytes.to_string(),
            entry.macs_per_sample.to_string(),
            entry.memory.to_string(),
            entry.degree.to_string(),
            if ranks.is_empty() { "-".into() } else { ranks.join(" ") },
            entry.subset_size.map_or_else(|| "full".into(), |size| format!("{} of {size}", entry.heads)),
            entry.combine.unwrap_or("-").into(),
            fronts.into(),
        ]);
    }
    let mut text = String::new();
    if !front.is_empty() {
        text += &speak::table(&rows);
        text += "\n";
        for (k, entry) in front.iter().enumerate() {
            text += &format!("{:>2}  {}\n", k + 1, entry.fit);
        }
        text += "\n";
    }
    if let Some(k) = recommended {
        text += &format!("recommended: {}, the smallest within 5 % of the least error\n", k + 1);
    }
    if let Some(hint) = &tuning.hint {
        text += &format!("hint: {hint}\n");
    }
    if !tuning.failures.is_empty() {
        let (setting, reason) = &tuning.failures[0];
        text += &format!(
            "{} could not be fitted, the first: {setting}: {reason}\n",
            count(tuning.failures.len(), "setting")
        );
    }
    if !tuning.complete {
        text += "stopped before the end";
        if let Some(next) = tuning.untried.first() {
            text += &format!("; not tried: {}, the next: {next}", count(tuning.untried.len(), "setting"));
        }
        text += "; the same command goes on from here\n";
    }
    let folder = args.out.display();
    text + &format!(
        "{}, {:.0} s; the front is in {folder}/front.json and {folder}/front.svg",
        count(tuning.fits, "fit"),
        report.seconds
    )
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_a_shell_takes_as_they_are() {
        assert_eq!(quoted("data/train-1.csv"), "data/train-1.csv");
        assert_eq!(quoted("valve*,T"), "'valve*,T'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("~/x"), "'~/x'");
    }
}
