//! Random models of given shapes, for the benchmarks of both crates.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use tha_core::build::{Core, Head, InputChannel, ModelSpec, OutputChannel, Provenance};

/// Heads, inputs of each, p, M, d, rank.
pub type Shape = [usize; 6];

/// A model with random coefficients.
pub fn spec([heads, inputs, p, memory, degree, rank]: Shape, random: &mut ChaCha8Rng) -> ModelSpec {
    let q = inputs * memory + 1;
    let mut core = |k: usize| {
        let (left, right) = (if k == 0 { 1 } else { rank }, if k + 1 == degree { 1 } else { rank });
        Core::new(
            left,
            q,
            right,
            (0..left * q * right).map(|_| 0.5 * random.random_range(-1.0..1.0)).collect(),
        )
    };
    let head = |k: usize| {
        let first = k % (p - inputs + 1);
        let cores = (0..degree).map(&mut core).collect();
        Head::from_cores((first..first + inputs).collect(), 1.0 / heads as f32, cores)
    };
    let channel = |c| InputChannel { name: format!("u{c}"), offset: 0.1, gain: 1.5, low: -0.4, high: 0.4 };
    ModelSpec {
        inputs: (0..p).map(channel).collect(),
        outputs: vec![OutputChannel { name: "y".into(), offset: 0.0, scale: 1.0, residual: 0.0 }],
        memory,
        stage: Default::default(),
        range: Default::default(),
        non_finite: Default::default(),
        interval: None,
        heads: (0..heads).map(head).collect(),
        provenance: Provenance::default(),
    }
}
