//! Alternating least squares over all heads of an additive ensemble at once.
//!
//! The sum of the heads is linear in their k-th cores together: these are solved for as one least-squares problem, core after
//! core. Fitting head after head to what the others leave converges slowly where inputs are correlated.

use crate::linalg::{add_gram_lower, cholesky_in_place, cholesky_solve, view, view_mut};
use crate::network::{BLOCK, Contraction, Core, Features, Network};
use crate::stage::Staged;
use nalgebra::DMatrix;
use rayon::prelude::*;

/// Coefficients of a problem up to which it is worth its cubic cost.
pub(super) const LIMIT: usize = 2000;
/// Partial sums over the rows, which are added in order, whatever the number of threads.
const STRIPES: usize = 4;
/// Weight of the step against the residual, relative to the diagonal: it settles what several heads can say alike.
const DAMPING: f64 = 1e-6;

/// The heads as one model: subsets and networks, whose outputs are added up.
#[derive(Clone)]
pub(super) struct Joint {
    pub subsets: Vec<Vec<usize>>,
    pub networks: Vec<Network>,
}

impl Joint {
    /// Coefficients of the largest problem.
    pub(super) fn size(&self) -> usize {
        let degree = self.networks.first().map_or(0, Network::degree);
        (0..degree).map(|k| self.cores(k).map(|core| core.data.len()).sum()).max().unwrap_or(0)
    }

    fn cores(&self, k: usize) -> impl Iterator<Item = &Core> {
        self.networks.iter().map(move |network| &network.cores[k])
    }

    /// The sum of the heads, N x l.
    pub(super) fn evaluate(&self, rows: &Staged<'_>) -> DMatrix<f64> {
        let parts: Vec<DMatrix<f64>> = self
            .subsets
            .par_iter()
            .zip(&self.networks)
            .map(|(subset, network)| network.evaluate(&rows.of_inputs(subset)))
            .collect();
        parts.into_iter().fold(DMatrix::zeros(rows.y.nrows(), rows.y.ncols()), |sum, part| sum + part)
    }

    /// Solves for all cores once; false where the arithmetic allows no step.
    pub(super) fn sweep(&mut self, rows: &Staged<'_>) -> bool {
        let degree = self.networks.first().map_or(0, Network::degree);
        (0..degree).all(|k| {
            let (mut gram, mut step) = self.normal_equations(k, rows);
            let largest = gram.diagonal().max();
            for c in 0..gram.nrows() {
                gram[(c, c)] += DAMPING * (gram[(c, c)] + DAMPING * largest);
            }
            let solved = largest > 0.0 && cholesky_in_place(&mut gram);
            if solved {
                cholesky_solve(&gram, &mut step);
                let cores = self.networks.iter_mut().flat_map(|network| &mut network.cores[k].data);
                cores.zip(step.iter()).for_each(|(value, step)| *value += step);
            }
            solved
        })
    }

    /// J^T J (lower triangle) and J^T r for the k-th cores of all heads.
    fn normal_equations(&self, k: usize, rows: &Staged<'_>) -> (DMatrix<f64>, DMatrix<f64>) {
        let size = self.cores(k).map(|core| core.data.len()).sum();
        let starts: Vec<usize> = (0..rows.y.nrows()).step_by(BLOCK).collect();
        let stripes: Vec<_> = starts
            .par_chunks(starts.len().div_ceil(STRIPES).max(1))
            .map(|starts| {
                let (mut gram, mut gradient) = (DMatrix::zeros(size, size), DMatrix::zeros(size, 1));
                for &start in starts {
                    let (jacobian, residual) = self.linearised(k, rows, start);
                    add_gram_lower(view_mut(&mut gram), view(&jacobian));
                    gradient.gemm_tr(1.0, &jacobian, &residual, 1.0);
                }
                (gram, gradient)
            })
            .collect();
        let zero = (DMatrix::zeros(size, size), DMatrix::zeros(size, 1));
        stripes.into_iter().fold(zero, |sum, stripe| (sum.0 + stripe.0, sum.1 + stripe.1))
    }

    /// Derivatives of the outputs of some rows, output after output, by the k-th cores of all heads, and the residual.
    fn linearised(&self, k: usize, rows: &Staged<'_>, start: usize) -> (DMatrix<f64>, DMatrix<f64>) {
        let (n, l) = (BLOCK.min(rows.y.nrows() - start), rows.y.ncols());
        let size = self.cores(k).map(|core| core.data.len()).sum();
        let mut jacobian = DMatrix::zeros(n * l, size);
        let mut residual =
            DMatrix::from_column_slice(n * l, 1, rows.y.rows(start, n).into_owned().as_slice());
        let mut column = 0;
        for (subset, network) in self.subsets.iter().zip(&self.networks) {
            let x = rows.of_inputs(subset).rows(start, n);
            let unfolded = network.unfolded();
            let parts = Contraction::new(network, &unfolded, &x);
            residual.iter_mut().zip(parts.outputs()).for_each(|(r, f)| *r -= f);
            let Core { left, q, right, .. } = network.cores[k];
            for (a, i, b) in
                (0..left).flat_map(|a| (0..q).flat_map(move |i| (0..right).map(move |b| (a, i, b))))
            {
                let (x, right) = (x.column(i), &parts.right[k + 1][b * n..][..n]);
                for j in 0..l {
                    let to = &mut jacobian.column_mut(column).data.into_slice_mut()[j * n..][..n];
                    let around = to.iter_mut().zip(x.iter().zip(right));
                    if k > 0 {
                        let left = &parts.left[k][(j * left + a) * n..][..n];
                        around.zip(left).for_each(|((to, (x, r)), l)| *to = x * r * l);
                    } else if a == j {
                        around.for_each(|(to, (x, r))| *to = x * r);
                    }
                }
                column += 1;
            }
        }
        (jacobian, residual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::network::Normal;
    use crate::stage::Scaling;

    /// Three inputs drawn at random, and the heads of two pairs of them.
    fn heads() -> (Dataset, Joint) {
        let mut normal = Normal::new(1);
        let u = (0..3).map(|_| (0..400).map(|_| normal.draw()).collect()).collect();
        let data = Dataset::new("random", u, vec![(0..400).map(f64::from).collect()]);
        let subsets = vec![vec![0, 1], vec![1, 2]];
        let networks = subsets.iter().map(|_| Network::random(1, 5, &[2, 2], &mut normal)).collect();
        (data, Joint { subsets, networks })
    }

    #[test]
    fn derivatives_are_differences() {
        let (data, joint) = heads();
        let rows =
            data.lagged(2, &Scaling::from_rows(&data, &data.scored_rows(2)).unwrap(), (1..60).collect());
        let before = joint.evaluate(&rows);
        for k in 0..3 {
            let (jacobian, residual) = joint.linearised(k, &rows, 0);
            assert!((residual.column(0) - (&rows.y - &before).column(0)).norm() < 1e-9);
            let mut column = 0;
            for head in 0..2 {
                for at in 0..joint.networks[head].cores[k].data.len() {
                    let mut moved = joint.clone();
                    moved.networks[head].cores[k].data[at] += 1.0;
                    let change = moved.evaluate(&rows) - &before;
                    assert!((jacobian.column(column) - change.column(0)).norm() < 1e-9, "{k} {head} {at}");
                    column += 1;
                }
            }
        }
    }

    #[test]
    fn sweeps_go_down_to_the_truth() {
        let (mut data, truth) = heads();
        let scaling = Scaling::from_rows(&data, &data.scored_rows(2)).unwrap();
        let y = truth.evaluate(&data.lagged(2, &scaling, (1..400).collect()));
        data.y = vec![std::iter::once(0.0).chain(y.iter().copied()).collect()];
        let scaling = Scaling::from_rows(&data, &data.scored_rows(2)).unwrap();
        let rows = data.lagged(2, &scaling, (1..400).collect());
        let mut normal = Normal::new(2);
        let networks = truth.networks.iter().map(|_| Network::random(1, 5, &[4, 4], &mut normal)).collect();
        let mut joint = Joint { networks, ..truth };
        let mut losses = vec![f64::INFINITY];
        for _ in 0..8 {
            assert!(joint.sweep(&rows));
            losses.push((joint.evaluate(&rows) - &rows.y).norm() / rows.y.norm());
        }
        assert!(losses.windows(2).all(|pair| pair[1] <= pair[0] + 1e-14), "{losses:?}");
        assert!(losses[8] < 1e-12, "{losses:?}");
    }
}
