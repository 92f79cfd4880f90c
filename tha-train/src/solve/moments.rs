//! Moments: what least squares needs to know of many rows when the monomials are few.
//!
//! With G = Phi^T Phi = L L^T over the distinct monomials and the direct solution z, ||y - Phi m||^2 = RSS(z) +
//! ||L^T (z - m)||^2 for every polynomial m, however many rows there were. A network gives its polynomial by its values
//! at as many points as there are monomials: m = Phi_Z^+ f(Z). So the rows are replaced by the points Z, where the
//! residual is z(Z) - f(Z), and the matrix T = L^T Phi_Z^+ that mixes it: losses and steps of a descent then cost the
//! same for a thousand rows and for a million.

use crate::linalg::{product, qr, set_product, transposed_solve, view, view_mut};
use crate::network::{Monomials, Network, Normal, evaluate_block};
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
    pub(super) rest: f64,
    /// Z, points x q, and the direct solution there, points x l.
    pub(super) points: (DMatrix<f64>, DMatrix<f64>),
    /// T, monomials x points: what mixes residuals and slopes at the points, so that their sums of squares are those of the rows.
    pub(super) mixing: Arc<DMatrix<f64>>,
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
        Self { count, square, rest, points: (x.clone(), y), mixing: Arc::new(mixing) }
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

    /// ||y - f||^2 over the rows.
    pub(super) fn loss(&self, network: &Network) -> f64 {
        let values = evaluate_block(network, &network.unfolded(), &self.points.0);
        let residual: Vec<f64> = self.points.1.iter().zip(values).map(|(y, f)| y - f).collect();
        self.rest + self.mixed(&residual).norm_squared()
    }

    /// T times residuals at the points, monomials x l.
    pub(super) fn mixed(&self, residual: &[f64]) -> DMatrix<f64> {
        let outputs = residual.len() / self.mixing.ncols().max(1);
        product(&self.mixing, &DMatrix::from_column_slice(self.mixing.ncols(), outputs, residual))
    }
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
