//! Orthogonal factorisations with the same bits on every processor: those of nalgebra, whose loops are plain Rust in one order and
//! whose square roots and hypotenuses are those of `libm` (features in the `Cargo.toml` of the workspace).

use super::Svd;
use nalgebra::{DMatrix, SVD, SymmetricEigen};

/// Steps of an iteration for every row before it is given up; two or three are usual.
const STEPS: usize = 100;

/// As [`super::symmetric_eigen`], of finite values.
pub(super) fn symmetric_eigen(matrix: &DMatrix<f64>) -> Option<(Vec<f64>, DMatrix<f64>)> {
    let size = matrix.nrows();
    if size == 0 {
        return Some((Vec::new(), DMatrix::zeros(0, 0)));
    }
    let mut whole = matrix.clone();
    whole.fill_upper_triangle_with_lower_triangle();
    let eigen = SymmetricEigen::try_new(whole, f64::EPSILON, STEPS * size)?;
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| eigen.eigenvalues[a].total_cmp(&eigen.eigenvalues[b]));
    let values = order.iter().map(|&k| eigen.eigenvalues[k]).collect();
    Some((values, eigen.eigenvectors.select_columns(&order)))
}

/// As [`super::svd`], of finite values.
pub(super) fn svd(matrix: &DMatrix<f64>) -> Option<Svd> {
    let (rows, columns) = matrix.shape();
    let count = rows.min(columns);
    if count == 0 {
        return Some(Svd { u: DMatrix::zeros(rows, 0), s: Vec::new(), v: DMatrix::zeros(columns, 0) });
    }
    let svd = SVD::try_new(matrix.clone(), true, true, f64::EPSILON, STEPS * count)?;
    Some(Svd { u: svd.u?, s: svd.singular_values.as_slice().to_vec(), v: svd.v_t?.transpose() })
}

/// As [`super::qr`].
pub(super) fn qr(matrix: &DMatrix<f64>) -> (DMatrix<f64>, DMatrix<f64>) {
    let (rows, columns) = matrix.shape();
    if rows.min(columns) == 0 {
        return (DMatrix::zeros(rows, 0), DMatrix::zeros(0, columns));
    }
    matrix.clone().qr().unpack()
}
