//! Why a fit could not be made.

use crate::data::DataError;
use crate::host::TooBig;
use crate::model::ModelError;
use crate::solve::SolveError;
use crate::stage::StageError;

/// A fit that could not be made; the message is one line.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum FitError {
    /// An option out of range.
    #[error("`{option}`: {found} is out of range; expected {expected}")]
    Option { option: &'static str, found: String, expected: String },
    /// More than this machine can hold.
    #[error(transparent)]
    TooBig(#[from] TooBig),
    /// Data that cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An input stage that cannot be made.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The solver gave up.
    #[error(transparent)]
    Solve(SolveError),
    /// A folder of checkpoints or of divided work that cannot be used.
    #[error("{folder}: {reason}")]
    Folder { folder: String, reason: String },
    /// No head of an ensemble could be trained.
    #[error("no head could be trained; the last one said: {reason}")]
    NoHead { reason: String },
    /// Choices that exclude each other.
    #[error("{0}")]
    Combination(String),
    /// Budgets that not even one head fits.
    #[error(
        "no head fits the budget: the smallest model takes {flash} bytes and {macs} multiply-accumulates; raise the budget, or lower `max_rank`, `memory` or `subset_size`"
    )]
    Budget { flash: usize, macs: usize },
    /// A model that the file format cannot hold.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The fit was asked to stop.
    #[error("stopped before the fit was complete")]
    Stopped,
}

impl From<SolveError> for FitError {
    fn from(error: SolveError) -> Self {
        match error {
            SolveError::Stopped => Self::Stopped,
            error => Self::Solve(error),
        }
    }
}
