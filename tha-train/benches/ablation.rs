//! What each source of starts and each rule of the search buys and costs.
//!
//! `cargo bench -p tha-train --bench ablation -- DIR [SEEDS [P [RULE ...]]]`: the reference problems of DIR, noise-free networks and a network of
//! many inputs P (50 unless told; 0 leaves it out), with all of them and without each (or each RULE).

mod common;

use common::recorded::{Recorded, Shape, names, noise_free};
use common::{Normal, cpu_seconds, lagged, network};
use std::path::Path;
use tha_train::Silent;
use tha_train::solve::{Problem, Rule, SolveParams, choose_and_fit};

/// Noise-free networks: shape, rank and cap.
const NETWORKS: [(Shape, usize, usize); 4] = [
    ((2, 4, 3, 1, 2000), 3, 3),
    ((4, 4, 3, 1, 4000), 3, 3),
    ((3, 4, 4, 1, 5000), 3, 3),
    ((3, 5, 5, 1, 6000), 2, 3),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let directory = Path::new(arguments.first().expect("the directory of the reference problems"));
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(default, |a| a.parse().expect("a number"));
    let (seeds, inputs) = (number(1, 3), number(2, 50) as usize);
    println!(
        "| without | not below recorded | worst of the best recorded | CPU s | noise-free found | CPU s | p = {inputs} | CPU s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let rules = [
        Rule::Subspaces,
        Rule::Quartics,
        Rule::Directed,
        Rule::Growth,
        Rule::Grown,
        Rule::Random,
        Rule::Above,
        Rule::Projection,
        Rule::Sketch,
        Rule::Agreement,
    ];
    let wanted = |rule: &Rule| arguments.len() < 4 || arguments[3..].contains(&format!("{rule:?}"));
    let rules = rules.into_iter().filter(wanted).map(Some);
    for without in std::iter::once(None).chain(rules) {
        let base = SolveParams { without, ..SolveParams::default() };
        let (failed, worst, cpu) = recorded(directory, seeds, &base);
        let (found, all, free) = planted(seeds, &base);
        let (many, seconds) = if inputs > 0 { many_inputs(inputs, &base) } else { (f64::NAN, f64::NAN) };
        let name = without.map_or("nothing".to_owned(), |kind| format!("{kind:?}"));
        println!(
            "| {name} | {failed} | {worst:.2} | {cpu:.1} | {found} of {all} | {free:.1} | {many:.2e} | {seconds:.1} |"
        );
    }
}

/// Over all problems that are not noise-free: names and number of fits that are not below the best recorded residual, the worst ratio to
/// it, and the CPU time of a fit of each.
fn recorded(directory: &Path, seeds: u64, base: &SolveParams) -> (String, f64, f64) {
    let (mut failed, mut worst) = (Vec::new(), 0.0_f64);
    let mut cpu = 0.0;
    for name in names(directory).into_iter().filter(|name| !name.contains("clean")) {
        let Recorded { facts, train, fresh } = Recorded::read(directory, &name);
        let results = facts["results"].as_array().into_iter().flatten();
        let best = results.filter_map(|r| r["val_relative_residual"].as_f64()).fold(f64::INFINITY, f64::min);
        let degree = facts["d"].as_u64().expect("d") as usize;
        let mut above = 0;
        for seed in 0..seeds {
            let start = cpu_seconds();
            let found = train.fit(&SolveParams { degree, seed, ..base.clone() });
            cpu += (cpu_seconds() - start) / seeds as f64;
            let ratio = fresh.residual(&found.network) / best;
            above += usize::from(ratio >= 1.0);
            worst = worst.max(ratio);
        }
        if above > 0 {
            failed.push(format!("{name} {above}"));
        }
    }
    (if failed.is_empty() { "none".to_owned() } else { failed.join(", ") }, worst, cpu)
}

/// Networks found to 1e-9, how many there were, and the CPU time of each.
fn planted(seeds: u64, base: &SolveParams) -> (usize, usize, f64) {
    let (start, mut found) = (cpu_seconds(), 0);
    for (shape, rank, max_rank) in NETWORKS {
        for seed in 0..seeds {
            let (train, fresh) = noise_free(shape, rank, seed);
            let options = SolveParams { degree: shape.2, max_rank, ..base.clone() };
            found += usize::from(fresh.residual(&train.fit(&options).network) <= 1e-9);
        }
    }
    let all = NETWORKS.len() * seeds as usize;
    (found, all, (cpu_seconds() - start) / all as f64)
}

/// Training residual of a network of rank 3 with 1 % of noise, and the CPU time.
fn many_inputs(p: usize, base: &SolveParams) -> (f64, f64) {
    let mut draws = Normal::new(77 + p as u64);
    let truth = network(3 * p + 1, 3, 1, 3, &mut draws);
    let x = lagged(p, 3, 20_000, &mut draws);
    let mut y = truth.evaluate(&x);
    let noise = 0.01 * y.norm() / 20_000_f64.sqrt();
    y.apply(|v| *v += noise * draws.draw());
    let start = cpu_seconds();
    let options = SolveParams { max_rank: 3, ..base.clone() };
    let found = choose_and_fit(&Problem { x: &x, y: &y }, &options, &Silent).expect("a fit");
    (found.train_residual, cpu_seconds() - start)
}
