//! Tensor networks: the cores V1..Vd of the paper's appendix B and the algebra on them.
//!
//! B(j, i1..id) = V1(j, i1, :) V2(:, i2, :) ... Vd(:, id), with r_0 = l outputs and r_d = 1. The q^d entries of B
//! are never formed, except by [`Network::to_dense`] for tests.

mod algebra;
mod contract;
mod count;
mod features;
mod gauge;
mod hats;
mod monomials;
mod polynomials;
mod random;

pub(crate) use contract::{BLOCK, Contraction, evaluate_block, fold, unfold};
pub(crate) use count::{choose, dimension, monomials, useful_ranks};
pub use features::Features;
pub(crate) use features::WHOLE;
pub(crate) use gauge::kept;
pub use hats::Hats;
pub(crate) use hats::{Design, Line};
pub(crate) use monomials::Monomials;
pub(crate) use polynomials::Polynomials;
pub(crate) use random::Normal;

use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

/// One core V_k of size `left` x `q` x `right`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Core {
    /// r_{k-1}, the bond to the core before (the outputs for the first core).
    pub left: usize,
    /// Lagged inputs and the constant: q = pM + 1.
    pub q: usize,
    /// r_k, the bond to the core after (1 for the last core).
    pub right: usize,
    /// Entry (a, i, b) at `(a * q + i) * right + b`.
    pub data: Vec<f64>,
}

impl Core {
    /// A core of zeros.
    pub fn zeros(left: usize, q: usize, right: usize) -> Self {
        Self { left, q, right, data: vec![0.0; left * q * right] }
    }

    /// Entry (a, i, b).
    pub fn get(&self, a: usize, i: usize, b: usize) -> f64 {
        self.data[(a * self.q + i) * self.right + b]
    }

    /// The (left q) x right unfolding.
    pub(crate) fn tall(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.left * self.q, self.right, &self.data)
    }

    /// The left x (q right) unfolding.
    pub(crate) fn wide(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.left, self.q * self.right, &self.data)
    }

    /// The core whose row-major unfolding (either of the two) is `matrix`.
    pub(crate) fn from_unfolding(left: usize, q: usize, right: usize, matrix: &DMatrix<f64>) -> Self {
        debug_assert_eq!(matrix.len(), left * q * right);
        Self { left, q, right, data: matrix.transpose().as_slice().to_vec() }
    }
}

/// Cores V1..Vd; neighbouring bonds agree, the last right bond is 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The cores, first to last.
    pub cores: Vec<Core>,
}

impl Network {
    /// A network of zeros with `outputs` outputs and the given inner ranks r_1..r_{d-1}; its degree is one more than
    /// their number.
    pub fn zeros(outputs: usize, q: usize, ranks: &[usize]) -> Self {
        let bonds: Vec<usize> = [&[outputs], ranks, &[1]].concat();
        Self { cores: bonds.windows(2).map(|b| Core::zeros(b[0], q, b[1])).collect() }
    }

    /// A network of independent N(0, 1) entries, each core scaled by 1/sqrt(left): its values are of order one where
    /// x^T x is.
    pub(crate) fn random(outputs: usize, q: usize, ranks: &[usize], normal: &mut Normal) -> Self {
        let mut network = Self::zeros(outputs, q, ranks);
        for (k, core) in network.cores.iter_mut().enumerate() {
            let scale = if k == 0 { 1.0 } else { (core.left as f64).sqrt().recip() };
            core.data.iter_mut().for_each(|v| *v = scale * normal.draw());
        }
        network
    }

    /// Inner ranks r_1..r_{d-1}.
    pub fn ranks(&self) -> Vec<usize> {
        self.cores[1..].iter().map(|core| core.left).collect()
    }

    /// Number of stored coefficients.
    pub fn parameters(&self) -> usize {
        self.cores.iter().map(|core| core.data.len()).sum()
    }

    /// Number of outputs l = r_0.
    pub fn outputs(&self) -> usize {
        self.cores[0].left
    }

    /// Degree d, the number of cores.
    pub fn degree(&self) -> usize {
        self.cores.len()
    }

    /// Lagged inputs and the constant: q = pM + 1.
    pub fn q(&self) -> usize {
        self.cores[0].q
    }

    /// All coefficients, core after core.
    pub(crate) fn coefficients(&self) -> Vec<f64> {
        self.cores.iter().flat_map(|core| core.data.iter().copied()).collect()
    }

    /// The network of the same shape with other coefficients.
    pub(crate) fn with_coefficients(&self, coefficients: &[f64]) -> Self {
        let mut rest = coefficients;
        let cores = self.cores.iter().map(|core| {
            let (data, tail) = rest.split_at(core.data.len());
            rest = tail;
            Core { data: data.to_vec(), ..*core }
        });
        Self { cores: cores.collect() }
    }
}
