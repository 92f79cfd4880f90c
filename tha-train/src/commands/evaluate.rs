//! `tha-train evaluate`: how good a model is on a data file.

use super::args::{Threads, read};
use super::error::CliError;
use serde::Serialize;
use std::path::PathBuf;
use tha_cli::{DataArgs, Speech, Status, count, figure, result, table};
use tha_train::metrics::Metrics;
use tha_train::model::{Model, OutOfRange};

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
    let data = read(&args.data, &model.columns(true))?;
    data.check_memory(model.spec().settled())?;
    let out_of_range = model.out_of_range(&data);
    let warnings = [data.warnings(), out_of_range_in_words(&data.origin, &out_of_range)].concat();
    let status = Status::new(args.speech, warnings);
    let metrics = model.evaluate(&data);
    status.done();
    let report = Report { metrics: &metrics, out_of_range: &out_of_range };
    result(args.speech.json, &report, || words(&metrics));
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
    let row = |name: &str, figures: [f64; 4]| [vec![name.to_owned()], figures.map(figure).to_vec()].concat();
    let mut rows = Vec::new();
    for o in &metrics.outputs {
        rows.push(row(&o.name, [o.relative_residual, o.rmse, o.nrmse, o.r2]));
    }
    rows.push(row("total", [metrics.relative_residual, metrics.rmse, metrics.nrmse, metrics.r2]));
    let left_out = metrics.left_out().map_or_else(String::new, |text| text + "\n");
    format!(
        "{}{left_out}{} samples scored",
        table("output, relative residual, RMSE, NRMSE, R2", &rows),
        metrics.samples
    )
}

/// Names in a warning.
const SHOWN: usize = 8;

/// A warning about the inputs that leave the training range, the worst first; none where none does.
pub(super) fn out_of_range_in_words(origin: &str, found: &[OutOfRange]) -> Vec<String> {
    let mut found: Vec<&OutOfRange> = found.iter().collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    let Some(worst) = found.first() else { return Vec::new() };
    let units = if worst.share > 0.5 { "; are the units those of the training data?" } else { "" };
    let part =
        |input: &&OutOfRange| format!("'{}' in {:.2} % of the samples", input.input, 100.0 * input.share);
    let shown: Vec<String> = found.iter().take(SHOWN).map(part).collect();
    let more = match found.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let inputs = count(found.len(), "input");
    vec![format!("{origin}: {inputs} outside of the training range: {}{more}{units}", shown.join(", "))]
}
