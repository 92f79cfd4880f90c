//! What is in a model file, as one JSON object: shape, heads, inputs, ranks, weights, size and cost.

use crate::fit::FitParams;
use crate::model::Model;
use serde_json::{Value, json};
use tha_core::build::{Filter, Head, Interval, ModelSpec, OutputChannel};
use tha_core::{Capacities, NonFinitePolicy};

/// Everything that `bytes`, the file of the model, says; with a rate in samples per second, times are given in seconds too.
pub fn inspect(model: &Model, bytes: &[u8], rate: Option<f64>) -> Value {
    let spec = model.spec();
    let Capacities { inputs: state_inputs, history, scratch } = Capacities::of(bytes);
    let (range, non_finite) = policies(spec);
    let inputs: Vec<Value> = spec
        .inputs
        .iter()
        .map(|c| json!({ "name": c.name, "offset": c.offset, "gain": c.gain, "low": c.low, "high": c.high }))
        .collect();
    let output = |(k, c): (usize, &OutputChannel)| {
        json!({ "name": c.name, "offset": c.offset, "scale": c.scale, "residual": c.residual,
            "half_width": half_width(spec, k) })
    };
    let outputs: Vec<Value> = spec.outputs.iter().enumerate().map(output).collect();
    let heads: Vec<Value> = spec
        .heads
        .iter()
        .map(|head| {
            let names: Vec<&String> = head.inputs.iter().map(|&i| &spec.inputs[i].name).collect();
            let parameters: usize = head.cores.iter().map(|core| core.data.len()).sum();
            json!({ "inputs": names, "ranks": ranks(head), "weight": head.weight(), "parameters": parameters,
                "outputs": served(spec, head), "weights": head.weights })
        })
        .collect();
    json!({
        "inputs": inputs,
        "outputs": outputs,
        "memory": spec.memory,
        "degree": spec.degree(),
        "range": range,
        "non_finite": non_finite,
        "interval_coverage": spec.interval.as_ref().map(Interval::coverage),
        "heads": heads,
        "parameters": model.parameters(),
        "flash_bytes": bytes.len(),
        "capacities": { "inputs": state_inputs, "history": history, "scratch": scratch },
        "stage": stage(spec, rate),
        "macs_per_sample": model.macs(),
        "numbers": if model.integers().is_some() { "i16" } else { "f32" },
        "integers": model.integers().map(|file| integers(&file.model())),
        "coverage": coverage(spec),
        "provenance": {
            "tool": spec.provenance.tool,
            "seed": spec.provenance.seed,
            "data_hash": format!("{:016x}", spec.provenance.data_hash),
            "note": spec.provenance.note,
        },
    })
}

/// What the counts of a model of integers mean, and how far its outputs can be from the model without rounding.
fn integers(model: &tha_core::integer::Model<'_>) -> Value {
    let input = |input: &tha_core::integer::InputCounts| json!({ "zero": input.zero, "step": input.rate.recip(), "low": input.low, "high": input.high });
    json!({
        "bits": model.bits(),
        "counts": model.inputs().iter().map(input).collect::<Vec<_>>(),
        "unit": model.units().iter().map(|unit| unit.unit).collect::<Vec<_>>(),
        "bound": model.units().iter().map(|unit| unit.bound).collect::<Vec<_>>(),
    })
}

/// Time constants of the averages and poles of the resonators in front of the heads, each once.
pub fn filters(spec: &ModelSpec) -> (Vec<f64>, Vec<[f64; 2]>) {
    let (mut averages, mut poles) = (Vec::new(), Vec::new());
    for section in &spec.stage.sections {
        match section.filter {
            Filter::Average { alpha } => averages.push(-libm::log1p(-f64::from(alpha)).recip()),
            // To the digits that coefficients of f32 give.
            Filter::Resonator(resonator) => {
                poles.push(resonator.pole().map(|part| (part * 1e6).round() / 1e6))
            }
        }
    }
    averages.sort_by(f64::total_cmp);
    averages.dedup();
    poles.dedup();
    (averages, poles)
}

/// Half the width of the interval around an output, where there is one.
pub fn half_width(spec: &ModelSpec, output: usize) -> Option<f32> {
    spec.interval.as_ref().and_then(|interval| interval.half_widths().get(output).copied())
}

/// Names of the outputs that a head serves.
pub fn served<'s>(spec: &'s ModelSpec, head: &Head) -> Vec<&'s str> {
    spec.outputs[head.outputs.clone()].iter().map(|channel| channel.name.as_str()).collect()
}

fn stage(spec: &ModelSpec, rate: Option<f64>) -> Value {
    let (averages, poles) = filters(spec);
    let seconds = rate.map(|rate| averages.iter().map(|tau| tau / rate).collect::<Vec<_>>());
    let mapped = spec.stage.features.iter().filter(|feature| !feature.nodes.is_empty()).count();
    json!({
        "time_constants": averages,
        "time_constants_seconds": seconds,
        "settled_seconds": rate.map(|rate| spec.settled() as f64 / rate),
        "poles": poles,
        "features": spec.stage.features.len(),
        "mapped": mapped,
        "settled": spec.settled(),
    })
}

/// Inner ranks of a head.
pub fn ranks(head: &Head) -> Vec<usize> {
    head.cores.iter().skip(1).map(|core| core.left).collect()
}

/// Names of what the model does outside the training range, and with what is not finite.
pub fn policies(spec: &ModelSpec) -> (&'static str, &'static str) {
    let range = FitParams::RANGES.iter().find(|(_, range)| *range == spec.range).map_or("", |(name, _)| name);
    let non_finite = match spec.non_finite {
        NonFinitePolicy::Hold => "hold",
        NonFinitePolicy::Refuse => "refuse",
    };
    (range, non_finite)
}

/// How often each input and each pair of inputs is represented: the number of heads that see them.
pub fn coverage(spec: &ModelSpec) -> Value {
    let p = spec.inputs.len();
    let count = |a: usize, b: usize| {
        spec.heads.iter().filter(|head| head.inputs.contains(&a) && head.inputs.contains(&b)).count()
    };
    let inputs: Vec<usize> = (0..p).map(|c| count(c, c)).collect();
    let pairs: Vec<Vec<usize>> = (0..p).map(|a| (0..p).map(|b| count(a, b)).collect()).collect();
    let seen = pairs.iter().enumerate().flat_map(|(a, row)| &row[..a]).filter(|&&n| n > 0).count();
    let all = p * p.saturating_sub(1) / 2;
    json!({ "inputs": inputs, "pairs": pairs, "pair_fraction": if all > 0 { seen as f64 / all as f64 } else { 1.0 } })
}
