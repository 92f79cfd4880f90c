//! The record of a fit: one [`Step`] per update, passed on to a [`Progress`] as they come.

use super::SolveError;
use crate::progress::{Event, Progress};
use std::fmt;

/// What kind of update a step was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Super-core of cores k and k + 1 (MVMALS).
    SuperCore(usize),
    /// Core k alone (ALS).
    Core(usize),
    /// All cores (Levenberg-Marquardt).
    AllCores,
    /// A start of the race came to its end.
    Start(usize),
    /// Ranks cut and refitted.
    Reduction,
}

/// One update of the network.
///
/// For an update of some cores the gains are those of the paper's Theorem 5: the least-squares gain is
/// Delta J_LS = ||A dz*||^2, the truncation loss ||A (dz* - dz_trunc)||^2, and their difference the decrease of J.
/// All are relative: divided by ||Y||^2.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Which cores moved.
    pub kind: StepKind,
    /// J = ||Y - Yhat||^2 / ||Y||^2 after the step.
    pub loss: f64,
    /// Delta J_LS, the decrease before truncation.
    pub gain: f64,
    /// What truncation gave back of it.
    pub truncation: f64,
    /// Inner ranks after the step.
    pub ranks: Vec<usize>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            StepKind::SuperCore(k) => write!(f, "cores {} and {}", k + 1, k + 2)?,
            StepKind::Core(k) => write!(f, "core {}", k + 1)?,
            StepKind::AllCores => write!(f, "all cores")?,
            StepKind::Start(n) => write!(f, "start {}", n + 1)?,
            StepKind::Reduction => write!(f, "reduction")?,
        }
        write!(f, ": residual {:.3e}, ranks {:?}", self.loss.max(0.0).sqrt(), self.ranks)
    }
}

/// Passes a step on; an error when somebody wants to stop.
pub(super) fn record(progress: &dyn Progress, step: Step) -> Result<(), SolveError> {
    progress.report(&Event::Step(&step));
    go_on(progress)
}

/// An error when somebody wants to stop.
pub(super) fn go_on(progress: &dyn Progress) -> Result<(), SolveError> {
    if progress.stop() { Err(SolveError::Stopped) } else { Ok(()) }
}
