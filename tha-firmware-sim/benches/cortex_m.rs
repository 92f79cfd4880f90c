//! Instructions per multiply-accumulate of `push` on an emulated Cortex-M4F, and that it gives the bits of the host.
//!
//!     cargo bench -p tha-firmware-sim --bench cortex_m
//!
//! Ends with exit code 1 when a limit of the project is exceeded or a bit differs.

use tha_core::build::{Core, Head, InputChannel, ModelSpec, OutputChannel, Provenance};
use tha_core::{Model, State, push};
use tha_firmware_sim::emulator::{Processor, build, replay};

/// Heads, inputs of each, p, M, d, rank; the most instructions per MAC where the project has a limit.
const SHAPES: [([usize; 6], Option<f64>); 6] = [
    ([8, 3, 8, 4, 3, 2], None),
    ([8, 3, 8, 4, 3, 4], Some(4.0)),
    ([8, 3, 8, 4, 3, 8], Some(3.2)),
    ([1, 8, 8, 4, 3, 4], None),
    ([1, 16, 16, 5, 3, 4], None),
    ([24, 4, 16, 3, 2, 4], None),
];
const SAMPLES: usize = 300;

fn random(seed: &mut u64) -> f32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 40) as f32 / (1u64 << 24) as f32 - 0.5
}

fn model([heads, inputs, p, memory, degree, rank]: [usize; 6], seed: &mut u64) -> Vec<u8> {
    let q = inputs * memory + 1;
    let mut core = |k: usize| {
        let (left, right) = (if k == 0 { 1 } else { rank }, if k + 1 == degree { 1 } else { rank });
        Core::new(left, q, right, (0..left * q * right).map(|_| random(seed)).collect())
    };
    let head = |k: usize| {
        let first = k % (p - inputs + 1);
        Head::from_cores((first..first + inputs).collect(), 1.0 / heads as f32, (0..degree).map(&mut core).collect())
    };
    let channel = |c| InputChannel { name: format!("u{c}"), offset: 0.1, gain: 1.5, low: -0.4, high: 0.4 };
    let spec = ModelSpec {
        inputs: (0..p).map(channel).collect(),
        outputs: vec![OutputChannel { name: "y".into(), offset: 0.0, scale: 1.0, residual: 0.0 }],
        memory,
        degree,
        range: Default::default(),
        non_finite: Default::default(),
        heads: (0..heads).map(head).collect(),
        provenance: Provenance::default(),
    };
    spec.to_bytes().expect("the shapes are valid")
}

/// The same stream on the host.
fn host(bytes: &[u8], p: usize, samples: &[f32]) -> Vec<f32> {
    let mut aligned = Box::new(tha_core::Aligned([0u8; 1 << 16]));
    aligned.0[..bytes.len()].copy_from_slice(bytes);
    let model = Model::parse(&aligned.0[..bytes.len()]).expect("just built");
    let mut state = State::<16, 256, 512>::new(&model).expect("there is room");
    let step = |u: &[f32]| push(&model, &mut state, u).output().map_or(f32::NAN, |output| output.y[0]);
    samples.chunks(p).map(step).collect()
}

fn main() {
    let image = build(Processor::CortexM4f).unwrap_or_else(|error| panic!("{error}"));
    println!("| heads | inputs | p | M | d | rank | MACs | instructions / sample (min, max) | instructions / MAC | limit |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut failed = false;
    for (shape, limit) in SHAPES {
        let mut seed = 1;
        let bytes = model(shape, &mut seed);
        let p = shape[2];
        let samples: Vec<f32> = (0..SAMPLES * p).map(|_| random(&mut seed)).collect();
        let board = replay(Processor::CortexM4f, &image, &bytes, &samples).unwrap_or_else(|error| panic!("{error}"));
        let [least, most, mean] = board.instructions;
        let per_mac = mean / board.macs as f64;
        let [heads, inputs, _, memory, degree, rank] = shape;
        let limit_text = limit.map_or("".into(), |limit| format!("{limit:.1}"));
        println!(
            "| {heads} | {inputs} | {p} | {memory} | {degree} | {rank} | {} | {least:.0}, {most:.0} | {per_mac:.2} | {limit_text} |",
            board.macs
        );
        let bits = |outputs: &[f32]| outputs.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
        if bits(&board.outputs) != bits(&host(&bytes, p, &samples)) {
            eprintln!("the board's outputs differ from the host's");
            failed = true;
        }
        // One tick is 40 instructions: a minimum and a maximum one tick apart are equal.
        if limit.is_some_and(|limit| per_mac > limit) || most - least > (0.02 * most).max(40.0) {
            eprintln!("over the limit");
            failed = true;
        }
    }
    std::process::exit(i32::from(failed));
}
