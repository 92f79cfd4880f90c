//! The truncated ensemble and the exact decomposition of the error (section 4.1, 4.2 and Theorem 1).
//!
//! Y_trunc = sum_k w_k U P_k B*;  bias = Y_trunc - Y_full = -U T;  bake = Y_THA - Y_trunc = sum_k w_k E_k with
//! E_k = U (Bhat_k - P_k B*);  eps_k = ||E_k||;  align = <bake, -bias>. Then
//!
//! ||Y_THA - Y_full||^2 = ||bias||^2 + ||bake||^2 - 2 align
//!
//! for any weights. Norms and inner products are the empirical ones, divided by N.

use super::Pair;
use super::mask::restrict;
use nalgebra::DMatrix;

/// The predictions and differences that everything else is made of, N x l each.
#[derive(Clone, Debug)]
pub struct Decomposition {
    /// U B*.
    pub full: DMatrix<f64>,
    /// The ensemble's prediction.
    pub ensemble: DMatrix<f64>,
    /// The bias: truncated minus full.
    pub bias: DMatrix<f64>,
    /// The baking adjustment: ensemble minus truncated.
    pub bake: DMatrix<f64>,
    /// Observable truncation gaps eps_k.
    pub gaps: Vec<f64>,
}

impl Decomposition {
    /// Evaluates both models, head by head.
    pub fn new(pair: &Pair) -> Self {
        let full = pair.full.evaluate(&pair.x);
        let zero = DMatrix::zeros(full.nrows(), full.ncols());
        let (mut ensemble, mut truncated, mut bake) = (zero.clone(), zero.clone(), zero);
        let mut gaps = Vec::with_capacity(pair.heads.len());
        for head in &pair.heads {
            let x = head.features(&pair.x, &pair.owners);
            let trained = head.network.evaluate(&x);
            let cut = restrict(&pair.full, &head.subset, &pair.owners).evaluate(&x);
            let difference = &trained - &cut;
            gaps.push(square(&difference).sqrt());
            ensemble += trained * head.weight;
            truncated += cut * head.weight;
            bake += difference * head.weight;
        }
        Self { bias: truncated - &full, full, ensemble, bake, gaps }
    }

    /// ||Y_THA - Y_full||^2, from the predictions themselves.
    pub fn error_square(&self) -> f64 {
        square(&(&self.ensemble - &self.full))
    }

    /// Baking alignment C_Align.
    pub fn align(&self) -> f64 {
        -inner(&self.bake, &self.bias)
    }

    /// The right-hand side of Theorem 1.
    pub fn right_side(&self) -> f64 {
        square(&self.bias) + square(&self.bake) - 2.0 * self.align()
    }
}

/// The empirical inner product <A, B> = Tr(A^T B) / N.
pub(super) fn inner(a: &DMatrix<f64>, b: &DMatrix<f64>) -> f64 {
    a.dot(b) / a.nrows().max(1) as f64
}

/// The empirical norm squared.
pub(super) fn square(a: &DMatrix<f64>) -> f64 {
    inner(a, a)
}

/// The empirical norm.
pub(super) fn norm(a: &DMatrix<f64>) -> f64 {
    square(a).sqrt()
}
