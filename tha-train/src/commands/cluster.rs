//! `tha-train plan`, `head` and `merge`: a fit divided among machines that see one folder.

use super::args::{Manner, Threads, beside, read};
use super::auto;
use super::error::{CliError, go_on};
use super::fit::{self, strategy_of};
use super::fit_report::{self, in_flags};
use super::quantize::Numbers;
use super::watch::Watch;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use tha_cli::{Speech, Status, count, figure, summary};
use tha_train::internals::{HeadDone, ranges};
use tha_train::output::{self, Kind};
use tha_train::{FitError, FitParams, Made, Plan};

/// Plan a fit whose heads any machine can fit that sees the folder.
///
/// The folder gets the data and the options; `head` fits one head, in any order, as often as one likes, and `merge` gives the model
/// that `fit` would give, to the byte. Additive heads, adaptive subsets and full models are one piece of work. With --auto --trials N
/// the pieces are settings that the search wants to try; planned again when they are there, those that it wants next.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  tha-train plan array.csv --dir work --heads 24 --subset-size 3",
    mut_arg("out", |arg| arg.required(false).default_value("-").hide(true)),
    mut_arg("report", |arg| arg.hide(true)),
    mut_arg("checkpoint", |arg| arg.hide(true)),
    mut_arg("minutes", |arg| arg.hide(true)),
    mut_arg("force", |arg| arg.hide(true))
)]
pub(super) struct PlanArgs {
    /// Folder of the plan and of what the heads leave; it is made where it does not exist.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    #[command(flatten)]
    fit: fit::Args,
}

/// Fit some heads of a plan, here and now.
///
/// What the folder holds already is not computed again; what is damaged is.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  tha-train head work 7\n  tha-train head work 0 1 2 3 --threads 1")]
pub(super) struct HeadArgs {
    /// Folder of the plan.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Numbers of the heads, from 0.
    #[arg(value_name = "K", required = true)]
    heads: Vec<usize>,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
}

/// Merge the heads of a plan into a model: the bytes of `fit` with the same options.
///
/// Heads that are missing or damaged are named, and nothing is written.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-train merge work --out model.tha")]
pub(super) struct MergeArgs {
    /// Folder of the plan.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Where the model goes; - is standard output, with the summary on standard error.
    #[arg(long, value_name = "MODEL.tha")]
    out: PathBuf,
    #[command(flatten)]
    manner: Manner,
}

pub(super) fn plan(args: &PlanArgs) -> Result<(), CliError> {
    let PlanArgs { dir, fit } = args;
    fit.manner.threads.apply();
    let alone = [
        ("--minutes", fit.minutes.is_some(), "what is tried would depend on the machine; give --trials"),
        ("--numbers", fit.numbers != Numbers::F32, "`merge` writes f32; use `quantize` on the model"),
        ("--out", fit.out.as_os_str() != "-", "`merge` writes the model; give it there"),
        ("--report", fit.report.is_some(), "`merge` makes none; use `evaluate` on the model"),
        ("--checkpoint", fit.checkpoint.is_some(), "--dir keeps every head already; leave it out"),
    ];
    if let Some((flag, _, remedy)) = alone.iter().find(|(_, given, _)| *given) {
        return Err(CliError::Usage(format!("{flag}: not for a plan: {remedy}")));
    }
    if !fit.auto {
        fit.params().check_values()?;
    }
    let data = read(&fit.data, &fit.columns.columns())?;
    let validation = fit.validation.read(&data)?;
    let status = Status::new(fit.manner.speech, fit.validation.warnings(&data, validation.as_ref()));
    let watch = Watch::new(&status);
    let plan = if fit.auto {
        Plan::auto(auto::params(fit, None), data, dir, &watch)?
    } else {
        let meant = fit.validation.meant(validation.as_ref());
        let params = fit.params().subsets(strategy_of(fit, &data)?).validation(meant);
        Plan::new(params, data, dir, &watch)?
    };
    plan.write(dir)?;
    status.done();
    let (heads, dir) = (plan.heads(), dir.display());
    let missing = plan.missing(&args.dir)?;
    let object = json!({
        "dir": dir.to_string(), "heads": heads, "missing": missing, "divided": plan.divided(), "portable": plan.portable(),
    });
    summary(fit.manner.speech, &object, || match (&missing[..], plan.divided()) {
        ([], _) => format!("{dir}: {}, all done: tha-train merge {dir}", count(heads, "head")),
        (_, false) => {
            format!("{dir}: 1 head, as the work cannot be divided: tha-train head {dir} 0, then merge")
        }
        (missing, true) => {
            let todo = ranges(missing);
            format!("{dir}: {}: tha-train head {dir} K for each of {todo}, then merge", count(heads, "head"))
        }
    });
    Ok(())
}

pub(super) fn head(args: &HeadArgs) -> Result<(), CliError> {
    args.threads.apply();
    let plan = Plan::read(&args.dir, Some(&args.heads))?;
    let status = Status::new(args.speech, Vec::new());
    let mut done = Vec::new();
    for &k in &args.heads {
        let head = plan.fit_head(&args.dir, k, &Watch::new(&status)).map_err(|error| match error {
            FitError::Option { .. } => CliError::from(error),
            error => CliError::Usage(format!("head {k}: {error}")),
        });
        done.push(head?);
        go_on()?;
    }
    status.done();
    summary(args.speech, &json!({ "heads": done }), || {
        let line = |head: &HeadDone| match &head.failed {
            Some(reason) => format!("head {}: left out: {reason}", head.head),
            None => format!("head {}: {:.1} s, {}", head.head, head.seconds, count(head.files.len(), "file")),
        };
        done.iter().map(line).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}

pub(super) fn merge(args: &MergeArgs) -> Result<(), CliError> {
    let start = Instant::now();
    args.manner.threads.apply();
    let speech = beside(args.manner.speech, [&args.out])?;
    output::check(&args.out, Kind::Model, args.manner.replace.force, [])?;
    let plan = Plan::read(&args.dir, None)?;
    let status = Status::new(args.manner.speech, Vec::new());
    let mut merged = plan.merge(&args.dir, &Watch::new(&status))?;
    let bytes = merged.made.model().to_bytes()?;
    go_on()?;
    output::write([(args.out.as_path(), &bytes[..])], args.manner.replace.force)?;
    status.done();
    let mut text = String::new();
    for (processor, heads) in merged.processors.iter().filter(|_| merged.processors.len() > 1) {
        text += &format!("{processor}: heads {}\n", ranges(heads));
    }
    let processors = merged.processors;
    match &mut merged.made {
        Made::Auto(outcome) => {
            let report = auto::Report::new(plan.data(), outcome, bytes.len(), start, None);
            let words = || text + &auto::words(&args.out, outcome, &report);
            summary(speech, &Answer { report: &report, processors }, words);
        }
        Made::Fit(outcome) => {
            outcome.ensemble = outcome.ensemble.take().map(in_flags);
            let params = plan.params().cloned().unwrap_or_else(FitParams::new);
            let report = fit_report::Report::new(&params, outcome, bytes.len(), start, None, Vec::new());
            summary(speech, &Answer { report: &report, processors }, || {
                text + &format!(
                    "{}: {} of {}, validation NRMSE {}, {} bytes of flash, {:.1} s",
                    args.out.display(),
                    count(outcome.heads.len(), "head"),
                    plan.heads(),
                    figure(outcome.validation.nrmse),
                    bytes.len(),
                    start.elapsed().as_secs_f64()
                )
            });
        }
    }
    Ok(())
}

/// What a fit says, and who did the work.
#[derive(Serialize)]
struct Answer<'a, T> {
    #[serde(flatten)]
    report: &'a T,
    /// The numbers of the heads by the processor that fitted them.
    processors: BTreeMap<String, Vec<usize>>,
}
