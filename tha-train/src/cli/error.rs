//! Every way a command can end without success, as one line and an exit code.

use crate::analysis::AnalysisError;
use crate::data::DataError;
use crate::fit::FitError;
use crate::model::ModelError;
use crate::output::OutputError;
use crate::synth::SynthError;

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
    /// A fit that could not be made.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A refused synthesis.
    #[error(transparent)]
    Synth(#[from] SynthError),
    /// A file that could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Models that cannot be compared.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The program worked, and the answer is no.
    #[error("{0}")]
    Check(String),
    /// Ctrl-C.
    #[error("interrupted; no incomplete file was left")]
    Interrupted,
}

impl CliError {
    /// 1 where a check failed, 2 where something was wrong with what was asked.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Self::Check(_)) { 1 } else { 2 }
    }

    /// Ctrl-C, not a fault.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Fit(FitError::Stopped))
    }
}
