//! What is wrong with a data file: where, what was found, and what to do.

/// A refused data file; the message is one line.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {finding}")]
pub struct DataError {
    /// The file, and the line and the column in it where they are known.
    pub place: String,
    /// What was found, and the remedy.
    pub finding: String,
}

impl DataError {
    pub(crate) fn new(place: impl Into<String>, finding: impl Into<String>) -> Self {
        Self { place: place.into(), finding: finding.into() }
    }

    pub(super) fn unreadable(path: impl Into<String>, reason: &std::io::Error) -> Self {
        Self::new(path, format!("cannot be read: {}", crate::host::refusal(reason)))
    }
}
