//! `tha-train inspect`: what is in a model file.

use super::error::CliError;
use std::fmt::Write;
use std::path::PathBuf;
use tha_cli::{Speech, count, figure, result, table};
use tha_core::Capacities;
use tha_core::build::{ModelSpec, OutputChannel};
use tha_train::Model;
use tha_train::inspect::{self, coverage, filters, half_width, policies, ranks, served};

/// Show what is in a model file: shape, heads, inputs, ranks, weights, size and cost.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  tha-train inspect model.tha\n  tha-train inspect model.tha --rate 250")]
pub(super) struct Args {
    /// Model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Samples per second: times are shown in seconds too.
    #[arg(long, value_name = "HZ")]
    rate: Option<f64>,
    #[command(flatten)]
    speech: Speech,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if let Some(rate) = args.rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
        return Err(CliError::Usage(format!(
            "--rate: {rate} is out of range; expected samples per second, above 0"
        )));
    }
    let model = Model::read(&args.model)?;
    let bytes = model.to_bytes()?;
    result(args.speech.json, &inspect::inspect(&model, &bytes, args.rate), || {
        words(&model, &bytes, args.rate)
    });
    Ok(())
}

/// Filters and maps in a line; nothing where the model sees lags.
fn stage_in_words(spec: &ModelSpec, rate: Option<f64>) -> String {
    if spec.stage.features.is_empty() {
        return String::new();
    }
    let (averages, poles) = filters(spec);
    let list = |scale: f64, digits: usize| -> String {
        averages.iter().map(|tau| format!("{:.digits$}", tau * scale)).collect::<Vec<_>>().join(" ")
    };
    let mut parts = Vec::new();
    if !averages.is_empty() {
        let seconds = rate.map_or_else(String::new, |rate| format!(" ({} s)", list(rate.recip(), 4)));
        parts.push(format!("averages with time constants {} samples{seconds}", list(1.0, 0)));
    }
    parts.extend(poles.iter().map(|[re, im]| format!("resonators at {re} + {im}i")));
    let mapped = spec.stage.features.iter().filter(|feature| !feature.nodes.is_empty()).count();
    parts.push(format!("{}, {mapped} of them mapped", count(spec.stage.features.len(), "feature")));
    let seconds = rate.map_or_else(String::new, |rate| format!(" ({:.4} s)", spec.settled() as f64 / rate));
    format!("{}; settled from sample {}{seconds} on\n\n", parts.join("; "), spec.settled())
}

/// What the counts of the inputs mean, and the bound of the outputs; nothing where the numbers are f32.
fn integers_in_words(model: &Model) -> String {
    let Some(file) = model.integers() else { return String::new() };
    let (integers, spec) = (file.model(), model.spec());
    let counts = spec.inputs.iter().zip(integers.inputs()).map(|(channel, counts)| {
        let figures = [counts.zero, counts.rate.recip(), counts.low.into(), counts.high.into()];
        std::iter::once(channel.name.clone()).chain(figures.map(|value| figure(value.into()))).collect()
    });
    let bounds = spec.outputs.iter().zip(integers.units()).map(|(channel, unit)| {
        vec![channel.name.clone(), figure(unit.unit.into()), figure(unit.bound.into())]
    });
    format!(
        "16-bit integers, features of {} bits\n\n{}\n{}\n",
        integers.bits(),
        table("input, at 0 counts, of a count, lowest count, highest", &counts.collect::<Vec<_>>()),
        table("output, of a count, bound of rounding", &bounds.collect::<Vec<_>>())
    )
}

fn words(model: &Model, bytes: &[u8], rate: Option<f64>) -> String {
    let spec = model.spec();
    let needs = Capacities::of(bytes);
    let (range, non_finite) = policies(spec);
    let mut text = format!(
        "{}, {}, memory {}, degree {}, {}\n\
         {} parameters, {} bytes of flash, {} multiply-accumulates per sample\n\
         state on the device: INPUTS {}, HISTORY {}, SCRATCH {}\n\
         outside the training range: {range}; not finite: {non_finite}\n\n",
        count(spec.inputs.len(), "input"),
        count(spec.outputs.len(), "output"),
        spec.memory,
        spec.degree(),
        count(spec.heads.len(), "head"),
        model.parameters(),
        bytes.len(),
        model.macs(),
        needs.inputs,
        needs.history,
        needs.scratch,
    );
    text += &stage_in_words(spec, rate);
    text += &integers_in_words(model);
    let row = |name: &String, figures: &[f32]| {
        std::iter::once(name.clone()).chain(figures.iter().map(|&v| figure(v.into()))).collect()
    };
    let rows: Vec<_> = spec.inputs.iter().map(|c| row(&c.name, &[c.low, c.high, c.offset, c.gain])).collect();
    text += &table("input, low, high, offset, gain", &rows);
    let mut head = "output, offset, scale, residual".to_owned();
    if let Some(interval) = &spec.interval {
        let _ = write!(head, ", half-width of {} %", 100.0 * interval.coverage());
    }
    let output = |(k, c): (usize, &OutputChannel)| {
        let figures = [c.offset, c.scale, c.residual].into_iter().chain(half_width(spec, k));
        row(&c.name, &figures.collect::<Vec<_>>())
    };
    let rows: Vec<_> = spec.outputs.iter().enumerate().map(output).collect();
    let _ = write!(text, "\n{}", table(&head, &rows));
    let mut rows = Vec::new();
    for (k, head) in spec.heads.iter().enumerate() {
        let names: Vec<&str> = head.inputs.iter().map(|&i| spec.inputs[i].name.as_str()).collect();
        let shown = if names.len() == spec.inputs.len() { "all".into() } else { names.join(" ") };
        let ranks: Vec<String> = ranks(head).iter().map(ToString::to_string).collect();
        let outputs = served(spec, head);
        let served = if outputs.len() == spec.outputs.len() { "all".into() } else { outputs.join(" ") };
        let same = head.weights.iter().all(|weight| *weight == head.weights[0]);
        let weights: Vec<String> =
            head.weights.iter().take(if same { 1 } else { usize::MAX }).map(|&w| figure(w.into())).collect();
        rows.push(vec![(k + 1).to_string(), weights.join(" "), ranks.join(" "), served, shown]);
    }
    let _ = write!(text, "\n{}", table("head, weight, ranks, outputs, inputs", &rows));
    if spec.heads.len() > 1 {
        let coverage = coverage(spec);
        let seen: Vec<String> = spec
            .inputs
            .iter()
            .enumerate()
            .map(|(c, channel)| format!("{} {}", channel.name, coverage["inputs"][c]))
            .collect();
        let fraction = 100.0 * coverage["pair_fraction"].as_f64().unwrap_or(0.0);
        let _ = write!(
            text,
            "\nheads that see each input: {}\npairs of inputs inside some head: {fraction:.0} %\n",
            seen.join(", ")
        );
    }
    let p = &spec.provenance;
    let _ = write!(text, "\nmade by {}, seed {}, data {:016x}: {}", p.tool, p.seed, p.data_hash, p.note);
    text
}
