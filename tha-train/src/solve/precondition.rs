//! The preconditioner of the least-squares problem of one core.
//!
//! Were x and what stands around the core independent, the matrix of the problem would be the Kronecker product of their second
//! moments plus the ridge; its inverse takes two small eigenvalue problems, of which that of x is solved once for all cores.

use super::SolveError;
use crate::linalg::{product, set_product, symmetric_eigen, transposed_product, view, view_mut};
use nalgebra::DMatrix;

/// Eigenvalues and eigenvectors of X^T X.
pub(super) struct Covariance {
    values: Vec<f64>,
    vectors: DMatrix<f64>,
}

impl Covariance {
    /// Of the matrix X^T X.
    pub(super) fn new(second: &DMatrix<f64>) -> Result<Self, SolveError> {
        let (values, vectors) =
            symmetric_eigen(second).ok_or(SolveError::Numerical { what: "covariance of x" })?;
        Ok(Self { values: values.into_iter().map(|v| v.max(0.0)).collect(), vectors })
    }
}

/// (S (x) C + ridge)^-1, S the covariance of x and C / N the coupling of a local problem.
pub(super) struct Preconditioner<'a> {
    covariance: &'a Covariance,
    vectors: DMatrix<f64>,
    /// 1 / (S_i C_j + ridge).
    weights: DMatrix<f64>,
}

impl<'a> Preconditioner<'a> {
    /// Of `count` rows, of which C is the sum of A^T A.
    pub(super) fn new(
        covariance: &'a Covariance,
        coupling: &DMatrix<f64>,
        count: usize,
        ridge: f64,
    ) -> Option<Self> {
        let (values, vectors) = symmetric_eigen(coupling)?;
        let count = count.max(1) as f64;
        let (s, c) = (&covariance.values, values);
        let floor = ridge.max(1e-13 * s.last()? * c.last()? / count).max(f64::MIN_POSITIVE);
        let weights =
            DMatrix::from_fn(s.len(), c.len(), |i, j| (s[i] * c[j].max(0.0) / count + floor).recip());
        Some(Self { covariance, vectors, weights })
    }

    /// Its product with the coefficients of a core, q x (r_{k-1} r_k); the outputs of a first core share it.
    pub(super) fn apply(&self, v: &DMatrix<f64>) -> DMatrix<f64> {
        let mut result = DMatrix::zeros(v.nrows(), v.ncols());
        let width = self.vectors.nrows();
        for start in (0..v.ncols()).step_by(width) {
            let part = v.columns(start, width).into_owned();
            let mut turned = product(&transposed_product(&self.covariance.vectors, &part), &self.vectors);
            turned.component_mul_assign(&self.weights);
            let mut back = DMatrix::zeros(v.nrows(), width);
            let right = product(&self.covariance.vectors, &turned);
            set_product(view_mut(&mut back), view(&right), view(&self.vectors).transpose());
            result.columns_mut(start, width).copy_from(&back);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::super::local::{Objective, tests::problem};
    use super::super::rows::Rows;
    use super::*;
    use crate::network::Network;

    #[test]
    fn the_preconditioner_is_exact_where_moments_are_independent() {
        // Of a linear network nothing stands left or right of the core: one step is enough.
        let (x, y) = problem(3, 100, 6, 1);
        let covariance = Covariance::new(&(x.transpose() * &x)).unwrap();
        let problem = Problem { x: &x, y: &y };
        let rows = Rows::new(&problem, 1);
        let mut network = Network::zeros(1, 6, &[]);
        rows.local(&network, 0).descend(&mut network, &covariance, 2.0, 1);
        let normal = x.transpose() * &x + DMatrix::identity(6, 6) * 2.0;
        let wanted = normal.lu().solve(&(x.transpose() * &y)).unwrap();
        assert!((DMatrix::from_column_slice(6, 1, &network.cores[0].data) - wanted).norm() < 1e-12);
    }
}
