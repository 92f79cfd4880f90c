//! The middle of a quartic whose end forms are known.
//!
//! With a and c given, y = a(x)^T B(x) C(x) c(x) is linear in the super-core M = B C, a matrix of (r q) x (q r) entries
//! that only has to have rank r. Many M fit (the polynomial does not tell the order of its factors), and the one of
//! least norm has a high rank. So its rank is brought down by iteratively reweighted least squares: the penalty
//! tr(W_l M W_r M^T) with W = (M M^T + eps^2)^(-1/2), a smooth stand-in for the rank that becomes sharper as eps falls.
//! Unlike alternating least squares from random cores this hardly ever ends in a local minimum.

use crate::linalg::{Svd, add_gram_lower, cholesky_in_place, cholesky_solve, svd, view, view_mut};
use crate::network::{Core, Network};
use nalgebra::DMatrix;

/// Largest number of unknowns (r q)^2.
const UNKNOWNS: usize = 800;
/// Solutions at most.
const STEPS: usize = 25;
/// A singular value this small against the largest is gone.
const GONE: f64 = 5e-3;

/// The network of rank r with the forms `first` and `last` (q x r) at its ends, fitted to rows x, y with noise of
/// `variance`; `None` where no network with these ends comes near.
pub(super) fn between(
    first: &DMatrix<f64>,
    last: &DMatrix<f64>,
    x: &DMatrix<f64>,
    y: &DMatrix<f64>,
    variance: f64,
) -> Option<Network> {
    let (q, rank) = first.shape();
    let side = rank * q;
    if side * side > UNKNOWNS {
        return None;
    }
    let (left, right) = (x * first, x * last);
    // Column (i, k, l, j): a_i x_k x_l c_j, row-major in (i, k) and (l, j).
    let mut design = DMatrix::zeros(x.nrows(), side * side);
    for (at, mut column) in design.column_iter_mut().enumerate() {
        let (row, other) = (at % side, at / side);
        let factors =
            [left.column(row / q), x.column(row % q), x.column(other / rank), right.column(other % rank)];
        for (t, value) in column.iter_mut().enumerate() {
            *value = factors.iter().map(|factor| factor[t]).product();
        }
    }
    let mut gram = DMatrix::zeros(side * side, side * side);
    add_gram_lower(view_mut(&mut gram), view(&design));
    let rhs = design.tr_mul(y);
    let mut weights = (DMatrix::identity(side, side), DMatrix::identity(side, side));
    let mut sharpness = f64::INFINITY;
    for step in 0..STEPS {
        let mut damped = gram.clone();
        for at in 0..side * side {
            for row in at..side * side {
                damped[(row, at)] +=
                    variance * weights.0[(row % side, at % side)] * weights.1[(row / side, at / side)];
            }
        }
        if !cholesky_in_place(&mut damped) {
            return None;
        }
        let mut solution = rhs.clone();
        cholesky_solve(&damped, &mut solution);
        if step == 0 {
            let misfit = (y - &design * &solution).norm_squared();
            if misfit > 4.0 * variance * y.len() as f64 {
                return None;
            }
        }
        let parts = svd(&DMatrix::from_column_slice(side, side, solution.as_slice()))?;
        let (largest, next) = (parts.s[0].max(f64::MIN_POSITIVE), parts.s.get(rank).copied().unwrap_or(0.0));
        if next <= GONE * largest || step + 1 == STEPS {
            return Some(network(first, last, &parts));
        }
        sharpness = if step == 0 { largest } else { sharpness.min(next) };
        let weight = |basis: &DMatrix<f64>| {
            let scaled = DMatrix::from_fn(side, side, |i, j| {
                basis[(i, j)] * (largest / (parts.s[j].powi(2) + sharpness.powi(2)).sqrt()).sqrt()
            });
            &scaled * scaled.transpose()
        };
        weights = (weight(&parts.u), weight(&parts.v));
    }
    None
}

/// a, B, C, c from the leading singular vectors of M.
fn network(first: &DMatrix<f64>, last: &DMatrix<f64>, Svd { u, s, v }: &Svd) -> Network {
    let (q, rank) = first.shape();
    let scaled =
        |basis: &DMatrix<f64>| DMatrix::from_fn(basis.nrows(), rank, |i, j| basis[(i, j)] * s[j].sqrt());
    let cores = vec![
        Core::from_unfolding(1, q, rank, first),
        Core::from_unfolding(rank, q, rank, &scaled(u)),
        Core::from_unfolding(rank, q, rank, &scaled(v).transpose()),
        Core::from_unfolding(rank, q, 1, &last.transpose()),
    ];
    Network { cores }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::qr;
    use crate::network::{Normal, unfold};

    #[test]
    fn the_middle_of_rank_two_and_three_is_found() {
        for (q, rank, seed) in [(5, 2, 1), (5, 2, 2), (7, 3, 3), (7, 3, 4)] {
            let mut normal = Normal::new(seed);
            let truth = Network::random(1, q, &[rank; 3], &mut normal);
            let x = DMatrix::from_fn(500, q, |_, i| if i == 0 { 1.0 } else { normal.draw() });
            let mut y = truth.evaluate(&x);
            y /= y.norm() / (500f64).sqrt();
            let (first, last) = (qr(&unfold(&truth.cores[0])).0, qr(&unfold(&truth.cores[3])).0);
            let found = between(&first, &last, &x, &y, 1e-8).expect("the ends are the true ones");
            let residual = (found.evaluate(&x) - &y).norm() / y.norm();
            assert!(residual < 0.2, "near enough for a descent: {residual}");
            let wrong = DMatrix::from_fn(q, rank, |_, _| normal.draw());
            assert!(between(&wrong, &last, &x, &y, 1e-8).is_none());
        }
    }
}
