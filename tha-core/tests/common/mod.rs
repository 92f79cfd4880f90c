//! Random models, and the same outputs computed another way.
#![allow(dead_code)]

pub mod staged;

pub use staged::units;

use crc::{CRC_32_ISO_HDLC, Crc};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::{
    AlignedBytes, Core, Head, InputChannel, Interval, ModelSpec, OutputChannel, Provenance,
};
use tha_core::{Model, NonFinitePolicy, RangePolicy};

/// Room for every model in these tests.
pub type Room = tha_core::State<8, 512, 1024>;

/// The dimensions of a random model.
#[derive(Clone, Copy, Debug)]
pub struct Dimensions {
    pub inputs: usize,
    pub outputs: usize,
    pub memory: usize,
    pub degree: usize,
    pub heads: usize,
    pub max_rank: usize,
}

pub fn random_spec(seed: u64, size: Dimensions) -> ModelSpec {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let heads = (0..size.heads)
        .map(|_| {
            let mut inputs: Vec<usize> = (0..size.inputs).filter(|_| random.random_range(0..3) > 0).collect();
            if inputs.is_empty() {
                inputs.push(random.random_range(0..size.inputs));
            }
            let q = inputs.len() * size.memory + 1;
            let mut left = size.outputs;
            let cores = (0..size.degree)
                .map(|k| {
                    let right = if k + 1 == size.degree { 1 } else { random.random_range(1..=size.max_rank) };
                    let core = Core::new(left, q, right, units(&mut random, left * q * right));
                    left = right;
                    core
                })
                .collect();
            Head::from_cores(inputs, random.random_range(-1.0..1.0), cores)
        })
        .collect();
    ModelSpec {
        inputs: (0..size.inputs)
            .map(|c| InputChannel {
                name: format!("u{c}"),
                offset: random.random_range(-1.0..1.0),
                gain: 0.5 + random.random::<f32>(),
                low: -0.75,
                high: 0.75,
            })
            .collect(),
        outputs: (0..size.outputs)
            .map(|c| OutputChannel {
                name: format!("y{c}"),
                offset: random.random_range(-1.0..1.0),
                scale: 0.5 + random.random::<f32>(),
                residual: 0.0,
            })
            .collect(),
        memory: size.memory,
        stage: Default::default(),
        range: RangePolicy::Pass,
        non_finite: NonFinitePolicy::Hold,
        // Files of both formats.
        interval: Interval::from_residuals(0.9, vec![vec![0.5; 20]; size.outputs]).filter(|_| seed % 4 == 2),
        heads,
        provenance: Provenance { tool: "test".into(), seed, data_hash: !seed, note: String::new() },
    }
}

/// A file as a device has it.
pub fn flash(spec: &ModelSpec) -> AlignedBytes {
    AlignedBytes::new(&spec.to_bytes().expect("the test's model is valid"))
}

/// A model in the memory of this process for as long as it lives, as in flash.
pub fn parsed(bytes: &[u8]) -> Model<'static> {
    Model::parse(Box::leak(Box::new(AlignedBytes::new(bytes)))).expect("the test's model is valid")
}

/// The same of a specification.
pub fn loaded(spec: &ModelSpec) -> Model<'static> {
    parsed(&flash(spec))
}

/// CRC-32 over everything but bytes 12 to 15.
pub fn crc32(bytes: &[u8]) -> u32 {
    Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&[&bytes[..12], &bytes[16..]].concat())
}

/// Changes bytes and makes the checksum right again.
pub fn patched(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    let crc = crc32(&bytes).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    bytes
}
