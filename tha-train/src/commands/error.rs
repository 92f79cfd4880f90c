//! Every way a command can end without success, as one line and an exit code.

use std::error::Error;
use tha_cli::interrupt;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum CliError {
    /// Something was wrong with what was asked: exit code 2.
    Usage(String),
    /// The program worked, and the answer is no: exit code 1.
    Check(String),
}

impl<E: Error> From<E> for CliError {
    fn from(refusal: E) -> Self {
        Self::Usage(refusal.to_string())
    }
}

/// Ends the command once Ctrl-C was pressed.
pub fn go_on() -> Result<(), CliError> {
    if interrupt::requested() { Err(CliError::Usage("interrupted".into())) } else { Ok(()) }
}
