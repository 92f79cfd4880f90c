//! The part of a report that looks at what stands in front of the networks: the filters, and the curves that were learned of
//! their outputs.

use super::Report;
use super::chart::{Lines, Series, lines};
use super::page::{Page, escape, figure};
use super::palette::SERIES;
use crate::reference::Reference;
use tha_core::build::{Feature, Filter, ModelSpec, Signal};

/// Curves that are shown, and points of each.
const CURVES: usize = 4;
const POINTS: usize = 60;
/// Samples of an impulse response, at most.
const SAMPLES: usize = 400;

pub(super) fn stage(page: &mut Page, report: &Report<'_>) {
    let spec = report.model.spec();
    if spec.stage.features.is_empty() {
        return;
    }
    let mut cards = Vec::new();
    if let Some(picture) = responses(spec) {
        cards.push(picture);
    }
    cards.extend(curves(spec));
    page.section(
        "What the networks see",
        "Every input passes the same filters; products and maps are made of what comes out of them.",
    );
    page.cards(&cards);
}

/// The input that a signal comes from.
fn input_of(spec: &ModelSpec, signal: Signal) -> usize {
    spec.stage.input_of(signal).expect("a file names its inputs")
}

/// A signal in words, without its input.
fn words(spec: &ModelSpec, signal: Signal) -> String {
    match signal {
        Signal::Lag { lag: 0, .. } => "now".into(),
        Signal::Lag { lag, .. } => format!("{lag} ago"),
        Signal::Section { section, output } => match spec.stage.sections[section].filter {
            Filter::Average { alpha } => {
                format!("average over {:.0}", -(-f64::from(alpha)).ln_1p().recip())
            }
            Filter::Resonator(_) => format!("resonator {section}, output {}", output + 1),
        },
    }
}

fn name(spec: &ModelSpec, feature: &Feature) -> String {
    let plus = words(spec, feature.plus);
    feature.minus.map_or(plus.clone(), |minus| format!("{plus} less {}", words(spec, minus)))
}

/// What the filters make of a single sample of one input.
fn responses(spec: &ModelSpec) -> Option<String> {
    let filtered =
        |feature: &&Feature| matches!(feature.plus, Signal::Section { .. }) || feature.minus.is_some();
    let first = spec.stage.features.iter().filter(filtered).map(|f| input_of(spec, f.plus)).min()?;
    let mut shown: Vec<usize> = Vec::new();
    for (k, feature) in spec.stage.features.iter().enumerate() {
        let same = |&other: &usize| {
            let other = &spec.stage.features[other];
            (other.plus, other.minus) == (feature.plus, feature.minus)
        };
        if filtered(&feature) && input_of(spec, feature.plus) == first && !shown.iter().any(same) {
            shown.push(k);
        }
    }
    shown.truncate(SERIES.len());
    let mut model: Reference<'_, f64> = Reference::new(spec);
    let still: Vec<f64> = spec.inputs.iter().map(|input| f64::from(input.offset)).collect();
    // Averages begin as running means.
    (0..spec.settled() + spec.felt()).for_each(|_| model.take(&still));
    let mut points = vec![Vec::new(); shown.len()];
    for t in 0..(3 * spec.settled()).clamp(20, SAMPLES) {
        let mut u = still.clone();
        if t == 0 {
            u[first] += f64::from(spec.inputs[first].gain).recip();
        }
        model.take(&u);
        let z = model.features();
        points.iter_mut().zip(&shown).for_each(|(points, &k)| points.push((t as f64, z[k])));
    }
    // Slow averages answer with little at a time.
    for points in &mut points {
        let peak = points.iter().fold(0.0, |most: f64, point: &(f64, f64)| most.max(point.1.abs()));
        points.iter_mut().for_each(|point| point.1 /= peak.max(f64::MIN_POSITIVE));
    }
    let series = shown.iter().zip(points).zip(SERIES);
    let series = series
        .map(|((&k, points), paint)| Series::new(name(spec, &spec.stage.features[k]), paint, points))
        .collect();
    Some(figure(
        "Responses of the filters to one sample",
        &lines(Lines::new("samples", "part of the peak", series)),
        &format!("Of {}; the other inputs have the same.", escape(&spec.inputs[first].name)),
    ))
}

/// The outputs as functions of one feature while the others stay at the mean, for the features that move them most.
fn curves(spec: &ModelSpec) -> Vec<String> {
    let still = vec![0.0; spec.stage.features.len()];
    let of_feature = |k: usize| {
        let Feature { low, high, .. } = spec.stage.features[k];
        let (low, high) = (f64::from(low), f64::from(high));
        let mut curves = vec![Vec::with_capacity(POINTS); spec.outputs.len()];
        for step in 0..POINTS {
            let mut z = still.clone();
            z[k] = low + (high - low) * step as f64 / (POINTS - 1) as f64;
            let at = z[k];
            let outputs: Vec<f64> = Reference::<f64>::outputs_of(spec, &z);
            for ((curve, y), channel) in curves.iter_mut().zip(outputs).zip(&spec.outputs) {
                curve.push((at, (y - f64::from(channel.offset)) / f64::from(channel.scale)));
            }
        }
        let spread = |curve: &Vec<(f64, f64)>| {
            let values = curve.iter().map(|point| point.1);
            values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
        };
        let moved = curves.iter().map(spread).sum::<f64>();
        (moved, k, curves)
    };
    let mut found: Vec<_> = (0..spec.stage.features.len()).map(of_feature).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let picture = |(_, k, curves): (f64, usize, Vec<Vec<(f64, f64)>>)| {
        let feature = &spec.stage.features[k];
        let input = &spec.inputs[input_of(spec, feature.plus)].name;
        let series = spec.outputs.iter().zip(curves).zip(SERIES);
        let series = series.map(|((output, curve), paint)| Series::new(&output.name, paint, curve)).collect();
        figure(
            &format!("{input}: {}", name(spec, feature)),
            &lines(Lines::new("standardised input", "outputs, standardised", series)),
            if feature.nodes.is_empty() { "" } else { "With a map." },
        )
    };
    found.into_iter().take(CURVES).map(picture).collect()
}
