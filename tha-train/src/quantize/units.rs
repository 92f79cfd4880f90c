//! The units of an integer model: what its numbers are worth, so that everything that happens on the training rows uses most of 16 bits.

use crate::data::Dataset;
use crate::model::Model;
use nalgebra::{DMatrix, DVector};
use tha_core::RangePolicy;
use tha_core::build::{Core, InputChannel, ModelSpec, Units};

/// The part of a limit that the training rows take, where what lies beyond must have room.
const HALF: f64 = 0.5;
/// The largest 16-bit number.
const LIMIT: f64 = i16::MAX as f64;
/// Rows that the gauge is balanced on, spread over the recording; the rest of the range is for those between.
const ROWS: usize = 4096;

/// What v at the left of each core of each head comes to, at most, on the training rows.
pub struct Sizes(Vec<Vec<Vec<f64>>>);

impl Sizes {
    /// By the network in f64.
    pub fn new(model: &Model, data: &Dataset) -> Self {
        let all = data.scored_rows(model.spec().settled());
        let rows: Vec<usize> = all.iter().copied().step_by(all.len().div_ceil(ROWS).max(1)).collect();
        let heads = model.spec().heads.iter().zip(model.features_of_heads(data, &rows));
        Self(heads.map(|(head, x)| of_head(&head.cores, &x)).collect())
    }
}

fn of_head(cores: &[Core], x: &DMatrix<f64>) -> Vec<Vec<f64>> {
    let mut sizes = Vec::new();
    let mut right = vec![DVector::from_element(x.nrows(), 1.0)];
    for core in cores.iter().rev() {
        let row = |a: usize| {
            let mut v = DVector::zeros(x.nrows());
            for (b, from) in right.iter().enumerate() {
                let at = |i: usize| f64::from(core.data[(a * core.q + i) * core.right + b]);
                let t = x * DVector::from_fn(core.q, |i, _| at(i));
                v += t.component_mul(from);
            }
            v
        };
        right = (0..core.left).map(row).collect();
        sizes.insert(0, right.iter().map(|v| v.amax()).collect());
    }
    sizes
}

/// Where 0 counts of an input lies, and counts per physical unit: those of the recording where it consists of counts, else so that they
/// reach half the training range beyond it.
pub fn counts(channel: &InputChannel, column: &[f64]) -> (f32, f32) {
    let whole = |value: &f64| value.fract() == 0.0 && value.abs() <= LIMIT;
    if column.iter().all(whole) && channel.high > channel.low {
        return (0.0, 1.0);
    }
    let (low, high) = (f64::from(channel.low), f64::from(channel.high));
    let range = if high > low { high - low } else { 1.0 / f64::from(channel.gain) };
    (((low + high) / 2.0) as f32, (LIMIT / range) as f32)
}

/// Units for features of so many bits, with vectors that take `part` of their range on the training rows.
pub fn units(spec: &ModelSpec, sizes: &Sizes, counts: &[(f32, f32)], bits: u32, part: f64) -> Units {
    let one = f64::from(1u32 << bits);
    let staged = !spec.stage.features.is_empty();
    let room = if spec.range == RangePolicy::Pass { HALF } else { 1.0 };
    let input = |(channel, &(_, rate)): (&InputChannel, &(f32, f32))| {
        let gain = f64::from(channel.gain);
        let end = |end: f32| ((f64::from(end) - f64::from(channel.offset)) * gain).abs();
        let most = end(channel.low).max(end(channel.high)).max(1e-6);
        let unit = if staged { HALF * LIMIT / most } else { room * (one - 2.0) / most };
        // A count is worth at most so much: else x would have fewer values than its range.
        unit.min(0.9 * LIMIT * f64::from(rate) / gain)
    };
    let features = spec.stage.features.iter().map(|feature| {
        let most = feature.low.abs().max(feature.high.abs());
        let most = f64::from(feature.nodes.iter().fold(most, |most, node| most.max(node.abs()))).max(1e-9);
        if feature.nodes.is_empty() { room * (one - 2.0) / most } else { (LIMIT - 2.0) / most }
    });
    let gauge = |sizes: &Vec<f64>| {
        let largest = sizes.iter().fold(0.0f64, |most, size| most.max(*size));
        sizes.iter().map(|size| part * LIMIT / size.max(1e-6 * largest).max(1e-30)).collect()
    };
    Units {
        bits,
        inputs: spec.inputs.iter().zip(counts).map(input).collect(),
        counts: counts.to_vec(),
        features: features.collect(),
        heads: sizes.0.iter().map(|head| head.iter().map(gauge).collect()).collect(),
        ..Units::default()
    }
}
