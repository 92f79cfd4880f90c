//! The Jacobian of a network by its coefficients, for all cores or some of them, and its normal equations.
//!
//! The derivative of y_t(j) by V_k(a, i, b) is w_c(t, j) x_i(t) with the component c = (k, a, b) and
//! w_c = L_k(t)[j, a] R_k(t)[b]: what stands left and right of the core. The Jacobian is made for some rows at a time; of rows
//! known by their moments it is made at the points that stand for them and mixed.

use super::levenberg::EXPLICIT;
use super::moments::Moments;
use super::rows::{Rows, WORTH_A_THREAD, in_order};
use crate::linalg::{add_gram_lower, product, transposed_product, view, view_mut};
use crate::network::{Contraction, Network};
use nalgebra::DMatrix;
use std::ops::Range;

/// Blocks of rows whose normal equations are summed by one thread.
const GROUP: usize = 16;

/// J^T J, J^T r and ||r||^2 for the cores in question.
pub(super) struct NormalEquations {
    /// Lower triangle of J^T J, in the order of the coefficients.
    pub(super) gram: DMatrix<f64>,
    /// J^T (y - f).
    pub(super) gradient: DMatrix<f64>,
    /// ||y - f||^2.
    pub(super) loss: f64,
}

impl NormalEquations {
    /// Of `rows` for the cores in `cores`.
    pub(super) fn new(rows: &Rows, network: &Network, cores: Range<usize>) -> Self {
        Self::within(Self::zeros(0), rows, network, cores)
    }

    /// The same in the memory of others, where it suffices: fresh memory for every step costs a tenth of a short descent.
    pub(super) fn within(old: Self, rows: &Rows, network: &Network, cores: Range<usize>) -> Self {
        let components = Components::new(network, cores);
        let unfolded = network.unfolded();
        if let Some(moments) = rows.moments() {
            return Self::condensed(old, moments, network, &components, &unfolded);
        }
        let size = components.list.len() * network.q();
        let add_group = |k: usize, sum: &mut Self| {
            let mut slopes = DMatrix::zeros(0, 0);
            for (x, y) in rows.group(k, GROUP).iter() {
                let (weights, residual) = components.weights(network, &unfolded, x, y);
                sum.loss += residual.iter().map(|r| r * r).sum::<f64>();
                for (j, residual) in residual.chunks_exact(x.nrows()).enumerate() {
                    let places = components.places(j, x.ncols());
                    slopes = components.slopes(&places, &weights, x, j, slopes);
                    sum.add(&places, &slopes, &DMatrix::from_column_slice(x.nrows(), 1, residual));
                }
            }
        };
        let groups = rows.blocks().div_ceil(GROUP);
        let mut all = old.emptied(size);
        if size > EXPLICIT || groups == 1 || rows.count * size * size < WORTH_A_THREAD {
            (0..groups).for_each(|k| add_group(k, &mut all));
            return all;
        }
        let group = |k: usize| {
            let mut sum = Self::zeros(size);
            add_group(k, &mut sum);
            sum
        };
        in_order(groups, group, |part| {
            all.gram += part.gram;
            all.gradient += part.gradient;
            all.loss += part.loss;
        });
        all
    }

    /// Of the rows that `moments` stand for.
    fn condensed(
        old: Self,
        moments: &Moments,
        network: &Network,
        components: &Components,
        unfolded: &[DMatrix<f64>],
    ) -> Self {
        let (x, y) = &moments.points;
        let (weights, residual) = components.weights(network, unfolded, x, y);
        let residual = moments.mixed(&residual);
        let mut all = old.emptied(components.list.len() * x.ncols());
        all.loss = moments.rest + residual.norm_squared();
        for (j, residual) in residual.column_iter().enumerate() {
            let places = components.places(j, x.ncols());
            let slopes = components.slopes(&places, &weights, x, j, DMatrix::zeros(0, 0));
            let residual = DMatrix::from_column_slice(residual.len(), 1, residual.as_slice());
            all.add(&places, &product(&moments.mixing, &slopes), &residual);
        }
        all
    }

    fn emptied(mut self, size: usize) -> Self {
        if self.gradient.len() != size {
            return Self::zeros(size);
        }
        self.gram.fill(0.0);
        self.gradient.fill(0.0);
        self.loss = 0.0;
        self
    }

    pub(super) fn zeros(size: usize) -> Self {
        Self { gram: DMatrix::zeros(size, size), gradient: DMatrix::zeros(size, 1), loss: 0.0 }
    }

    /// Adds rows of the Jacobian whose columns have these places among the coefficients.
    fn add(&mut self, places: &[Place], slopes: &DMatrix<f64>, residual: &DMatrix<f64>) {
        let gradient = transposed_product(slopes, residual);
        let add_gram = |gram: &mut DMatrix<f64>| add_gram_lower(view_mut(gram), view(slopes));
        if places.len() == self.gradient.len() {
            add_gram(&mut self.gram);
            self.gradient += gradient;
            return;
        }
        let mut gram = DMatrix::zeros(places.len(), places.len());
        add_gram(&mut gram);
        for (b, &(column, ..)) in places.iter().enumerate() {
            self.gradient[column] += gradient[b];
            for (a, &(row, ..)) in places.iter().enumerate().skip(b) {
                self.gram[(row, column)] += gram[(a, b)];
            }
        }
    }
}

/// Position among the coefficients, component and input of a column of the Jacobian.
type Place = (usize, usize, usize);

/// The components (k, a, b) of some cores.
pub(super) struct Components {
    /// (core, a, b) and the position of V_k(a, 0, b) among the coefficients, with the stride from i to i + 1.
    pub(super) list: Vec<(usize, usize, usize, usize, usize)>,
    outputs: usize,
}

impl Components {
    pub(super) fn new(network: &Network, cores: Range<usize>) -> Self {
        let mut list = Vec::new();
        let mut start = 0;
        for k in cores {
            let core = &network.cores[k];
            for a in 0..core.left {
                for b in 0..core.right {
                    list.push((k, a, b, start + a * core.q * core.right + b, core.right));
                }
            }
            start += core.data.len();
        }
        Self { list, outputs: network.outputs() }
    }

    /// w_c(t, j) for every component and output, zero where the first core belongs to another output; and y - f.
    pub(super) fn weights(
        &self,
        network: &Network,
        unfolded: &[DMatrix<f64>],
        x: &DMatrix<f64>,
        y: &DMatrix<f64>,
    ) -> (Vec<f64>, Vec<f64>) {
        let rows = x.nrows();
        let parts = Contraction::new(network, unfolded, x);
        let residual = y.as_slice().iter().zip(parts.outputs()).map(|(y, f)| y - f).collect();
        let outputs = self.outputs;
        let mut w = vec![0.0; self.list.len() * outputs * rows];
        for (&(k, a, b, ..), w) in self.list.iter().zip(w.chunks_exact_mut(outputs * rows)) {
            let right = &parts.right[k + 1][b * rows..][..rows];
            for (j, w) in w.chunks_exact_mut(rows).enumerate() {
                if k == 0 && a == j {
                    w.copy_from_slice(right);
                } else if k > 0 {
                    let left = &parts.left[k][(j * network.cores[k].left + a) * rows..][..rows];
                    w.iter_mut().zip(left).zip(right).for_each(|((w, l), r)| *w = l * r);
                }
            }
        }
        (w, residual)
    }

    /// The columns of the Jacobian of output `j` that are not zero, in the order of the coefficients: the first core sees
    /// each output by itself.
    fn places(&self, j: usize, q: usize) -> Vec<Place> {
        let seen = |c: &usize| self.list[*c].0 > 0 || self.list[*c].1 == j;
        let mut places: Vec<_> = (0..self.list.len())
            .filter(seen)
            .flat_map(|c| (0..q).map(move |i| (c, i)))
            .map(|(c, i)| (self.list[c].3 + i * self.list[c].4, c, i))
            .collect();
        places.sort_unstable();
        places
    }

    /// Those columns for some rows, in the memory of others.
    fn slopes(
        &self,
        places: &[Place],
        weights: &[f64],
        x: &DMatrix<f64>,
        j: usize,
        old: DMatrix<f64>,
    ) -> DMatrix<f64> {
        let rows = x.nrows();
        let mut slopes: Vec<f64> = old.data.into();
        slopes.clear();
        slopes.reserve_exact(rows * places.len());
        for &(_, c, i) in places {
            let weight = &weights[(c * self.outputs + j) * rows..][..rows];
            slopes.extend(weight.iter().zip(&x.as_slice()[i * rows..]).map(|(w, x)| w * x));
        }
        DMatrix::from_vec(rows, places.len(), slopes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::*;
    use crate::network::Normal;

    #[test]
    fn the_gradient_and_the_gram_are_those_of_finite_differences() {
        let mut normal = Normal::new(5);
        for (outputs, ranks) in [(1, vec![2, 3]), (2, vec![2]), (2, vec![])] {
            let x = DMatrix::from_fn(40, 3, |_, i| if i == 0 { 1.0 } else { normal.draw() });
            let y = DMatrix::from_fn(40, outputs, |_, _| normal.draw());
            let network = Network::random(outputs, 3, &ranks, &mut normal);
            let theta = network.coefficients();
            let column = |at: usize| {
                let shifted = |h: f64| {
                    let mut theta = theta.clone();
                    theta[at] += h;
                    network.with_coefficients(&theta).evaluate(&x)
                };
                let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
                slope.reshape_generic(nalgebra::Dyn(40 * outputs), nalgebra::Dyn(1))
            };
            let columns: Vec<_> = (0..theta.len()).map(column).collect();
            let dense = DMatrix::from_fn(40 * outputs, theta.len(), |t, at| columns[at][t]);
            let rest = &y - network.evaluate(&x);
            let rest = DMatrix::from_column_slice(rest.len(), 1, rest.as_slice());
            let rows = Rows::new(&Problem { x: &x, y: &y }, 1);
            let mut found = NormalEquations::new(&rows, &network, 0..network.degree());
            found.gram.fill_upper_triangle_with_lower_triangle();
            assert!((found.gram - dense.tr_mul(&dense)).norm() < 1e-6 * dense.norm_squared());
            assert!((found.gradient - dense.tr_mul(&rest)).norm() < 1e-6 * dense.norm_squared());
            assert!((found.loss / rest.norm_squared() - 1.0).abs() < 1e-12);
        }
    }
}
