//! The lagged matrix: row t is x_t = [1, u(t), u(t-1), ..., u(t-M+1)], lag-major, so q = pM+1 columns.

use super::{Dataset, Scaling};
use nalgebra::DMatrix;

/// Standardised lag windows and outputs of some rows of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Lagged {
    /// N x q, standardised; the first column is 1.
    pub x: DMatrix<f64>,
    /// N x l, standardised.
    pub y: DMatrix<f64>,
    /// The row of the data set behind each row of `x` and `y`.
    pub rows: Vec<usize>,
}

impl Dataset {
    /// The lag windows that end at the given rows, each of which must have M-1 rows of its record before it
    /// ([`Dataset::scored_rows`] gives them all).
    pub fn lagged(&self, memory: usize, scaling: &Scaling, rows: Vec<usize>) -> Lagged {
        let p = self.u.len();
        let mut x = DMatrix::from_element(rows.len(), p * memory + 1, 1.0);
        for lag in 0..memory {
            for (channel, (column, map)) in self.u.iter().zip(&scaling.inputs).enumerate() {
                let mut target = x.column_mut(1 + lag * p + channel);
                for (value, &row) in target.iter_mut().zip(&rows) {
                    *value = map.standardise(column[row - lag]);
                }
            }
        }
        let mut y = DMatrix::zeros(rows.len(), self.y.len());
        for (channel, (column, map)) in self.y.iter().zip(&scaling.outputs).enumerate() {
            for (value, &row) in y.column_mut(channel).iter_mut().zip(&rows) {
                *value = map.standardise(column[row]);
            }
        }
        Lagged { x, y, rows }
    }

    /// The outputs at the given rows in physical units, N x l.
    pub fn outputs_at(&self, rows: &[usize]) -> DMatrix<f64> {
        DMatrix::from_fn(rows.len(), self.y.len(), |i, j| self.y[j][rows[i]])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::counting;
    use super::super::{InputMap, OutputMap};
    use super::*;

    #[test]
    fn lag_major_windows_inside_records() {
        let data = counting(&[3, 3]);
        let scaling = Scaling {
            inputs: vec![InputMap { offset: 0.0, gain: 1.0 }, InputMap { offset: 100.0, gain: 0.5 }],
            outputs: vec![OutputMap { offset: 0.0, scale: 1.0 }],
        };
        let lagged = data.lagged(2, &scaling, data.scored_rows(2));
        assert_eq!(lagged.rows, [1, 2, 4, 5]);
        let row = |i: usize| lagged.x.row(i).iter().copied().collect::<Vec<_>>();
        assert_eq!(row(0), [1.0, 1.0, 0.5, 0.0, 0.0]);
        assert_eq!(row(2), [1.0, 4.0, 2.0, 3.0, 1.5]);
        assert_eq!(lagged.y.column(0).as_slice(), [1001.0, 1002.0, 1004.0, 1005.0]);
        assert_eq!(data.outputs_at(&[0, 5]).as_slice(), [1000.0, 1005.0]);
    }
}
