//! The tangent space at B_proj and the projection of a correlation U_k^T R on it (Theorem 4, Lemma 2, Proposition 1).
//!
//! With left-orthogonal cores before and right-orthogonal cores after it, the gradient of core i is
//! G_i(a, :, b) = sum_t x_t sum_j R_tj L_i(t, j, a) R_i(t, b). Taking out of every G_i but the last what the core itself
//! spans, G_i - V_i V_i^T G_i, makes the blocks orthogonal to each other, so
//! ||P_T U_k^T R||^2 = sum_i ||G_i - V_i V_i^T G_i||^2. U_k^T R itself is never formed.

use super::kernel::Kernel;
use crate::linalg::transposed_product;
use crate::network::{BLOCK, Contraction, Network, Normal, fold};
use nalgebra::DMatrix;
use rayon::prelude::*;
use serde::Serialize;

/// A projection below this part of the whole counts as none.
pub const ORTHOGONAL: f64 = 1e-10;
/// Rows that Proposition 1 is tried on.
const TRIAL_ROWS: usize = 256;

/// The tangent space of the manifold of networks at one of them.
pub struct Tangent {
    left: Network,
    right: Network,
}

impl Tangent {
    /// The tangent space at `network`, whose bonds carry full rank.
    pub fn at(network: &Network) -> Self {
        let (mut left, mut right) = (network.clone(), network.clone());
        left.orthogonalize_left();
        right.orthogonalize_right();
        Self { left, right }
    }

    /// ||P_T U^T R||_F for rows `x` of the network's inputs and R, N x l.
    pub fn norm(&self, x: &DMatrix<f64>, r: &DMatrix<f64>) -> f64 {
        let (left, right) = (self.left.unfolded(), self.right.unfolded());
        let starts: Vec<usize> = (0..x.nrows()).step_by(BLOCK).collect();
        let parts: Vec<Vec<DMatrix<f64>>> = starts
            .par_iter()
            .map(|&at| {
                let rows = BLOCK.min(x.nrows() - at);
                let (x, r) = (x.rows(at, rows).into_owned(), r.rows(at, rows).into_owned());
                let before = Contraction::new(&self.left, &left, &x);
                let after = Contraction::new(&self.right, &right, &x);
                (0..self.left.degree()).map(|k| self.gradient(k, &x, &r, &before, &after)).collect()
            })
            .collect();
        let last = self.left.degree() - 1;
        let mut square = 0.0;
        for k in 0..=last {
            let (frame, bond) = (&self.left.cores[k], self.right.cores[k].right);
            let mut sum = DMatrix::zeros(frame.q, frame.left * bond);
            parts.iter().for_each(|part| sum += &part[k]);
            let mut block = fold(frame.left, bond, &sum).tall();
            if k < last {
                let own = frame.tall();
                block -= &own * own.tr_mul(&block);
            }
            square += block.norm_squared();
        }
        square.sqrt()
    }

    /// q x (left right) of one block of rows: column a r + b holds G(a, :, b).
    fn gradient(
        &self,
        k: usize,
        x: &DMatrix<f64>,
        r: &DMatrix<f64>,
        before: &Contraction,
        after: &Contraction,
    ) -> DMatrix<f64> {
        let (rows, outputs) = r.shape();
        let (width, bond) = (self.left.cores[k].left, self.right.cores[k].right);
        let mut weights = vec![0.0; rows * width * bond];
        for a in 0..width {
            let mut seen = vec![0.0; rows];
            if k == 0 {
                seen.copy_from_slice(r.column(a).as_slice());
            } else {
                for j in 0..outputs {
                    let left = &before.left[k][(j * width + a) * rows..][..rows];
                    seen.iter_mut().zip(left).zip(r.column(j)).for_each(|((s, l), r)| *s += l * r);
                }
            }
            for b in 0..bond {
                let right = &after.right[k + 1][b * rows..][..rows];
                let to = &mut weights[(a * bond + b) * rows..][..rows];
                to.iter_mut().zip(&seen).zip(right).for_each(|((to, s), r)| *to = s * r);
            }
        }
        transposed_product(x, &DMatrix::from_vec(rows, width * bond, weights))
    }
}

/// How often a random correlation was orthogonal to the tangent space (Proposition 1 says: never).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeasureZero {
    /// Random directions tried.
    pub directions: usize,
    /// Those whose projection was below 1e-10 of their norm.
    pub orthogonal: usize,
    /// The smallest ||P_T C|| / ||C||.
    pub smallest: f64,
    /// The mean of ||P_T C|| / ||C||.
    pub mean: f64,
}

/// Draws correlations C = U_k^T R with R normal, on at most 256 rows spread over the data, and projects them.
pub fn measure_zero(tangent: &Tangent, x: &DMatrix<f64>, directions: usize, seed: u64) -> MeasureZero {
    let stride = x.nrows().div_ceil(TRIAL_ROWS).max(1);
    let x = x.select_rows(&(0..x.nrows()).step_by(stride).collect::<Vec<_>>());
    let kernel = Kernel::new(&x, tangent.left.degree());
    let mut normal = Normal::new(seed);
    let mut result = MeasureZero { directions, orthogonal: 0, smallest: f64::INFINITY, mean: 0.0 };
    for _ in 0..directions {
        let r = DMatrix::from_fn(x.nrows(), tangent.left.outputs(), |_, _| normal.draw());
        let whole = kernel.correlation_square(&r).sqrt();
        let ratio = if whole > 0.0 { tangent.norm(&x, &r) / whole } else { 0.0 };
        result.orthogonal += usize::from(ratio < ORTHOGONAL);
        result.smallest = result.smallest.min(ratio);
        result.mean += ratio / directions as f64;
    }
    result
}
