//! Why two models cannot be compared.

/// A pair of models or data that the theory does not relate; the message is one line.
#[derive(Debug, thiserror::Error, PartialEq)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum AnalysisError {
    /// Different memory or degree.
    #[error(
        "the full model has {what} {full}, the ensemble {ensemble}; fit both with the same `memory` and `degree`"
    )]
    Shape { what: &'static str, full: usize, ensemble: usize },
    /// Filters, maps or their numbers differ.
    #[error(
        "the two models do not see the same features; fit both to the same data with the same `basis`, `maps` and `range`"
    )]
    Stage,
    /// A channel of the ensemble that the full model does not have.
    #[error("{kind} '{name}' of the ensemble is not in the full model; fit both to the same channels")]
    Channel { kind: &'static str, name: String },
    /// The ensemble does not predict every output of the full model.
    #[error("the full model has {full} outputs, the ensemble {ensemble}; fit both with the same `outputs`")]
    Outputs { full: usize, ensemble: usize },
    /// More than this machine can hold.
    #[error(transparent)]
    TooBig(#[from] crate::host::TooBig),
    /// No sample has a whole lag window.
    #[error("no sample has a window of {memory} samples; use a longer recording")]
    Empty { memory: usize },
}
