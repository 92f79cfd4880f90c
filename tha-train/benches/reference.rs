//! The reference problems: recorded results against ours, and noise-free networks of rank two.
//!
//! `cargo bench -p tha-train --bench reference -- DIR [SEED [CAP]]`, DIR holding NAME.json, NAME_train.csv and
//! NAME_val.csv. Everything is chosen on the training file: rank and ridge on its last fifth, then a refit on all of
//! it. The validation file gives the final figure only, over all of its samples where the inputs before the first are
//! recorded to be zero. Without DIR only the noise-free networks are run.

mod common;

use common::{Normal, cpu_seconds, lagged, network};
use nalgebra::DMatrix;
use serde_json::Value;
use std::path::Path;
use tha_train::Silent;
use tha_train::network::Network;
use tha_train::solve::{Fit, Problem, SolveParams, choose_and_fit};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(default, |a| a.parse().expect("a number"));
    if let Some(directory) = arguments.first() {
        recorded(Path::new(directory), number(1, 0), number(2, 4) as usize);
    }
    noise_free();
}

struct Rows {
    x: DMatrix<f64>,
    y: DMatrix<f64>,
}

impl Rows {
    fn problem(&self) -> Problem<'_> {
        Problem { x: &self.x, y: &self.y }
    }

    fn residual(&self, train: &Network) -> f64 {
        (train.evaluate(&self.x) - &self.y).norm() / self.y.norm()
    }
}

/// Chooses on five blocks, fits everything.
fn choose_and_refit(rows: &Rows, options: &SolveParams) -> Fit {
    choose_and_fit(&rows.problem(), options, &Silent).expect("a fit")
}

/// The rows of a file after as many samples of zeros.
fn read(path: &Path, inputs: usize, memory: usize, zeros: usize) -> Rows {
    let text = std::fs::read_to_string(path).expect("a readable CSV file");
    let parse = |line: &str| -> Vec<f64> { line.split(',').map(|v| v.parse().expect("a number")).collect() };
    let samples: Vec<_> = text.lines().skip(1).map(parse).collect();
    let rows = [vec![vec![0.0; samples[0].len()]; zeros], samples].concat();
    let count = rows.len() + 1 - memory;
    let lag = |i: usize| memory - 1 - (i - 1) / inputs;
    Rows {
        x: DMatrix::from_fn(count, inputs * memory + 1, |t, i| match i {
            0 => 1.0,
            i => rows[t + lag(i)][(i - 1) % inputs],
        }),
        y: DMatrix::from_fn(count, rows[0].len() - inputs, |t, j| rows[t + memory - 1][inputs + j]),
    }
}

/// Zero mean and unit deviation for every input; outputs as they are. The first column stays one.
fn standardise(train: &mut DMatrix<f64>, other: &mut DMatrix<f64>) {
    for i in 1..train.ncols() {
        let column = train.column(i);
        let (mean, deviation) = (column.mean(), column.variance().sqrt().max(1e-300));
        for matrix in [&mut *train, &mut *other] {
            matrix.column_mut(i).apply(|v| *v = (*v - mean) / deviation);
        }
    }
}

fn recorded(directory: &Path, seed: u64, cap: usize) {
    println!("rank cap {cap}, seed {seed}\n");
    println!("| problem | method | parameters | CPU s | validation residual | of the floor | speed-up |");
    println!("|---|---|---|---|---|---|---|");
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .expect("a directory")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
        .collect();
    names.sort();
    for name in names {
        let text = std::fs::read_to_string(directory.join(format!("{name}.json"))).expect("readable");
        let facts: Value = serde_json::from_str(&text).expect("valid JSON");
        let count = |key: &str| facts[key].as_u64().map(|v| v as usize);
        let (p, memory) = (count("p").expect("p"), count("M").expect("M"));
        let mut train = read(&directory.join(format!("{name}_train.csv")), p, memory, 0);
        let zeros = facts["convention"].as_str().is_some_and(|text| text.contains("zeros before"));
        let zeros = if zeros { memory - 1 } else { 0 };
        let mut fresh = read(&directory.join(format!("{name}_val.csv")), p, memory, zeros);
        let floor =
            facts["noise_std"].as_f64().filter(|s| *s > 0.0).zip(count("true_rank")).map(|(s, rank)| {
                let truth =
                    Network::zeros(train.y.ncols(), train.x.ncols(), &vec![rank; count("d").unwrap() - 1]);
                s * (truth.parameters() as f64 / train.y.len() as f64).sqrt()
            });
        let line = |method: &str, parameters: usize, cpu: f64, residual: f64, speed: String| {
            let share = floor.map_or(String::new(), |floor| format!("{:.2}", residual / floor));
            println!("| {name} | {method} | {parameters} | {cpu:.2} | {residual:.4e} | {share} | {speed} |");
        };
        let mut slowest = None;
        for result in facts["results"].as_array().into_iter().flatten() {
            let number = |key: &str| result[key].as_f64().unwrap_or(f64::NAN);
            let method = result["algorithm"].as_str().unwrap_or("?");
            if method == "mvmals" {
                slowest = Some(number("cpu_seconds"));
            }
            let parameters = number("parameters") as usize;
            line(method, parameters, number("cpu_seconds"), number("val_relative_residual"), String::new());
        }
        standardise(&mut train.x, &mut fresh.x);
        let options =
            SolveParams { degree: count("d").expect("d"), max_rank: cap, seed, ..SolveParams::default() };
        let start = cpu_seconds();
        let result = choose_and_refit(&train, &options);
        let cpu = cpu_seconds() - start;
        let method = format!("**ladder {:?}**", result.train.ranks());
        let speed = slowest.map_or(String::new(), |slow| format!("{:.0}", slow / cpu));
        line(&method, result.train.parameters(), cpu, fresh.residual(&result.train), speed);
    }
}

/// (p, M, d, l, N).
type Shape = (usize, usize, usize, usize, usize);

fn noise_free() {
    let asked =
        [(1, 5, 3, 1, 2000), (2, 4, 3, 1, 2000), (2, 4, 3, 2, 2000), (3, 4, 4, 1, 5000), (4, 4, 3, 1, 5000)];
    recovered(2, 4, &asked);
    // The harder ones: no rank to spare, or a long train.
    let at_the_cap = [(2, 4, 3, 1, 2000), (4, 4, 3, 1, 4000), (3, 4, 4, 1, 5000), (6, 3, 4, 1, 5000)];
    recovered(3, 3, &at_the_cap);
    recovered(4, 4, &at_the_cap);
    recovered(3, 4, &[(3, 5, 5, 1, 6000), (2, 4, 6, 1, 6000)]);
}

fn recovered(rank: usize, max_rank: usize, shapes: &[Shape]) {
    println!("\nNoise-free networks of rank {rank}, cap {max_rank}: residual on fresh data over ten seeds\n");
    println!("| p, M, d, l, N | at most 1e-9 | median | worst | CPU s each |");
    println!("|---|---|---|---|---|");
    for &(p, memory, degree, outputs, rows) in shapes {
        let start = cpu_seconds();
        let mut residuals: Vec<f64> = (0..10)
            .map(|seed| {
                let mut normal = Normal::new(seed);
                let truth = network(p * memory + 1, degree, outputs, rank, &mut normal);
                let mut sample = |count| {
                    let x = lagged(p, memory, count, &mut normal);
                    let y = truth.evaluate(&x);
                    Rows { x, y }
                };
                let (mut train, mut fresh) = (sample(rows), sample(2000));
                standardise(&mut train.x, &mut fresh.x);
                let options = SolveParams { degree, max_rank, ..SolveParams::default() };
                fresh.residual(&choose_and_refit(&train, &options).train)
            })
            .collect();
        let cpu = (cpu_seconds() - start) / 10.0;
        residuals.sort_by(f64::total_cmp);
        let good = residuals.iter().filter(|r| **r <= 1e-9).count();
        let (median, worst) = (residuals[5], residuals[9]);
        println!(
            "| {p}, {memory}, {degree}, {outputs}, {rows} | {good} of 10 | {median:.1e} | {worst:.1e} | {cpu:.2} |"
        );
    }
}
