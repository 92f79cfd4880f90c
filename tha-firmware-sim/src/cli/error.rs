//! Every way a command can end without an answer, as one line and exit code 2.

use crate::replay::ReplayError;
use tha_train::data::DataError;
use tha_train::model::ModelError;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Arguments that do not fit together.
    #[error("{0}")]
    Usage(String),
    /// A refused data file.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A refused model file.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A replay that could not be made.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The terminal does not work.
    #[error("the terminal cannot be used: {0}; try --plain")]
    Terminal(#[from] std::io::Error),
}
