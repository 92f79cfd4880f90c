//! Products with the kernel matrix (x_s . x_t)^d = U U^T, which is never stored.
//!
//! Two ways, and the cheaper is taken: blocks of rows against blocks of rows (N^2 q / 2 multiplications, any Q), or
//! through the m = C(q+d-1, d) distinct monomials, made a few rows at a time (about 3 N m, where those are few). Work
//! is cut into fixed pieces and summed in order, so that the result does not depend on the number of threads.

use crate::linalg::{set_product, view, view_mut};
use crate::network::{Monomials, monomials};
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

/// Rows per block.
const BLOCK: usize = 256;
/// Most monomials that are made at once.
const MONOMIALS: usize = 50_000;
/// Entries of features held by a thread.
const BUFFER: usize = 1 << 21;
/// Pieces that the work is cut into.
const PIECES: usize = 32;

/// How the products are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Rows against rows.
    Rows,
    /// Through the distinct monomials.
    Monomials,
}

/// A symmetric matrix, given by its products.
pub type Operator<'a> = Box<dyn Fn(&DVector<f64>) -> DVector<f64> + 'a>;

/// Rows x_t and a degree d.
pub struct Kernel<'a> {
    x: &'a DMatrix<f64>,
    degree: usize,
    /// How its products are made.
    pub route: Route,
}

impl<'a> Kernel<'a> {
    /// The kernel of rows `x`, by the cheaper route.
    pub fn new(x: &'a DMatrix<f64>, degree: usize) -> Self {
        let (by_rows, by_monomials) = costs(x.nrows(), x.ncols(), degree);
        Self { x, degree, route: if by_monomials < by_rows { Route::Monomials } else { Route::Rows } }
    }

    /// The kernel by a given route.
    pub fn by(x: &'a DMatrix<f64>, degree: usize, route: Route) -> Self {
        Self { x, degree, route }
    }

    /// Multiplications of one product, about.
    pub fn cost(&self) -> f64 {
        let (by_rows, by_monomials) = costs(self.x.nrows(), self.x.ncols(), self.degree);
        if self.route == Route::Rows { by_rows } else { by_monomials }
    }

    /// Size of the vectors that the kernel is applied to: N, or the number of monomials.
    pub fn dimension(&self) -> usize {
        match self.route {
            Route::Rows => self.x.nrows(),
            Route::Monomials => monomials(self.x.ncols(), self.degree),
        }
    }

    /// U U^T v by rows, U^T U v by monomials: the same eigenvalues but for zeros.
    pub fn operator(&self) -> Operator<'_> {
        match self.route {
            Route::Rows => {
                let blocks = blocks(self.x, BLOCK);
                Box::new(move |v| self.apply_rows(&blocks, v))
            }
            Route::Monomials => {
                let monomials = Monomials::new(self.x.ncols(), self.degree);
                Box::new(move |v| self.apply_monomials(&monomials, v))
            }
        }
    }

    fn apply_rows(&self, blocks: &[DMatrix<f64>], v: &DVector<f64>) -> DVector<f64> {
        let piece = |piece: usize| {
            let mut out = DVector::zeros(v.len());
            let mut products = DMatrix::zeros(0, 0);
            for (i, a) in blocks.iter().enumerate().skip(piece).step_by(PIECES) {
                for (j, b) in blocks[..=i].iter().enumerate() {
                    products.resize_mut(a.nrows(), b.nrows(), 0.0);
                    set_product(view_mut(&mut products), view(a), view(b).transpose());
                    let (rows, columns) = (a.nrows(), b.nrows());
                    let (above, beside) = (v.rows(i * BLOCK, rows), v.rows(j * BLOCK, columns));
                    for (c, column) in products.as_slice().chunks_exact(rows).enumerate() {
                        let target = &mut out.as_mut_slice()[i * BLOCK..][..rows];
                        let below = self.fused(column, beside[c], above.as_slice(), target);
                        if j < i {
                            out[j * BLOCK + c] += below;
                        }
                    }
                }
            }
            out
        };
        let parts: Vec<DVector<f64>> = (0..PIECES.min(blocks.len())).into_par_iter().map(piece).collect();
        parts.into_iter().fold(DVector::zeros(v.len()), |sum, part| sum + part)
    }

    /// target += column^d value, and column^d . above, in one pass.
    fn fused(&self, column: &[f64], value: f64, above: &[f64], target: &mut [f64]) -> f64 {
        match self.degree {
            1 => fused(column, value, above, target, |g| g),
            2 => fused(column, value, above, target, |g| g * g),
            3 => fused(column, value, above, target, |g| g * g * g),
            degree => fused(column, value, above, target, |g| g.powi(degree as i32)),
        }
    }

    fn apply_monomials(&self, monomials: &Monomials, v: &DVector<f64>) -> DVector<f64> {
        self.over_pieces(monomials, DVector::zeros(v.len()), |rows, _, out: &mut DVector<f64>| {
            let projected = rows * v;
            out.gemv_tr(1.0, rows, &projected, 1.0);
        })
    }

    /// ||U^T R||_F^2 = sum over s, t of (r_s . r_t)(x_s . x_t)^d, for R of N x l.
    pub fn correlation_square(&self, r: &DMatrix<f64>) -> f64 {
        if self.route == Route::Monomials {
            let monomials = Monomials::new(self.x.ncols(), self.degree);
            let zero = DMatrix::zeros(monomials.count(), r.ncols());
            let c = self.over_pieces(&monomials, zero, |rows, start, out: &mut DMatrix<f64>| {
                out.gemm_tr(1.0, rows, &r.rows(start, rows.nrows()), 1.0);
            });
            return c.norm_squared();
        }
        let (x, r) = (blocks(self.x, BLOCK), blocks(r, BLOCK));
        let row = |i: usize| -> f64 {
            let (mut powers, mut inner) = (DMatrix::zeros(0, 0), DMatrix::zeros(0, 0));
            let pair = |j: usize| {
                self.powers(&x[i], &x[j], &mut powers);
                inner.resize_mut(x[i].nrows(), x[j].nrows(), 0.0);
                set_product(view_mut(&mut inner), view(&r[i]), view(&r[j]).transpose());
                powers.dot(&inner) * if j < i { 2.0 } else { 1.0 }
            };
            (0..=i).map(pair).sum()
        };
        let sums: Vec<f64> = (0..x.len()).into_par_iter().map(row).collect();
        sums.iter().sum::<f64>().max(0.0)
    }

    /// (x_s . x_t)^d for two blocks of rows.
    fn powers(&self, a: &DMatrix<f64>, b: &DMatrix<f64>, out: &mut DMatrix<f64>) {
        out.resize_mut(a.nrows(), b.nrows(), 0.0);
        set_product(view_mut(out), view(a), view(b).transpose());
        let degree = self.degree as i32;
        match degree {
            1 => {}
            2 => out.iter_mut().for_each(|v| *v *= *v),
            3 => out.iter_mut().for_each(|v| *v = *v * *v * *v),
            _ => out.iter_mut().for_each(|v| *v = v.powi(degree)),
        }
    }

    /// Sums what `add` makes of the features of some rows, over fixed pieces of the rows.
    fn over_pieces<T: Clone + Send + Sync + std::ops::Add<T, Output = T>>(
        &self,
        monomials: &Monomials,
        zero: T,
        add: impl Fn(&DMatrix<f64>, usize, &mut T) + Sync,
    ) -> T {
        let count = self.x.nrows();
        let size = count.div_ceil(PIECES).max(1);
        let step = (BUFFER / monomials.count().max(1)).clamp(8, BLOCK);
        let piece = |start: usize| {
            let mut out = zero.clone();
            let end = (start + size).min(count);
            for at in (start..end).step_by(step) {
                let rows = self.x.rows(at, step.min(end - at)).into_owned();
                add(&monomials.values(&rows), at, &mut out);
            }
            out
        };
        let starts: Vec<usize> = (0..count).step_by(size).collect();
        let parts: Vec<T> = starts.into_par_iter().map(piece).collect();
        parts.into_iter().fold(zero.clone(), |sum, part| sum + part)
    }
}

fn fused(column: &[f64], value: f64, above: &[f64], target: &mut [f64], power: impl Fn(f64) -> f64) -> f64 {
    // Independent sums, so that they can be made side by side.
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let whole = column.len() / LANES * LANES;
    let parts = column.chunks_exact(LANES).zip(above.chunks_exact(LANES));
    for ((column, above), target) in parts.zip(target.chunks_exact_mut(LANES)) {
        for lane in 0..LANES {
            let entry = power(column[lane]);
            target[lane] += entry * value;
            sums[lane] += entry * above[lane];
        }
    }
    for t in whole..column.len() {
        let entry = power(column[t]);
        target[t] += entry * value;
        sums[0] += entry * above[t];
    }
    sums.iter().sum()
}

/// Multiplications by rows and by monomials.
fn costs(rows: usize, q: usize, degree: usize) -> (f64, f64) {
    let rows = rows as f64;
    let by_rows = rows * rows * (0.5 * q as f64 + 4.0);
    let by_monomials = match monomials(q, degree) {
        count if count <= MONOMIALS => 4.0 * rows * count as f64,
        _ => f64::INFINITY,
    };
    (by_rows, by_monomials)
}

/// Rows cut into blocks, each column-major by itself.
fn blocks(matrix: &DMatrix<f64>, size: usize) -> Vec<DMatrix<f64>> {
    let count = matrix.nrows();
    (0..count).step_by(size).map(|at| matrix.rows(at, size.min(count - at)).into_owned()).collect()
}
