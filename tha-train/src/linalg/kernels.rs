//! Products, Cholesky factors and triangular solutions with the same bits on every processor.
//!
//! Plain Rust: multiplications and additions are never fused, and the order of every sum is written here. Sums over `DEPTH` terms
//! in rising order are added up one after the other; nothing else, neither the size of the tiles nor the number of rows, changes a bit.

use faer::reborrow::ReborrowMut;
use faer::{Mat, MatMut, MatRef};
use nalgebra::DMatrix;
use std::ops::Range;

/// Terms of a sum before it is added to the element: a strip of so many then stays in the first-level cache. It decides on bits.
const DEPTH: usize = 256;
/// Rows and columns of a tile of sums. 4 x 4 doubles fill half of the sixteen registers of every x86-64: 18 GFLOP/s, where 8 x 4
/// has 6 and 4 x 2 has 9.
const TILE: usize = 4;
/// Rows of the left factor that are packed at a time, 128 kB of them: they stay in the second-level cache.
const ROWS: usize = 64;
/// Columns of a triangular matrix that are worked on before the rest follows by a product.
const BLOCK: usize = 32;

/// What of a product is computed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    All,
    Lower,
}

/// `dst += sign * lhs * rhs`, or the lower triangle of that; `sign` is 1 or -1.
pub(super) fn add_product(
    dst: MatMut<'_, f64>,
    lhs: MatRef<'_, f64>,
    rhs: MatRef<'_, f64>,
    sign: f64,
    part: Part,
) {
    assert!(
        (dst.nrows(), lhs.ncols(), rhs.ncols()) == (lhs.nrows(), rhs.nrows(), dst.ncols()),
        "the sizes of a product agree"
    );
    if dst.row_stride() != 1 {
        assert!(part == Part::All && dst.col_stride() == 1, "rows or columns of a product are contiguous");
        // The same terms in the same order.
        return add_product(dst.transpose_mut(), rhs.transpose(), lhs.transpose(), sign, part);
    }
    let (rows, columns, terms) = (lhs.nrows(), rhs.ncols(), lhs.ncols());
    if rows == 0 || columns == 0 {
        return;
    }
    let mut dst = dst.try_as_col_major_mut().expect("its stride is one");
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for depth in pieces(terms, DEPTH) {
        pack(rhs.transpose(), 0..columns, depth.clone(), &mut right);
        for block in pieces(rows, ROWS) {
            pack(lhs, block.clone(), depth.clone(), &mut left);
            for (right, j) in right.chunks(depth.len()).zip((0..columns).step_by(TILE)) {
                for (left, i) in left.chunks(depth.len()).zip(block.clone().step_by(TILE)) {
                    if part == Part::Lower && i + TILE <= j {
                        continue;
                    }
                    let sums = tile(left, right);
                    for (j, sums) in (j..columns).zip(&sums) {
                        let to = &mut dst.rb_mut().col_mut(j).as_slice_mut()[i..block.end.min(i + TILE)];
                        for ((i, to), sum) in (i..).zip(to).zip(sums) {
                            if part == Part::All || i >= j {
                                *to += sign * sum;
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The numbers up to `end` in pieces of `size`.
fn pieces(end: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..end).step_by(size).map(move |start| start..end.min(start + size))
}

/// Sums of a tile: strips of the left and of the right factor.
#[inline]
fn tile(left: &[[f64; TILE]], right: &[[f64; TILE]]) -> [[f64; TILE]; TILE] {
    let mut sums = [[0.0; TILE]; TILE];
    for (a, b) in left.iter().zip(right) {
        for j in 0..TILE {
            for i in 0..TILE {
                sums[j][i] += a[i] * b[j];
            }
        }
    }
    sums
}

/// A block of a matrix in strips of a tile's rows, column after column, with zeros below the last row.
fn pack(matrix: MatRef<'_, f64>, rows: Range<usize>, columns: Range<usize>, to: &mut Vec<[f64; TILE]>) {
    let depth = columns.len();
    to.clear();
    to.resize(rows.len().div_ceil(TILE) * depth, [0.0; TILE]);
    let block = matrix.submatrix(rows.start, columns.start, rows.len(), depth);
    if let Some(block) = block.try_as_col_major() {
        for p in 0..depth {
            let (whole, rest) = block.col(p).as_slice().as_chunks();
            let mut strips = to[p..].iter_mut().step_by(depth);
            strips.by_ref().zip(whole).for_each(|(strip, values)| *strip = *values);
            strips.take(1).for_each(|strip| strip[..rest.len()].copy_from_slice(rest));
        }
    } else if let Some(block) = block.transpose().try_as_col_major() {
        for i in 0..rows.len() {
            let strip = &mut to[i / TILE * depth..][..depth];
            strip.iter_mut().zip(block.col(i).as_slice()).for_each(|(strip, value)| strip[i % TILE] = *value);
        }
    } else {
        for i in 0..rows.len() {
            (0..depth).for_each(|p| to[i / TILE * depth + p][i % TILE] = block[(i, p)]);
        }
    }
}

/// Overwrites the lower triangle with its Cholesky factor; false where a pivot is not positive.
pub(super) fn cholesky_in_place(matrix: &mut DMatrix<f64>) -> bool {
    let size = matrix.nrows();
    for block in pieces(size, BLOCK) {
        let data = matrix.as_mut_slice();
        for j in block.clone() {
            let (column, next) = data[j * size..block.end * size].split_at_mut(size);
            let pivot = column[j].sqrt();
            // Not a number is not greater.
            if !(pivot > 0.0 && pivot.is_finite()) {
                return false;
            }
            column[j] = pivot;
            column[j + 1..].iter_mut().for_each(|value| *value /= pivot);
            for (k, next) in (j + 1..).zip(next.chunks_mut(size)) {
                let factor = column[k];
                next[k..].iter_mut().zip(&column[k..]).for_each(|(to, value)| *to -= factor * value);
            }
        }
        let rest = size - block.end;
        let below = matrix.view((block.end, block.start), (rest, block.len())).into_owned();
        let (below, all) = (super::view(&below), super::view_mut(matrix));
        let to = all.submatrix_mut(block.end, block.end, rest, rest);
        add_product(to, below, below.transpose(), -1.0, Part::Lower);
    }
    true
}

/// Solves `l z = rhs` in place, `l` lower triangular.
pub(super) fn solve_lower(l: MatRef<'_, f64>, mut rhs: MatMut<'_, f64>) {
    let size = l.nrows();
    for block in pieces(size, BLOCK) {
        let (solved, rest) = rhs.rb_mut().split_at_row_mut(block.end);
        let solved =
            substituted(l, block.clone(), block.clone(), solved.subrows_mut(block.start, block.len()));
        let below = l.submatrix(block.end, block.start, size - block.end, block.len());
        add_product(rest, below, solved.as_ref(), -1.0, Part::All);
    }
}

/// Solves `u z = rhs` in place, `u` upper triangular.
pub(super) fn solve_upper(u: MatRef<'_, f64>, mut rhs: MatMut<'_, f64>) {
    let blocks: Vec<_> = pieces(u.nrows(), BLOCK).collect();
    for block in blocks.into_iter().rev() {
        let (rest, solved) = rhs.rb_mut().split_at_row_mut(block.start);
        let solved = substituted(u, block.clone(), block.clone().rev(), solved.subrows_mut(0, block.len()));
        let above = u.submatrix(0, block.start, block.start, block.len());
        add_product(rest, above, solved.as_ref(), -1.0, Part::All);
    }
}

/// Solves a block on the diagonal, its unknowns in the given order, and copies the solution.
fn substituted(
    triangle: MatRef<'_, f64>,
    block: Range<usize>,
    order: impl Iterator<Item = usize> + Clone,
    mut rhs: MatMut<'_, f64>,
) -> Mat<f64> {
    for c in 0..rhs.ncols() {
        let mut left = order.clone();
        while let Some(j) = left.next() {
            let value = rhs[(j - block.start, c)] / triangle[(j, j)];
            rhs[(j - block.start, c)] = value;
            left.clone().for_each(|i| rhs[(i - block.start, c)] -= triangle[(i, j)] * value);
        }
    }
    rhs.to_owned()
}
