//! What a solver refuses, and why.

use thiserror::Error;

/// Why there is no fit.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SolveError {
    /// A setting outside its range.
    #[error("`{name}` is {found}; expected {expected}")]
    Setting {
        /// Which setting.
        name: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// No rows, inputs or outputs at all.
    #[error(
        "there is nothing to fit: {rows} rows, {inputs} columns of x, {outputs} outputs; check the memory against the record lengths"
    )]
    Empty {
        /// Rows of x.
        rows: usize,
        /// Columns of x.
        inputs: usize,
        /// Columns of y.
        outputs: usize,
    },
    /// Shapes of x and y, of training and validation data, or of the network to start from, disagree.
    #[error("{what}: found {found}, expected {expected}")]
    Shape {
        /// What disagrees.
        what: &'static str,
        /// The size found.
        found: usize,
        /// The size expected.
        expected: usize,
    },
    /// Infinite or not-a-number samples.
    #[error("row {row} of {matrix} is not finite; remove or repair that sample")]
    NotFinite {
        /// `x` or `y`.
        matrix: &'static str,
        /// Row among the scored rows, from 0.
        row: usize,
    },
    /// More memory than is sensible.
    #[error("{what} needs {needed} unknowns, the limit is {limit}; {advice}")]
    TooLarge {
        /// Which computation.
        what: &'static str,
        /// Unknowns it would have.
        needed: usize,
        /// Unknowns it may have.
        limit: usize,
        /// What to do.
        advice: &'static str,
    },
    /// A factorisation failed on finite data.
    #[error("the {what} did not converge; standardise the data or raise the ridge")]
    Numerical {
        /// Which factorisation.
        what: &'static str,
    },
    /// The fit was asked to stop.
    #[error("stopped before the fit was complete")]
    Stopped,
}
