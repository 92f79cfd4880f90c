//! One head: the split of its residual (Lemma 1), the incentive to bake (Theorem 4, Lemma 2) and the first step it
//! leads to (Theorem 5).
//!
//! R_0 = Y - U_k B_proj = E + R_omitted + R_proj with E = Y - U B*, R_omitted = U (I - P_k) B* and
//! R_proj = U_k (P_k B* - B_proj). The incentive exists where C = U_k^T R_omitted is not orthogonal to the tangent space
//! at B_proj.

use super::decomposition::norm;
use super::kernel::Kernel;
use super::mask::restrict;
use super::projection::project;
use super::step::{Decrease, single_core, two_cores};
use super::tangent::{MeasureZero, ORTHOGONAL, Tangent, measure_zero};
use super::{AnalysisParams, Pair, Part};
use nalgebra::DMatrix;
use serde::Serialize;

/// What the theory says about one head.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadAnalysis {
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// Its ranks.
    pub ranks: Vec<usize>,
    /// w_k.
    pub weight: f64,
    /// Observable truncation gap eps_k.
    pub epsilon: f64,
    /// ||C||_F, C = U_k^T R_omitted.
    pub correlation_norm: f64,
    /// ||P_T C||_F, T the tangent space at B_proj.
    pub tangent_norm: f64,
    /// Whether C is not orthogonal to T: baking pays (Theorem 4).
    pub incentive: bool,
    /// Whether B_proj has the head's ranks on every bond (the paper's Assumption 1). Where not, the tangent space is
    /// that of the manifold of its own ranks, and so the incentive is no less than stated.
    pub regular: bool,
    /// Lemma 1.
    pub residual: ResidualSplit,
    /// Theorem 5 for the best single core.
    pub als: Option<Decrease>,
    /// Theorem 5 for the first two cores.
    pub mals: Option<Decrease>,
    /// Proposition 1 by trial, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure_zero: Option<MeasureZero>,
}

/// Lemma 1: empirical norms of R_0 = E + R_omitted + R_proj.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResidualSplit {
    /// ||R_0||.
    pub total: f64,
    /// ||E||: noise, and what the full model does not explain.
    pub noise: f64,
    /// ||R_omitted||.
    pub omitted: f64,
    /// ||R_proj||.
    pub projection: f64,
    /// ||R_0 - (E + R_omitted + R_proj)||, relative to ||R_0||: zero but for rounding.
    pub gap: f64,
}

/// Analyses one head, given the full model's prediction.
pub fn analyze_head(
    pair: &Pair,
    head: &Part,
    epsilon: f64,
    full: &DMatrix<f64>,
    options: &AnalysisParams,
) -> HeadAnalysis {
    let x = head.features(&pair.x, &pair.owners);
    let truncated = restrict(&pair.full, &head.subset, &pair.owners);
    let seen = truncated.evaluate(&x);
    let projected = project(&truncated, &head.ranks);
    let at_projection = projected.evaluate(&x);

    let omitted = full - &seen;
    let noise = &pair.y - full;
    let missed = &seen - &at_projection;
    let start = &pair.y - at_projection;
    let total = norm(&start);
    let residual = ResidualSplit {
        total,
        noise: norm(&noise),
        omitted: norm(&omitted),
        projection: norm(&missed),
        gap: norm(&(&start - noise - &omitted - missed)) / total.max(f64::MIN_POSITIVE),
    };

    let correlation_norm = Kernel::new(&x, pair.degree()).correlation_square(&omitted).sqrt();
    let zero = projected.norm() == 0.0;
    let tangent = Tangent::at(&projected);
    // At zero there is no tangent space of positive rank.
    let tangent_norm = if zero { 0.0 } else { tangent.norm(&x, &omitted) };
    // The least correlation that is more than rounding: sqrt(N) is the norm of the constant feature's column.
    let floor = 1e-12 * pair.x.nrows() as f64 * norm(full).max(f64::MIN_POSITIVE);
    let trial = (options.measure_zero > 0 && !zero)
        .then(|| measure_zero(&tangent, &x, options.measure_zero, options.seed));
    let (als, mals) = if zero || !options.steps {
        (None, None)
    } else {
        let cap = head.ranks.first().copied().unwrap_or(1);
        (single_core(&projected, &x, &pair.y), two_cores(&projected, &x, &pair.y, cap))
    };
    HeadAnalysis {
        inputs: head.subset.iter().map(|&i| pair.inputs[i].clone()).collect(),
        ranks: head.ranks.clone(),
        weight: head.weight,
        epsilon,
        correlation_norm,
        tangent_norm,
        incentive: correlation_norm > floor && tangent_norm > ORTHOGONAL * correlation_norm,
        regular: !zero && projected.ranks() == head.ranks,
        residual,
        als,
        mals,
        measure_zero: trial,
    }
}
