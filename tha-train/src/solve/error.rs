//! What a solver refuses, and why.

use thiserror::Error;

/// Why there is no fit.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum SolveError {
    /// A setting outside its range.
    #[error("`{name}` is {found}; expected {expected}")]
    Setting { name: &'static str, found: String, expected: &'static str },
    /// No rows, inputs or outputs at all.
    #[error(
        "there is nothing to fit: {rows} rows, {inputs} columns of x, {outputs} outputs; check the memory against the record lengths"
    )]
    Empty { rows: usize, inputs: usize, outputs: usize },
    /// Shapes of x and y, of training and validation data, or of the network to start from, disagree.
    #[error("{what}: found {found}, expected {expected}")]
    Shape { what: &'static str, found: usize, expected: usize },
    /// Infinite or not-a-number samples.
    #[error("row {row} of {matrix} is not finite; remove or repair that sample")]
    NotFinite { matrix: &'static str, row: usize },
    /// More memory than is sensible.
    #[error("{what} needs {needed} unknowns, the limit is {limit}; {advice}")]
    TooLarge { what: &'static str, needed: usize, limit: usize, advice: &'static str },
    /// A factorisation failed on finite data.
    #[error("the {what} did not converge; standardise the data or raise the ridge")]
    Numerical { what: &'static str },
    /// The fit was asked to stop.
    #[error("stopped before the fit was complete")]
    Stopped,
}
