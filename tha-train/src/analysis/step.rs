//! One update from B_proj: what least squares promise and what is realised (Theorem 5).
//!
//! An update of one block is linear least squares in that block: it promises Delta J_LS = ||Pi r_0||^2, r_0 = Y - U_k
//! B_proj. A single core (ALS) keeps the ranks and realises the promise. Two cores together (MALS) promise more, but the
//! cut back to the head's ranks takes ||A (dz* - dz_trunc)||^2 of it away, sometimes more than all.

use crate::linalg::{add_gram_lower, add_product, minimal_norm, view, view_mut};
use crate::network::{BLOCK, Contraction, Network};
use crate::solve::{Problem, super_core_step};
use nalgebra::DMatrix;
use serde::Serialize;

/// Eigenvalues of a local problem below this part of the largest count as zero.
const CUTOFF: f64 = 1e-13;
/// Largest local problem that is solved for this purpose.
const UNKNOWNS: usize = 1500;

/// The decrease of J = ||Y - U_k B||^2_{F,N} by one update from B_proj.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Decrease {
    /// The block: core number, or the first of the two cores (from 1).
    pub block: usize,
    /// Delta J_LS.
    pub predicted: f64,
    /// What the truncation is predicted to take of it.
    pub truncation: f64,
    /// J before less J after, evaluated.
    pub realised: f64,
}

/// The best update of a single core; `None` where the local problems are too large.
pub fn single_core(network: &Network, x: &DMatrix<f64>, y: &DMatrix<f64>) -> Option<Decrease> {
    let mut network = network.clone();
    network.balance();
    let residual = y - network.evaluate(x);
    let count = x.nrows() as f64;
    let mut best: Option<Decrease> = None;
    for k in 0..network.degree() {
        let core = &network.cores[k];
        if core.data.len() / if k == 0 { core.left } else { 1 } > UNKNOWNS {
            continue;
        }
        let (gram, gradient) = local_problem(&network, k, x, &residual);
        let Some(step) = minimal_norm(&gram, &gradient, CUTOFF) else { continue };
        let predicted = step.dot(&gradient) / count;
        if best.is_some_and(|best| best.predicted >= predicted) {
            continue;
        }
        let mut moved = network.clone();
        // Column after column: for the first core one column for each of its rows, else one for all.
        moved.cores[k].data.iter_mut().zip(step.iter()).for_each(|(v, d)| *v += d);
        let realised = (residual.norm_squared() - (moved.evaluate(x) - y).norm_squared()) / count;
        best = Some(Decrease { block: k + 1, predicted, truncation: 0.0, realised });
    }
    best
}

/// A^T A (lower triangle) and A^T r for core k, A the local design matrix. For the first core the outputs decouple:
/// one matrix, a right-hand side for each.
fn local_problem(
    network: &Network,
    k: usize,
    x: &DMatrix<f64>,
    residual: &DMatrix<f64>,
) -> (DMatrix<f64>, DMatrix<f64>) {
    let core = &network.cores[k];
    let (q, right) = (core.q, core.right);
    let left = if k == 0 { 1 } else { core.left };
    let unknowns = left * q * right;
    let mut gram = DMatrix::zeros(unknowns, unknowns);
    let mut gradient = DMatrix::zeros(unknowns, if k == 0 { network.outputs() } else { 1 });
    let unfolded = network.unfolded();
    for at in (0..x.nrows()).step_by(BLOCK) {
        let rows = BLOCK.min(x.nrows() - at);
        let x = x.rows(at, rows).into_owned();
        let parts = Contraction::new(network, &unfolded, &x);
        for j in 0..if k == 0 { 1 } else { network.outputs() } {
            let design = DMatrix::from_fn(rows, unknowns, |t, c| {
                let (a, i, b) = (c / (q * right), c / right % q, c % right);
                let before = if k == 0 { 1.0 } else { parts.left[k][(j * left + a) * rows + t] };
                before * x[(t, i)] * parts.right[k + 1][b * rows + t]
            });
            let r = residual.view((at, j), (rows, gradient.ncols())).into_owned();
            add_gram_lower(view_mut(&mut gram), view(&design));
            add_product(view_mut(&mut gradient), view(&design).transpose(), view(&r));
        }
    }
    (gram, gradient)
}

/// The update of the first two cores, cut back to rank `cap`; `None` for degree 1 and where the local problem is too
/// large.
pub fn two_cores(network: &Network, x: &DMatrix<f64>, y: &DMatrix<f64>, cap: usize) -> Option<Decrease> {
    let mut network = network.clone();
    network.orthogonalize_right();
    let q = network.q();
    if network.degree() < 2 || network.cores[1].right * q * (q + 1) / 2 > UNKNOWNS {
        return None;
    }
    let (moved, gain, lost) = super_core_step(&Problem { x, y }, &network, 0, cap).ok()?;
    let count = x.nrows() as f64;
    let loss = |network: &Network| (network.evaluate(x) - y).norm_squared() / count;
    let realised = loss(&network) - loss(&moved);
    Some(Decrease { block: 1, predicted: gain / count, truncation: lost / count, realised })
}
