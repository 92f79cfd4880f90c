//! Direct least squares over the C(q+d-1, d) distinct monomials: convex, global, without ranks.
//!
//! phi(x) holds the monomials x_{i1} ... x_{id}, i1 <= ... <= id, each times the square root of its multiplicity, so
//! that the minimal-norm coefficients are those of the minimal-norm symmetric tensor B. With more monomials than rows
//! the dual is solved: (X X^T)^d elementwise is the Gram matrix of all monomials, whatever their number.

use super::gram::gram;
use super::moments::{Moments, Points};
use super::{Problem, SolveError};
use crate::linalg::{cholesky_in_place, cholesky_solve, minimal_norm, product, qr, svd};
use crate::network::{BLOCK, Core, Monomials, Network, kept, monomials};
use nalgebra::DMatrix;

/// Largest normal equations, primal or dual: 0.3 GB.
pub(super) const UNKNOWNS: usize = 6000;
/// Largest dense tensor l q^d.
const ENTRIES: usize = 1 << 24;
/// Eigenvalues below this fraction of the largest count as zero.
const CUTOFF: f64 = 1e-13;

/// Most monomials for which the direct solution, than which nothing of the degree fits better, is worth its cost.
pub(super) const MONOMIALS: usize = 600;
/// Rows per monomial from which the moments cost less than the rows.
pub(super) const ROWS_PER_MONOMIAL: usize = 4;

/// Solves `gram z = rhs` with `ridge` on the diagonal, minimal-norm where that is singular.
fn solve(mut gram: DMatrix<f64>, rhs: &DMatrix<f64>, ridge: f64) -> Result<DMatrix<f64>, SolveError> {
    let size = gram.nrows();
    let largest = (0..size).fold(f64::MIN_POSITIVE, |m, i| m.max(gram[(i, i)]));
    (0..size).for_each(|i| gram[(i, i)] += ridge);
    let mut factor = gram.clone();
    let smallest = |f: &DMatrix<f64>| (0..size).fold(f64::INFINITY, |m, i| m.min(f[(i, i)]));
    if cholesky_in_place(&mut factor) && smallest(&factor).powi(2) > CUTOFF * largest {
        let mut solution = rhs.clone();
        cholesky_solve(&factor, &mut solution);
        return Ok(solution);
    }
    minimal_norm(&gram, rhs, CUTOFF)
        .ok_or(SolveError::Numerical { what: "eigenvalues of the normal equations" })
}

/// The direct solution: nothing of this degree fits better.
pub(super) struct DirectFit {
    /// RSS.
    pub(super) loss: f64,
    /// RSS / ((N - P) l).
    pub(super) variance: f64,
    /// Coefficients P l.
    pub(super) dimension: usize,
    /// The symmetric tensor, l x q^d row-major.
    pub(super) tensor: Vec<f64>,
    /// What replaces the rows, where they are many and determine every monomial.
    pub(super) moments: Option<Moments>,
}

/// Solves directly where that is cheap and well determined: at most `most` monomials, twice as many rows.
pub(super) fn solution(problem: &Problem, degree: usize, most: usize) -> Option<DirectFit> {
    let (q, rows, outputs) = (problem.x.ncols(), problem.x.nrows(), problem.y.ncols());
    let count = monomials(q, degree);
    if count > most || rows < 2 * count {
        return None;
    }
    let monomials = Monomials::new(q, degree);
    let (gram, rhs) = gram(problem, monomials.clone());
    let mut factor = gram.clone();
    let solution = solve(gram, &rhs, 0.0).ok()?;
    let explained: f64 = solution.iter().zip(rhs.iter()).map(|(z, r)| z * r).sum();
    let loss = (problem.y.norm_squared() - explained).max(0.0);
    let variance = loss / ((rows - count) * outputs) as f64;
    let worthwhile = rows >= ROWS_PER_MONOMIAL * count && cholesky_in_place(&mut factor);
    let moments = worthwhile.then(|| {
        let facts = (rows, problem.y.norm_squared());
        Moments::new(facts, &Points::new(&monomials), &solution, factor, loss)
    });
    Some(DirectFit {
        loss,
        variance,
        dimension: count * outputs,
        tensor: monomials.tensor(&solution),
        moments,
    })
}

/// Direct least squares with whatever ridge: what all of them have in common is prepared once.
pub(super) struct System<'a> {
    problem: &'a Problem<'a>,
    monomials: Monomials,
    /// Normal equations with no more monomials than rows, else the Gram matrix of the rows and y.
    gram: DMatrix<f64>,
    rhs: DMatrix<f64>,
}

impl<'a> System<'a> {
    /// Refuses what is too large.
    pub(super) fn new(problem: &'a Problem<'a>, degree: usize) -> Result<Self, SolveError> {
        let (q, outputs, rows) = (problem.x.ncols(), problem.y.ncols(), problem.x.nrows());
        let entries = q.saturating_pow(degree as u32).saturating_mul(outputs);
        let count = monomials(q, degree);
        let advice = "use the ladder, fewer inputs, less memory or a lower degree";
        for (what, needed, limit) in
            [("the dense tensor", entries, ENTRIES), ("direct least squares", count.min(rows), UNKNOWNS)]
        {
            if needed > limit {
                return Err(SolveError::TooLarge { what, needed, limit, advice });
            }
        }
        let monomials = Monomials::new(q, degree);
        let (gram, rhs) = if count <= rows {
            gram(problem, monomials.clone())
        } else {
            let x = problem.x.rows(0, rows);
            let mut kernel = product(&x, &x.transpose());
            kernel.apply(|v| *v = v.powi(degree as i32));
            (kernel, problem.y.clone())
        };
        Ok(Self { problem, monomials, gram, rhs })
    }

    /// The minimiser of ||Y - Yhat||^2 + ridge N l ||B||^2 as a network, bonds cut at `tolerance` (relative, in the norm
    /// of B) and `cap`.
    pub(super) fn network(&self, ridge: f64, tolerance: f64, cap: usize) -> Result<Network, SolveError> {
        let ridge = ridge * self.problem.y.len() as f64;
        let solution = solve(self.gram.clone(), &self.rhs, ridge)?;
        let coefficients = if self.monomials.count() == self.gram.nrows() {
            // One step of iterative refinement: normal equations lose half the digits, the residual has them.
            let mut residual = self.problem.y.clone();
            self.each_block(|at, phi| {
                let mut block = residual.rows_mut(at, phi.nrows());
                block -= phi * &solution;
            });
            let rhs = self.sums(&residual) - ridge * &solution;
            solve(self.gram.clone(), &rhs, ridge)? + solution
        } else {
            self.sums(&solution)
        };
        let dense = self.monomials.tensor(&coefficients);
        self.cut(&dense, tolerance, cap).ok_or(SolveError::Numerical { what: "singular value decomposition" })
    }

    /// phi^T v.
    fn sums(&self, v: &DMatrix<f64>) -> DMatrix<f64> {
        let mut sums = DMatrix::zeros(self.monomials.count(), v.ncols());
        self.each_block(|at, phi| sums += phi.tr_mul(&v.rows(at, phi.nrows())));
        sums
    }

    /// phi, some rows at a time.
    fn each_block(&self, mut work: impl FnMut(usize, DMatrix<f64>)) {
        let rows = self.problem.x.nrows();
        for at in (0..rows).step_by(BLOCK) {
            let block = self.problem.x.rows(at, BLOCK.min(rows - at));
            work(at, self.monomials.values(&block));
        }
    }

    /// TT-SVD of a dense tensor, l x q^d row-major.
    fn cut(&self, dense: &[f64], tolerance: f64, cap: usize) -> Option<Network> {
        let (q, outputs) = (self.problem.x.ncols(), self.problem.y.ncols());
        let degree = self.monomials.degree();
        let norm = dense.iter().map(|v| v * v).sum::<f64>();
        let budget = tolerance.powi(2) * norm / (degree - 1).max(1) as f64;
        let mut cores = Vec::new();
        let mut rest = DMatrix::from_row_slice(outputs * q, q.pow(degree as u32 - 1), dense);
        let mut left = outputs;
        for _ in 1..degree {
            // Of the wide matrix only the left singular vectors are needed: those of R^T where rest^T = Q R.
            let (_, r) = qr(&rest.transpose());
            let parts = svd(&r.transpose())?;
            let rank = kept(&parts.s, budget).clamp(1, cap);
            let basis = parts.u.columns(0, rank).into_owned();
            cores.push(Core::from_unfolding(left, q, rank, &basis));
            let next = basis.tr_mul(&rest);
            rest = DMatrix::from_row_slice(rank * q, next.ncols() / q, next.transpose().as_slice());
            left = rank;
        }
        cores.push(Core::from_unfolding(left, q, 1, &rest));
        Some(Network { cores })
    }
}
