//! Contraction with rows x_t: the matrices V_k(x_t), the vectors to their right and left, and the values
//! y_t = V1(x_t) V2(x_t) ... Vd(x_t).
//!
//! Rows are taken in blocks of [`BLOCK`]; a block is a pure function of its rows, so the result does not depend on
//! the number of threads.

use super::{Core, Design, Features, Network};
use nalgebra::DMatrix;
use rayon::prelude::*;

/// Rows per block: products with q columns stay in cache.
pub(crate) const BLOCK: usize = 256;

/// The q x (left right) unfolding of a core: column `a * right + b` holds V(a, :, b).
pub(crate) fn unfold(core: &Core) -> DMatrix<f64> {
    DMatrix::from_fn(core.q, core.left * core.right, |i, c| core.get(c / core.right, i, c % core.right))
}

/// The core of an unfolding.
pub(crate) fn fold(left: usize, right: usize, slices: &DMatrix<f64>) -> Core {
    let q = slices.nrows();
    let entries =
        (0..left).flat_map(|a| (0..q).flat_map(move |i| (0..right).map(move |b| (i, a * right + b))));
    Core { left, q, right, data: entries.map(|at| slices[at]).collect() }
}

/// What the rows of one block make of a network.
pub(crate) struct Contraction {
    /// `right[k]` is rows x r_k: V_{k+1}(x) ... V_d(x); `right[d]` is one.
    pub(crate) right: Vec<Vec<f64>>,
    /// `left[k]` is rows x (l r_k), column `j * r_k + a`: row j of V_1(x) ... V_k(x); `left[0]` is empty, it stands
    /// for the identity.
    pub(crate) left: Vec<Vec<f64>>,
}

impl Contraction {
    /// Contracts rows with the unfolded cores.
    pub(crate) fn new(network: &Network, unfolded: &[DMatrix<f64>], x: &dyn Design) -> Self {
        let values: Vec<_> = unfolded.iter().map(|core| x.times(core)).collect();
        let (rows, outputs) = (x.nrows(), network.outputs());
        let right = right_vectors(network, &values, rows);
        let mut left = vec![Vec::new()];
        for (k, core) in network.cores.iter().enumerate().take(network.degree() - 1) {
            if k == 0 {
                left.push(values[0].clone());
                continue;
            }
            let mut next = vec![0.0; rows * outputs * core.right];
            for j in 0..outputs {
                for a in 0..core.left {
                    let from = &left[k][(j * core.left + a) * rows..][..rows];
                    for b in 0..core.right {
                        let value = &values[k][(a * core.right + b) * rows..][..rows];
                        let to = &mut next[(j * core.right + b) * rows..][..rows];
                        add_hadamard(to, from, value);
                    }
                }
            }
            left.push(next);
        }
        Self { right, left }
    }

    /// The values y, rows x l.
    pub(crate) fn outputs(&self) -> &[f64] {
        &self.right[0]
    }
}

fn right_vectors(network: &Network, values: &[Vec<f64>], rows: usize) -> Vec<Vec<f64>> {
    let mut right = vec![vec![1.0; rows]];
    for (core, value) in network.cores.iter().zip(values).rev() {
        let mut next = vec![0.0; rows * core.left];
        let last = right.last().expect("starts with one");
        for a in 0..core.left {
            for b in 0..core.right {
                let value = &value[(a * core.right + b) * rows..][..rows];
                add_hadamard(&mut next[a * rows..][..rows], value, &last[b * rows..][..rows]);
            }
        }
        right.push(next);
    }
    right.reverse();
    right
}

fn add_hadamard(to: &mut [f64], a: &[f64], b: &[f64]) {
    to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to += a * b);
}

/// The values of a network on one block, rows x l column-major.
pub(crate) fn evaluate_block(network: &Network, unfolded: &[DMatrix<f64>], x: &dyn Design) -> Vec<f64> {
    let values: Vec<_> = unfolded.iter().map(|core| x.times(core)).collect();
    right_vectors(network, &values, x.nrows()).swap_remove(0)
}

impl Network {
    /// All cores unfolded.
    pub(crate) fn unfolded(&self) -> Vec<DMatrix<f64>> {
        self.cores.iter().map(unfold).collect()
    }

    /// The values y_t for the rows of a design, N x l.
    pub(crate) fn values(&self, x: &dyn Design) -> DMatrix<f64> {
        DMatrix::from_vec(x.nrows(), self.outputs(), evaluate_block(self, &self.unfolded(), x))
    }

    /// The values y_t, N x l, for rows x_t of q entries, the first of which is one.
    ///
    /// # Panics
    /// Panics when `x` does not have q columns.
    pub fn evaluate(&self, x: &dyn Features) -> DMatrix<f64> {
        assert_eq!(x.ncols(), self.q(), "rows of x must have q entries");
        let unfolded = self.unfolded();
        let rows = |start: usize| BLOCK.min(x.nrows() - start);
        let starts: Vec<usize> = (0..x.nrows()).step_by(BLOCK).collect();
        let block = |&start: &usize| evaluate_block(self, &unfolded, &x.rows(start, rows(start)));
        let blocks: Vec<Vec<f64>> = starts.par_iter().map(block).collect();
        let mut y = DMatrix::zeros(x.nrows(), self.outputs());
        for (&start, block) in starts.iter().zip(&blocks) {
            y.rows_mut(start, rows(start)).copy_from_slice(block);
        }
        y
    }
}
