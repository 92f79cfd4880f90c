//! The baking study: error, bias, bake, alignment and both bounds against the correlation of the inputs, the number of
//! heads K and their size k.
//!
//! Systems are random tensor networks over all inputs with 1 % noise; the full model and the ensemble (`average`) are
//! fitted to the same samples, and the analysis is made on them, as in the paper. Everything is divided by the norm of
//! the full model's prediction, so that systems can be averaged. `cargo run --release -p tha-train --example baking`
//! runs it and writes `docs/baking.md`.

use std::error::Error;
use tha_train::{AnalysisParams, FitParams, Pair, Silent, SynthKind as Kind, SynthParams, analyze, generate};

/// The systems: inputs p, memory M, degree d, rank (fits may use one more), training samples, and one system per seed.
pub const INPUTS: usize = 8;
pub const MEMORY: usize = 2;
pub const DEGREE: usize = 2;
pub const RANK: usize = 2;
pub const SAMPLES: usize = 1500;
pub const SEEDS: [u64; 4] = [1, 2, 3, 4];
/// Correlations between any two inputs.
pub const CORRELATIONS: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95];
/// Heads K and inputs per head k.
pub const ENSEMBLES: [(usize, usize); 5] = [(4, 4), (8, 4), (16, 4), (8, 2), (8, 6)];

/// One system and one ensemble; numbers relative to ||Y_full||, squares to its square.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Correlation between any two inputs.
    pub correlation: f64,
    /// K.
    pub heads: usize,
    /// k.
    pub size: usize,
    /// Seed of the system.
    pub seed: u64,
    /// ||Y_THA - Y_full||.
    pub error: f64,
    /// ||bias||.
    pub bias: f64,
    /// ||bake||.
    pub bake: f64,
    /// Alignment.
    pub align: f64,
    /// Right-hand side of Theorem 2.
    pub triangle: f64,
    /// Root of the right-hand side of Theorem 3.
    pub improved: f64,
    /// Part of the heads with an incentive to bake.
    pub incentive: f64,
    /// Relative residual of the full model on fresh, noise-free data.
    pub test_full: f64,
    /// The same of the ensemble.
    pub test_ensemble: f64,
    /// Identity gap of Theorem 1.
    pub identity_gap: f64,
    /// Theorems 2 and 3 held.
    pub bounds_hold: bool,
}

/// Runs the study, and says how every ensemble did.
pub fn run() -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let params = FitParams::new().memory(MEMORY).degree(DEGREE).max_rank(RANK + 1);
    for correlation in CORRELATIONS {
        for seed in SEEDS {
            let data = generate(&SynthParams {
                channels: INPUTS,
                outputs: 1,
                memory: MEMORY,
                degree: DEGREE,
                rank: RANK,
                samples: SAMPLES,
                correlation,
                seed,
                ..SynthParams::new(Kind::Volterra)
            })?;
            let full = params.clone().check(&data.train)?.fit(&data.train, &Silent)?.model;
            for (heads, size) in ENSEMBLES {
                let wanted = params.clone().heads(heads).subset_size(size).restarts(12);
                let model = wanted.check(&data.train)?.fit(&data.train, &Silent)?.model;
                let pair = Pair::from_models(&full, &model, &data.train)?;
                let a = analyze(&pair, &AnalysisParams { steps: false, ..AnalysisParams::default() });
                let unit = pair.full.evaluate(&pair.x).norm() / (pair.x.nrows() as f64).sqrt();
                let baking = a.heads.iter().filter(|head| head.incentive).count() as f64;
                let row = Row {
                    correlation,
                    heads,
                    size,
                    seed,
                    error: a.error / unit,
                    bias: a.bias / unit,
                    bake: a.bake / unit,
                    align: a.align / (unit * unit),
                    triangle: a.theorem2.rhs.unwrap_or(f64::NAN) / unit,
                    improved: a.theorem3.rhs.unwrap_or(f64::NAN).max(0.0).sqrt() / unit,
                    incentive: baking / a.heads.len().max(1) as f64,
                    test_full: full.evaluate(&data.test).relative_residual,
                    test_ensemble: model.evaluate(&data.test).relative_residual,
                    identity_gap: a.identity_gap,
                    bounds_hold: a.theorem2.holds == Some(true) && a.theorem3.holds == Some(true),
                };
                eprintln!(
                    "correlation {correlation}, K {heads}, k {size}, seed {seed}: error {:.3}, bias {:.3}, align {:+.3}",
                    row.error, row.bias, row.align
                );
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
