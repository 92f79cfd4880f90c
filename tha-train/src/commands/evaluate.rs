//! `tha-train evaluate`: how good a model is on a data file.

use super::args::{Threads, read};
use super::error::CliError;
use serde::Serialize;
use tha_cli::{ModelAndData, Speech, Status, count, figure, result, table};
use tha_train::internals::OutOfRange;
use tha_train::{Metrics, Model};

/// Compare a model's prediction with recorded outputs.
///
/// Columns are matched by the model's channel names. The first M-1 samples of a record are history and not scored.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-train evaluate model.tha data/test.csv --json")]
pub(super) struct Args {
    #[command(flatten)]
    files: ModelAndData,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    args.threads.apply();
    let model = Model::read(&args.files.model)?;
    let data = read(&args.files.data, &model.columns(true))?;
    data.check_memory(model.spec().settled())?;
    let out_of_range = model.out_of_range(&data);
    let warnings = [data.warnings(), out_of_range_in_words(&data.origin, &out_of_range)].concat();
    let status = Status::new(args.speech, warnings);
    let rows = data.scored_rows(model.spec().settled());
    let (truth, prediction) = (data.outputs_at(&rows), model.predict(&data, &rows));
    let metrics = Metrics::new(&model.output_names(), &truth, &prediction);
    let coverage = model.interval().zip(model.measured_coverage(&truth, &prediction));
    let coverage = coverage.map(|(interval, measured)| Coverage { nominal: interval.coverage(), measured });
    status.done();
    let report = Report { metrics: &metrics, out_of_range: &out_of_range, coverage };
    result(args.speech.json, &report, || words(&metrics, report.coverage.as_ref()));
    Ok(())
}

/// The JSON object of an evaluation.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    out_of_range: &'a [OutOfRange],
    /// Of the intervals; none where the model has none.
    coverage: Option<Coverage>,
}

/// How often the outputs lie within their intervals: what the model says, and what was found for each output.
#[derive(Serialize)]
struct Coverage {
    nominal: f64,
    measured: Vec<f64>,
}

fn words(metrics: &Metrics, coverage: Option<&Coverage>) -> String {
    let row = |name: &str, figures: [f64; 4], coverage: Option<f64>| {
        let all = figures.into_iter().chain(coverage).map(figure);
        std::iter::once(name.to_owned()).chain(all).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for (j, o) in metrics.outputs.iter().enumerate() {
        let measured = coverage.map(|coverage| coverage.measured[j]);
        rows.push(row(&o.name, [o.relative_residual, o.rmse, o.nrmse, o.r2], measured));
    }
    let mean = coverage
        .map(|coverage| coverage.measured.iter().sum::<f64>() / coverage.measured.len().max(1) as f64);
    rows.push(row("total", [metrics.relative_residual, metrics.rmse, metrics.nrmse, metrics.r2], mean));
    let mut head = "output, relative residual, RMSE, NRMSE, R2".to_owned();
    if let Some(coverage) = coverage {
        head += &format!(", within {} %", 100.0 * coverage.nominal);
    }
    let left_out = metrics.left_out().map_or_else(String::new, |text| text + "\n");
    format!("{}{left_out}{} samples scored", table(&head, &rows), metrics.samples)
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
