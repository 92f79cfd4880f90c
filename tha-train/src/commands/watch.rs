//! The progress of fits and searches on standard error, and Ctrl-C back to them.

use std::sync::Mutex;
use std::time::Instant;
use tha_cli::{Status, figure, interrupt, lock};
use tha_train::report::Convergence;
use tha_train::{Event, Progress};

/// Shows what happens, and keeps what a report shows of it.
pub(super) struct Watch<'a> {
    /// Where it is shown.
    pub status: &'a Status,
    /// Stands before every line.
    pub name: &'static str,
    /// When a search means to be done.
    pub until: Option<Instant>,
    /// The course of the fit.
    pub course: Mutex<Convergence>,
    /// The least error of a search so far.
    pub best: Mutex<Option<f64>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(status: &'a Status) -> Self {
        Self { status, name: "", until: None, course: Mutex::default(), best: Mutex::default() }
    }
}

impl Progress for Watch<'_> {
    fn report(&self, event: &Event<'_>) {
        let mut best = String::new();
        match event {
            Event::Warning(text) => return self.status.warning(text.clone()),
            Event::Tried { error, .. } => {
                let mut least = lock(&self.best);
                let known = least.map_or(*error, |least| least.min(*error));
                *least = Some(known);
                best = format!("; best so far {}", figure(known));
            }
            _ => lock(&self.course).follow(event),
        }
        if let Some(until) = self.until {
            best += &format!("; {} s left", until.saturating_duration_since(Instant::now()).as_secs());
        }
        let name = if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) };
        self.status.now(|| format!("{name}{event}{best}"));
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}
