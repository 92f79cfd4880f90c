//! Rows of mapped features: few numbers each, however many columns the maps have.
//!
//! Between two nodes of a map all columns of its feature are straight lines, so that for a row x and coefficients v
//!
//! ```text
//! x . v = x_0 v_0 + sum over features of (P_c + w D_c),   P_c = sum_i at_ci v_i,   D_c = sum_i slope_ci v_i
//! ```
//!
//! with the cell c in which the feature lies and the part w of the way through it. The sums P and D are made once for all rows:
//! two terms for each feature and row stand in the place of a product with all its columns.

use crate::linalg::{add_product, columns, columns_mut, set_product, view, view_mut};
use nalgebra::DMatrix;
use pulp::{Arch, Simd, WithSimd};
use std::array::from_fn;
use std::sync::Arc;

/// Rows that can be multiplied: themselves, or in a form of fewer numbers.
pub(crate) trait Design {
    /// N.
    fn nrows(&self) -> usize;
    /// X v, column by column.
    fn times(&self, v: &DMatrix<f64>) -> Vec<f64>;
    /// Adds X^T values, `values` column by column.
    fn add_transposed_times(&self, values: &[f64], to: &mut DMatrix<f64>);
}

impl Design for DMatrix<f64> {
    fn nrows(&self) -> usize {
        self.nrows()
    }

    fn times(&self, v: &DMatrix<f64>) -> Vec<f64> {
        let mut values = vec![0.0; self.nrows() * v.ncols()];
        set_product(columns_mut(&mut values, self.nrows(), v.ncols()), view(self), view(v));
        values
    }

    fn add_transposed_times(&self, values: &[f64], to: &mut DMatrix<f64>) {
        let width = to.ncols();
        add_product(view_mut(to), view(self).transpose(), columns(values, self.nrows(), width));
    }
}

/// A column that moves in a cell: its number, its value at the left end, and how much more it is at the right end.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub(crate) column: usize,
    pub(crate) at: f64,
    pub(crate) slope: f64,
}

/// Some rows of mapped features: column 0 is one, the others are straight lines in the cells of their feature.
#[derive(Clone, Debug)]
pub struct Hats {
    pub(crate) lines: Arc<Vec<Vec<Line>>>,
    /// Row by row, for each feature: its cell, and the part of the way through it.
    pub(crate) places: Vec<(u32, f64)>,
    pub(crate) features: usize,
}

/// P and D of a cell for some columns of v, aligned so that those of four columns share a line of the cache. Arrays made at once become
/// vector instructions; arrays changed entry by entry do not.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Pair<const W: usize>([[f64; W]; 2]);

impl Hats {
    /// The same with each column times a factor.
    pub(crate) fn scaled(all: Vec<Self>, factor: impl Fn(usize) -> f64) -> Vec<Self> {
        let Some(first) = all.first() else { return all };
        let line = |line: &Line| {
            let size = factor(line.column);
            Line { at: size * line.at, slope: size * line.slope, ..*line }
        };
        let lines: Arc<Vec<Vec<Line>>> =
            Arc::new(first.lines.iter().map(|cell| cell.iter().map(line).collect()).collect());
        all.into_iter().map(|hats| Self { lines: lines.clone(), ..hats }).collect()
    }
}

impl Design for Hats {
    fn nrows(&self) -> usize {
        self.places.len() / self.features
    }

    fn times(&self, v: &DMatrix<f64>) -> Vec<f64> {
        let n = self.nrows();
        let mut values = vec![0.0; n * v.ncols()];
        for (start, width) in strips(v.ncols()) {
            let to = &mut values[start * n..][..width * n];
            if width > 4 {
                Arch::new().dispatch(Times::<8> { hats: self, v, start, to });
            } else {
                Arch::new().dispatch(Times::<4> { hats: self, v, start, to });
            }
        }
        values
    }

    fn add_transposed_times(&self, values: &[f64], to: &mut DMatrix<f64>) {
        let n = self.nrows();
        for (start, width) in strips(to.ncols()) {
            let values = &values[start * n..][..width * n];
            if width > 4 {
                Arch::new().dispatch(AddTransposed::<8> { hats: self, values, start, to });
            } else {
                Arch::new().dispatch(AddTransposed::<4> { hats: self, values, start, to });
            }
        }
    }
}

/// Columns that are taken together: eight at a time, and four where no more are left.
fn strips(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..columns).step_by(8).map(move |start| (start, 8.min(columns - start)))
}

/// Some columns of X v, compiled for several kinds of processors: the same operations in the same order, so that the bits are the same.
struct Times<'a, const W: usize> {
    hats: &'a Hats,
    v: &'a DMatrix<f64>,
    start: usize,
    to: &'a mut [f64],
}

impl<const W: usize> WithSimd for Times<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { hats, v, start, to } = self;
        let n = hats.nrows();
        let width = to.len() / n;
        let entry = |i: usize, k: usize| if k < width { v[(i, start + k)] } else { 0.0 };
        let v: Vec<[f64; W]> = (0..v.nrows()).map(|i| from_fn(|k| entry(i, k))).collect();
        let pair = |cell: &Vec<Line>| {
            cell.iter().fold(Pair([[0.0; W]; 2]), |Pair([at, slope]), line| {
                let v = v[line.column];
                Pair([from_fn(|k| at[k] + line.at * v[k]), from_fn(|k| slope[k] + line.slope * v[k])])
            })
        };
        let pairs: Vec<Pair<W>> = hats.lines.iter().map(pair).collect();
        for (t, places) in hats.places.chunks_exact(hats.features).enumerate() {
            let mut sum = v[0];
            for &(cell, part) in places {
                let Pair([at, slope]) = &pairs[cell as usize];
                sum = from_fn(|k| sum[k] + (at[k] + part * slope[k]));
            }
            (0..width).for_each(|k| to[k * n + t] = sum[k]);
        }
    }
}

/// The sum over the rows, in the same way.
struct AddTransposed<'a, const W: usize> {
    hats: &'a Hats,
    values: &'a [f64],
    start: usize,
    to: &'a mut DMatrix<f64>,
}

impl<const W: usize> WithSimd for AddTransposed<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { hats, values, start, to } = self;
        let n = hats.nrows();
        let width = values.len() / n;
        let mut sums: Vec<[f64; W]> = vec![[0.0; W]; to.nrows()];
        let mut pairs: Vec<Pair<W>> = vec![Pair([[0.0; W]; 2]); hats.lines.len()];
        for (t, places) in hats.places.chunks_exact(hats.features).enumerate() {
            let row: [f64; W] = from_fn(|k| if k < width { values[k * n + t] } else { 0.0 });
            sums[0] = from_fn(|k| sums[0][k] + row[k]);
            for &(cell, part) in places {
                let pair = &mut pairs[cell as usize];
                let Pair([at, slope]) = pair;
                *pair = Pair([from_fn(|k| at[k] + row[k]), from_fn(|k| slope[k] + part * row[k])]);
            }
        }
        for (cell, Pair([at, slope])) in hats.lines.iter().zip(pairs) {
            for line in cell {
                let sum = &mut sums[line.column];
                *sum = from_fn(|k| sum[k] + (line.at * at[k] + line.slope * slope[k]));
            }
        }
        for k in 0..width {
            to.column_mut(start + k).iter_mut().zip(&sums).for_each(|(to, sum)| *to += sum[k]);
        }
    }
}
