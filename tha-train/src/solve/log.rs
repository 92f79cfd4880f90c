//! The record of a fit: one [`Step`] per update, passed on to a [`Progress`] as they come.

use crate::progress::{Event, Progress, Silent};
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

/// Collects the steps and passes them on.
pub(super) struct Log<'a> {
    pub(super) steps: Vec<Step>,
    progress: &'a dyn Progress,
}

impl<'a> Log<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Self { steps: Vec::new(), progress }
    }

    /// Tells nobody.
    pub(super) fn silent() -> Log<'static> {
        Log { steps: Vec::new(), progress: &Silent }
    }

    /// An error when somebody wants to stop.
    pub(super) fn check(&self) -> Result<(), super::SolveError> {
        if self.progress.stop() { Err(super::SolveError::Stopped) } else { Ok(()) }
    }

    /// Records a step; an error when somebody wants to stop.
    pub(super) fn record(&mut self, step: Step) -> Result<(), super::SolveError> {
        self.progress.report(&Event::Step(&step));
        self.steps.push(step);
        self.check()
    }
}
