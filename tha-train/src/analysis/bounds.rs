//! The observable bounds, Theorems 2 and 3.
//!
//! Theorem 2: error <= sqrt(lambda_max(G)) ||T||_F + (sum_k w_k eps_k^2)^(1/2).
//! Theorem 3: error^2 <= ||bias||^2 + sum_k w_k eps_k^2 - 2 align.
//!
//! Both use Jensen's inequality and so need w >= 0 with sum 1. Weights come from 32-bit numbers whose sum is one up to
//! rounding; the sum w is kept as a factor of sum w eps^2, which makes the inequality hold to the last digit.

use serde::Serialize;

/// A bound: the quantity, what bounds it, and whether it does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Left-hand side.
    pub lhs: f64,
    /// Right-hand side; `None` where the theorem does not apply.
    pub rhs: Option<f64>,
    /// lhs <= rhs; `None` where the theorem does not apply.
    pub holds: Option<bool>,
}

/// A bound counts as kept up to this rounding error, relative to its terms.
const ROUNDING: f64 = 1e-9;

/// sum_k w_k eps_k^2, times sum w; `None` for weights that are not convex.
pub fn aggregated_gap(weights: &[f64], gaps: &[f64]) -> Option<f64> {
    let sum: f64 = weights.iter().sum();
    let convex = (sum - 1.0).abs() < super::CONVEX && weights.iter().all(|w| *w >= 0.0);
    convex.then(|| sum * weights.iter().zip(gaps).map(|(w, gap)| w * gap * gap).sum::<f64>())
}

/// Theorem 2, from the error, lambda_max(G), ||T||_F and the aggregated gap.
pub fn theorem2(error: f64, lambda_max: f64, tail_norm: f64, gap: Option<f64>) -> Bound {
    let rhs = gap.map(|gap| lambda_max.sqrt() * tail_norm + gap.sqrt());
    Bound { lhs: error, rhs, holds: rhs.map(|rhs| error <= rhs * (1.0 + ROUNDING)) }
}

/// Theorem 3, from the squared error, ||bias||^2, the aggregated gap and the alignment.
pub fn theorem3(error_square: f64, bias_square: f64, gap: Option<f64>, align: f64) -> Bound {
    let rhs = gap.map(|gap| bias_square + gap - 2.0 * align);
    let scale = bias_square + gap.unwrap_or(0.0) + 2.0 * align.abs();
    Bound { lhs: error_square, rhs, holds: rhs.map(|rhs| error_square <= rhs + ROUNDING * scale) }
}
