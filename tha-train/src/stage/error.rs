//! Why an input stage could not be made.

/// A stage that could not be made; the message is one line.
#[derive(Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum StageError {
    /// A basis that is none of the known kinds, or has other than the expected numbers.
    #[error(
        "basis '{found}': {finding}; expected lags:M, levels:T, differences:T, kautz:RE,IM,N or poles:RE,IM,..."
    )]
    Malformed { found: String, finding: String },
    /// Time constants that do not end where they were asked to.
    #[error("basis: the time constants double from 1 on and cannot end at {found}; use {below} or {above}")]
    Doubling { found: usize, below: usize, above: usize },
    /// A resonance that never settles.
    #[error("basis: the pole {re} + {im}i has the modulus {modulus}; it must be below 1")]
    Unstable { re: f64, im: f64, modulus: f32 },
    /// A pole on the real axis.
    #[error("basis: the real pole {re} does not ring; give it an imaginary part, or use levels")]
    Overdamped { re: f64 },
    /// Records that are shorter than the memory of the filters.
    #[error("{origin}: the longest record has {longest} samples, but {basis} needs {needed}; use a {remedy}")]
    TooShort { origin: String, longest: usize, basis: String, needed: usize, remedy: &'static str },
    /// A number of pieces that makes no map.
    #[error("maps: {found} pieces; expected 2 to {most}")]
    Pieces { found: usize, most: usize },
    /// No feature moves enough for a map.
    #[error("maps: {pieces} pieces, but no input has {} distinct values; use fewer pieces or none", pieces + 1)]
    Distinct { pieces: usize },
}
