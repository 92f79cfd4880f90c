//! What `fit` says: as JSON, in words, and as a page.

use super::args::file_name;
use super::fit::Args;
use super::quantize::Numbers;
use serde::Serialize;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use tha_cli::{count, figure, lock, table, with_flags};
use tha_train::inspect::policies;
use tha_train::internals::{HeadReport, Interval, OutOfRange, Summary};
use tha_train::report::{self, Convergence};
use tha_train::{Dataset, FitParams, Metrics, Model, Outcome, Quantized, host};

/// The page of a finished fit.
pub(super) fn page(
    out: &Path,
    data: &Dataset,
    outcome: &Outcome,
    bytes: usize,
    course: &Mutex<Convergence>,
) -> String {
    let seen = lock(course).clone().with_heads(&outcome.heads);
    let report = about_the_fit(out, (&outcome.model, bytes), data);
    report::html(&report::Report { convergence: Some(&seen), ..report })
}

/// The report of a model on the data that it was fitted to.
pub(super) fn about_the_fit<'a>(
    out: &Path,
    model: (&'a Model, usize),
    data: &'a Dataset,
) -> report::Report<'a> {
    let data_name = format!("{}, the data of the fit,", file_name(Path::new(&data.origin)));
    report::Report::new(file_name(out), model, data, data_name)
}

/// What is said of an ensemble, with flags in the place of parameters.
pub(super) fn in_flags(mut summary: Summary) -> Summary {
    summary.hint = summary.hint.as_deref().map(with_flags);
    summary.failed.iter_mut().for_each(|failure| failure.reason = with_flags(&failure.reason));
    summary
}

/// The JSON object of a fit.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    train: Part,
    val: Part,
    heads: &'a [HeadReport],
    basis: String,
    maps: Option<usize>,
    /// Of the first head.
    gamma: Option<f64>,
    #[serde(flatten)]
    pub(super) figures: Figures<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ensemble: Option<&'a Summary>,
    /// Heads that were asked for, where there are fewer distinct subsets than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    heads_asked: Option<usize>,
    out_of_range: Vec<OutOfRange>,
}

impl<'a> Report<'a> {
    /// `asked` heads were asked for.
    pub(super) fn new(
        params: &FitParams<'_>,
        outcome: &'a Outcome,
        flash_bytes: usize,
        start: Instant,
        asked: Option<usize>,
        out_of_range: Vec<OutOfRange>,
    ) -> Self {
        let made = |summary: &Summary| summary.heads_before + summary.failed.len();
        let heads_made = outcome.ensemble.as_ref().map(made);
        let (basis, maps) = params.inputs_as();
        Self {
            train: (&outcome.train).into(),
            val: (&outcome.validation).into(),
            heads: &outcome.heads,
            basis: basis.to_string(),
            maps,
            gamma: outcome.heads.first().map(|head| head.gamma),
            figures: Figures::new(&outcome.model, flash_bytes, start),
            ensemble: outcome.ensemble.as_ref(),
            heads_asked: asked.filter(|&asked| heads_made.is_some_and(|made| asked > made)),
            out_of_range,
        }
    }
}

/// What every fit says of its model, and of the work.
#[derive(Serialize)]
pub(super) struct Figures<'a> {
    range_policy: &'static str,
    /// Of the intervals around the outputs; none where too few samples were held out to tell.
    coverage: Option<f64>,
    half_widths: Option<&'a [f32]>,
    /// What making integers cost, with `--numbers i16`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quantized: Option<&'a Quantized>,
    pub(super) numbers: &'static str,
    parameters: usize,
    pub(super) flash_bytes: usize,
    macs_per_sample: usize,
    seconds: f64,
    peak_rss_mb: Option<f64>,
}

impl<'a> Figures<'a> {
    pub(super) fn new(model: &'a Model, flash_bytes: usize, start: Instant) -> Self {
        Self {
            range_policy: policies(model.spec()).0,
            coverage: model.interval().map(Interval::coverage),
            half_widths: model.interval().map(Interval::half_widths),
            quantized: None,
            numbers: Numbers::F32.name(),
            parameters: model.parameters(),
            flash_bytes,
            macs_per_sample: model.macs(),
            seconds: start.elapsed().as_secs_f64(),
            peak_rss_mb: host::peak_rss_mb(),
        }
    }

    /// The last line of a summary: the file, what the model consists of, and its size and cost.
    pub(super) fn words(&self, out: &Path, shape: &str) -> String {
        format!(
            "{}: {shape}, {} parameters, {} bytes of flash, {} multiply-accumulates per sample, {:.1} s",
            out.display(),
            self.parameters,
            self.flash_bytes,
            self.macs_per_sample,
            self.seconds,
        )
    }
}

/// Figures on some samples, one entry per output where there are brackets.
#[derive(Serialize)]
pub(super) struct Part {
    relative_residual: f64,
    nrmse: Vec<f64>,
    rmse: Vec<f64>,
    samples: usize,
    without_nrmse: Vec<String>,
}

impl From<&Metrics> for Part {
    fn from(metrics: &Metrics) -> Self {
        Self {
            relative_residual: metrics.relative_residual,
            nrmse: metrics.outputs.iter().map(|output| output.nrmse).collect(),
            rmse: metrics.outputs.iter().map(|output| output.rmse).collect(),
            samples: metrics.samples,
            without_nrmse: metrics.without_nrmse.clone(),
        }
    }
}

/// The result in words.
pub(super) fn words(args: &Args, outcome: &Outcome, report: &Report<'_>) -> String {
    let row = |name: &str, m: &Metrics| {
        vec![
            name.to_owned(),
            m.samples.to_string(),
            figure(m.relative_residual),
            figure(m.rmse),
            figure(m.nrmse),
            figure(m.r2),
        ]
    };
    let rows = [row("training", &outcome.train), row("validation", &outcome.validation)];
    let mut text = table(", samples, relative residual, RMSE, NRMSE, R2", &rows);
    for (name, metrics) in [("training", &outcome.train), ("validation", &outcome.validation)] {
        text += &metrics.left_out().map_or_else(String::new, |left_out| format!("{name}: {left_out}\n"));
    }
    let shape = match report.ensemble {
        None => {
            let ranks: Vec<String> = outcome.heads[0].ranks.iter().map(ToString::to_string).collect();
            format!("ranks {}", if ranks.is_empty() { "none".into() } else { ranks.join(" ") })
        }
        Some(summary) => {
            for failure in &summary.failed {
                text += &format!("left out: head on {}: {}\n", failure.inputs.join(" "), failure.reason);
            }
            if let Some(asked) = report.heads_asked {
                let why = match args.subsets.as_deref() {
                    Some("covering") => "they cover every set of inputs",
                    Some(given) if given.starts_with("file:") => "--subsets lists no more",
                    _ => "the inputs have no more distinct subsets of this size",
                };
                let made = summary.heads_before + summary.failed.len();
                text += &format!("{made} heads of the {asked} asked for: {why}\n");
            }
            if summary.heads_before > outcome.heads.len() {
                text += &format!(
                    "pruned: {} of {} heads kept, {} of {} bytes\n",
                    outcome.heads.len(),
                    summary.heads_before,
                    report.figures.flash_bytes,
                    summary.flash_bytes_before
                );
            }
            if let Some(coverage) = summary.coverage.filter(|coverage| *coverage < 1.0) {
                let tuple = args.degree.min(outcome.model.spec().inputs.len());
                text += &format!(
                    "{:.0} % of all sets of {tuple} inputs lie inside some head\n",
                    100.0 * coverage
                );
            }
            if let Some(hint) = &summary.hint {
                text += &format!("hint: {hint}\n");
            }
            count(outcome.heads.len(), "head")
        }
    };
    text + &report.figures.words(&args.out, &shape)
}
