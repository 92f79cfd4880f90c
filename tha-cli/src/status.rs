//! What is going on, on standard error while a command works: a moving line on a terminal, plain lines elsewhere.

use super::{Speech, note, with_flags};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The line that says what is going on.
pub struct Status {
    quiet: bool,
    bar: Option<ProgressBar>,
    /// Said once work is under way: a refusal before that stays the only line.
    warnings: Mutex<Vec<String>>,
    /// When the last plain line was said.
    last: Mutex<Option<Instant>>,
}

/// Plain lines come at most this often, so that a log file stays readable.
const PLAIN_EVERY: Duration = Duration::from_secs(1);

impl Status {
    /// Nothing is said yet.
    pub fn new(speech: Speech, warnings: Vec<String>) -> Self {
        // A terminal that cannot move its cursor gets plain lines.
        let moving =
            std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let bar = (!speech.quiet && moving).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { quiet: speech.quiet, bar, warnings: Mutex::new(warnings), last: Mutex::new(None) }
    }

    fn warn(&self) {
        for warning in lock(&self.warnings).drain(..) {
            match &self.bar {
                _ if self.quiet => {}
                Some(bar) => bar.println(with_flags(&format!("warning: {warning}"))),
                None => note(format_args!("warning: {warning}")),
            }
        }
    }

    /// Something that the user should know, found while work is under way.
    pub fn warning(&self, text: String) {
        lock(&self.warnings).push(text);
        self.warn();
    }

    /// The present state of affairs; the next one replaces it.
    pub fn now(&self, text: impl FnOnce() -> String) {
        if self.quiet {
            return;
        }
        self.warn();
        if let Some(bar) = &self.bar {
            bar.set_message(text());
            return;
        }
        let mut last = lock(&self.last);
        if last.is_none_or(|at| at.elapsed() >= PLAIN_EVERY) {
            note(text());
            *last = Some(Instant::now());
        }
    }

    /// Clears the moving line before the result is printed.
    pub fn done(&self) {
        self.warn();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What a mutex guards, also after a panic elsewhere.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
