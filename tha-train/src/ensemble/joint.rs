//! A joint Gauss-Newton (Levenberg-Marquardt) step over the cores of all heads of an additive ensemble.
//!
//! Fitting head after head to what the others leave converges slowly where inputs are correlated; the joint step sees
//! all heads at once. Its cost is that of one symmetric product with as many columns as all heads have coefficients,
//! so it is for ensembles up to some thousand of them.

use crate::linalg::{add_gram_lower, cholesky_in_place, cholesky_solve, view, view_mut};
use crate::network::{Features, Network};
use crate::stage::Lagged;
use nalgebra::DMatrix;
use rayon::prelude::*;

/// Coefficients up to which a joint step is worth its cubic cost.
pub(super) const LIMIT: usize = 3000;
/// Rows of the Jacobian that are held at a time.
const BLOCK: usize = 256;
/// Blocks of one partial sum; partial sums are added in order, whatever the number of threads.
const STRIPE: usize = 8;

/// J^T J (lower triangle), J^T r and ||r||^2.
struct Normal {
    gram: DMatrix<f64>,
    gradient: DMatrix<f64>,
    loss: f64,
}

/// The heads as one model: subsets and networks, whose outputs are added up.
#[derive(Clone)]
pub(super) struct Joint {
    pub subsets: Vec<Vec<usize>>,
    pub trains: Vec<Network>,
    damping: f64,
}

impl Joint {
    pub(super) fn new(subsets: Vec<Vec<usize>>, trains: Vec<Network>) -> Self {
        Self { subsets, trains, damping: 1e-3 }
    }

    pub(super) fn parameters(&self) -> usize {
        self.trains.iter().map(Network::parameters).sum()
    }

    /// The sum of the heads, N x l.
    pub(super) fn evaluate(&self, rows: &Lagged<'_>) -> DMatrix<f64> {
        let parts: Vec<DMatrix<f64>> = self
            .subsets
            .par_iter()
            .zip(&self.trains)
            .map(|(subset, train)| train.evaluate(&rows.of_inputs(subset)))
            .collect();
        parts.into_iter().fold(DMatrix::zeros(rows.y.nrows(), rows.y.ncols()), |sum, part| sum + part)
    }

    /// One step down in ||y - sum of heads||^2; the new value, or `None` when no damping helps.
    pub(super) fn step(&mut self, rows: &Lagged<'_>) -> Option<f64> {
        let normal = self.normal(rows);
        for _ in 0..8 {
            let mut matrix = normal.gram.clone();
            let largest = matrix.diagonal().max();
            for k in 0..matrix.nrows() {
                matrix[(k, k)] += self.damping * (matrix[(k, k)] + 1e-9 * largest);
            }
            let mut step = normal.gradient.clone();
            if cholesky_in_place(&mut matrix) {
                cholesky_solve(&matrix, &mut step);
                let moved = self.moved(step.as_slice());
                let loss = (moved.evaluate(rows) - &rows.y).norm_squared();
                if loss < normal.loss {
                    self.trains = moved.trains;
                    self.damping = (self.damping / 5.0).max(1e-12);
                    return Some(loss);
                }
            }
            self.damping *= 8.0;
        }
        None
    }

    fn moved(&self, step: &[f64]) -> Self {
        let mut rest = step;
        let trains = self.trains.iter().map(|train| {
            let (mine, tail) = rest.split_at(train.parameters());
            rest = tail;
            let sum: Vec<f64> = train.coefficients().iter().zip(mine).map(|(a, b)| a + b).collect();
            train.with_coefficients(&sum)
        });
        Self { trains: trains.collect(), ..self.clone() }
    }

    fn normal(&self, rows: &Lagged<'_>) -> Normal {
        let size = self.parameters();
        let starts: Vec<usize> = (0..rows.y.nrows()).step_by(BLOCK).collect();
        let stripes: Vec<Normal> = starts
            .par_chunks(STRIPE * starts.len().div_ceil(4 * STRIPE).max(1))
            .map(|starts| {
                let mut sum =
                    Normal { gram: DMatrix::zeros(size, size), gradient: DMatrix::zeros(size, 1), loss: 0.0 };
                for &start in starts {
                    self.add_block(rows, start, &mut sum);
                }
                sum
            })
            .collect();
        let mut stripes = stripes.into_iter();
        let first = stripes.next().expect("there are rows");
        stripes.fold(first, |mut sum, stripe| {
            sum.gram += stripe.gram;
            sum.gradient += stripe.gradient;
            sum.loss += stripe.loss;
            sum
        })
    }

    fn add_block(&self, rows: &Lagged<'_>, start: usize, sum: &mut Normal) {
        let count = BLOCK.min(rows.y.nrows() - start);
        let l = rows.y.ncols();
        let mut jacobian = DMatrix::zeros(count * l, self.parameters());
        let mut residual = rows.y.rows(start, count).into_owned();
        let mut column = 0;
        for (subset, train) in self.subsets.iter().zip(&self.trains) {
            residual -=
                add_jacobian(train, &rows.of_inputs(subset).rows(start, count), &mut jacobian, column);
            column += train.parameters();
        }
        let residual = DMatrix::from_column_slice(count * l, 1, residual.as_slice());
        add_gram_lower(view_mut(&mut sum.gram), view(&jacobian));
        sum.gradient.gemm_tr(1.0, &jacobian, &residual, 1.0);
        sum.loss += residual.norm_squared();
    }
}

/// Writes the derivatives of a head's outputs by its coefficients into columns from `first` on, in the order of
/// [`Network::coefficients`]; rows are samples, output after output. Gives the outputs.
fn add_jacobian(
    train: &Network,
    x: &DMatrix<f64>,
    jacobian: &mut DMatrix<f64>,
    first: usize,
) -> DMatrix<f64> {
    let (count, l) = (x.nrows(), train.outputs());
    // V_k(x_t) for every sample: count x (left * right), b fastest.
    let slices: Vec<DMatrix<f64>> = train
        .cores
        .iter()
        .map(|core| {
            let unfolded = DMatrix::from_fn(core.q, core.left * core.right, |i, ab| {
                core.get(ab / core.right, i, ab % core.right)
            });
            x * unfolded
        })
        .collect();
    // right[k]: what stands right of core k, count x r_k.
    let mut right = vec![DMatrix::from_element(count, 1, 1.0)];
    for (core, slice) in train.cores.iter().zip(&slices).rev() {
        let last = &right[right.len() - 1];
        let next = DMatrix::from_fn(count, core.left, |t, a| {
            (0..core.right).map(|b| slice[(t, a * core.right + b)] * last[(t, b)]).sum()
        });
        right.push(next);
    }
    right.reverse();
    for j in 0..l {
        // What stands left of core k for output j, count x r_{k-1}.
        let mut left = DMatrix::from_fn(count, l, |_, a| f64::from(a == j));
        let mut column = first;
        for (k, (core, slice)) in train.cores.iter().zip(&slices).enumerate() {
            for a in 0..core.left {
                for i in 0..core.q {
                    for b in 0..core.right {
                        for t in 0..count {
                            jacobian[(j * count + t, column)] =
                                left[(t, a)] * x[(t, i)] * right[k + 1][(t, b)];
                        }
                        column += 1;
                    }
                }
            }
            left = DMatrix::from_fn(count, core.right, |t, b| {
                (0..core.left).map(|a| left[(t, a)] * slice[(t, a * core.right + b)]).sum()
            });
        }
    }
    right.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal as Deviates;

    #[test]
    fn the_jacobian_is_the_derivative() {
        let mut normal = Deviates::new(1);
        let train = Network::random(2, 4, &[2, 3], &mut normal);
        let x = DMatrix::from_fn(5, 4, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let mut jacobian = DMatrix::zeros(10, train.parameters());
        let outputs = add_jacobian(&train, &x, &mut jacobian, 0);
        assert!((&outputs - train.evaluate(&x)).norm() < 1e-12);
        let coefficients = train.coefficients();
        for c in 0..coefficients.len() {
            let mut moved = coefficients.clone();
            moved[c] += 1e-6;
            let change = (train.with_coefficients(&moved).evaluate(&x) - &outputs) / 1e-6;
            for (found, expected) in jacobian.column(c).iter().zip(change.iter()) {
                assert!((found - expected).abs() < 1e-5, "coefficient {c}: {found} against {expected}");
            }
        }
    }
}
