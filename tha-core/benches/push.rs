//! `push` on the host: multiply-accumulates per second, and instructions for each by callgrind.
//!
//!     cargo bench -p tha-core --bench push
//!
//! The seconds depend on the machine and its mood; the instructions (valgrind must be installed) do not.

mod shapes;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use shapes::{Shape, spec};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;
use tha_core::{Model, State, push};

const SHAPES: [Shape; 6] = [
    [8, 3, 8, 4, 3, 2],
    [8, 3, 8, 4, 3, 4],
    [8, 3, 8, 4, 3, 8],
    [1, 8, 8, 4, 3, 4],
    [1, 16, 16, 5, 3, 4],
    [24, 4, 16, 3, 2, 4],
];

type Room = State<16, 256, 512>;

fn model(shape: Shape) -> Vec<u8> {
    spec(shape, &mut ChaCha8Rng::seed_from_u64(1)).to_bytes().expect("the shapes are valid")
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
fn stream(shape: Shape, samples: usize) -> usize {
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
