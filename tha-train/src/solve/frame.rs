//! Coordinates in which the solvers work: whitened inputs and outputs of unit mean square.
//!
//! Any invertible map x -> S x on the q entries of a row carries over to the cores slice by slice and leaves all
//! ranks as they are. S = (C + eps)^(-1/2), C = X^T X / N, makes correlated inputs as easy as independent ones;
//! eps, a thousandth of the largest eigenvalue, keeps directions that hardly occur in the data small, so that a
//! penalty on the coefficients still holds them down.

use super::{Problem, SolveError};
use crate::linalg::{add_product, set_product, symmetric_eigen, view, view_mut};
use crate::tt::{Core, TensorTrain};
use nalgebra::{DMatrix, DVector};

const FLOOR: f64 = 1e-3;

/// The maps between a problem's coordinates and the solver's.
pub(super) struct Frame {
    map: DMatrix<f64>,
    inverse: DMatrix<f64>,
    scale: f64,
}

impl Frame {
    /// The coordinates that the rows of `problem` suggest.
    pub(super) fn new(problem: &Problem) -> Result<Self, SolveError> {
        let count = problem.x.nrows() as f64;
        let mut covariance = DMatrix::zeros(problem.x.ncols(), problem.x.ncols());
        add_product(view_mut(&mut covariance), view(problem.x).transpose(), view(problem.x));
        covariance /= count;
        let (values, vectors) =
            symmetric_eigen(&covariance).ok_or(SolveError::Numerical { what: "covariance of x" })?;
        let floor = FLOOR * values.last().copied().unwrap_or(1.0);
        let power = |exponent: f64| {
            let weights = values.iter().map(|v| (v.max(0.0) + floor).powf(exponent));
            &vectors
                * DMatrix::from_diagonal(&DVector::from_iterator(values.len(), weights))
                * vectors.transpose()
        };
        Ok(Self { map: power(-0.5), inverse: power(0.5), scale: unit(problem) })
    }

    /// The problem's own inputs, outputs of unit mean square: for solvers that are to run as published.
    pub(super) fn plain(problem: &Problem) -> Self {
        let identity = DMatrix::identity(problem.x.ncols(), problem.x.ncols());
        Self { map: identity.clone(), inverse: identity, scale: unit(problem) }
    }

    /// Rows in the solver's coordinates.
    pub(super) fn enter(&self, problem: &Problem) -> (DMatrix<f64>, DMatrix<f64>) {
        let mut x = DMatrix::zeros(problem.x.nrows(), problem.x.ncols());
        set_product(view_mut(&mut x), view(problem.x), view(&self.map));
        (x, problem.y / self.scale)
    }

    /// A train in the solver's coordinates.
    pub(super) fn enter_train(&self, train: &TensorTrain) -> TensorTrain {
        let mut train = change_slices(train, &self.inverse);
        train.scale(self.scale.recip());
        train
    }

    /// A train in the problem's coordinates.
    pub(super) fn leave(&self, train: &TensorTrain) -> TensorTrain {
        let mut train = change_slices(train, &self.map);
        train.scale(self.scale);
        train
    }
}

/// Root-mean-square of the outputs.
fn unit(problem: &Problem) -> f64 {
    (problem.y.norm_squared() / problem.y.len() as f64).sqrt()
}

/// V(a, :, b) <- map V(a, :, b) for every core; `map` is symmetric.
fn change_slices(train: &TensorTrain, map: &DMatrix<f64>) -> TensorTrain {
    let cores = train.cores.iter().map(|core| {
        let slices = map * crate::tt::unfold(core);
        let mut changed = Core::zeros(core.left, core.q, core.right);
        for a in 0..core.left {
            for i in 0..core.q {
                for b in 0..core.right {
                    changed.data[(a * core.q + i) * core.right + b] = slices[(i, a * core.right + b)];
                }
            }
        }
        changed
    });
    TensorTrain { cores: cores.collect() }
}
