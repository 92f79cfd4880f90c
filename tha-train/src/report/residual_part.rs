//! The part of a report that looks at what the model leaves: figures of each output, and correlations of the residual.

use super::chart::{Bar, Lines, Series, bars, lines, short};
use super::page::{Page, escape, figure, table};
use super::palette::{BLUE, SERIES};
use super::prediction_part::Comparison;
use super::validation::{auto, cross};
use crate::data::Dataset;
use crate::metrics::OutputMetrics;

/// Largest lag of the residual analysis.
const LAGS: i64 = 24;
/// Samples it is made from, at the end of the data.
const SAMPLES: usize = 20_000;
/// Inputs drawn against residuals.
const INPUTS: usize = 4;
/// Outputs listed.
const LISTED: usize = 40;

pub(super) fn residuals(page: &mut Page, data: &Dataset, parts: &Comparison) {
    page.section(
        "What the model leaves",
        "A good model leaves a residual that is white and has nothing to do with the inputs: values inside the shaded \
         95 % bands. Correlation with inputs at lags within the memory says that the model is too stiff, at larger lags \
         that the memory is too short, and at negative lags that there is feedback.",
    );
    let listed = || parts.metrics.outputs.iter().take(LISTED);
    let nrmse: Vec<Bar> = listed().map(|o| Bar::new(&o.name, o.nrmse, BLUE)).collect();
    let row = |o: &OutputMetrics| {
        let figures = [o.rmse, o.nrmse, o.r2, o.relative_residual].map(short);
        [vec![escape(&o.name)], figures.to_vec()].concat()
    };
    page.cards(&[
        figure(
            "NRMSE of each output",
            &bars(&nrmse, false),
            "RMSE as a part of the output's standard deviation: 0 is perfect, 1 no better than the mean.",
        ),
        table(
            "Figures of each output",
            &["output", "RMSE", "NRMSE", "R²", "relative residual"],
            &listed().map(row).collect::<Vec<_>>(),
            "RMSE in physical units.",
        ),
    ]);
    let mut cards = Vec::new();
    let from = parts.rows.len().saturating_sub(SAMPLES);
    let rows = &parts.rows[from..];
    for j in parts.shown() {
        let error = parts.residual(j, from);
        let name = &parts.metrics.outputs[j].name;
        let r = auto(data, rows, &error, LAGS);
        let stems = vec![Series::new("", BLUE, r.points())];
        let (outside, of) = r.outside(true);
        cards.push(figure(
            &format!("{name}: auto-correlation of the residual"),
            &lines(Lines { band: Some(r.band), stems: true, ..Lines::new("lag (samples)", "", stems) }),
            &format!(
                "{outside} of {of} lags outside of the band; chance gives about {:.0}.",
                0.05 * of as f64
            ),
        ));
        let mut all: Vec<_> = (0..data.u.len()).map(|i| (i, cross(data, rows, &error, i, LAGS))).collect();
        let outside: (usize, usize) = all
            .iter()
            .map(|(_, r)| r.outside(false))
            .fold((0, 0), |(a, b), (outside, of)| (a + outside, b + of));
        all.sort_by(|a, b| (b.1.largest() / b.1.band).total_cmp(&(a.1.largest() / a.1.band)));
        all.truncate(INPUTS);
        let band = all.iter().map(|(_, r)| r.band).fold(0.0, f64::max);
        let series = all.iter().zip(SERIES).map(|((i, r), paint)| Series {
            dots: true,
            width: 1,
            ..Series::new(data.inputs[*i].clone(), paint, r.points())
        });
        let which = if all.len() < data.u.len() { "the strongest of all inputs; " } else { "" };
        cards.push(figure(
            &format!("{name}: residual against earlier inputs"),
            &lines(Lines { band: Some(band), ..Lines::new("lag (samples)", "", series.collect()) }),
            &format!(
                "Cross-correlation, {which}{} of {} values outside of the band; chance gives about {:.0}.",
                outside.0,
                outside.1,
                0.05 * outside.1 as f64
            ),
        ));
    }
    page.cards(&cards);
}
