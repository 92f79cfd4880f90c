//! The theory of the paper, computed on a user's data: how far an ensemble is from the full model, and why.
//!
//! One file per part:
//!
//! | file | part of the paper |
//! |---|---|
//! | [`mask`] | mask operator P_S, coverage operator C_w |
//! | [`tail`] | tail T and its norm |
//! | [`decomposition`] | truncated ensemble, coverage bias, baking adjustment, alignment, truncation gaps; Theorem 1 |
//! | [`spectrum`] | lambda_max(G) |
//! | [`bounds`] | Theorems 2 and 3 |
//! | [`projection`] | feasible projection B_proj |
//! | [`tangent`] | tangent space, Theorem 4, Lemma 2, Proposition 1 |
//! | [`step`] | Theorem 5 |
//! | [`head`] | Lemma 1, and all of the above for one head |
//! | [`pair`] | both models in one coordinate system |
//!
//! **Units.** Everything is in the full model's standardised coordinates: norms of coefficients and lambda_max have no
//! meaning otherwise. The errors per output are also given in physical units ([`OutputAnalysis`]). Nothing of size
//! Q = q^d is formed.

pub mod bounds;
pub mod decomposition;
mod error;
pub mod head;
pub mod kernel;
pub mod mask;
pub mod pair;
pub mod projection;
pub mod spectrum;
pub mod step;
pub mod tail;
pub mod tangent;

pub use bounds::Bound;
pub use decomposition::Decomposition;
pub use error::AnalysisError;
pub use head::HeadAnalysis;
pub use pair::{Pair, Part};

use decomposition::{norm, square};
use serde::Serialize;

/// How far a sum of 32-bit weights may be from one and still be convex.
const CONVEX: f64 = 1e-5;
/// Theorem 1 is an identity: a larger gap is a fault.
pub const IDENTITY: f64 = 1e-9;

/// What to compute.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisParams {
    /// Random directions per head for Proposition 1; none when zero.
    pub measure_zero: usize,
    /// Seed of those directions.
    pub seed: u64,
    /// Compute the steps of Theorem 5.
    pub steps: bool,
}

impl Default for AnalysisParams {
    fn default() -> Self {
        Self { measure_zero: 0, seed: 0, steps: true }
    }
}

/// An identity: both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Identity {
    /// Left-hand side.
    pub lhs: f64,
    /// Right-hand side.
    pub rhs: f64,
}

/// Root-mean-square differences of one output in its own unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputAnalysis {
    /// Its name.
    pub name: String,
    /// Physical units per standardised unit.
    pub scale: f64,
    /// Ensemble against full model.
    pub error: f64,
    /// Truncated ensemble against full model.
    pub bias: f64,
    /// Ensemble against truncated ensemble.
    pub bake: f64,
}

/// The whole analysis. Norms are empirical Frobenius norms, in standardised units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Always "standardised": the coordinates of the numbers below, but for `outputs`.
    pub coordinates: &'static str,
    /// Samples N.
    pub samples: usize,
    /// ||Y_THA - Y_full||.
    pub error: f64,
    /// ||bias||, the error of the truncated ensemble.
    pub bias: f64,
    /// ||bake||.
    pub bake: f64,
    /// Baking alignment; positive where training counteracts the bias.
    pub align: f64,
    /// |lhs - rhs| of Theorem 1, relative to its largest term.
    pub identity_gap: f64,
    /// eps_k, head by head.
    pub truncation_gaps: Vec<f64>,
    /// lambda_max(G), or the trace of G.
    pub lambda_max: f64,
    /// False where `lambda_max` is the trace bound because the data are too many.
    pub lambda_exact: bool,
    /// ||T||_F.
    pub tail_norm: f64,
    /// Whether the weights are convex, as Theorems 2 and 3 need.
    pub convex: bool,
    /// Theorem 1: squared error and its decomposition.
    pub theorem1: Identity,
    /// Theorem 2.
    pub theorem2: Bound,
    /// Theorem 3 (squared).
    pub theorem3: Bound,
    /// ||Y - Y_full|| and ||Y - Y_THA||: how far both are from the recording.
    pub full_residual: f64,
    /// See `full_residual`.
    pub ensemble_residual: f64,
    /// ||Y - Y_trunc||.
    pub truncated_residual: f64,
    /// Difference between the model files' own predictions and those analysed, relative; large only under clamping.
    pub conversion_gap: Option<f64>,
    /// In physical units.
    pub outputs: Vec<OutputAnalysis>,
    /// Head by head.
    pub heads: Vec<HeadAnalysis>,
}

impl Analysis {
    /// What did not hold, in words; empty when all is well.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        if self.identity_gap.is_nan() || self.identity_gap > IDENTITY {
            failures.push(format!("Theorem 1 is off by {:.1e}", self.identity_gap));
        }
        for (name, bound) in [("Theorem 2", &self.theorem2), ("Theorem 3", &self.theorem3)] {
            if let (Some(false), Some(rhs)) = (bound.holds, bound.rhs) {
                failures.push(format!("{name} is violated: {:e} > {rhs:e}", bound.lhs));
            }
        }
        failures
    }

    /// True where the truncated ensemble is farther from the full model than the trained one.
    pub fn baking_helps(&self) -> bool {
        self.bias > self.error
    }
}

/// Computes everything.
pub fn analyze(pair: &Pair, options: &AnalysisParams) -> Analysis {
    let parts = Decomposition::new(pair);
    let (error_square, right) = (parts.error_square(), parts.right_side());
    let (bias_square, bake_square, align) = (square(&parts.bias), square(&parts.bake), parts.align());
    let largest = error_square.max(bias_square).max(bake_square).max(f64::MIN_POSITIVE);
    let spectrum = spectrum::lambda_max(&pair.x, pair.degree(), spectrum::PRODUCT_LIMIT);
    let tail_norm = tail::tail_norm(&pair.full, &pair.heads, &pair.owners);
    let weights: Vec<f64> = pair.heads.iter().map(|head| head.weight).collect();
    let gap = bounds::aggregated_gap(&weights, &parts.gaps);
    let error = error_square.sqrt();
    let rms = |matrix: &nalgebra::DMatrix<f64>, j: usize| {
        (matrix.column(j).norm_squared() / matrix.nrows() as f64).sqrt() * pair.scales[j]
    };
    let difference = &parts.ensemble - &parts.full;
    let outputs = pair.outputs.iter().enumerate().map(|(j, name)| OutputAnalysis {
        name: name.clone(),
        scale: pair.scales[j],
        error: rms(&difference, j),
        bias: rms(&parts.bias, j),
        bake: rms(&parts.bake, j),
    });
    let heads = pair
        .heads
        .iter()
        .zip(&parts.gaps)
        .map(|(part, &epsilon)| head::analyze_head(pair, part, epsilon, &parts.full, options));
    Analysis {
        coordinates: "standardised",
        samples: pair.x.nrows(),
        error,
        bias: bias_square.sqrt(),
        bake: bake_square.sqrt(),
        align,
        identity_gap: (error_square - right).abs() / largest,
        lambda_max: spectrum.value,
        lambda_exact: spectrum.exact,
        tail_norm,
        convex: gap.is_some(),
        theorem1: Identity { lhs: error_square, rhs: right },
        theorem2: bounds::theorem2(error, spectrum.value, tail_norm, gap),
        theorem3: bounds::theorem3(error_square, bias_square, gap, align),
        full_residual: norm(&(&pair.y - &parts.full)),
        ensemble_residual: norm(&(&pair.y - &parts.ensemble)),
        truncated_residual: norm(&(&pair.y - &parts.full - &parts.bias)),
        conversion_gap: pair.conversion_gap,
        outputs: outputs.collect(),
        heads: heads.collect(),
        truncation_gaps: parts.gaps,
    }
}
