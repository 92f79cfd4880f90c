//! Recordings: inputs u(t) in R^p and outputs y(t) in R^l as a list of records.
//!
//! A [`Dataset`] holds every channel as one column over all records; a *record* is a contiguous stretch of rows.
//! A lag window never crosses a record boundary, so the first M-1 samples of a record are history only: they are
//! neither fitted nor scored.

mod blocks;
mod checked;
mod columns;
mod csv_file;
mod error;
mod npy_file;
mod source;
mod write;

pub use blocks::{BLOCKS, Split};
pub use columns::Columns;
pub(crate) use columns::listed;
pub use error::DataError;
pub use source::Source;
pub use write::write_csv;

use crc::{CRC_64_XZ, Crc, Table};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Checksums, sixteen bytes at a time: plans hold the data.
pub(crate) static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);
/// Bytes of a fingerprint that are taken together.
const PIECE: usize = 1 << 13;

/// Channels over time, in records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Where the data came from, for messages.
    pub origin: String,
    /// Input names, in the order of `u`.
    pub inputs: Vec<String>,
    /// Output names, in the order of `y`.
    pub outputs: Vec<String>,
    /// One column of samples per input.
    pub u: Vec<Vec<f64>>,
    /// One column of samples per output; none when only inputs were asked for.
    pub y: Vec<Vec<f64>>,
    /// The records, in order; together they cover all rows.
    pub records: Vec<Record>,
}

/// A contiguous stretch of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The value of the `record` column; empty when the data has none.
    pub id: String,
    /// The rows of this record.
    pub rows: Range<usize>,
}

impl Dataset {
    /// One record of columns that are named `u1..up` and `y1..yl`.
    ///
    /// ```
    /// let data = tha_train::Dataset::new("made up", vec![vec![1.0, 2.0, 3.0]], vec![vec![2.0, 4.0, 6.0]]);
    /// assert_eq!((data.len(), data.inputs, data.outputs), (3, vec!["u1".to_owned()], vec!["y1".to_owned()]));
    /// ```
    pub fn new(origin: impl Into<String>, u: Vec<Vec<f64>>, y: Vec<Vec<f64>>) -> Self {
        let names = |letter, count| (1..=count).map(|k| format!("{letter}{k}")).collect();
        Self {
            origin: origin.into(),
            inputs: names('u', u.len()),
            outputs: names('y', y.len()),
            records: vec![Record {
                id: String::new(),
                rows: 0..u.iter().chain(&y).map(Vec::len).max().unwrap_or(0),
            }],
            u,
            y,
        }
    }

    /// The same recording with some of its inputs.
    pub(crate) fn with_inputs(&self, inputs: &[usize]) -> Self {
        Self {
            origin: self.origin.clone(),
            inputs: inputs.iter().map(|&k| self.inputs[k].clone()).collect(),
            outputs: self.outputs.clone(),
            u: inputs.iter().map(|&k| self.u[k].clone()).collect(),
            y: self.y.clone(),
            records: self.records.clone(),
        }
    }

    /// Number of samples, history included.
    pub fn len(&self) -> usize {
        self.records.last().map_or(0, |record| record.rows.end)
    }

    /// True when there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows that have a whole lag window behind them, in order.
    pub fn scored_rows(&self, memory: usize) -> Vec<usize> {
        self.records.iter().flat_map(|record| scored(&record.rows, memory)).collect()
    }

    /// Refuses data in which no record is as long as the memory.
    pub fn check_memory(&self, memory: usize) -> Result<(), DataError> {
        let longest = self.records.iter().map(|record| record.rows.len()).max().unwrap_or(0);
        if longest < memory {
            return Err(DataError::new(
                &self.origin,
                format!(
                    "the longest record has {longest} samples, fewer than the memory of {memory}; use a longer recording \
                     or a smaller `memory`"
                ),
            ));
        }
        Ok(())
    }

    /// Warnings, one line each: channels that never change.
    pub fn warnings(&self) -> Vec<String> {
        let constant =
            |column: &&Vec<f64>| column.first().is_some_and(|first| column.iter().all(|v| v == first));
        let named = |names: &[String], columns: &[Vec<f64>], kind: &str, so: &str| -> Vec<String> {
            let odd = names.iter().zip(columns).filter(|(_, column)| constant(column));
            odd.map(|(name, _)| format!("{}: {kind} '{name}' is constant and {so}", self.origin)).collect()
        };
        let inputs = named(&self.inputs, &self.u, "input", "tells nothing");
        [inputs, named(&self.outputs, &self.y, "output", "has no NRMSE and no R2")].concat()
    }

    /// Warnings for use on a device, one line each: channels whose offset is so large that f32 has no digits left for their
    /// changes.
    pub fn device_warnings(&self) -> Vec<String> {
        let inputs = self.inputs.iter().zip(&self.u).map(|channel| ("input", channel));
        let outputs = self.outputs.iter().zip(&self.y).map(|channel| ("output", channel));
        let warning = |(kind, (name, column)): (&str, (&String, &Vec<f64>))| {
            let (mean, std) = crate::stage::eating_offset(column.iter().copied())?;
            Some(format!(
                "{}: {kind} '{name}' moves by {std:.1e} around {mean:.3e}: the offset eats the digits of f32 on a device; \
                 subtract it before, here and on the device, or send counts",
                self.origin
            ))
        };
        inputs.chain(outputs).filter_map(warning).collect()
    }

    /// A fingerprint of names, records and values; the same data gives the same number on every machine.
    pub fn fingerprint(&self) -> u64 {
        let mut digest = CRC.digest();
        let mut words = |words: &mut dyn Iterator<Item = u64>| {
            // A checksum is much faster over long pieces.
            let mut piece = Vec::with_capacity(PIECE);
            for word in words {
                piece.extend(word.to_le_bytes());
                if piece.len() == PIECE {
                    digest.update(&piece);
                    piece.clear();
                }
            }
            digest.update(&piece);
        };
        for (names, columns) in [(&self.inputs, &self.u), (&self.outputs, &self.y)] {
            words(&mut [columns.len() as u64].into_iter());
            for name in names {
                words(&mut [name.len() as u64].into_iter().chain(name.bytes().map(u64::from)));
            }
            words(&mut columns.iter().flatten().map(|value| value.to_bits()));
        }
        words(&mut self.records.iter().map(|record| record.rows.end as u64));
        digest.finalize()
    }
}

/// Larger magnitudes are refused: the 32-bit arithmetic of a device has no room for them.
const LARGEST: f64 = 1e37;

/// What is wrong with a value and what to do, when it is no usable number.
fn unusable(value: f64) -> Option<String> {
    let found = match value {
        v if v.abs() <= LARGEST => return None,
        v if v.is_nan() => "NaN",
        v if v.is_infinite() => "an infinite value",
        v => return Some(format!("{v:e} does not fit the 32-bit numbers of a model; rescale the column")),
    };
    Some(format!("{found}; fill the gap, or drop the line and start a new record after it"))
}

/// The rows of one record that have a whole lag window behind them.
fn scored(rows: &Range<usize>, memory: usize) -> Range<usize> {
    (rows.start + memory.saturating_sub(1)).min(rows.end)..rows.end
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two inputs and one output over records of the given lengths, with recognisable numbers.
    pub(crate) fn counting(lengths: &[usize]) -> Dataset {
        let mut records = Vec::new();
        let mut start = 0;
        for (id, &length) in lengths.iter().enumerate() {
            records.push(Record { id: id.to_string(), rows: start..start + length });
            start += length;
        }
        let column = |base: f64| (0..start).map(|t| base + t as f64).collect::<Vec<_>>();
        let data = Dataset::new("counting", vec![column(0.0), column(100.0)], vec![column(1000.0)]);
        Dataset { records, ..data }
    }

    #[test]
    fn windows_never_cross_records() {
        let data = counting(&[4, 2, 5]);
        assert_eq!(data.len(), 11);
        assert_eq!(data.scored_rows(3), [2, 3, 8, 9, 10]);
        assert_eq!(data.scored_rows(1).len(), 11);
        assert!(data.check_memory(5).is_ok());
        assert!(data.check_memory(6).unwrap_err().to_string().contains("longest record has 5 samples"));
    }

    #[test]
    fn the_fingerprint_sees_every_part() {
        let data = counting(&[4, 4]);
        let print = data.fingerprint();
        assert_eq!(print, data.clone().fingerprint());
        let mut other = data.clone();
        other.y[0][7] += 1e-12;
        assert_ne!(print, other.fingerprint());
        let mut other = data.clone();
        other.inputs[0] = "v1".into();
        assert_ne!(print, other.fingerprint());
        assert_ne!(print, counting(&[3, 5]).fingerprint());
    }
}
