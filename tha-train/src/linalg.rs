//! The dense hot spots, through faer: products, Cholesky, symmetric eigenvalues, QR and SVD.
//!
//! nalgebra's `DMatrix` is the type people see; both libraries are column-major, so views convert without
//! copying. faer is several times faster on exactly these operations (products 22 to 36 GFLOP/s against 1.5 for
//! `tr_mul`, Cholesky 10 against 1.4). Everything runs sequentially here: threads split the work above this
//! module into fixed pieces, so that the result does not depend on their number.

use crate::network::Normal;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::{Accum, Conj, MatMut, MatRef, Par, Side};
use nalgebra::DMatrix;
use std::hash::{DefaultHasher, Hasher};

/// A column-major slice seen as a faer matrix.
pub(crate) fn columns(data: &[f64], rows: usize, columns: usize) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(data, rows, columns)
}

/// A mutable column-major slice seen as a faer matrix.
pub(crate) fn columns_mut(data: &mut [f64], rows: usize, columns: usize) -> MatMut<'_, f64> {
    MatMut::from_column_major_slice_mut(data, rows, columns)
}

/// A nalgebra matrix seen by faer, without a copy.
pub(crate) fn view(matrix: &DMatrix<f64>) -> MatRef<'_, f64> {
    columns(matrix.as_slice(), matrix.nrows(), matrix.ncols())
}

/// A mutable nalgebra matrix seen by faer, without a copy.
pub(crate) fn view_mut(matrix: &mut DMatrix<f64>) -> MatMut<'_, f64> {
    let (rows, cols) = matrix.shape();
    columns_mut(matrix.as_mut_slice(), rows, cols)
}

/// A nalgebra copy of a faer matrix.
pub(crate) fn owned(matrix: MatRef<'_, f64>) -> DMatrix<f64> {
    DMatrix::from_fn(matrix.nrows(), matrix.ncols(), |i, j| matrix[(i, j)])
}

/// `dst += lhs * rhs`.
pub(crate) fn add_product(dst: MatMut<'_, f64>, lhs: MatRef<'_, f64>, rhs: MatRef<'_, f64>) {
    matmul(dst, Accum::Add, lhs, rhs, 1.0, Par::Seq);
}

/// `dst = lhs * rhs`.
pub(crate) fn set_product(dst: MatMut<'_, f64>, lhs: MatRef<'_, f64>, rhs: MatRef<'_, f64>) {
    matmul(dst, Accum::Replace, lhs, rhs, 1.0, Par::Seq);
}

/// Adds `a^T a` to the lower triangle of `dst`.
pub(crate) fn add_gram_lower(dst: MatMut<'_, f64>, a: MatRef<'_, f64>) {
    use faer::linalg::matmul::triangular::{BlockStructure, matmul_with_conj};
    matmul_with_conj(
        dst,
        BlockStructure::TriangularLower,
        Accum::Add,
        a.transpose(),
        BlockStructure::Rectangular,
        Conj::No,
        a,
        BlockStructure::Rectangular,
        Conj::No,
        1.0,
        Par::Seq,
    );
}

/// Overwrites the lower triangle of a symmetric matrix with its Cholesky factor; false where it is not numerically
/// positive definite.
pub(crate) fn cholesky_in_place(matrix: &mut DMatrix<f64>) -> bool {
    use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
    let size = matrix.nrows();
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(size, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    cholesky_in_place(view_mut(matrix), Default::default(), Par::Seq, stack, Default::default()).is_ok()
}

/// Solves `L L^T z = rhs` in place for every column of `rhs`, `L` the lower triangle of `factor`.
pub(crate) fn cholesky_solve(factor: &DMatrix<f64>, rhs: &mut DMatrix<f64>) {
    use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
    let factor = view(factor);
    solve_lower_triangular_in_place(factor, view_mut(rhs), Par::Seq);
    solve_upper_triangular_in_place(factor.transpose(), view_mut(rhs), Par::Seq);
}

/// Solves `r^T z = rhs` in place for every column of `rhs`, `r` upper triangular.
pub(crate) fn transposed_solve(r: &DMatrix<f64>, rhs: &mut DMatrix<f64>) {
    use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
    solve_lower_triangular_in_place(view(r).transpose(), view_mut(rhs), Par::Seq);
}

/// Eigenvalues (rising) and eigenvectors of a symmetric matrix of which the lower triangle is read; `None` where the
/// iteration fails, as it does on values that are not finite.
pub(crate) fn symmetric_eigen(matrix: &DMatrix<f64>) -> Option<(Vec<f64>, DMatrix<f64>)> {
    if matrix.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let eigen = view(matrix).self_adjoint_eigen(Side::Lower).ok()?;
    let values = eigen.S().column_vector();
    Some(((0..values.nrows()).map(|i| values[i]).collect(), owned(eigen.U())))
}

/// Minimal-norm solution of the normal equations `gram z = rhs`, `gram` symmetric positive semi-definite with its
/// lower triangle filled: eigenvalues below `cutoff` times the largest count as zero.
pub(crate) fn minimal_norm(gram: &DMatrix<f64>, rhs: &DMatrix<f64>, cutoff: f64) -> Option<DMatrix<f64>> {
    let (values, vectors) = symmetric_eigen(gram)?;
    let largest = values.last().copied().unwrap_or(0.0);
    let mut projected = DMatrix::zeros(gram.nrows(), rhs.ncols());
    set_product(view_mut(&mut projected), view(&vectors).transpose(), view(rhs));
    for (mut row, value) in projected.row_iter_mut().zip(values) {
        row *= if value > cutoff * largest { value.recip() } else { 0.0 };
    }
    let mut solution = DMatrix::zeros(gram.nrows(), rhs.ncols());
    set_product(view_mut(&mut solution), view(&vectors), view(&projected));
    Some(solution)
}

/// Thin singular value decomposition `u diag(s) v^T`, singular values falling.
#[derive(Default)]
pub(crate) struct Svd {
    pub(crate) u: DMatrix<f64>,
    pub(crate) s: Vec<f64>,
    pub(crate) v: DMatrix<f64>,
}

/// Thin SVD, or `None` where the matrix is not finite.
pub(crate) fn svd(matrix: &DMatrix<f64>) -> Option<Svd> {
    if matrix.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let svd = view(matrix).thin_svd().ok()?;
    let s = svd.S().column_vector();
    Some(Svd { u: owned(svd.U()), s: (0..s.nrows()).map(|i| s[i]).collect(), v: owned(svd.V()) })
}

/// Thin QR decomposition `(q, r)`: `q` has orthonormal columns, `r` is upper triangular.
pub(crate) fn qr(matrix: &DMatrix<f64>) -> (DMatrix<f64>, DMatrix<f64>) {
    let qr = view(matrix).qr();
    (owned(qr.compute_thin_Q().as_ref()), owned(qr.thin_R()))
}

/// A hash of the bits that this machine gives for some products, factorisations and elementary functions. faer and nalgebra
/// choose their kernels by the instructions of the processor, faer splits long sums by the size of the caches, and the
/// system's library computes sines and logarithms: elsewhere the last bits may be others.
pub(crate) fn fingerprint() -> u64 {
    let mut normal = Normal::new(0);
    // More rows than any split of a sum, and a size that no vector length divides.
    let tall = DMatrix::from_fn(5003, 37, |_, _| normal.draw());
    let mut gram = DMatrix::zeros(37, 37);
    add_gram_lower(view_mut(&mut gram), view(&tall));
    let mut product = tall.tr_mul(&tall);
    add_product(view_mut(&mut product), view(&tall).transpose(), view(&tall));
    let mut factor = gram.clone();
    cholesky_in_place(&mut factor);
    let (q, r) = qr(&tall.rows(0, 101).into_owned());
    let (values, vectors) = symmetric_eigen(&gram).unwrap_or_default();
    let Svd { u, s, v } = svd(&(&r * &gram)).unwrap_or_default();
    let faded: Vec<f64> = r.iter().map(|value| (-value.abs()).exp()).collect();

    let mut hash = DefaultHasher::new();
    for matrix in [&tall, &gram, &product, &factor, &q, &r, &vectors, &u, &v] {
        matrix.iter().for_each(|value| hash.write_u64(value.to_bits()));
    }
    [values, s, faded].iter().flatten().for_each(|value| hash.write_u64(value.to_bits()));
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize, cols: usize) -> DMatrix<f64> {
        DMatrix::from_fn(rows, cols, |i, j| ((i * 7 + j * 13) as f64).sin())
    }

    #[test]
    fn factorisations_rebuild_their_input() {
        let a = sample(9, 4);
        let (q, r) = qr(&a);
        assert!((&q * &r - &a).norm() < 1e-12);
        let f = svd(&a).unwrap();
        let s = DMatrix::from_diagonal(&nalgebra::DVector::from_vec(f.s.clone()));
        assert!((&f.u * s * f.v.transpose() - &a).norm() < 1e-12);
        let mut gram = DMatrix::zeros(4, 4);
        add_gram_lower(view_mut(&mut gram), view(&a));
        gram.fill_upper_triangle_with_lower_triangle();
        assert!((&gram - a.transpose() * &a).norm() < 1e-12);
    }

    #[test]
    fn the_fingerprint_does_not_depend_on_where_the_memory_lies() {
        let expected = fingerprint();
        // Blocks that stay allocated move the next ones by a part of a vector register.
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for size in 1..40 {
            kept.extend([vec![0; 8 * size], vec![0; 1368 + 24 * size], vec![0; 10_000 + 16 * size]]);
            assert_eq!(fingerprint(), expected, "{size}");
        }
        assert_eq!(kept.len(), 3 * 39);
    }

    #[test]
    fn minimal_norm_drops_what_the_data_do_not_determine() {
        let a = DMatrix::from_row_slice(2, 3, &[1.0, 1.0, 0.0, 0.0, 0.0, 2.0]);
        let y = DMatrix::from_row_slice(2, 1, &[2.0, 4.0]);
        let z = minimal_norm(&(a.transpose() * &a), &(a.transpose() * y), 1e-12).unwrap();
        assert!((z - DMatrix::from_row_slice(3, 1, &[1.0, 1.0, 2.0])).norm() < 1e-12);
    }
}
