//! The dense hot spots, through faer: products, Cholesky, symmetric eigenvalues, QR and SVD.
//!
//! nalgebra's `DMatrix` is the type people see; both libraries are column-major, so views convert without
//! copying. faer is several times faster on exactly these operations (products 22 to 36 GFLOP/s against 1.5 for
//! `tr_mul`, Cholesky 10 against 1.4). Everything runs sequentially here: threads split the work above this
//! module into fixed pieces, so that the result does not depend on their number.
//!
//! faer chooses its kernels by the processor and has no option for it. Portable fits (`level`) therefore have kernels of their own
//! (`kernels`) and the factorisations of nalgebra (`factor`). Everything outside this module that a fit computes has the same bits on
//! every processor anyway: plain loops, and elementary functions of `libm` instead of those of the system.

mod factor;
mod kernels;
mod level;

pub(crate) use level::{portable, portably};

use crate::data::CRC;
use crate::network::Normal;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::{Accum, Conj, MatMut, MatRef, Par, Side};
use kernels::Part;
use nalgebra::DMatrix;

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
    if portable() {
        return kernels::add_product(dst, lhs, rhs, 1.0, Part::All);
    }
    matmul(dst, Accum::Add, lhs, rhs, 1.0, Par::Seq);
}

/// `dst = lhs * rhs`.
pub(crate) fn set_product(mut dst: MatMut<'_, f64>, lhs: MatRef<'_, f64>, rhs: MatRef<'_, f64>) {
    if portable() {
        dst.fill(0.0);
        return kernels::add_product(dst, lhs, rhs, 1.0, Part::All);
    }
    matmul(dst, Accum::Replace, lhs, rhs, 1.0, Par::Seq);
}

/// `a b`.
pub(crate) fn product(a: &DMatrix<f64>, b: &DMatrix<f64>) -> DMatrix<f64> {
    let mut product = DMatrix::zeros(a.nrows(), b.ncols());
    set_product(view_mut(&mut product), view(a), view(b));
    product
}

/// `a^T b`.
pub(crate) fn transposed_product(a: &DMatrix<f64>, b: &DMatrix<f64>) -> DMatrix<f64> {
    let mut product = DMatrix::zeros(a.ncols(), b.ncols());
    set_product(view_mut(&mut product), view(a).transpose(), view(b));
    product
}

/// Adds `a^T a` to the lower triangle of `dst`.
pub(crate) fn add_gram_lower(dst: MatMut<'_, f64>, a: MatRef<'_, f64>) {
    use faer::linalg::matmul::triangular::{BlockStructure, matmul_with_conj};
    if portable() {
        return kernels::add_product(dst, a.transpose(), a, 1.0, Part::Lower);
    }
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
    if portable() {
        return kernels::cholesky_in_place(matrix);
    }
    let size = matrix.nrows();
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(size, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    cholesky_in_place(view_mut(matrix), Default::default(), Par::Seq, stack, Default::default()).is_ok()
}

/// Solves `L L^T z = rhs` in place for every column of `rhs`, `L` the lower triangle of `factor`.
pub(crate) fn cholesky_solve(factor: &DMatrix<f64>, rhs: &mut DMatrix<f64>) {
    use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
    let factor = view(factor);
    if portable() {
        kernels::solve_lower(factor, view_mut(rhs));
        return kernels::solve_upper(factor.transpose(), view_mut(rhs));
    }
    solve_lower_triangular_in_place(factor, view_mut(rhs), Par::Seq);
    solve_upper_triangular_in_place(factor.transpose(), view_mut(rhs), Par::Seq);
}

/// Solves `r^T z = rhs` in place for every column of `rhs`, `r` upper triangular.
pub(crate) fn transposed_solve(r: &DMatrix<f64>, rhs: &mut DMatrix<f64>) {
    use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
    if portable() {
        return kernels::solve_lower(view(r).transpose(), view_mut(rhs));
    }
    solve_lower_triangular_in_place(view(r).transpose(), view_mut(rhs), Par::Seq);
}

/// Eigenvalues (rising) and eigenvectors of a symmetric matrix of which the lower triangle is read; `None` where the
/// iteration fails, as it does on values that are not finite.
pub(crate) fn symmetric_eigen(matrix: &DMatrix<f64>) -> Option<(Vec<f64>, DMatrix<f64>)> {
    if matrix.iter().any(|v| !v.is_finite()) {
        return None;
    }
    if portable() {
        return factor::symmetric_eigen(matrix);
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
    let mut projected = transposed_product(&vectors, rhs);
    for (mut row, value) in projected.row_iter_mut().zip(values) {
        row *= if value > cutoff * largest { value.recip() } else { 0.0 };
    }
    Some(product(&vectors, &projected))
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
    if portable() {
        return factor::svd(matrix);
    }
    let svd = view(matrix).thin_svd().ok()?;
    let s = svd.S().column_vector();
    Some(Svd { u: owned(svd.U()), s: (0..s.nrows()).map(|i| s[i]).collect(), v: owned(svd.V()) })
}

/// Thin QR decomposition `(q, r)`: `q` has orthonormal columns, `r` is upper triangular.
pub(crate) fn qr(matrix: &DMatrix<f64>) -> (DMatrix<f64>, DMatrix<f64>) {
    if portable() {
        return factor::qr(matrix);
    }
    let qr = view(matrix).qr();
    (owned(qr.compute_thin_Q().as_ref()), owned(qr.thin_R()))
}

/// A checksum of the bits that this thread's kernels give for some products and factorisations. faer chooses its own by the
/// instructions of the processor and splits long sums by the size of the caches: elsewhere the last bits may be others.
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
    let mut solved = tall.rows(0, 37).into_owned();
    cholesky_solve(&factor, &mut solved);
    let (q, r) = qr(&tall.rows(0, 101).into_owned());
    let (values, vectors) = symmetric_eigen(&gram).unwrap_or_default();
    let Svd { u, s, v } = svd(&(&r * &gram)).unwrap_or_default();
    let faded: Vec<f64> = r.iter().map(|value| libm::exp(-value.abs())).collect();

    let mut checksum = CRC.digest();
    let mut add = |value: &f64| checksum.update(&value.to_le_bytes());
    for matrix in [&tall, &gram, &product, &factor, &solved, &q, &r, &vectors, &u, &v] {
        matrix.iter().for_each(&mut add);
    }
    [values, s, faded].iter().flatten().for_each(&mut add);
    checksum.finalize()
}

#[cfg(test)]
mod tests;
