//! The arithmetic of `FORMAT.md` in f32, written down once more as plainly as possible: what every device must give to
//! the bit. Slow, and knows nothing of layouts, rings and blocks.

use tha_core::RangePolicy;
use tha_core::build::{Head, ModelSpec};

/// The outputs for a window of M samples, newest first, each of p finite values.
#[must_use]
pub fn outputs(spec: &ModelSpec, window: &[&[f32]]) -> Vec<f32> {
    let mut s = vec![0.0f32; spec.outputs.len()];
    for share in shares(spec, window) {
        for (s, share) in s.iter_mut().zip(share) {
            *s += share;
        }
    }
    s.iter().zip(&spec.outputs).map(|(s, channel)| channel.offset + channel.scale * s).collect()
}

/// What each head adds to the standardised outputs: weight * v, head by head.
#[must_use]
pub fn shares(spec: &ModelSpec, window: &[&[f32]]) -> Vec<Vec<f32>> {
    let standardise = |input: usize, u: f32| {
        let channel = &spec.inputs[input];
        let u = match spec.range {
            RangePolicy::Clamp if u < channel.low => channel.low,
            RangePolicy::Clamp if u > channel.high => channel.high,
            _ => u,
        };
        (u - channel.offset) * channel.gain
    };
    let share = |head: &Head| {
        let lagged =
            window.iter().flat_map(|u| head.inputs.iter().map(|&input| standardise(input, u[input])));
        let x: Vec<f32> = lagged.collect();
        contract(head, &x).into_iter().map(|v| head.weight * v).collect()
    };
    spec.heads.iter().map(share).collect()
}

/// V1(x) ... Vd(x), from the right.
fn contract(head: &Head, x: &[f32]) -> Vec<f32> {
    let mut v = Vec::new();
    for core in head.cores.iter().rev() {
        let t = |a: usize, b: usize| {
            let coefficient = |i: usize| core.data[(a * core.q + i) * core.right + b];
            x.iter().enumerate().fold(coefficient(0), |sum, (i, x)| sum + coefficient(i + 1) * x)
        };
        v = match v.as_slice() {
            [] => (0..core.left).map(|a| t(a, 0)).collect(),
            v => (0..core.left)
                .map(|a| v.iter().enumerate().fold(0.0, |sum, (b, v)| sum + t(a, b) * v))
                .collect(),
        };
    }
    v
}
