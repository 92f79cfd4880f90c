//! The reference problems: recorded results against ours, and noise-free networks of rank two.
//!
//! `cargo bench -p tha-train --bench reference -- [DIR [SEED [CAP]]]`, DIR holding NAME.json, NAME_train.csv and
//! NAME_val.csv. Everything is chosen on blocks of the training file, then fitted to all of it. The validation file gives the
//! final figure only, over all of its samples where the inputs before the first are recorded to be zero. Without DIR the
//! noise-free networks are run.

mod common;

use common::cpu_seconds;
use common::recorded::{Recorded, Shape, names, noise_free};
use std::path::Path;
use tha_train::network::Network;
use tha_train::solve::SolveParams;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(default, |a| a.parse().expect("a number"));
    match arguments.first() {
        Some(directory) => recorded(Path::new(directory), number(1, 0), number(2, 4) as usize),
        None => all_noise_free(),
    }
}

fn recorded(directory: &Path, seed: u64, cap: usize) {
    println!("rank cap {cap}, seed {seed}\n");
    println!("| problem | method | parameters | CPU s | validation residual | of the floor | speed-up |");
    println!("|---|---|---|---|---|---|---|");
    for name in names(directory) {
        let Recorded { facts, train, fresh } = Recorded::read(directory, &name);
        let count = |key: &str| facts[key].as_u64().map(|v| v as usize);
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
        let options =
            SolveParams { degree: count("d").expect("d"), max_rank: cap, seed, ..SolveParams::default() };
        let start = cpu_seconds();
        let result = train.fit(&options);
        let cpu = cpu_seconds() - start;
        let method = format!("**ladder {:?}**", result.network.ranks());
        let speed = slowest.map_or(String::new(), |slow| format!("{:.0}", slow / cpu));
        line(&method, result.network.parameters(), cpu, fresh.residual(&result.network), speed);
    }
}

fn all_noise_free() {
    let asked =
        [(1, 5, 3, 1, 2000), (2, 4, 3, 1, 2000), (2, 4, 3, 2, 2000), (3, 4, 4, 1, 5000), (4, 4, 3, 1, 5000)];
    recovered(2, 4, &asked);
    // The harder ones: no rank to spare, or many cores.
    let at_the_cap = [(2, 4, 3, 1, 2000), (4, 4, 3, 1, 4000), (3, 4, 4, 1, 5000), (6, 3, 4, 1, 5000)];
    recovered(3, 3, &at_the_cap);
    recovered(4, 4, &at_the_cap);
    let long = [(3, 5, 5, 1, 6000), (2, 4, 6, 1, 6000)];
    recovered(3, 4, &long);
    recovered(3, 3, &long);
}

fn recovered(rank: usize, max_rank: usize, shapes: &[Shape]) {
    println!("\nNoise-free networks of rank {rank}, cap {max_rank}: residual on fresh data over ten seeds\n");
    println!("| p, M, d, l, N | at most 1e-9 | median | worst | CPU s each |");
    println!("|---|---|---|---|---|");
    for &(p, memory, degree, outputs, rows) in shapes {
        let start = cpu_seconds();
        let mut residuals: Vec<f64> = (0..10)
            .map(|seed| {
                let (train, fresh) = noise_free((p, memory, degree, outputs, rows), rank, seed);
                let options = SolveParams { degree, max_rank, ..SolveParams::default() };
                fresh.residual(&train.fit(&options).network)
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
