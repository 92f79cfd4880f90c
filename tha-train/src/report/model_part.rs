//! The part of a report that looks at the model: the course of its fit, its heads, its size.

use super::chart::{Bar, Lines, Series, bars, lines, short};
use super::heat::heat;
use super::page::{Page, escape, figure, table};
use super::palette::{BLUE, GREEN, MUTED, PURPLE};
use super::{Compared, Convergence, Report};
use crate::analysis::mask::coverage;
use crate::model::Model;
use nalgebra::DMatrix;
use tha_core::build::ModelSpec;

/// Bars of a chart over heads.
const HEADS: usize = 40;

pub(super) fn convergence(page: &mut Page, fit: &Convergence) {
    let mut cards = Vec::new();
    let course = |values: &[f64], x: &str, dots: bool| {
        let points = values.iter().enumerate().map(|(k, v)| ((k + 1) as f64, *v)).collect();
        let series = Series { dots, width: 1, ..Series::new("", PURPLE, points) };
        lines(Lines { log: true, ..Lines::new(x, "relative residual", vec![series]) })
    };
    if fit.steps.len() > 1 {
        cards.push(figure(
            "Training residual, step by step",
            &course(&fit.steps, "step of the solver", false),
            "Jumps up are new starts, other ridges, or ranks that were cut and refitted.",
        ));
    }
    if fit.cycles.len() > 1 {
        let title = "Residual of the ensemble on the samples held out to choose on";
        cards.push(figure(title, &course(&fit.cycles, "cycle or joint step", true), ""));
    }
    // Additive heads are only judged together.
    if fit.heads.iter().any(|(_, residual)| *residual != fit.heads[0].1) {
        let bar = |(name, residual): &(String, f64)| Bar::new(name, *residual, GREEN);
        let listed: Vec<Bar> = fit.heads.iter().take(HEADS).map(bar).collect();
        cards.push(figure("Validation residual of each head alone", &bars(&listed, false), ""));
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
    let bar = |model: &Compared| Bar::new(&model.name, model.nrmse, if model.shown { BLUE } else { MUTED });
    let row = |model: &Compared| {
        let [heads, bytes, macs] = [model.heads, model.bytes, model.macs].map(|count| count.to_string());
        vec![escape(&model.name), heads, short(model.nrmse), bytes, macs]
    };
    page.cards(&[
        figure(
            "NRMSE, mean over the outputs",
            &bars(&report.compared.iter().map(bar).collect::<Vec<_>>(), false),
            "0 is perfect, 1 no better than the mean.",
        ),
        table(
            "What it costs",
            &["model", "heads", "NRMSE", "flash bytes", "MACs per sample"],
            &report.compared.iter().map(row).collect::<Vec<_>>(),
            "MACs: multiply-accumulates.",
        ),
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
    let bar = |&k: &usize| {
        let head = &spec.heads[k];
        let names: Vec<&str> = head.inputs.iter().map(|&i| spec.inputs[i].name.as_str()).collect();
        Bar::new(&format!("{}: {}", k + 1, names.join(" ")), head.weight().into(), BLUE)
    };
    let listed: Vec<Bar> = order.iter().map(bar).collect();
    let (values, names) = covered(spec);
    let most = values.iter().fold(0.0, |m: f64, v| m.max(*v));
    let which = if spec.heads.len() > HEADS { "The largest." } else { "" };
    page.cards(&[
        figure("Weights", &bars(&listed, false), which),
        figure(
            "Coverage of pairs of inputs",
            &heat(&values, &names, most.max(1e-9), 500),
            "Diagonal: the weight of all heads that see the input.",
        ),
    ]);
}

/// The coverage of pairs of inputs in at most 64 x 64 cells, means over stretches of inputs where there are more, and the names
/// where there are not.
fn covered(spec: &ModelSpec) -> (DMatrix<f64>, Vec<String>) {
    const CELLS: usize = 64;
    let stretch = spec.inputs.len().div_ceil(CELLS).max(1);
    let heads = spec.heads.iter().map(|head| (&head.inputs[..], f64::from(head.weight())));
    let names = spec.inputs.iter().map(|channel| channel.name.clone());
    let names = if stretch == 1 { names.collect() } else { Vec::new() };
    (coverage(heads, spec.inputs.len(), stretch), names)
}

pub(super) fn size(page: &mut Page, report: &Report<'_>) {
    page.section("Size and cost", "What the model takes on a device.");
    let models = [Some((report.model, report.bytes)), report.full];
    let columns: Vec<[String; 7]> =
        models.into_iter().flatten().map(|(model, bytes)| figures(model, bytes)).collect();
    let names = [
        "inputs, outputs",
        "memory, degree",
        "heads",
        "ranks",
        "parameters",
        "model file (flash)",
        "multiply-accumulates per sample",
    ];
    let row = |(k, name): (usize, &str)| {
        std::iter::once(name.to_owned()).chain(columns.iter().map(|column| column[k].clone())).collect()
    };
    let rows: Vec<Vec<String>> = names.into_iter().enumerate().map(row).collect();
    let head: &[&str] = if report.full.is_some() { &["", "this model", "full model"] } else { &["", ""] };
    page.cards(&[table("Model", head, &rows, "")]);
}

/// The figures of a model in the order of the table.
fn figures(model: &Model, bytes: usize) -> [String; 7] {
    let spec = model.spec();
    let ranks = || spec.heads.iter().flat_map(|head| head.cores.iter().skip(1).map(|core| core.left));
    let ranks = match (ranks().min(), ranks().max()) {
        (Some(low), Some(high)) if low == high => high.to_string(),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        _ => "none".into(),
    };
    [
        format!("{}, {}", spec.inputs.len(), spec.outputs.len()),
        format!("{}, {}", spec.memory, spec.degree()),
        spec.heads.len().to_string(),
        ranks,
        model.parameters().to_string(),
        format!("{bytes} bytes"),
        model.parameters().to_string(),
    ]
}
