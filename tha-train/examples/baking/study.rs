//! The baking study: error, bias, bake, alignment and both bounds against the correlation of the inputs, the number of
//! heads K and their size k.
//!
//! Systems are random tensor networks over all inputs with 1 % noise; the full model and the ensemble (`average`) are
//! fitted to the same samples, and the analysis is made on them, as in the paper. Everything is divided by the norm of
//! the full model's prediction, so that systems can be averaged. `cargo run --release -p tha-train --example baking`
//! runs it and writes `docs/baking.md`.

use std::error::Error;
use tha_train::{AnalysisParams, FitParams, Pair, Silent, SynthKind as Kind, SynthParams, analyze, generate};

/// What is varied, and the system it is tried on.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Inputs p.
    pub inputs: usize,
    /// Memory M.
    pub memory: usize,
    /// Degree d.
    pub degree: usize,
    /// Rank of the system; fits may use one more.
    pub rank: usize,
    /// Training samples.
    pub samples: usize,
    /// Correlations between any two inputs.
    pub correlations: Vec<f64>,
    /// Heads K and inputs per head k.
    pub ensembles: Vec<(usize, usize)>,
    /// Systems, one per seed.
    pub seeds: Vec<u64>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            inputs: 8,
            memory: 2,
            degree: 2,
            rank: 2,
            samples: 1500,
            correlations: vec![0.0, 0.25, 0.5, 0.75, 0.9, 0.95],
            ensembles: vec![(4, 4), (8, 4), (16, 4), (8, 2), (8, 6)],
            seeds: vec![1, 2, 3, 4],
        }
    }
}

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

/// Runs a plan; `progress` is told about every row.
pub fn run(plan: &Plan, mut progress: impl FnMut(&Row)) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let params = FitParams::new().memory(plan.memory).degree(plan.degree).max_rank(plan.rank + 1);
    for &correlation in &plan.correlations {
        for &seed in &plan.seeds {
            let data = generate(&SynthParams {
                channels: plan.inputs,
                outputs: 1,
                memory: plan.memory,
                degree: plan.degree,
                rank: plan.rank,
                samples: plan.samples,
                correlation,
                seed,
                ..SynthParams::new(Kind::Volterra)
            })?;
            let full = params.clone().check(&data.train)?.fit(&data.train, &Silent)?.model;
            for &(heads, size) in &plan.ensembles {
                let wanted = params.clone().heads(heads).subset_size(size).restarts(12);
                let model = wanted.check(&data.train)?.fit(&data.train, &Silent)?.model;
                let pair = Pair::from_models(&full, &model, &data.train)?;
                let a = analyze(&pair, &AnalysisParams { steps: false, ..AnalysisParams::default() });
                let unit = pair.full.evaluate(&pair.x).norm() / (pair.x.nrows() as f64).sqrt();
                let baking = a.heads.iter().filter(|head| head.incentive).count() as f64;
                rows.push(Row {
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
                });
                progress(&rows[rows.len() - 1]);
            }
        }
    }
    Ok(rows)
}
