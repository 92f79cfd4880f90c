//! Why an input stage could not be made.

/// A stage that could not be made; the message is one line.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum StageError {
    /// A basis that is none of the known kinds, or has other than the expected numbers.
    #[error(
        "basis '{found}': {finding}; expected lags:M, levels:T, differences:T, kautz:RE,IM,N or poles:RE,IM,..."
    )]
    Malformed {
        /// What was given.
        found: String,
        /// What is wrong with it.
        finding: String,
    },
    /// Time constants that do not end where they were asked to.
    #[error("basis: the time constants double from 1 on and cannot end at {found}; use {below} or {above}")]
    Doubling {
        /// T as given.
        found: usize,
        /// The power of two below it.
        below: usize,
        /// The power of two above it.
        above: usize,
    },
    /// A resonance that never settles.
    #[error("basis: the pole {re} + {im}i has the modulus {modulus}; it must be below 1")]
    Unstable {
        /// Real part.
        re: f64,
        /// Imaginary part.
        im: f64,
        /// |pole|, as rounded to the numbers of a model file.
        modulus: f32,
    },
    /// A pole on the real axis.
    #[error("basis: the real pole {re} does not ring; give it an imaginary part, or use levels")]
    Overdamped {
        /// Real part.
        re: f64,
    },
    /// Records that are shorter than the memory of the filters.
    #[error("{origin}: the longest record has {longest} samples, but {basis} needs {needed}; use a {remedy}")]
    TooShort {
        /// Where the data came from.
        origin: String,
        /// Samples of the longest record.
        longest: usize,
        /// The basis.
        basis: String,
        /// Samples it needs.
        needed: usize,
        /// What to change.
        remedy: &'static str,
    },
    /// A number of pieces that makes no map.
    #[error("maps: {found} pieces; expected 2 to {most}")]
    Pieces {
        /// As given.
        found: usize,
        /// Largest number.
        most: usize,
    },
    /// No feature moves enough for a map.
    #[error("maps: {pieces} pieces, but no input has {} distinct values; use fewer pieces or none", pieces + 1)]
    Distinct {
        /// As given.
        pieces: usize,
    },
}
