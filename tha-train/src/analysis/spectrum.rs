//! lambda_max(G), G = U^T U / N (Definition "Empirical Gram Matrix"), as Theorem 2 needs it.
//!
//! G (Q x Q) and the kernel matrix (x_s . x_t)^d / N (N x N) share their non-zero eigenvalues, and neither is formed:
//! Lanczos with full reorthogonalisation on products with the [`Kernel`]. Where even a product costs too much, the
//! trace, sum_t (x_t . x_t)^d / N, bounds the largest eigenvalue from above; [`Spectrum::exact`] says which it is.

use super::kernel::Kernel;
use crate::linalg::symmetric_eigen;
use crate::network::Normal;
use nalgebra::{DMatrix, DVector};

/// Multiplications of one product beyond which the trace bound is used: about two seconds.
pub const PRODUCT_LIMIT: f64 = 4e10;
/// Most steps; a well-separated largest eigenvalue takes ten.
const STEPS: usize = 120;
/// Residual of the eigenvector, relative to the eigenvalue, at which it is found. The eigenvalue is better still.
const TOLERANCE: f64 = 1e-9;

/// The largest eigenvalue of G, or a bound on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spectrum {
    /// lambda_max(G), or the trace of G.
    pub value: f64,
    /// False for the trace bound.
    pub exact: bool,
    /// Products with the kernel matrix that it took.
    pub products: usize,
}

/// lambda_max of the Gram matrix of rows `x` at degree d; the trace where a product costs more than `limit`
/// multiplications.
pub fn lambda_max(x: &DMatrix<f64>, degree: usize, limit: f64) -> Spectrum {
    let kernel = Kernel::new(x, degree);
    let found = if kernel.cost() > limit { None } else { lanczos(&kernel, x.nrows()) };
    found.unwrap_or_else(|| Spectrum { value: trace(x, degree), exact: false, products: 0 })
}

/// tr(G) = sum_t (x_t . x_t)^d / N.
pub fn trace(x: &DMatrix<f64>, degree: usize) -> f64 {
    let squares = x.column_iter().fold(DVector::zeros(x.nrows()), |sum, c| sum + c.map(|v| v * v));
    squares.iter().map(|square| square.powi(degree as i32)).sum::<f64>() / x.nrows().max(1) as f64
}

/// The largest eigenvalue of U U^T / N by Lanczos; `None` where it does not settle.
pub fn lanczos(kernel: &Kernel<'_>, rows: usize) -> Option<Spectrum> {
    let operator = kernel.operator();
    let size = kernel.dimension();
    let mut normal = Normal::new(0x1a2c05);
    // Constant plus noise: near the leading eigenvector, and orthogonal to no other.
    let start = DVector::from_fn(size, |_, _| 1.0 + 0.5 * normal.draw());
    let mut basis = vec![start.normalize()];
    let (mut diagonal, mut beside): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for step in 1..=STEPS.min(size) {
        let current = &basis[step - 1];
        let mut next = operator(current) / rows as f64;
        diagonal.push(current.dot(&next));
        // Rounding leaves some of the basis in the first result; the second pass removes it.
        for _ in 0..2 {
            for vector in &basis {
                let part = vector.dot(&next);
                next.axpy(-part, vector, 1.0);
            }
        }
        let rest = next.norm();
        let small = DMatrix::from_fn(step, step, |i, j| match i.abs_diff(j) {
            0 => diagonal[i],
            1 => beside[i.min(j)],
            _ => 0.0,
        });
        let (values, vectors) = symmetric_eigen(&small)?;
        let value = *values.last()?;
        let residual = rest * vectors[(step - 1, step - 1)].abs();
        if residual <= TOLERANCE * value || step == size {
            return Some(Spectrum { value, exact: true, products: step });
        }
        beside.push(rest);
        basis.push(next / rest);
    }
    None
}
