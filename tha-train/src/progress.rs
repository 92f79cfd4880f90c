//! What a fit or a search says while it works, and how it is asked to stop.

use crate::auto::Setting;
use crate::solve::Step;
use std::fmt;
use std::time::Instant;

/// Sees the events of a fit, an ensemble or a search, and may end it.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use tha_train::{Event, Progress};
///
/// /// Prints what happens and stops after a hundred events.
/// struct Patience(AtomicUsize);
///
/// impl Progress for Patience {
///     fn report(&self, event: &Event<'_>) {
///         println!("{event}");
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
///
///     fn stop(&self) -> bool {
///         self.0.load(Ordering::Relaxed) >= 100
///     }
/// }
/// ```
pub trait Progress: Sync {
    /// Something happened.
    fn report(&self, _event: &Event<'_>) {}

    /// True to end a fit with [`FitError::Stopped`](crate::FitError::Stopped), and a search with what it has.
    fn stop(&self) -> bool {
        false
    }
}

/// What happened; as text it is one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The solver of a full model made a step.
    Step(&'a Step),
    /// A head of an ensemble is done.
    Head {
        /// Its number, from 0.
        k: usize,
        /// How many are done now.
        done: usize,
        /// How many there will be.
        of: usize,
        /// Its error on held-out samples.
        error: f64,
        /// Seconds left for the others, as far as one can tell.
        seconds: f64,
    },
    /// A cycle over additive heads is done.
    Cycle {
        /// Its number, from 1.
        cycle: usize,
        /// The residual that all heads leave on held-out samples.
        error: f64,
    },
    /// A joint step of all additive heads is done.
    JointStep {
        /// Its number, from 1.
        step: usize,
        /// The residual that all heads leave on held-out samples.
        error: f64,
    },
    /// A search has tried a setting.
    Tried {
        /// How many are done now.
        done: usize,
        /// What was tried.
        setting: &'a Setting,
        /// Its error on blocks.
        error: f64,
    },
    /// Something that the user should know.
    Warning(String),
}

impl Event<'_> {
    /// Head `k` is done, the `done`-th of `of` since `start`.
    pub(crate) fn head(k: usize, done: usize, of: usize, error: f64, start: Instant) -> Self {
        let seconds = start.elapsed().as_secs_f64() / done as f64 * (of - done) as f64;
        Self::Head { k, done, of, error, seconds }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => write!(f, "{step}"),
            Self::Head { k, done, of, error, seconds } => {
                let head = k + 1;
                write!(f, "head {head}: held-out error {error:.4}; {done} of {of}, about {seconds:.0} s left")
            }
            Self::Cycle { cycle, error } => write!(f, "cycle {cycle}: held-out residual {error:.4}"),
            Self::JointStep { step, error } => write!(f, "joint step {step}: held-out residual {error:.4}"),
            Self::Tried { done, setting, error } => {
                write!(f, "setting {done}: {setting}: {error:.4} on blocks")
            }
            Self::Warning(text) => write!(f, "{text}"),
        }
    }
}

/// Looks away and never stops.
pub struct Silent;

impl Progress for Silent {}

/// Passes the wish to stop on and keeps the events back: a head or a fit of a search is reported as a whole.
pub(crate) struct OnlyStop<'a>(pub &'a dyn Progress);

impl Progress for OnlyStop<'_> {
    fn stop(&self) -> bool {
        self.0.stop()
    }
}

/// The same, which also asks to stop from some time on.
pub(crate) struct Until<'a>(pub &'a dyn Progress, pub Option<Instant>);

impl Progress for Until<'_> {
    fn stop(&self) -> bool {
        self.0.stop() || self.1.is_some_and(|end| Instant::now() >= end)
    }
}
