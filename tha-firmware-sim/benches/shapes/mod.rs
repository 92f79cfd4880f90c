//! Random models of given shapes.

use tha_core::build::{Core, Head, InputChannel, ModelSpec, OutputChannel, Provenance};
use tha_firmware_sim::model_file::ModelFile;
use tha_firmware_sim::random::Random;

/// Heads, inputs of each, p, M, d, rank.
pub type Shape = [usize; 6];

/// A model with random coefficients.
pub fn model([heads, inputs, p, memory, degree, rank]: Shape, random: &mut Random) -> ModelFile {
    let q = inputs * memory + 1;
    let mut core = |k: usize| {
        let (left, right) = (if k == 0 { 1 } else { rank }, if k + 1 == degree { 1 } else { rank });
        Core::new(left, q, right, (0..left * q * right).map(|_| 0.5 * random.signed() as f32).collect())
    };
    let head = |k: usize| {
        let first = k % (p - inputs + 1);
        let cores = (0..degree).map(&mut core).collect();
        Head::from_cores((first..first + inputs).collect(), 1.0 / heads as f32, cores)
    };
    let channel = |c| InputChannel { name: format!("u{c}"), offset: 0.1, gain: 1.5, low: -0.4, high: 0.4 };
    let spec = ModelSpec {
        inputs: (0..p).map(channel).collect(),
        outputs: vec![OutputChannel { name: "y".into(), offset: 0.0, scale: 1.0, residual: 0.0 }],
        memory,
        stage: Default::default(),
        range: Default::default(),
        non_finite: Default::default(),
        heads: (0..heads).map(head).collect(),
        provenance: Provenance::default(),
    };
    ModelFile::new(&spec.to_bytes().expect("the shapes are valid")).expect("just built")
}

/// Samples of `p` values, some of them out of range.
pub fn samples(p: usize, count: usize, random: &mut Random) -> Vec<f32> {
    (0..p * count).map(|_| 0.5 * random.signed() as f32).collect()
}
