//! `tha-train evaluate`: how good a model is on a data file.

use super::args::{DataArgs, Speech, Threads};
use super::error::CliError;
use super::speak::{self, Progress, figure, out_of_range_in_words};
use crate::metrics::Metrics;
use crate::model::{Model, OutOfRange};
use serde::Serialize;
use std::path::PathBuf;

/// Compare a model's prediction with recorded outputs.
///
/// Columns are matched by the model's channel names. The first M-1 samples of a record are history and not scored.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-train evaluate model.tha data/test.csv --json")]
pub(super) struct Args {
    /// Model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    args.threads.apply();
    let model = Model::read(&args.model)?;
    let data = args.data.source()?.read(&model.columns(true))?;
    data.check_memory(model.spec().settled())?;
    let out_of_range = model.out_of_range(&data);
    let warnings = [data.warnings(), out_of_range_in_words(&data.origin, &out_of_range)].concat();
    let progress = Progress::new(args.speech, warnings);
    let metrics = model.evaluate(&data);
    progress.done();
    let report = Report { metrics: &metrics, out_of_range: &out_of_range };
    speak::result(args.speech.json, &report, || words(&metrics));
    Ok(())
}

/// The JSON object of an evaluation.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    out_of_range: &'a [OutOfRange],
}

fn words(metrics: &Metrics) -> String {
    let head = ["output", "relative residual", "RMSE", "NRMSE", "R2"].map(String::from).to_vec();
    let row = |name: &str, figures: [f64; 4]| [vec![name.to_owned()], figures.map(figure).to_vec()].concat();
    let mut rows = vec![head];
    for o in &metrics.outputs {
        rows.push(row(&o.name, [o.relative_residual, o.rmse, o.nrmse, o.r2]));
    }
    rows.push(row("total", [metrics.relative_residual, metrics.rmse, metrics.nrmse, metrics.r2]));
    let left_out = metrics.left_out().map_or_else(String::new, |text| text + "\n");
    format!("{}{left_out}{} samples scored", speak::table(&rows), metrics.samples)
}
