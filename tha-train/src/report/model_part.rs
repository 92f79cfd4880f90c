//! The part of a report that looks at one model: prediction against recording, residuals, fit, heads, size.

use super::chart::{Bar, Lines, Series, bars, heat, lines, short};
use super::page::{Page, escape, figure, natural, table};
use super::palette::{BLUE, GREEN, MUTED, ORANGE, PURPLE, SERIES};
use super::validation::{auto, cross};
use super::{Convergence, Report};
use crate::analysis::mask::coverage;
use crate::data::Dataset;
use crate::metrics::Metrics;
use nalgebra::DMatrix;

/// Samples in the close-up.
const CLOSE_UP: usize = 250;
/// Points of a plot over the whole recording.
const POINTS: usize = 1400;
/// Outputs shown in full.
const OUTPUTS: usize = 4;
/// Largest lag of the residual analysis.
const LAGS: i64 = 24;
/// Samples it is made from, at the end of the data.
const SAMPLES: usize = 20_000;
/// Inputs drawn against residuals.
const INPUTS: usize = 4;
/// Bars of a chart over heads.
const HEADS: usize = 40;

/// A recording against a prediction.
pub(super) struct Comparison {
    pub rows: Vec<usize>,
    pub truth: DMatrix<f64>,
    pub prediction: DMatrix<f64>,
    pub metrics: Metrics,
}

impl Comparison {
    pub(super) fn new(report: &Report<'_>) -> Self {
        let rows = report.data.scored_rows(report.model.spec().memory);
        let (truth, prediction) = (report.data.outputs_at(&rows), report.model.predict(report.data, &rows));
        let metrics = Metrics::new(&report.model.output_names(), &truth, &prediction);
        Self { rows, truth, prediction, metrics }
    }

    /// The worst outputs, at most [`OUTPUTS`] of them.
    fn shown(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.truth.ncols()).collect();
        order.sort_by(|&a, &b| self.metrics.outputs[b].nrmse.total_cmp(&self.metrics.outputs[a].nrmse));
        order.truncate(OUTPUTS);
        order.sort_unstable();
        order
    }
}

/// Fewer points: the smallest and the largest of each stretch.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let points: Vec<(f64, f64)> = points.collect();
    if points.len() <= POINTS {
        return points;
    }
    let stretch = points.len().div_ceil(POINTS / 2);
    let ends = |stretch: &[(f64, f64)]| {
        let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (low, high) =
            (*stretch.iter().min_by(by).expect("not empty"), *stretch.iter().max_by(by).expect("not empty"));
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
        let mut predicted = Series::new("predicted", ORANGE, close(&parts.prediction));
        predicted.width = 1;
        let upper = lines(Lines {
            size: (540, 250),
            x: "sample",
            y: name,
            series: vec![Series::new("measured", BLUE, close(&parts.truth)), predicted],
            band: None,
            stems: false,
            log: false,
        });
        let error =
            (0..count).map(|t| (parts.rows[t] as f64, parts.truth[(t, j)] - parts.prediction[(t, j)]));
        let mut residual = Series::new("", MUTED, thinned(error));
        residual.width = 1;
        let lower = lines(Lines {
            size: (540, 250),
            x: "sample",
            y: "residual",
            series: vec![residual],
            band: None,
            stems: false,
            log: false,
        });
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
    let macs = report.model.parameters();
    page.tiles(&[
        (short(parts.metrics.relative_residual), "relative residual"),
        (short(parts.metrics.nrmse), "NRMSE, mean over outputs"),
        (report.model.spec().heads.len().to_string(), "heads"),
        (macs.to_string(), "parameters = multiply-accumulates per sample"),
        (format!("{:.1} kB", report.bytes as f64 / 1e3), "model file = flash"),
    ]);
}

pub(super) fn residuals(page: &mut Page, data: &Dataset, parts: &Comparison) {
    page.section(
        "What the model leaves",
        "A good model leaves a residual that is white and has nothing to do with the inputs: values inside the shaded \
         95 % bands. Correlation with inputs at lags within the memory says that the model is too stiff, at larger lags \
         that the memory is too short, and at negative lags that there is feedback.",
    );
    let bar = |o: &crate::metrics::OutputMetrics| Bar {
        label: o.name.clone(),
        from: 0.0,
        to: if o.nrmse.is_finite() { o.nrmse } else { 0.0 },
        paint: BLUE,
        note: short(o.nrmse),
    };
    let listed: Vec<Bar> = parts.metrics.outputs.iter().take(HEADS).map(bar).collect();
    let mut rows = vec![["output", "RMSE", "NRMSE", "R²", "relative residual"].map(String::from).to_vec()];
    for o in parts.metrics.outputs.iter().take(HEADS) {
        let figures = [o.rmse, o.nrmse, o.r2, o.relative_residual].map(short);
        rows.push([vec![escape(&o.name)], figures.to_vec()].concat());
    }
    page.cards(&[
        figure(
            "NRMSE of each output",
            &bars(&listed, 540, false),
            "RMSE as a part of the output's standard deviation: 0 is perfect, 1 no better than the mean.",
        ),
        table("Figures of each output", &rows, "RMSE in physical units."),
    ]);
    let mut cards = Vec::new();
    let from = parts.rows.len().saturating_sub(SAMPLES);
    let rows = &parts.rows[from..];
    for j in parts.shown() {
        let error: Vec<f64> =
            (from..parts.rows.len()).map(|t| parts.truth[(t, j)] - parts.prediction[(t, j)]).collect();
        let name = &parts.metrics.outputs[j].name;
        let r = auto(data, rows, &error, LAGS);
        let points = r.lags.iter().zip(&r.values).map(|(lag, v)| (*lag as f64, *v)).collect();
        let (outside, of) = r.outside(true);
        cards.push(figure(
            &format!("{name}: auto-correlation of the residual"),
            &lines(Lines {
                size: (540, 240),
                x: "lag (samples)",
                y: "",
                series: vec![Series::new("", BLUE, points)],
                band: Some(r.band),
                stems: true,
                log: false,
            }),
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
        let series = all.iter().zip(SERIES).map(|((i, r), paint)| {
            let points = r.lags.iter().zip(&r.values).map(|(lag, v)| (*lag as f64, *v)).collect();
            Series { dots: true, width: 1, ..Series::new(data.inputs[*i].clone(), paint, points) }
        });
        let which = if all.len() < data.u.len() { "the strongest of all inputs; " } else { "" };
        cards.push(figure(
            &format!("{name}: residual against earlier inputs"),
            &lines(Lines {
                size: (540, 240),
                x: "lag (samples)",
                y: "",
                series: series.collect(),
                band: Some(band),
                stems: false,
                log: false,
            }),
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

pub(super) fn convergence(page: &mut Page, fit: &Convergence) {
    let mut cards = Vec::new();
    if fit.steps.len() > 1 {
        let points = fit.steps.iter().enumerate().map(|(k, v)| ((k + 1) as f64, *v)).collect();
        cards.push(figure(
            "Training residual, step by step",
            &lines(Lines {
                size: (540, 250),
                x: "step of the solver",
                y: "relative residual",
                series: vec![Series { width: 1, ..Series::new("", PURPLE, points) }],
                band: None,
                stems: false,
                log: true,
            }),
            "Jumps up are new starts, other ridges, or ranks that were cut and refitted.",
        ));
    }
    if fit.cycles.len() > 1 {
        let points = fit.cycles.iter().enumerate().map(|(k, v)| ((k + 1) as f64, *v)).collect();
        cards.push(figure(
            "Validation residual of the ensemble",
            &lines(Lines {
                size: (540, 250),
                x: "cycle or joint step",
                y: "relative residual",
                series: vec![Series { dots: true, ..Series::new("", PURPLE, points) }],
                band: None,
                stems: false,
                log: true,
            }),
            "",
        ));
    }
    if fit.heads.len() > 1 {
        let listed: Vec<Bar> = fit
            .heads
            .iter()
            .take(HEADS)
            .map(|(name, residual)| Bar {
                label: clipped(name),
                from: 0.0,
                to: *residual,
                paint: GREEN,
                note: short(*residual),
            })
            .collect();
        cards.push(figure("Validation residual of each head alone", &bars(&listed, 540, false), ""));
    }
    if !cards.is_empty() {
        page.section("The fit", "How the solver came to its result.");
        page.cards(&cards);
    }
}

pub(super) fn heads(page: &mut Page, report: &Report<'_>) {
    let spec = report.model.spec();
    if spec.heads.len() < 2 {
        return;
    }
    page.section(
        "Heads",
        "Each head sees some of the inputs; their outputs are summed with these weights. The coverage of two inputs is \
         the weight of the heads that see both: products of inputs that no head sees together are outside of the model.",
    );
    let mut order: Vec<usize> = (0..spec.heads.len()).collect();
    order.sort_by(|&a, &b| spec.heads[b].weight.total_cmp(&spec.heads[a].weight));
    order.truncate(HEADS);
    let listed: Vec<Bar> = order
        .iter()
        .map(|&k| {
            let head = &spec.heads[k];
            let names: Vec<&str> = head.inputs.iter().map(|&i| spec.inputs[i].name.as_str()).collect();
            let mut names = names.join(" ");
            if names.chars().count() > 24 {
                names = names.chars().take(23).collect::<String>() + "…";
            }
            let weight = f64::from(head.weight);
            Bar {
                label: format!("{}: {names}", k + 1),
                from: 0.0,
                to: weight,
                paint: BLUE,
                note: short(weight),
            }
        })
        .collect();
    let (values, names) = binned(
        coverage(spec.heads.iter().map(|head| (&head.inputs[..], f64::from(head.weight))), spec.inputs.len()),
        spec.inputs.iter().map(|channel| channel.name.clone()).collect(),
    );
    let most = values.iter().fold(0.0, |m: f64, v| m.max(*v));
    page.cards(&[
        figure(
            "Weights",
            &bars(&listed, 540, false),
            if spec.heads.len() > HEADS { "The largest." } else { "" },
        ),
        figure(
            "Coverage of pairs of inputs",
            &natural(&heat(&values, &names, most.max(1e-9), 500)),
            "Diagonal: the weight of all heads that see the input.",
        ),
    ]);
}

/// A label that leaves room for its bar.
fn clipped(label: &str) -> String {
    const LONGEST: usize = 24;
    if label.chars().count() <= LONGEST {
        return label.to_owned();
    }
    label.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// A matrix of at most 64 x 64 cells: the means over stretches of inputs.
fn binned(values: DMatrix<f64>, names: Vec<String>) -> (DMatrix<f64>, Vec<String>) {
    const CELLS: usize = 64;
    let count = values.nrows();
    if count <= CELLS {
        return (values, names);
    }
    let size = count.div_ceil(CELLS);
    let cells = count.div_ceil(size);
    let mean = |i: usize, j: usize| {
        let (rows, columns) = (size.min(count - i * size), size.min(count - j * size));
        values.view((i * size, j * size), (rows, columns)).mean()
    };
    (DMatrix::from_fn(cells, cells, mean), Vec::new())
}

pub(super) fn size(page: &mut Page, report: &Report<'_>) {
    let spec = report.model.spec();
    page.section("Size and cost", "What the model takes on a device.");
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let ranks: Vec<usize> = spec.heads.iter().flat_map(|h| h.cores.iter().skip(1).map(|c| c.left)).collect();
    let rank = match (ranks.iter().min(), ranks.iter().max()) {
        (Some(low), Some(high)) if low == high => high.to_string(),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        _ => "none".into(),
    };
    let mut rows = vec![
        row("", String::new()),
        row("inputs, outputs", format!("{}, {}", spec.inputs.len(), spec.outputs.len())),
        row("memory, degree", format!("{}, {}", spec.memory, spec.degree)),
        row("heads", spec.heads.len().to_string()),
        row("ranks", rank),
        row("parameters", report.model.parameters().to_string()),
        row("model file (flash)", format!("{} bytes", report.bytes)),
        row("multiply-accumulates per sample", report.model.parameters().to_string()),
    ];
    if let Some((full, bytes)) = report.full {
        rows[0] = vec![String::new(), "this model".into(), "full model".into()];
        let spec = full.spec();
        for (k, value) in [
            format!("{}, {}", spec.inputs.len(), spec.outputs.len()),
            format!("{}, {}", spec.memory, spec.degree),
            spec.heads.len().to_string(),
            spec.heads
                .iter()
                .flat_map(|h| h.cores.iter().skip(1).map(|c| c.left))
                .max()
                .map_or("none".into(), |r| r.to_string()),
            full.parameters().to_string(),
            format!("{bytes} bytes"),
            full.parameters().to_string(),
        ]
        .into_iter()
        .enumerate()
        {
            rows[k + 1].push(value);
        }
    }
    page.cards(&[table("Model", &rows, "")]);
}
