//! The descent alone: five ridges from strong to weak, each from where the last one ended, on random rows.
//!
//! `cargo bench -p tha-train --bench descent`. The shapes are those of recordings; the figure to compare with is the same
//! work by another program on the same machine in the same run.

mod common;

use common::{Normal, cpu_seconds};
use nalgebra::DMatrix;
use std::time::Instant;
use tha_train::Silent;
use tha_train::solve::{Problem, Settings, SolveParams, fit};

fn main() {
    println!("| N | q | d | l | rank | seconds | CPU s | residual |");
    println!("|---|---|---|---|---|---|---|---|");
    for (count, q, degree, outputs, rank) in
        [(3559, 22, 2, 7, 8), (45_000, 61, 2, 2, 4), (35_000, 280, 2, 5, 8)]
    {
        let mut normal = Normal::new(1);
        let x = DMatrix::from_fn(count, q, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let y = DMatrix::from_fn(count, outputs, |t, j| {
            x[(t, 1 + j)] * x[(t, 2 + j)] + x[(t, 3)] + 0.3 * normal.draw()
        });
        let (clock, before) = (Instant::now(), cpu_seconds());
        let options = SolveParams { degree, max_rank: rank, ..SolveParams::default() };
        let mut last = None;
        for ridge in [100.0, 10.0, 1.0, 0.1, 0.01] {
            let ranks = vec![rank; degree - 1];
            let settings = Settings { ranks, gamma: 1.0, ridge, decay: None, exact: false };
            let problem = Problem { x: &x, y: &y };
            last = Some(fit(&problem, &settings, last.as_ref(), &options, &Silent).expect("a fit"))
                .map(|fit| fit.network);
        }
        let residual = (last.expect("five fits").evaluate(&x) - &y).norm() / y.norm();
        let (seconds, cpu) = (clock.elapsed().as_secs_f64(), cpu_seconds() - before);
        println!(
            "| {count} | {q} | {degree} | {outputs} | {rank} | {seconds:.2} | {cpu:.2} | {residual:.3} |"
        );
    }
}
