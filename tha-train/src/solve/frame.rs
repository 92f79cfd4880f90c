//! Coordinates in which the solvers work: outputs of unit mean square, and inputs whitened or running sums over the lags.
//! The penalty on the coefficients acts there.
//!
//! Any invertible map x -> S x on the q entries of a row carries over to the cores slice by slice and leaves all
//! ranks as they are. S = (C + eps)^(-1/2), C = X^T X / N, makes correlated inputs as easy as independent ones;
//! eps, a thousandth of the largest eigenvalue, keeps directions that hardly occur in the data small, so that a
//! penalty on the coefficients still holds them down.
//!
//! Over a long memory there is more to know: kernels fade with the lag, and neighbouring lags matter alike. As a prior
//! covariance of the lags that is K(i, k) = exp(-max(i, k) / tau), the TC kernel of regularised impulse response estimation
//! (Chen, Ohlsson, Ljung, Automatica 2012). K = U D U^T with ones in the upper triangle of U and the differences of
//! successive exponentials in D, so its coordinates are running sums, sqrt(D_k) (u(t) + ... + u(t-k)), and their penalty is
//! one on differences between lags, the heavier the later. Of these coordinates the directions that occur in the data are kept.

use super::choose::Settings;
use super::entered::{Entered, is_diagonal};
use super::{Problem, SolveError};
use crate::linalg::{
    add_product, minimal_norm, product, symmetric_eigen, transposed_product, view, view_mut,
};
use crate::network::{Features, Network, fold, unfold};
use nalgebra::DMatrix;

/// Eps against the largest eigenvalue.
const FLOOR: f64 = 1e-3;
/// Directions of the running sums with a smaller part of the largest variance are left out.
const SPAN: f64 = 1e-6;
/// Smallest prior variance of a lag.
const FADED: f64 = 1e-12;

/// The maps between a problem's coordinates and the solver's.
pub(super) struct Frame {
    /// q x q', x' = map^T x.
    pub(super) map: DMatrix<f64>,
    /// q' x q, inverse map = 1.
    inverse: DMatrix<f64>,
    /// Root mean square of the outputs, one inside.
    pub(super) scale: f64,
}

impl Frame {
    /// The coordinates that the rows of `problem` suggest.
    pub(super) fn new(problem: &Problem) -> Result<Self, SolveError> {
        let count = problem.x.nrows() as f64;
        let mut covariance = DMatrix::zeros(problem.x.ncols(), problem.x.ncols());
        for (_, x) in problem.x.parts() {
            add_product(view_mut(&mut covariance), view(&x).transpose(), view(&x));
        }
        covariance /= count;
        let (values, vectors) =
            symmetric_eigen(&covariance).ok_or(SolveError::Numerical { what: "covariance of x" })?;
        let floor = FLOOR * values.last().copied().unwrap_or(1.0);
        let power = |exponent: f64| {
            let mut scaled = vectors.clone();
            for (mut column, v) in scaled.column_iter_mut().zip(&values) {
                column *= libm::pow(v.max(0.0) + floor, exponent);
            }
            product(&scaled, &vectors.transpose())
        };
        Ok(Self { map: power(-0.5), inverse: power(0.5), scale: unit_of(problem.y) })
    }

    /// Running sums over the `memory` lags of each input, for kernels that fade with time constant `tau`.
    fn fading(
        (second, count, scale): (&DMatrix<f64>, usize, f64),
        memory: usize,
        tau: f64,
        gamma: f64,
    ) -> Result<Self, SolveError> {
        let q = second.nrows();
        if memory == 0 || !(q - 1).is_multiple_of(memory) {
            return Err(SolveError::Shape {
                what: "lags in the columns of x",
                found: q - 1,
                expected: memory,
            });
        }
        let p = (q - 1) / memory;
        let fade = |lag: usize| if lag < memory { libm::exp(-(lag as f64) / tau) } else { 0.0 };
        let mut size: Vec<f64> = (0..memory).map(|k| (fade(k) - fade(k + 1)).max(FADED).sqrt()).collect();
        // The sums over the lags up to each one: of the rows of a matrix, and of its columns.
        let mut covariance = second.view((1, 1), (q - 1, q - 1)).into_owned();
        for _ in 0..2 {
            for mut column in covariance.column_iter_mut() {
                (p..q - 1).for_each(|row| column[row] += column[row - p]);
            }
            covariance.transpose_mut();
        }
        let both = |i: usize, j: usize| size[i / p] * size[j / p];
        (0..q - 1).for_each(|j| (0..q - 1).for_each(|i| covariance[(i, j)] *= both(i, j)));
        let square = covariance.trace() / count as f64;
        let unit = if square > 0.0 { (gamma / square).sqrt() } else { 1.0 };
        size.iter_mut().for_each(|size| *size *= unit);

        let (values, vectors) =
            symmetric_eigen(&covariance).ok_or(SolveError::Numerical { what: "covariance of the lags" })?;
        // Largest last.
        let least = SPAN * values.last().copied().unwrap_or(0.0);
        let kept: Vec<usize> = (0..values.len()).rev().filter(|&k| values[k] >= least).collect();
        let basis = vectors.select_columns(&kept);

        let mut map = DMatrix::zeros(q, kept.len() + 1);
        map[(0, 0)] = 1.0;
        let mut inverse = DMatrix::zeros(kept.len() + 1, q);
        inverse[(0, 0)] = 1.0;
        for (k, direction) in basis.column_iter().enumerate() {
            // A lag is part of the sums from it on.
            for row in (0..q - 1).rev() {
                let later = if row + p < q - 1 { map[(1 + row + p, 1 + k)] } else { 0.0 };
                map[(1 + row, 1 + k)] = size[row / p] * direction[row] + later;
            }
            // Back from a kernel to its running sums: differences between lags.
            for row in 0..q - 1 {
                let before = if row < p { 0.0 } else { direction[row - p] / size[row / p - 1] };
                inverse[(1 + k, 1 + row)] = direction[row] / size[row / p] - before;
            }
        }
        Ok(Self { map, inverse, scale })
    }

    /// The coordinates in which the penalty of `settings` is the norm of the tensor: features of mean square gamma together,
    /// or running sums where there is a prior over the lags.
    ///
    /// `second` is X^T X of `count` rows, `scale` the root mean square of their outputs.
    pub(super) fn of(
        (second, count, scale): (&DMatrix<f64>, usize, f64),
        settings: &Settings,
        memory: usize,
    ) -> Result<Self, SolveError> {
        if let Some(tau) = settings.decay {
            return Self::fading((second, count, scale), memory, tau, settings.gamma);
        }
        let q = second.nrows();
        let size = (settings.gamma / (q - 1).max(1) as f64).sqrt();
        let diagonal = |size: f64| {
            let mut map = DMatrix::from_diagonal_element(q, q, size);
            map[(0, 0)] = 1.0;
            map
        };
        Ok(Self { map: diagonal(size), inverse: diagonal(size.recip()), scale })
    }

    /// X'^T X' of the rows of which X^T X is given.
    pub(super) fn second(&self, second: &DMatrix<f64>) -> DMatrix<f64> {
        let map = &self.map;
        if is_diagonal(map) {
            let (rows, columns) = second.shape();
            return DMatrix::from_fn(rows, columns, |i, j| map[(i, i)] * second[(i, j)] * map[(j, j)]);
        }
        transposed_product(map, &product(second, map))
    }

    /// The problem's own inputs, outputs of unit mean square: for solvers that are to run as published.
    pub(super) fn plain(problem: &Problem) -> Self {
        let identity = DMatrix::identity(problem.x.ncols(), problem.x.ncols());
        Self { map: identity.clone(), inverse: identity, scale: unit_of(problem.y) }
    }

    /// Rows in the solver's coordinates.
    pub(super) fn enter<'a>(&'a self, problem: &Problem<'a>) -> (Entered<'a>, DMatrix<f64>) {
        (Entered::new(problem.x, &self.map), problem.y / self.scale)
    }

    /// A network in the solver's coordinates.
    pub(super) fn enter_network(&self, network: &Network) -> Network {
        let mut network = change_slices(network, &self.inverse);
        network.scale(self.scale.recip());
        network
    }

    /// A network in the problem's coordinates.
    pub(super) fn leave(&self, network: &Network) -> Network {
        let mut network = change_slices(network, &self.map);
        network.scale(self.scale);
        network
    }
}

/// Root-mean-square of the outputs, or one where all are zero.
pub(super) fn unit_of(y: &DMatrix<f64>) -> f64 {
    let unit = (y.norm_squared() / y.len().max(1) as f64).sqrt();
    if unit > 0.0 { unit } else { 1.0 }
}

/// The network over the columns of `to` that is nearest to one over the columns of `from`, both of the same samples.
pub(crate) fn carried(
    network: &Network,
    from: &dyn Features,
    to: &dyn Features,
) -> Result<Network, SolveError> {
    let mut gram = DMatrix::zeros(to.ncols(), to.ncols());
    let mut both = DMatrix::zeros(to.ncols(), from.ncols());
    for (start, x) in to.parts() {
        let old = from.rows(start, x.nrows());
        add_product(view_mut(&mut gram), view(&x).transpose(), view(&x));
        add_product(view_mut(&mut both), view(&x).transpose(), view(&old));
    }
    let map = minimal_norm(&gram, &both, 1e-10)
        .ok_or(SolveError::Numerical { what: "eigenvalues of the features" })?;
    Ok(change_slices(network, &map))
}

/// V(a, :, b) <- map V(a, :, b) for every core.
pub(super) fn change_slices(network: &Network, map: &DMatrix<f64>) -> Network {
    let scales = is_diagonal(map);
    let changed = |mut slices: DMatrix<f64>| {
        if !scales {
            return product(map, &slices);
        }
        slices.row_iter_mut().enumerate().for_each(|(i, mut row)| row *= map[(i, i)]);
        slices
    };
    let cores = network.cores.iter().map(|core| fold(core.left, core.right, &changed(unfold(core))));
    Network { cores: cores.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    /// Two inputs, three lags.
    fn rows() -> (DMatrix<f64>, DMatrix<f64>) {
        let mut normal = Normal::new(1);
        let x = DMatrix::from_fn(50, 7, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let y = DMatrix::from_fn(50, 2, |_, _| 3.0 * normal.draw());
        (x, y)
    }

    #[test]
    fn trains_mean_the_same_in_every_frame() {
        let (x, y) = rows();
        let problem = Problem { x: &x, y: &y };
        let network = Network::random(2, 7, &[2, 2], &mut Normal::new(2));
        let frames = [
            Frame::new(&problem).unwrap(),
            Frame::plain(&problem),
            Frame::fading((&(x.transpose() * &x), 50, 3.0), 3, 2.0, 0.3).unwrap(),
        ];
        for frame in frames {
            let (inside, outputs) = frame.enter(&problem);
            let entered = frame.enter_network(&network);
            assert!((entered.evaluate(&inside) * frame.scale - network.evaluate(&x)).norm() < 1e-9);
            assert!((outputs * frame.scale - &y).norm() < 1e-9);
            let read = frame.enter(&problem).0.read();
            assert!((read.rows(7, 40) - inside.rows(7, 40)).norm() < 1e-12);
            assert!((read.select_rows(&[9, 2]) - inside.select_rows(&[9, 2])).norm() < 1e-12);
            let back = frame.leave(&entered);
            assert!((back.evaluate(&x) - network.evaluate(&x)).norm() < 1e-9);
        }
    }

    #[test]
    fn the_prior_is_the_kernel_it_claims_to_be() {
        let (x, y) = rows();
        let frame = Frame::fading((&(x.transpose() * &x), 50, 3.0), 3, 2.0, 0.3).unwrap();
        let lags = frame.map.rows(1, 6).columns(1, 6).into_owned();
        let covariance = &lags * lags.transpose();
        let unit = covariance[(0, 0)];
        for (a, b) in (0..6).flat_map(|a| (0..6).map(move |b| (a, b))) {
            let kernel = (-((a / 2).max(b / 2) as f64) / 2.0).exp();
            let expected = if a % 2 == b % 2 { kernel } else { 0.0 };
            assert!((covariance[(a, b)] / unit - expected).abs() < 1e-9, "{a} {b}");
        }
        let (inside, _) = frame.enter(&Problem { x: &x, y: &y });
        assert!((inside.rows(0, 50).columns(1, 6).norm_squared() / 50.0 - 0.3).abs() < 1e-9);
    }
}
