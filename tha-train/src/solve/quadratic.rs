//! Least squares as a quadratic form in the coefficients of a polynomial, where the monomials are few.
//!
//! With G = Phi^T Phi over the distinct monomials and the direct solution z, ||y - Phi m||^2 = RSS(z) + (z - m)^T G (z - m) for every
//! polynomial m, however many rows there were. The polynomial of a network is linear in each of its cores.

use super::frame::{Frame, change_slices};
use super::gram::{Pairs, Sums};
use super::local::{Local, Objective};
use super::moments::{Moments, Points};
use crate::linalg::{
    add_product, cholesky_in_place, cholesky_solve, product, set_product, transposed_product, view, view_mut,
};
use crate::network::{Monomials, Network, Polynomials, unfold};
use nalgebra::DMatrix;
use std::sync::Arc;

/// What the quadratic forms of all rows of a problem have in common.
pub(super) struct Forms {
    pub(super) pairs: Pairs,
    polynomials: Polynomials,
}

impl Forms {
    pub(super) fn new(q: usize, degree: usize) -> Arc<Self> {
        let pairs = Pairs::new(Monomials::new(q, degree));
        Arc::new(Self { pairs, polynomials: Polynomials::new(q, degree) })
    }
}

/// The squared residual of some rows by the coefficients of a polynomial.
pub(super) struct Quadratic {
    forms: Arc<Forms>,
    count: usize,
    /// ||y||^2.
    square: f64,
    /// RSS of the direct solution.
    rest: f64,
    /// z, monomials x l.
    solution: DMatrix<f64>,
    /// G.
    gram: DMatrix<f64>,
    /// What G is for monomials of degree d - 1 times the constant.
    lower: DMatrix<f64>,
}

impl Quadratic {
    /// Of the rows that were summed; `None` where they do not determine every monomial.
    pub(super) fn new(forms: &Arc<Forms>, sums: &Sums) -> Option<Self> {
        let (mut gram, truth) = forms.pairs.gram(sums);
        let mut factor = gram.clone();
        if !cholesky_in_place(&mut factor) {
            return None;
        }
        let mut solution = truth.clone();
        cholesky_solve(&factor, &mut solution);
        let rest = (sums.square - solution.dot(&truth)).max(0.0);
        gram.fill_upper_triangle_with_lower_triangle();
        let (roots, constant) = (forms.pairs.monomials.roots(), forms.polynomials.with_constant());
        let lower = DMatrix::from_fn(constant.len(), constant.len(), |i, j| {
            let (i, j) = (constant[i] as usize, constant[j] as usize);
            gram[(i, j)] / (roots[i] * roots[j])
        });
        let (count, square) = (sums.count, sums.square);
        Some(Self { forms: forms.clone(), count, square, rest, solution, gram, lower })
    }

    /// The residual variance of the direct solution, relative to the mean square of the outputs.
    pub(super) fn floor(&self) -> f64 {
        let freedom = self.count.saturating_sub(self.gram.nrows()).max(1) as f64;
        self.rest / freedom * self.count as f64 / self.square.max(f64::MIN_POSITIVE)
    }

    /// The same rows as moments at points.
    pub(super) fn moments(&self) -> Option<Moments> {
        let mut factor = self.gram.clone();
        let points = Points::new(&self.forms.pairs.monomials);
        let facts = (self.count, self.square);
        cholesky_in_place(&mut factor)
            .then(|| Moments::new(facts, &points, &self.solution, factor, self.rest))
    }
}

/// A quadratic form in the coordinates of a frame.
pub(super) struct Framed<'a> {
    pub(super) quadratic: &'a Quadratic,
    pub(super) frame: &'a Frame,
}

impl Objective for Framed<'_> {
    fn local<'a>(&'a self, network: &Network, k: usize) -> Local<'a> {
        let Self { quadratic, frame } = *self;
        let Quadratic { forms, gram, .. } = quadratic;
        let around = forms.polynomials.around(&change_slices(network, &frame.map), k);
        let around = Around { quadratic, map: &frame.map, shared: k == 0, around };
        let polynomial = around.polynomial(&unfold(&network.cores[k]));
        let residual = &quadratic.solution / frame.scale - polynomial;
        let weighed = product(gram, &residual);
        let loss = quadratic.rest / frame.scale.powi(2) + residual.dot(&weighed);
        let gradient = around.back(&weighed);
        let width = around.around[0].ncols();
        let mut coupling = DMatrix::zeros(width, width);
        for part in &around.around {
            let lowered = product(&quadratic.lower, part);
            add_product(view_mut(&mut coupling), view(part).transpose(), view(&lowered));
        }
        let apply = Box::new(move |v: &DMatrix<f64>| around.back(&product(gram, &around.polynomial(v))));
        Local { k, count: quadratic.count, coupling, gradient, loss, apply }
    }

    fn square(&self) -> f64 {
        self.quadratic.square / self.frame.scale.powi(2)
    }
}

/// What stands around a core, as polynomials in the coordinates of the problem.
struct Around<'a> {
    quadratic: &'a Quadratic,
    /// From the coordinates of the core to those of the problem.
    map: &'a DMatrix<f64>,
    /// The outputs share what stands around the first core, and have slices of their own there.
    shared: bool,
    around: Vec<DMatrix<f64>>,
}

impl Around<'_> {
    /// The coefficients with given slices of the core, monomials x l.
    fn polynomial(&self, slices: &DMatrix<f64>) -> DMatrix<f64> {
        let slices = product(self.map, slices);
        let Forms { pairs, polynomials, .. } = &*self.quadratic.forms;
        let mut all = DMatrix::zeros(pairs.monomials.count(), self.quadratic.solution.ncols());
        for (j, mut to) in all.column_iter_mut().enumerate() {
            let around = &self.around[if self.shared { 0 } else { j }];
            let width = around.ncols();
            let own = view(&slices).subcols(if self.shared { j * width } else { 0 }, width);
            let mut parts = DMatrix::zeros(around.nrows(), slices.nrows());
            set_product(view_mut(&mut parts), view(around), own.transpose());
            polynomials.add_forms(&parts, to.as_mut_slice());
            to.iter_mut().zip(pairs.monomials.roots()).for_each(|(m, root)| *m /= root);
        }
        all
    }

    /// The transpose of `polynomial`.
    fn back(&self, weighed: &DMatrix<f64>) -> DMatrix<f64> {
        let Forms { pairs, polynomials, .. } = &*self.quadratic.forms;
        let width = self.around[0].ncols();
        let columns = if self.shared { width * weighed.ncols() } else { width };
        let mut slices = DMatrix::zeros(self.map.nrows(), columns);
        for (j, weighed) in weighed.column_iter().enumerate() {
            let around = &self.around[if self.shared { 0 } else { j }];
            let plain: Vec<f64> =
                weighed.iter().zip(pairs.monomials.roots()).map(|(w, root)| w / root).collect();
            let own = view_mut(&mut slices).subcols_mut(if self.shared { j * width } else { 0 }, width);
            add_product(own, view(&polynomials.forms(&plain)).transpose(), view(around));
        }
        transposed_product(self.map, &slices)
    }
}
