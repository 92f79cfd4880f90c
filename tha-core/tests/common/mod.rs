//! Random models, and the same outputs computed another way.
#![allow(dead_code)]

pub mod staged;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::{Core, Head, InputChannel, Interval, ModelSpec, OutputChannel, Provenance};
use tha_core::{NonFinitePolicy, RangePolicy};

/// Room for every model in these tests.
pub type Room = tha_core::State<8, 256, 1024>;

/// `count` numbers between -1 and 1.
pub fn units(random: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.random_range(-1.0..1.0)).collect()
}

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

/// Bytes at an address that is a multiple of four.
pub struct Flash(Vec<u32>, usize);

impl Flash {
    pub fn new(bytes: &[u8]) -> Self {
        let words = bytes
            .chunks(4)
            .map(|chunk| {
                let mut word = [0; 4];
                word[..chunk.len()].copy_from_slice(chunk);
                u32::from_ne_bytes(word)
            })
            .collect();
        Self(words, bytes.len())
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.0)[..self.1]
    }
}

pub fn flash(spec: &ModelSpec) -> Flash {
    Flash::new(&spec.to_bytes().expect("the test's model is valid"))
}

/// The outputs for `window` (samples in physical units, newest first) by the documented order of operations, in
/// f32, from the cores as the builder has them: no layout, no ring, no blocks.
pub fn recompute(spec: &ModelSpec, window: &[Vec<f32>]) -> Vec<f32> {
    let l = spec.outputs.len();
    let mut y = vec![0.0f32; l];
    for head in &spec.heads {
        let mut x = Vec::new();
        for sample in &window[..spec.memory] {
            for &c in &head.inputs {
                let channel = &spec.inputs[c];
                let mut u = sample[c];
                if spec.range == RangePolicy::Clamp {
                    u = u.max(channel.low).min(channel.high);
                }
                x.push((u - channel.offset) * channel.gain);
            }
        }
        let sums = |core: &Core| -> Vec<Vec<f32>> {
            let at = |a: usize, i: usize, b: usize| core.data[(a * core.q + i) * core.right + b];
            let sum = |a, b| x.iter().enumerate().fold(at(a, 0, b), |sum, (i, x)| sum + at(a, i + 1, b) * x);
            (0..core.left).map(|a| (0..core.right).map(|b| sum(a, b)).collect()).collect()
        };
        let mut v: Option<Vec<f32>> = None;
        for core in head.cores.iter().rev() {
            let t = sums(core);
            v = Some(match v {
                None => t.iter().map(|row| row[0]).collect(),
                Some(v) => {
                    t.iter().map(|row| row.iter().zip(&v).fold(0.0, |sum, (t, v)| sum + t * v)).collect()
                }
            });
        }
        for (y, v) in y.iter_mut().zip(v.expect("at least one core")) {
            *y += head.weight() * v;
        }
    }
    y.iter().zip(&spec.outputs).map(|(y, channel)| channel.offset + channel.scale * y).collect()
}

/// CRC-32 as in every textbook, over everything but bytes 12 to 15.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for (at, &byte) in bytes.iter().enumerate() {
        if (12..16).contains(&at) {
            continue;
        }
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

/// Changes bytes and makes the checksum right again.
pub fn patched(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    change(&mut bytes);
    let crc = crc32(&bytes).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    bytes
}
