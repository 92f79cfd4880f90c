//! What can be wrong with a data file: where, what was found, and what to do.

/// A refused data file; the message is one line.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The file cannot be opened or read.
    #[error("{path}: cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's or decoder's words.
        reason: String,
    },
    /// The file extension is none of the known ones.
    #[error("{path}: unknown kind of data file; use .csv or .npz, or .npy arrays as `u` and `y`")]
    UnknownKind {
        /// The file.
        path: String,
    },
    /// There is nothing in the file, or only a header.
    #[error("{path}: no samples ({finding}); expected a header line and one line per sample")]
    Empty {
        /// The file.
        path: String,
        /// What was there.
        finding: &'static str,
    },
    /// The header cannot be used.
    #[error("{path}, line 1: {finding}")]
    Header {
        /// The file.
        path: String,
        /// What was found, and the remedy.
        finding: String,
    },
    /// A row of the wrong length.
    #[error(
        "{path}, line {line}: {found} fields, but the header has {expected}; complete or remove the line"
    )]
    Ragged {
        /// The file.
        path: String,
        /// Line number, from 1.
        line: u64,
        /// Fields in this row.
        found: u64,
        /// Fields in the header.
        expected: u64,
    },
    /// A value that is not a finite number.
    #[error("{path}, line {line}, column '{column}': {finding}; {remedy}")]
    Value {
        /// The file.
        path: String,
        /// Line number, from 1.
        line: u64,
        /// Column name.
        column: String,
        /// What was found.
        finding: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A record number that comes back after another record.
    #[error(
        "{path}, line {line}, column 'record': record '{id}' comes back after another one; \
         keep the lines of a record together or give the second stretch its own id"
    )]
    RecordReturns {
        /// The file.
        path: String,
        /// Line number (CSV) or row (arrays), from 1.
        line: u64,
        /// The record's id.
        id: String,
    },
    /// An array file that does not fit the contract.
    #[error("{path}: {finding}")]
    Array {
        /// The file.
        path: String,
        /// What was found, and the remedy.
        finding: String,
    },
    /// A column that moves too little for the 32-bit numbers of a model.
    #[error(
        "{origin}, column '{column}': its standard deviation {std:.1e} is too small for the 32-bit numbers of a model; \
         use other units, in which it is near 1"
    )]
    Spread {
        /// The file.
        origin: String,
        /// Column name.
        column: String,
        /// Standard deviation over the rows to be fitted.
        std: f64,
    },
    /// Fewer samples than memory.
    #[error(
        "{origin}: the longest record has {longest} samples, fewer than the memory of {memory}; \
         use a longer recording or a smaller `memory`"
    )]
    TooShort {
        /// The file.
        origin: String,
        /// Samples in the longest record.
        longest: usize,
        /// Samples needed.
        memory: usize,
    },
    /// No sample is left for training or for validation.
    #[error("{origin}: {finding}")]
    Split {
        /// The file.
        origin: String,
        /// What was found, and the remedy.
        finding: String,
    },
}
