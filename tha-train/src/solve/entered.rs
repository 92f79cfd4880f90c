//! Rows x_t in other coordinates, x' = map^T x.

use crate::linalg::product;
use crate::network::{Features, WHOLE};
use nalgebra::DMatrix;

/// Rows in other coordinates: kept where they are few, else made when they are read.
#[derive(Debug)]
pub(super) struct Entered<'a> {
    x: &'a dyn Features,
    map: &'a DMatrix<f64>,
    /// The map only scales.
    diagonal: bool,
    whole: Option<DMatrix<f64>>,
}

impl<'a> Entered<'a> {
    /// x' = map^T x for every row.
    pub(super) fn new(x: &'a dyn Features, map: &'a DMatrix<f64>) -> Self {
        let mut entered = Self { x, map, diagonal: is_diagonal(map), whole: None };
        if x.nrows() * map.ncols() <= WHOLE {
            let mut whole = DMatrix::zeros(x.nrows(), map.ncols());
            for (start, part) in x.parts() {
                whole.rows_mut(start, part.nrows()).copy_from(&entered.enter(part));
            }
            entered.whole = Some(whole);
        }
        entered
    }

    /// The same, made when it is read whatever its size.
    #[cfg(test)]
    pub(super) fn read(self) -> Self {
        Self { whole: None, ..self }
    }

    fn enter(&self, mut x: DMatrix<f64>) -> DMatrix<f64> {
        if !self.diagonal {
            return product(&x, self.map);
        }
        x.column_iter_mut().enumerate().for_each(|(j, mut column)| column *= self.map[(j, j)]);
        x
    }
}

impl Features for Entered<'_> {
    fn nrows(&self) -> usize {
        self.x.nrows()
    }

    fn ncols(&self) -> usize {
        self.map.ncols()
    }

    fn select_rows(&self, rows: &[usize]) -> DMatrix<f64> {
        match &self.whole {
            Some(whole) => whole.select_rows(rows),
            None => self.enter(self.x.select_rows(rows)),
        }
    }

    fn rows(&self, start: usize, count: usize) -> DMatrix<f64> {
        match &self.whole {
            Some(whole) => whole.rows(start, count).into_owned(),
            None => self.enter(self.x.rows(start, count)),
        }
    }
}

/// Whether a map only scales.
pub(super) fn is_diagonal(map: &DMatrix<f64>) -> bool {
    let off = |j: usize| map.column(j).iter().enumerate().all(|(i, v)| i == j || *v == 0.0);
    map.is_square() && (0..map.ncols()).all(off)
}
