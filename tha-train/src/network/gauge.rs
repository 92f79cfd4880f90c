//! Gauge: orthogonal forms, balanced norms and rounding of a network.
//!
//! Inserting G G^-1 at a bond changes the cores, not the tensor. Left-orthogonal cores (all but the last have
//! orthonormal (left q) x right unfoldings) make the last core carry the norm; rounding cuts each bond in that form,
//! which is optimal in the Frobenius norm of B bond by bond.

use super::{Core, Network};
use crate::linalg::{qr, svd};
use nalgebra::DMatrix;

impl Network {
    /// Makes every core but the last left-orthogonal. The tensor stays the same; a bond wider than its unfolding
    /// shrinks.
    pub fn orthogonalize_left(&mut self) {
        (0..self.degree() - 1).for_each(|k| self.pass_right(k));
    }

    /// Makes every core but the first right-orthogonal. The tensor stays the same; a bond wider than its unfolding
    /// shrinks.
    pub fn orthogonalize_right(&mut self) {
        (1..self.degree()).rev().for_each(|k| self.pass_left(k));
    }

    /// Makes core `k` left-orthogonal, handing the rest to core `k + 1`.
    pub(crate) fn pass_right(&mut self, k: usize) {
        let core = &self.cores[k];
        let (left, q) = (core.left, core.q);
        let (orthogonal, rest) = qr(&core.tall());
        self.cores[k] = Core::from_unfolding(left, q, orthogonal.ncols(), &orthogonal);
        self.absorb_from_left(k + 1, &rest);
    }

    /// Makes core `k` right-orthogonal, handing the rest to core `k - 1`.
    pub(crate) fn pass_left(&mut self, k: usize) {
        let core = &self.cores[k];
        let (q, right) = (core.q, core.right);
        let (orthogonal, rest) = qr(&core.wide().transpose());
        self.cores[k] = Core::from_unfolding(orthogonal.ncols(), q, right, &orthogonal.transpose());
        self.absorb_from_right(k - 1, &rest.transpose());
    }

    /// Cuts the bonds to at most the ranks r_1..r_{d-1} and drops what is below `tolerance` times the norm of the network,
    /// in the Frobenius norm of B: the result is within `tolerance * norm` where the ranks do not bind.
    pub fn round(&mut self, tolerance: f64, ranks: &[usize]) {
        self.orthogonalize_right();
        let bonds = (self.degree() - 1).max(1) as f64;
        let budget = (tolerance * self.cores[0].tall().norm()).powi(2) / bonds;
        for (k, &allowed) in ranks.iter().enumerate() {
            let core = &self.cores[k];
            let (left, q) = (core.left, core.q);
            let Some(parts) = svd(&core.tall()) else { return };
            let rank = kept(&parts.s, budget).min(allowed).max(1);
            self.cores[k] = Core::from_unfolding(left, q, rank, &parts.u.columns(0, rank).into_owned());
            let mut rest = parts.v.columns(0, rank).transpose();
            rest.row_iter_mut().zip(&parts.s).for_each(|(mut row, s)| row *= *s);
            self.absorb_from_left(k + 1, &rest);
        }
    }

    /// Spreads the weight of every bond evenly over its two cores (square roots of the singular values) and gives all
    /// cores the same norm: the gauge in which a penalty on the coefficients treats all cores alike.
    pub fn balance(&mut self) {
        self.orthogonalize_right();
        for k in 0..self.degree() - 1 {
            let core = &self.cores[k];
            let (left, q) = (core.left, core.q);
            let Some(parts) = svd(&core.tall()) else { return };
            let rank = parts.s.len();
            let floor = parts.s[0].max(f64::MIN_POSITIVE) * 1e-12;
            let roots: Vec<f64> = parts.s.iter().map(|s| s.max(floor).sqrt()).collect();
            let mut here = parts.u;
            here.column_iter_mut().zip(&roots).for_each(|(mut c, s)| c *= *s);
            let mut rest = parts.v.transpose();
            rest.row_iter_mut().zip(&roots).for_each(|(mut row, s)| row *= *s);
            self.cores[k] = Core::from_unfolding(left, q, rank, &here);
            self.absorb_from_left(k + 1, &rest);
        }
        self.equalize_norms();
    }

    /// Scales the cores to equal Frobenius norms.
    pub(crate) fn equalize_norms(&mut self) {
        let norms: Vec<f64> =
            self.cores.iter().map(|c| c.data.iter().map(|v| v * v).sum::<f64>().sqrt()).collect();
        if norms.contains(&0.0) {
            return;
        }
        let mean = libm::exp(norms.iter().map(|n| libm::log(*n)).sum::<f64>() / norms.len() as f64);
        for (core, norm) in self.cores.iter_mut().zip(norms) {
            core.data.iter_mut().for_each(|v| *v *= mean / norm);
        }
    }

    /// Multiplies core `k` from the left by `factor` (new left bond x old left bond).
    pub(crate) fn absorb_from_left(&mut self, k: usize, factor: &DMatrix<f64>) {
        let core = &self.cores[k];
        let product = factor * core.wide();
        self.cores[k] = Core::from_unfolding(factor.nrows(), core.q, core.right, &product);
    }

    /// Multiplies core `k` from the right by `factor` (old right bond x new right bond).
    pub(crate) fn absorb_from_right(&mut self, k: usize, factor: &DMatrix<f64>) {
        let core = &self.cores[k];
        let product = core.tall() * factor;
        self.cores[k] = Core::from_unfolding(core.left, core.q, factor.ncols(), &product);
    }
}

/// How many of the falling singular values remain when the tail may weigh `budget` (squared).
pub(crate) fn kept(values: &[f64], budget: f64) -> usize {
    let mut tail = 0.0;
    let mut rank = values.len();
    while rank > 0 {
        tail += values[rank - 1].powi(2);
        if tail > budget {
            break;
        }
        rank -= 1;
    }
    rank
}
