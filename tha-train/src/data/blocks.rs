//! Training and validation rows: the end of each record, or contiguous blocks over all records.
//!
//! Both parts are scored rows of the same data set. A window may reach back over the boundary: it then sees inputs of
//! the other part, never its outputs.

use super::{DataError, Dataset, Record};
use std::ops::Range;

/// Blocks of rows on which a choice is made.
pub const BLOCKS: usize = 5;

/// Rows to train on and rows to validate on; disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Training rows, in order.
    pub train: Vec<usize>,
    /// Validation rows, in order.
    pub validation: Vec<usize>,
}

impl Split {
    /// Of the given rows, in order, the last `fraction` of those of each record is for validation.
    pub fn by_end(data: &Dataset, rows: &[usize], fraction: f64) -> Result<Self, DataError> {
        let (mut train, mut validation) = (Vec::new(), Vec::new());
        for record in &data.records {
            let rows = &rows[of_record(rows, record)];
            let boundary = rows.len() - (rows.len() as f64 * fraction).round() as usize;
            train.extend(&rows[..boundary]);
            validation.extend(&rows[boundary..]);
        }
        Self { train, validation }.checked(data, "another `val_fraction`")
    }

    /// The given rows, in order, in `count` contiguous blocks of nearly equal length; each split validates on one of them.
    pub fn folds(data: &Dataset, rows: &[usize], count: usize) -> Result<Vec<Self>, DataError> {
        let bound = |k: usize| k * rows.len() / count;
        (0..count)
            .map(|k| {
                let block = bound(k)..bound(k + 1);
                let train = rows[..block.start].iter().chain(&rows[block.end..]).copied().collect();
                Self { train, validation: rows[block].to_vec() }.checked(data, "fewer `folds`")
            })
            .collect()
    }

    /// The number of the block of each of the given rows, from 0: whole records where there are several, dealt so that at most
    /// [`BLOCKS`] of nearly equal size result, else that many contiguous parts.
    pub fn blocks(data: &Dataset, rows: &[usize]) -> Vec<usize> {
        Self::so_many_blocks(data, rows, BLOCKS)
    }

    /// The same with another number of blocks at most.
    pub fn so_many_blocks(data: &Dataset, rows: &[usize], most: usize) -> Vec<usize> {
        let records = data.records.iter().map(|record| of_record(rows, record));
        let mut records: Vec<_> = records.filter(|rows| !rows.is_empty()).collect();
        if records.len() < 2 {
            return (0..rows.len()).map(|t| t * most / rows.len()).collect();
        }
        records.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
        let mut load = vec![0; records.len().min(most)];
        let mut blocks = vec![0; rows.len()];
        for record in records {
            let least = (0..load.len()).min_by_key(|&k| load[k]).unwrap_or(0);
            load[least] += record.len();
            blocks[record].fill(least);
        }
        blocks
    }

    fn checked(self, data: &Dataset, remedy: &str) -> Result<Self, DataError> {
        let empty = match (self.train.is_empty(), self.validation.is_empty()) {
            (false, false) => return Ok(self),
            (true, _) => "training",
            (_, true) => "validation",
        };
        let finding =
            format!("no sample is left for {empty}; use a longer recording, a smaller `memory` or {remedy}");
        Err(DataError::new(&data.origin, finding))
    }
}

/// The places of the rows of a record among rows in order.
fn of_record(rows: &[usize], record: &Record) -> Range<usize> {
    rows.partition_point(|row| *row < record.rows.start)..rows.partition_point(|row| *row < record.rows.end)
}

#[cfg(test)]
mod tests {
    use super::super::tests::counting;
    use super::*;

    #[test]
    fn the_end_of_each_record() {
        let split = |lengths: &[usize], fraction| {
            let data = counting(lengths);
            Split::by_end(&data, &data.scored_rows(2), fraction)
        };
        let whole = split(&[11, 6], 0.2).unwrap();
        assert_eq!(whole.validation, [9, 10, 16]);
        assert_eq!(whole.train, [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15]);
        assert!(split(&[3], 0.2).unwrap_err().to_string().contains("validation"));
        assert!(split(&[3], 0.9).unwrap_err().to_string().contains("training"));
        let inner = Split::by_end(&counting(&[11, 6]), &whole.train, 0.25).unwrap();
        assert_eq!((inner.train.len(), inner.validation), (9, vec![7, 8, 15]));
    }

    #[test]
    fn blocks_are_records_or_fifths() {
        let data = counting(&[11]);
        assert_eq!(Split::blocks(&data, &data.scored_rows(2)), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        let data = counting(&[3, 2, 9, 3, 1, 4, 3]);
        let rows = data.scored_rows(1);
        let blocks = Split::blocks(&data, &rows);
        assert_eq!(blocks.iter().max(), Some(&4));
        for record in &data.records {
            let of_record: Vec<_> = record.rows.clone().map(|row| blocks[row]).collect();
            assert!(of_record.iter().all(|block| *block == of_record[0]));
        }
        let sizes: Vec<usize> = (0..5).map(|k| blocks.iter().filter(|block| **block == k).count()).collect();
        assert_eq!(sizes, [9, 4, 5, 4, 3]);
    }

    #[test]
    fn folds_cover_everything_once() {
        let data = counting(&[7, 6]);
        let rows = data.scored_rows(3);
        let folds = Split::folds(&data, &rows, 4).unwrap();
        let mut all: Vec<usize> = folds.iter().flat_map(|fold| fold.validation.clone()).collect();
        assert_eq!(all, rows);
        for fold in &folds {
            assert!(fold.validation.windows(2).all(|pair| pair[1] > pair[0]));
            all = [fold.train.clone(), fold.validation.clone()].concat();
            all.sort_unstable();
            assert_eq!(all, rows);
        }
        assert!(Split::folds(&data, &rows, 20).is_err());
    }
}
