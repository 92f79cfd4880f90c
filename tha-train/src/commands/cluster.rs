//! `tha-train plan`, `head` and `merge`: a fit divided among machines that see one folder.

use super::args::{Threads, beside, read};
use super::error::{CliError, go_on};
use super::fit::{self, strategy_of};
use super::fit_report::{Part, in_flags};
use super::watch::Watch;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use tha_cli::{Replace, Speech, Status, count, figure, summary};
use tha_train::host;
use tha_train::output::{self, Kind, Staging};
use tha_train::plan::{Plan, ranges};

/// Plan a fit whose heads any machine can fit that sees the folder.
///
/// The folder gets the data and the options; `head` fits one head, in any order, as often as one likes, and `merge` gives the model
/// that `fit` would give, to the byte. Additive heads, adaptive subsets and full models are one piece of work.
#[derive(clap::Args, Debug)]
#[command(
    about = "Plan a fit whose heads any machine can fit that sees the folder",
    long_about = "Plan a fit whose heads any machine can fit that sees the folder.\n\nThe folder gets the data and the options; `head` \
                  fits one head, in any order, as often as one likes, and `merge` gives the model that `fit` would give, to the byte. \
                  Additive heads, adaptive subsets and full models are one piece of work.",
    after_help = "Example:\n  tha-train plan array.csv --dir work --heads 24 --subset-size 3",
    mut_arg("out", |arg| arg.required(false).default_value("-").hide(true)),
    mut_arg("report", |arg| arg.hide(true)),
    mut_arg("checkpoint", |arg| arg.hide(true)),
    mut_arg("auto", |arg| arg.hide(true)),
    mut_arg("minutes", |arg| arg.hide(true)),
    mut_arg("trials", |arg| arg.hide(true)),
    mut_arg("single", |arg| arg.hide(true)),
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
    replace: Replace,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
}

pub(super) fn plan(args: &PlanArgs) -> Result<(), CliError> {
    let PlanArgs { dir, fit } = args;
    fit.threads.apply();
    let alone = [
        ("--auto", fit.auto, "its settings follow from each other; use `fit --auto`"),
        ("--out", fit.out.as_os_str() != "-", "`merge` writes the model; give it there"),
        ("--report", fit.report.is_some(), "`merge` makes none; use `evaluate` on the model"),
        ("--checkpoint", fit.checkpoint.is_some(), "--dir keeps every head already; leave it out"),
    ];
    if let Some((flag, _, remedy)) = alone.iter().find(|(_, given, _)| *given) {
        return Err(CliError::Usage(format!("{flag}: not for a plan: {remedy}")));
    }
    fit.params().check_values()?;
    let data = read(&fit.data, &fit.columns.columns())?;
    let validation = fit.validation.read(&data)?;
    let status = Status::new(fit.speech, fit.validation.warnings(&data, validation.as_ref()));
    let params =
        fit.params().subsets(strategy_of(fit, &data)?).validation(fit.validation.meant(validation.as_ref()));
    let plan = Plan::new(params, data, dir, &Watch::new(&status))?;
    status.done();
    let (heads, dir) = (plan.heads(), dir.display());
    let object = json!({ "dir": dir.to_string(), "heads": heads, "divided": plan.divided() });
    summary(fit.speech, &object, || match plan.divided() {
        true => {
            format!("{dir}: {heads} heads, 0 to {}: tha-train head {dir} K for each, then merge", heads - 1)
        }
        false => format!("{dir}: 1 head, as the work cannot be divided: tha-train head {dir} 0, then merge"),
    });
    Ok(())
}

pub(super) fn head(args: &HeadArgs) -> Result<(), CliError> {
    args.threads.apply();
    let plan = Plan::read(&args.dir)?;
    let status = Status::new(args.speech, Vec::new());
    let mut done = Vec::new();
    for &k in &args.heads {
        let head = plan.fit_head(&args.dir, k, &Watch::new(&status)).map_err(|error| match error {
            tha_train::FitError::Option { .. } => CliError::from(error),
            error => CliError::Usage(format!("head {k}: {error}")),
        });
        done.push(head?);
        go_on()?;
    }
    status.done();
    summary(args.speech, &json!({ "heads": done }), || {
        let line = |head: &tha_train::HeadDone| match &head.failed {
            Some(reason) => format!("head {}: left out: {reason}", head.head),
            None => format!("head {}: {:.1} s, {}", head.head, head.seconds, count(head.files.len(), "file")),
        };
        done.iter().map(line).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}

pub(super) fn merge(args: &MergeArgs) -> Result<(), CliError> {
    let start = Instant::now();
    args.threads.apply();
    let speech = beside(args.speech, [&args.out])?;
    output::check(&args.out, Kind::Model, args.replace.force, [])?;
    let plan = Plan::read(&args.dir)?;
    let status = Status::new(args.speech, Vec::new());
    let merged = plan.merge(&args.dir, &Watch::new(&status))?;
    let outcome = merged.outcome;
    let bytes = outcome.model.to_bytes()?;
    go_on()?;
    let mut staging = Staging::among_others(args.replace.force);
    staging.write(&args.out, |to| to.write_all(&bytes))?;
    staging.commit()?;
    status.done();
    let object = json!({
        "train": Part::from(&outcome.train),
        "val": Part::from(&outcome.validation),
        "heads": outcome.heads,
        "ensemble": outcome.ensemble.clone().map(in_flags),
        "parameters": outcome.model.parameters(),
        "flash_bytes": bytes.len(),
        "macs_per_sample": outcome.model.macs(),
        "processors": merged.processors,
        "seconds": start.elapsed().as_secs_f64(),
        "peak_rss_mb": host::peak_rss_mb(),
    });
    summary(speech, &object, || {
        let mut text = String::new();
        for (processor, heads) in merged.processors.iter().filter(|_| merged.processors.len() > 1) {
            text += &format!("{processor}: heads {}\n", ranges(heads));
        }
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
    Ok(())
}
