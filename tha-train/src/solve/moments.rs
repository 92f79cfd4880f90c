//! Moments: what least squares needs to know of many rows when the monomials are few.
//!
//! With G = Phi^T Phi = L L^T over the distinct monomials and the direct solution z, ||y - Phi m||^2 = RSS(z) +
//! ||L^T (z - m)||^2 for every polynomial m, however many rows there were. A network gives its polynomial by its values
//! at as many points as there are monomials: m = Phi_Z^+ f(Z). So the rows are replaced by the points Z, where the
//! residual is z(Z) - f(Z), and the matrix T = L^T Phi_Z^+ that mixes it: losses and steps of a descent then cost the
//! same for a thousand rows and for a million.

use crate::linalg::{
    add_gram_lower, cholesky_in_place, cholesky_solve, columns, columns_mut, qr, set_product,
    transposed_solve, view, view_mut,
};
use crate::network::{Monomials, Network, Normal, evaluate_block, unfold};
use nalgebra::DMatrix;
use std::sync::Arc;

/// Points per monomial: a few more than needed are much better conditioned.
const POINTS: f64 = 1.125;

/// The moments of some rows up to twice the degree, as points and a mixing matrix.
#[derive(Clone)]
pub(super) struct Moments {
    /// Number of rows they stand for.
    pub(super) count: usize,
    /// ||y||^2 of those rows.
    pub(super) square: f64,
    /// RSS of the direct solution.
    rest: f64,
    /// Z, points x q, and the direct solution there, points x l.
    points: (DMatrix<f64>, DMatrix<f64>),
    /// Number of monomials.
    monomials: usize,
    weights: Weights,
}

/// How residuals at the points are weighed. Only one of the two is kept: they are large.
#[derive(Clone)]
enum Weights {
    /// T, monomials x points, for steps over all cores.
    Mixing(Arc<DMatrix<f64>>),
    /// T^T T, points x points, for steps over one core.
    Metric(Arc<DMatrix<f64>>),
}

/// Points Z at which moments are told, the same for all rows of one problem: Phi_Z = Q S.
pub(super) struct Points {
    x: DMatrix<f64>,
    orthogonal: DMatrix<f64>,
    triangle: DMatrix<f64>,
}

impl Points {
    /// A few more than the monomials.
    pub(super) fn new(monomials: &Monomials) -> Self {
        let mut normal = Normal::new(0);
        let count = (POINTS * monomials.count() as f64).ceil() as usize;
        let x = DMatrix::from_fn(count, monomials.variables(), |_, _| normal.draw());
        let (orthogonal, triangle) = qr(&monomials.values(&x));
        Self { x, orthogonal, triangle }
    }
}

/// phi^T phi (lower triangle), phi^T y and ||y||^2 over some rows.
#[derive(Clone)]
pub(super) struct Sums {
    pub(super) gram: DMatrix<f64>,
    pub(super) truth: DMatrix<f64>,
    pub(super) square: f64,
    pub(super) count: usize,
}

impl Sums {
    /// Adds other rows.
    pub(super) fn add(&mut self, other: &Self) {
        self.gram += &other.gram;
        self.truth += &other.truth;
        self.square += other.square;
        self.count += other.count;
    }

    /// The moments of these rows at given points; `None` where they do not determine every monomial.
    pub(super) fn moments(self, points: &Points) -> Option<Moments> {
        let Self { gram: mut factor, truth, square, count } = self;
        if !cholesky_in_place(&mut factor) {
            return None;
        }
        let mut solution = truth.clone();
        cholesky_solve(&factor, &mut solution);
        let explained: f64 = solution.iter().zip(truth.iter()).map(|(z, r)| z * r).sum();
        let rest = (square - explained).max(0.0);
        let mut moments = Moments::new((count, square), points, &solution, factor, rest);
        if let Weights::Mixing(mixing) = &moments.weights {
            let mut metric = DMatrix::zeros(mixing.ncols(), mixing.ncols());
            add_gram_lower(view_mut(&mut metric), view(mixing));
            metric.fill_upper_triangle_with_lower_triangle();
            moments.weights = Weights::Metric(Arc::new(metric));
        }
        Some(moments)
    }
}

impl Moments {
    /// Of `count` rows with ||y||^2 = `square`, whose direct solution is `solution` with residual sum of squares `rest`;
    /// `factor` is L.
    pub(super) fn new(
        (count, square): (usize, f64),
        Points { x, orthogonal, triangle }: &Points,
        solution: &DMatrix<f64>,
        mut factor: DMatrix<f64>,
        rest: f64,
    ) -> Self {
        let y = orthogonal * (triangle * solution);
        // Phi_Z = Q S gives T = L^T S^-1 Q^T.
        factor.fill_upper_triangle(0.0, 1);
        transposed_solve(triangle, &mut factor);
        let monomials = factor.nrows();
        let mut mixing = DMatrix::zeros(monomials, x.nrows());
        set_product(view_mut(&mut mixing), view(&factor).transpose(), view(orthogonal).transpose());
        let weights = Weights::Mixing(Arc::new(mixing));
        Self { count, square, rest, points: (x.clone(), y), monomials, weights }
    }

    /// The same rows in other coordinates: x' = map^T x, y' = y / scale.
    pub(super) fn entered(&self, map: &DMatrix<f64>, scale: f64) -> Self {
        Self {
            points: (&self.points.0 * map, &self.points.1 / scale),
            rest: self.rest / scale.powi(2),
            square: self.square / scale.powi(2),
            ..self.clone()
        }
    }

    /// The residual variance of the direct solution, relative to the mean square of the outputs.
    pub(super) fn floor(&self) -> f64 {
        let freedom = self.count.saturating_sub(self.monomials).max(1) as f64;
        self.rest / freedom * self.count as f64 / self.square.max(f64::MIN_POSITIVE)
    }

    /// The points Z and the direct solution there.
    pub(super) fn points(&self) -> &(DMatrix<f64>, DMatrix<f64>) {
        &self.points
    }

    /// T^T T r: what residuals at the points weigh, and the squared residual of the rows they stand for.
    pub(super) fn weigh(&self, residual: &[f64]) -> (Vec<f64>, f64) {
        let count = self.points.0.nrows();
        let mut weighed = vec![0.0; residual.len()];
        let outputs = residual.len() / count.max(1);
        let to = columns_mut(&mut weighed, count, outputs);
        match &self.weights {
            Weights::Metric(metric) => set_product(to, view(metric), columns(residual, count, outputs)),
            Weights::Mixing(mixing) => {
                set_product(to, view(mixing).transpose(), view(&mixed(mixing, residual)));
            }
        }
        let square: f64 = residual.iter().zip(&weighed).map(|(r, w)| r * w).sum();
        (weighed, self.rest + square)
    }

    /// l.
    pub(super) fn outputs(&self) -> usize {
        self.points.1.ncols()
    }

    /// ||y - f||^2 over the rows.
    pub(super) fn loss(&self, network: &Network) -> f64 {
        let unfolded: Vec<_> = network.cores.iter().map(unfold).collect();
        let values = evaluate_block(network, &unfolded, self.points.0.as_slice(), self.points.0.nrows());
        let residual: Vec<f64> = self.points.1.iter().zip(values).map(|(y, f)| y - f).collect();
        match &self.weights {
            Weights::Metric(_) => self.weigh(&residual).1,
            Weights::Mixing(mixing) => self.rest + mixed(mixing, &residual).norm_squared(),
        }
    }

    /// What mixes residuals and slopes at the points, so that their sums of squares are those of the rows: T, or else T^T T.
    pub(super) fn mixing(&self) -> Result<&DMatrix<f64>, &DMatrix<f64>> {
        match &self.weights {
            Weights::Mixing(mixing) => Ok(mixing),
            Weights::Metric(metric) => Err(metric),
        }
    }
}

/// T times residuals at the points, monomials x l.
pub(super) fn mixed(mixing: &DMatrix<f64>, residual: &[f64]) -> DMatrix<f64> {
    let outputs = residual.len() / mixing.ncols().max(1);
    let mut mixed = DMatrix::zeros(mixing.nrows(), outputs);
    set_product(view_mut(&mut mixed), view(mixing), columns(residual, mixing.ncols(), outputs));
    mixed
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::super::direct;
    use super::super::jacobian::NormalEquations;
    use super::super::rows::Rows;
    use super::*;

    #[test]
    fn losses_and_normal_equations_are_those_of_the_rows() {
        let mut normal = Normal::new(4);
        for (q, degree, outputs) in [(4, 3, 1), (5, 2, 3), (3, 4, 2), (6, 1, 1)] {
            let x = DMatrix::from_fn(400, q, |_, i| if i == 0 { 1.0 } else { normal.draw() });
            let y = DMatrix::from_fn(400, outputs, |_, _| normal.draw());
            let problem = Problem { x: &x, y: &y };
            let direct = direct::solution(&problem, degree, 100).unwrap();
            let (rows, condensed) =
                (Rows::new(&problem, 1), Rows::condensed(direct.moments.as_ref().unwrap()));
            let network = Network::random(outputs, q, &vec![2; degree - 1], &mut normal);
            assert!((rows.loss(&network) / condensed.loss(&network) - 1.0).abs() < 1e-9);
            assert_eq!((rows.entries(), rows.count), (condensed.entries(), condensed.count));
            for cores in [0..degree, 0..1, degree - 1..degree] {
                let a = NormalEquations::new(&rows, &network, cores.clone());
                let b = NormalEquations::new(&condensed, &network, cores);
                assert!((a.loss / b.loss - 1.0).abs() < 1e-9);
                assert!((&a.gram - &b.gram).norm() < 1e-8 * a.gram.norm());
                assert!((&a.gradient - &b.gradient).norm() < 1e-8 * a.gram.norm());
            }
        }
    }
}
