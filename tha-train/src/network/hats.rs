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
use std::array::from_fn;
use std::sync::Arc;

/// Columns of v that are taken together.
const WIDTH: usize = 4;

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

/// Some entries of a row of v. Arrays made at once become vector instructions; arrays changed entry by entry do not.
type Few = [f64; WIDTH];

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
        let (n, count) = (self.nrows(), v.ncols());
        let mut values = vec![0.0; n * count];
        for start in (0..count).step_by(WIDTH) {
            let width = WIDTH.min(count - start);
            let entry = |i: usize, k: usize| if k < width { v[(i, start + k)] } else { 0.0 };
            let v: Vec<Few> = (0..v.nrows()).map(|i| from_fn(|k| entry(i, k))).collect();
            let pair = |cell: &Vec<Line>| {
                cell.iter().fold([[0.0; WIDTH]; 2], |[at, slope], line| {
                    let v = v[line.column];
                    [from_fn(|k| at[k] + line.at * v[k]), from_fn(|k| slope[k] + line.slope * v[k])]
                })
            };
            let pairs: Vec<[Few; 2]> = self.lines.iter().map(pair).collect();
            for (t, places) in self.places.chunks_exact(self.features).enumerate() {
                let mut sum = v[0];
                for &(cell, part) in places {
                    let [at, slope] = pairs[cell as usize];
                    sum = from_fn(|k| sum[k] + (at[k] + part * slope[k]));
                }
                (0..width).for_each(|k| values[(start + k) * n + t] = sum[k]);
            }
        }
        values
    }

    fn add_transposed_times(&self, values: &[f64], to: &mut DMatrix<f64>) {
        let (n, count) = (self.nrows(), to.ncols());
        for start in (0..count).step_by(WIDTH) {
            let width = WIDTH.min(count - start);
            let mut sums: Vec<Few> = vec![[0.0; WIDTH]; to.nrows()];
            let mut pairs: Vec<[Few; 2]> = vec![[[0.0; WIDTH]; 2]; self.lines.len()];
            for (t, places) in self.places.chunks_exact(self.features).enumerate() {
                let row: Few = from_fn(|k| if k < width { values[(start + k) * n + t] } else { 0.0 });
                sums[0] = from_fn(|k| sums[0][k] + row[k]);
                for &(cell, part) in places {
                    let pair = &mut pairs[cell as usize];
                    let [at, slope] = *pair;
                    *pair = [from_fn(|k| at[k] + row[k]), from_fn(|k| slope[k] + part * row[k])];
                }
            }
            for (cell, [at, slope]) in self.lines.iter().zip(pairs) {
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
}
