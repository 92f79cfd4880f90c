//! Time against the number of inputs p, rows N and rank r, with the fitted exponents.
//!
//! `cargo bench -p tha-train --bench scale -- [LARGEST_P [SMALLEST_P [SEED]]] [even]` (6 to 50 unless told; 200 takes minutes). Data are random
//! networks of degree 3, memory 3 and the rank of the fit, plus 1 % noise; the fit is the ladder with that rank as its
//! cap. In the networks the constant, linear, quadratic and cubic parts are of one size, as in systems one can hope to
//! identify; with `even` all entries are drawn alike, which leaves a nearly pure cubic. The paper's MVMALS costs p^6.

mod common;

use common::{Normal, cpu_seconds, lagged, network};
use std::time::Instant;
use tha_train::Silent;
use tha_train::host::peak_rss_mb;
use tha_train::solve::{Problem, SolveParams, choose_and_fit};

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let largest = numbers.first().copied().unwrap_or(50);
    let smallest = numbers.get(1).copied().unwrap_or(0);
    let seed = numbers.get(2).copied().unwrap_or(0) as u64;
    println!("| p | N | rank | parameters | seconds | CPU s | residual | peak MiB |");
    println!("|---|---|---|---|---|---|---|---|");
    let inputs: Vec<usize> =
        [6, 12, 25, 50, 100, 200].into_iter().filter(|p| (smallest..=largest).contains(p)).collect();
    let times: Vec<_> = inputs.iter().map(|p| (*p as f64, run(*p, 20_000, 3, seed))).collect();
    if smallest > 12 {
        return;
    }
    let rows = [5_000, 10_000, 20_000, 40_000];
    let by_rows: Vec<_> = rows.iter().map(|n| (*n as f64, run(12, *n, 3, seed))).collect();
    let by_rank: Vec<_> = (1..=4).map(|r| (r as f64, run(12, 20_000, r, seed))).collect();
    println!(
        "\nexponents of the CPU time: p^{:.1}, N^{:.1}, r^{:.1}",
        slope(&times),
        slope(&by_rows),
        slope(&by_rank)
    );
}

fn run(p: usize, rows: usize, rank: usize, seed: u64) -> f64 {
    let (memory, degree) = (3, 3);
    let mut normal = Normal::new(77 + p as u64);
    let mut truth = network(p * memory + 1, degree, 1, rank, &mut normal);
    if !std::env::args().any(|a| a == "even") {
        let weight = ((p * memory) as f64).sqrt();
        for core in &mut truth.cores {
            let right = core.right;
            core.data
                .chunks_mut(core.q * right)
                .for_each(|part| part[..right].iter_mut().for_each(|v| *v *= weight));
        }
    }
    let x = lagged(p, memory, rows, &mut normal);
    let mut y = truth.evaluate(&x);
    let noise = 0.01 * y.norm() / (rows as f64).sqrt();
    y.apply(|v| *v += noise * normal.draw());
    let options = SolveParams { degree, max_rank: rank, seed, ..SolveParams::default() };
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = choose_and_fit(&Problem { x: &x, y: &y }, &options, &Silent).expect("a fit");
    let cpu = cpu_seconds() - cpu;
    println!(
        "| {p} | {rows} | {rank} | {} | {:.1} | {cpu:.1} | {:.2e} | {:.0} |",
        result.network.parameters(),
        start.elapsed().as_secs_f64(),
        result.train_residual,
        peak_rss_mb().expect("Linux keeps sizes in /proc")
    );
    cpu
}

/// Least-squares slope of log time against log size.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(a, b)| (a.ln(), b.ln())).collect();
    let count = logs.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| logs.iter().map(f).sum::<f64>() / count;
    let (x, y) = (mean(|l| l.0), mean(|l| l.1));
    logs.iter().map(|l| (l.0 - x) * (l.1 - y)).sum::<f64>()
        / logs.iter().map(|l| (l.0 - x).powi(2)).sum::<f64>()
}
