//! The part of a report that looks at the model: the course of its fit, its heads, its size.

use super::chart::{Bar, Lines, Series, bars, heat, lines, short};
use super::page::{Page, escape, figure, natural, table};
use super::palette::{BLUE, GREEN, MUTED, PURPLE};
use super::{Convergence, Report};
use nalgebra::DMatrix;
use tha_core::build::ModelSpec;

/// Bars of a chart over heads.
const HEADS: usize = 40;

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
            "Residual of the ensemble on the samples held out to choose on",
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
    // Additive heads are only judged together.
    if fit.heads.iter().any(|(_, residual)| *residual != fit.heads[0].1) {
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

pub(super) fn compared(page: &mut Page, report: &Report<'_>) {
    if report.compared.len() < 2 {
        return;
    }
    page.section(
        "Beside the other models",
        &format!("All on {}; this page is about the blue one.", escape(&report.data_name)),
    );
    let listed: Vec<Bar> = report
        .compared
        .iter()
        .map(|model| Bar {
            label: clipped(&model.name),
            from: 0.0,
            to: model.nrmse,
            paint: if model.shown { BLUE } else { MUTED },
            note: short(model.nrmse),
        })
        .collect();
    let mut rows =
        vec![["model", "heads", "NRMSE", "flash bytes", "MACs per sample"].map(String::from).to_vec()];
    for model in report.compared {
        let counts = [model.bytes, model.macs].map(|count| count.to_string());
        rows.push(
            [vec![escape(&model.name), model.heads.to_string(), short(model.nrmse)], counts.to_vec()]
                .concat(),
        );
    }
    page.cards(&[
        figure(
            "NRMSE, mean over the outputs",
            &bars(&listed, 540, false),
            "0 is perfect, 1 no better than the mean.",
        ),
        table("What it costs", &rows, "MACs: multiply-accumulates."),
    ]);
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
    order.sort_by(|&a, &b| spec.heads[b].weight().total_cmp(&spec.heads[a].weight()));
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
            let weight = f64::from(head.weight());
            Bar {
                label: format!("{}: {names}", k + 1),
                from: 0.0,
                to: weight,
                paint: BLUE,
                note: short(weight),
            }
        })
        .collect();
    let (values, names) = coverage(spec);
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

/// The coverage of pairs of inputs in at most 64 x 64 cells, means over stretches of inputs where there are more, and the names
/// where there are not.
fn coverage(spec: &ModelSpec) -> (DMatrix<f64>, Vec<String>) {
    const CELLS: usize = 64;
    let count = spec.inputs.len();
    let size = count.div_ceil(CELLS).max(1);
    let cells = count.div_ceil(size);
    let length = |cell: usize| size.min(count - cell * size) as f64;
    let mut covered = DMatrix::zeros(cells, cells);
    for head in &spec.heads {
        let mut share = vec![0.0; cells];
        head.inputs.iter().for_each(|&input| share[input / size] += length(input / size).recip());
        for (i, j) in (0..cells).flat_map(|i| (0..cells).map(move |j| (i, j))) {
            covered[(i, j)] += f64::from(head.weight()) * share[i] * share[j];
        }
    }
    let names = spec.inputs.iter().map(|channel| channel.name.clone());
    (covered, if size == 1 { names.collect() } else { Vec::new() })
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
        row("memory, degree", format!("{}, {}", spec.memory, spec.degree())),
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
            format!("{}, {}", spec.memory, spec.degree()),
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
