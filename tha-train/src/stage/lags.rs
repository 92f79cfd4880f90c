//! Lag windows: row t is x_t = [1, u(t), u(t-1), ..., u(t-M+1)], lag-major, so q = pM+1 columns.
//!
//! They are M times as large as the recording, so they are made when they are read.

use super::{InputMap, Scaling};
use crate::data::Dataset;
use crate::network::Features;
use nalgebra::DMatrix;

/// Standardised lag windows, the first column 1, and outputs of some rows of a data set.
#[derive(Clone, Debug)]
pub struct Lagged<'a> {
    /// N x l, standardised.
    pub y: DMatrix<f64>,
    /// The row of the data set behind each window and row of `y`.
    pub rows: Vec<usize>,
    data: &'a Dataset,
    maps: Vec<InputMap>,
    memory: usize,
}

/// Lag windows of some inputs only.
#[derive(Clone, Copy, Debug)]
pub struct Subset<'a> {
    samples: &'a Lagged<'a>,
    inputs: &'a [usize],
}

impl Dataset {
    /// The lag windows that end at the given rows, each of which must have M-1 rows of its record before it
    /// ([`Dataset::scored_rows`] gives them all).
    pub fn lagged(&self, memory: usize, scaling: &Scaling, rows: Vec<usize>) -> Lagged<'_> {
        let mut y = DMatrix::zeros(rows.len(), self.y.len());
        for (channel, (column, map)) in self.y.iter().zip(&scaling.outputs).enumerate() {
            for (value, &row) in y.column_mut(channel).iter_mut().zip(&rows) {
                *value = map.standardise(column[row]);
            }
        }
        Lagged { y, rows, data: self, maps: scaling.inputs.clone(), memory }
    }

    /// The outputs at the given rows in physical units, N x l.
    pub fn outputs_at(&self, rows: &[usize]) -> DMatrix<f64> {
        DMatrix::from_fn(rows.len(), self.y.len(), |i, j| self.y[j][rows[i]])
    }
}

impl Lagged<'_> {
    /// The same windows of some inputs only.
    pub fn of_inputs<'a>(&'a self, inputs: &'a [usize]) -> Subset<'a> {
        Subset { samples: self, inputs }
    }

    /// The windows of `p` inputs, of which `input` gives the channels, that end at some rows of the data set.
    fn windows(&self, p: usize, input: impl Fn(usize) -> usize, rows: &[usize]) -> DMatrix<f64> {
        let mut x = DMatrix::from_element(rows.len(), p * self.memory + 1, 1.0);
        for lag in 0..self.memory {
            for k in 0..p {
                let (column, map) = (&self.data.u[input(k)], self.maps[input(k)]);
                let mut target = x.column_mut(1 + lag * p + k);
                for (value, &row) in target.iter_mut().zip(rows) {
                    *value = map.standardise(column[row - lag]);
                }
            }
        }
        x
    }

    fn ends(&self, rows: &[usize]) -> Vec<usize> {
        rows.iter().map(|&row| self.rows[row]).collect()
    }
}

impl Features for Lagged<'_> {
    fn nrows(&self) -> usize {
        self.rows.len()
    }

    fn ncols(&self) -> usize {
        self.maps.len() * self.memory + 1
    }

    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64> {
        self.windows(self.maps.len(), |k| k, &self.ends(rows))
    }

    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        self.windows(self.maps.len(), |k| k, &self.rows[start..start + count])
    }
}

impl Features for Subset<'_> {
    fn nrows(&self) -> usize {
        self.samples.nrows()
    }

    fn ncols(&self) -> usize {
        self.inputs.len() * self.samples.memory + 1
    }

    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64> {
        self.samples.windows(self.inputs.len(), |k| self.inputs[k], &self.samples.ends(rows))
    }

    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        let ends = &self.samples.rows[start..start + count];
        self.samples.windows(self.inputs.len(), |k| self.inputs[k], ends)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InputMap, OutputMap};
    use super::*;
    use crate::data::tests::counting;

    #[test]
    fn lag_major_windows_inside_records() {
        let data = counting(&[3, 3]);
        let scaling = Scaling {
            inputs: vec![InputMap { offset: 0.0, gain: 1.0 }, InputMap { offset: 100.0, gain: 0.5 }],
            outputs: vec![OutputMap { offset: 0.0, scale: 1.0 }],
        };
        let lagged = data.lagged(2, &scaling, data.scored_rows(2));
        assert_eq!(lagged.rows, [1, 2, 4, 5]);
        let row = |x: DMatrix<f64>| x.iter().copied().collect::<Vec<_>>();
        assert_eq!((lagged.nrows(), lagged.ncols()), (4, 5));
        assert_eq!(row(lagged.rows(0, 1)), [1.0, 1.0, 0.5, 0.0, 0.0]);
        assert_eq!(row(lagged.select_rows(&[2])), [1.0, 4.0, 2.0, 3.0, 1.5]);
        let second = lagged.of_inputs(&[1]);
        assert_eq!((second.nrows(), second.ncols()), (4, 3));
        assert_eq!(second.rows(1, 2), lagged.rows(1, 2).select_columns(&[0, 2, 4]));
        assert_eq!(second.select_rows(&[2, 0]).as_slice(), [1.0, 1.0, 2.0, 0.5, 1.5, 0.0]);
        assert_eq!(lagged.y.column(0).as_slice(), [1001.0, 1002.0, 1004.0, 1005.0]);
        assert_eq!(data.outputs_at(&[0, 5]).as_slice(), [1000.0, 1005.0]);
    }
}
