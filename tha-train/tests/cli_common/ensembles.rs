//! Data and fits of the tests of ensembles.

#![allow(dead_code, reason = "each test program uses its part")]

// The deviates of the library, which does not export them.
#[path = "../../src/network/random.rs"]
mod random;

use crate::cli_common::Bench;
use random::Normal;
use serde_json::Value;

/// A fit that lacks its ensemble.
pub const FIT: &str = "fit train.csv --memory 2 --degree 2 --out m.tha";

/// A quadratic network of memory 2, drawn with some options.
pub fn synth(options: &str) -> Bench {
    Bench::synth(&format!("--kind volterra --memory 2 --degree 2 --out . {options}"))
}

pub fn fit(more: &str, bench: &Bench) -> Value {
    bench.json(&format!("{FIT} {more}"))
}

/// The relative residual of the fitted model on the test file.
pub fn residual(bench: &Bench) -> f64 {
    bench.json("evaluate m.tha test.csv")["relative_residual"].as_f64().unwrap()
}

/// Six inputs; y1 depends on u1 and u2, y2 on u3 and u4, y3 on u5 alone.
pub fn separate(name: &str, samples: usize, noise: f64, seed: u64, bench: &Bench) {
    let mut normal = Normal::new(seed);
    let mut text = "u1,u2,u3,u4,u5,u6,y1,y2,y3\n".to_owned();
    let mut before = [0.0; 6];
    for _ in 0..samples {
        let u: [f64; 6] = std::array::from_fn(|_| normal.draw());
        let y = [u[0] + before[1] * u[1], 5.0 + u[2] * u[3] - before[3], before[4] * u[4]];
        let y = y.map(|y| y + noise * normal.draw());
        let row: Vec<String> = u.iter().chain(&y).map(f64::to_string).collect();
        text += &(row.join(",") + "\n");
        before = u;
    }
    bench.write(name, text);
}

/// Inputs and outputs drawn independently of each other, row by row, from a seeded generator.
pub fn noise(inputs: usize, samples: usize, bench: &Bench) {
    let mut normal = Normal::new(1);
    let names: Vec<String> = (1..=inputs).map(|k| format!("u{k}")).collect();
    let mut text = format!("{},y1\n", names.join(","));
    for _ in 0..samples {
        let row: Vec<String> = (0..=inputs).map(|_| normal.draw().to_string()).collect();
        text += &(row.join(",") + "\n");
    }
    bench.write("train.csv", text);
}
