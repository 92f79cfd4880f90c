//! `push` on the host: multiply-accumulates per second, and instructions for each by callgrind.
//!
//!     cargo bench -p tha-core --bench push
//!
//! The seconds depend on the machine and its mood; the instructions (valgrind must be installed) do not.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use tha_core::build::{Core, Head, InputChannel, ModelSpec, OutputChannel, Provenance};
use tha_core::{Model, State, push};

/// Heads, inputs of each, p, M, d, rank.
const SHAPES: [[usize; 6]; 6] = [
    [8, 3, 8, 4, 3, 2],
    [8, 3, 8, 4, 3, 4],
    [8, 3, 8, 4, 3, 8],
    [1, 8, 8, 4, 3, 4],
    [1, 16, 16, 5, 3, 4],
    [24, 4, 16, 3, 2, 4],
];

type Room = State<16, 256, 512>;

fn model(shape: [usize; 6]) -> Vec<u8> {
    let [heads, inputs, p, memory, degree, rank] = shape;
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    let q = inputs * memory + 1;
    let mut core = |k: usize| {
        let left = if k == 0 { 1 } else { rank };
        let right = if k + 1 == degree { 1 } else { rank };
        Core::new(left, q, right, (0..left * q * right).map(|_| random()).collect())
    };
    let head = |k: usize| {
        let first = k % (p - inputs + 1);
        Head::from_cores(
            (first..first + inputs).collect(),
            1.0 / heads as f32,
            (0..degree).map(&mut core).collect(),
        )
    };
    let channel = |c| InputChannel { name: format!("u{c}"), offset: 0.1, gain: 1.5, low: -1.0, high: 1.0 };
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
    spec.to_bytes().expect("the shapes are valid")
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, shape, samples] = &arguments[..]
        && flag == "--samples"
    {
        stream(SHAPES[shape.parse::<usize>().expect("a number")], samples.parse().expect("a number"));
        return;
    }
    println!(
        "| heads | inputs | p | M | d | rank | MACs | flash bytes | million MAC/s | instructions / MAC |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (index, shape) in SHAPES.into_iter().enumerate() {
        let bytes = model(shape);
        let macs = stream(shape, 1);
        let samples = 200_000_000 / macs;
        let seconds = (0..3)
            .map(|_| {
                let start = Instant::now();
                stream(shape, samples);
                start.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min);
        let speed = (samples * macs) as f64 / seconds / 1e6;
        let instructions = match (instructions(index, 1000), instructions(index, 2000)) {
            (Some(once), Some(twice)) => format!("{:.2}", (twice - once) / 1000.0 / macs as f64),
            _ => "(valgrind is missing)".into(),
        };
        let [heads, inputs, p, memory, degree, rank] = shape;
        println!(
            "| {heads} | {inputs} | {p} | {memory} | {degree} | {rank} | {macs} | {} | {speed:.0} | {instructions} |",
            bytes.len()
        );
    }
}

/// Pushes `samples` samples; gives the multiply-accumulates of one.
fn stream(shape: [usize; 6], samples: usize) -> usize {
    let bytes = model(shape);
    let mut words = vec![0u32; bytes.len() / 4];
    bytemuck::cast_slice_mut(&mut words).copy_from_slice(&bytes);
    let model = Model::parse(bytemuck::cast_slice(&words)).expect("just built");
    let mut state = Room::new(&model).expect("there is room");
    let mut u = [0.25f32; 16];
    for t in 0..samples {
        u[t % 16] = -u[t % 16];
        black_box(push(&model, &mut state, black_box(&u[..shape[2]])));
    }
    model.macs()
}

/// Instructions of this very program for so many samples, by callgrind.
fn instructions(shape: usize, samples: usize) -> Option<f64> {
    let me = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(me)
        .args(["--samples", &shape.to_string(), &samples.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}
