//! Rows x_t that need not all be in memory: the lag windows of a recording are M times as large as the recording.

use super::Hats;
use nalgebra::DMatrix;
use std::fmt::Debug;

/// Entries of a matrix that is small enough to be kept whole; of a larger one, some rows at a time are made when they are read.
pub(crate) const WHOLE: usize = 1 << 23;

/// N rows of q entries, read some at a time.
pub trait Features: Debug + Sync {
    /// N.
    fn nrows(&self) -> usize;

    /// q.
    fn ncols(&self) -> usize;

    /// The rows of these numbers, in this order.
    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64>;

    /// `count` rows from `start` on.
    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        self.select_rows(&(start..start + count).collect::<Vec<_>>())
    }

    /// All rows in parts, where maps make them cheap to multiply; else nothing.
    fn hats(&self) -> Vec<Hats> {
        Vec::new()
    }
}

impl Features for DMatrix<f64> {
    fn nrows(&self) -> usize {
        self.nrows()
    }

    fn ncols(&self) -> usize {
        self.ncols()
    }

    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64> {
        self.select_rows(rows)
    }

    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        self.rows(start, count).into_owned()
    }
}

impl dyn Features + '_ {
    /// All rows in order, as few parts as [`WHOLE`] allows, each with the number of its first row.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, DMatrix<f64>)> {
        let (count, size) = (self.nrows(), (WHOLE / self.ncols().max(1)).max(1));
        (0..count).step_by(size).map(move |start| (start, self.rows(start, size.min(count - start))))
    }
}
