//! The part of a report that compares prediction and recording over time.

use super::Report;
use super::chart::{Lines, Series, lines, short};
use super::page::{Page, escape, figure};
use super::palette::{BLUE, MUTED, ORANGE};
use crate::metrics::Metrics;
use nalgebra::DMatrix;

/// Samples in the close-up.
const CLOSE_UP: usize = 250;
/// Points of a plot over the whole recording.
const POINTS: usize = 1400;
/// Outputs shown in full.
const OUTPUTS: usize = 4;

/// A recording against a prediction.
pub(super) struct Comparison {
    pub rows: Vec<usize>,
    pub truth: DMatrix<f64>,
    pub prediction: DMatrix<f64>,
    pub metrics: Metrics,
}

impl Comparison {
    pub(super) fn new(report: &Report<'_>) -> Self {
        let rows = report.data.scored_rows(report.model.spec().settled());
        let (truth, prediction) = (report.data.outputs_at(&rows), report.model.predict(report.data, &rows));
        let metrics = Metrics::new(&report.model.output_names(), &truth, &prediction);
        Self { rows, truth, prediction, metrics }
    }

    /// The residual of an output from a row on.
    pub(super) fn residual(&self, output: usize, from: usize) -> Vec<f64> {
        (from..self.rows.len()).map(|t| self.truth[(t, output)] - self.prediction[(t, output)]).collect()
    }

    /// The worst outputs, at most [`OUTPUTS`] of them.
    pub(super) fn shown(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.truth.ncols()).collect();
        order.sort_by(|&a, &b| self.metrics.outputs[b].nrmse.total_cmp(&self.metrics.outputs[a].nrmse));
        order.truncate(OUTPUTS);
        order.sort_unstable();
        order
    }
}

/// Fewer points: the smallest and the largest of each stretch.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS {
        return points;
    }
    let stretch = points.len().div_ceil(POINTS / 2);
    let ends = |stretch: &[(f64, f64)]| {
        let mut low = stretch[0];
        let mut high = low;
        for &point in stretch {
            low = if point.1 < low.1 { point } else { low };
            high = if point.1 > high.1 { point } else { high };
        }
        if low.0 <= high.0 { [low, high] } else { [high, low] }
    };
    points.chunks(stretch).flat_map(ends).collect()
}

pub(super) fn prediction(page: &mut Page, report: &Report<'_>, parts: &Comparison) {
    let (count, l) = (parts.rows.len(), parts.truth.ncols());
    let shown = parts.shown();
    let which = if shown.len() < l { format!("; the {OUTPUTS} worst of {l} outputs") } else { String::new() };
    page.section(
        "Measured and predicted",
        &format!(
            "{} over {count} scored samples{which}, in physical units. Left, the last {} of them; right, the \
             residual of all.",
            escape(&report.data_name),
            CLOSE_UP.min(count)
        ),
    );
    for j in shown {
        let name = &report.model.output_names()[j];
        let from = count.saturating_sub(CLOSE_UP);
        let close = |m: &DMatrix<f64>| (from..count).map(|t| (parts.rows[t] as f64, m[(t, j)])).collect();
        let measured = Series::new("measured", BLUE, close(&parts.truth));
        let predicted = Series { width: 1, ..Series::new("predicted", ORANGE, close(&parts.prediction)) };
        let upper = lines(Lines::new("sample", name, vec![measured, predicted]));
        let error = parts.rows.iter().zip(parts.residual(j, 0)).map(|(&t, error)| (t as f64, error));
        let residual = Series { width: 1, ..Series::new("", MUTED, thinned(error.collect())) };
        let lower = lines(Lines::new("sample", "residual", vec![residual]));
        let m = &parts.metrics.outputs[j];
        let caption = format!("RMSE {}, NRMSE {}, R² {}", short(m.rmse), short(m.nrmse), short(m.r2));
        page.cards(&[
            figure(&format!("{name}: measured and predicted"), &upper, ""),
            figure(&format!("{name}: residual"), &lower, &caption),
        ]);
    }
}

/// Tiles on top.
pub(super) fn summary(page: &mut Page, report: &Report<'_>, parts: &Comparison) {
    let macs = report.model.macs();
    let metrics = &parts.metrics;
    let nrmse = match metrics.without_nrmse.len() {
        0 => "NRMSE, mean over outputs".to_owned(),
        _ => format!("NRMSE, mean over {} of {} outputs", metrics.nrmse_outputs, metrics.outputs.len()),
    };
    page.tiles(&[
        (short(parts.metrics.relative_residual), "relative residual"),
        (short(parts.metrics.nrmse), &nrmse),
        (report.model.spec().heads.len().to_string(), "heads"),
        (macs.to_string(), "parameters = multiply-accumulates per sample"),
        (format!("{:.1} kB", report.bytes as f64 / 1e3), "model file = flash"),
    ]);
}
