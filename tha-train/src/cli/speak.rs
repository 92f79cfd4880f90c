//! Words on standard error while working, and the result on standard output.

use super::args::Speech;
use super::surface::{note, say};
use crate::model::OutOfRange;
use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Says what is going on, on standard error: a moving line on a terminal, plain lines elsewhere.
pub(super) struct Progress {
    quiet: bool,
    bar: Option<ProgressBar>,
    /// Said once work is under way: a refusal before that stays the only line.
    warnings: Mutex<Vec<String>>,
    /// When the last plain line was said.
    last: Mutex<Option<Instant>>,
}

/// Names in a warning.
const SHOWN: usize = 8;
/// Plain lines come at most this often, so that a log file stays readable.
const PLAIN_EVERY: Duration = Duration::from_secs(1);

impl Progress {
    pub(super) fn new(speech: Speech, warnings: Vec<String>) -> Self {
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
                Some(bar) => bar.println(format!("warning: {warning}")),
                None => note(format_args!("warning: {warning}")),
            }
        }
    }

    /// Something that the user should know, found while work is under way.
    pub(super) fn warning(&self, text: String) {
        lock(&self.warnings).push(text);
        self.warn();
    }

    /// The present state of affairs; the next one replaces it.
    pub(super) fn now(&self, text: impl FnOnce() -> String) {
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
    pub(super) fn done(&self) {
        self.warn();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints the result: one JSON object, or words. A reader that hangs up early is no failure.
pub(super) fn result(json: bool, object: &impl Serialize, words: impl FnOnce() -> String) {
    let text = if json {
        serde_json::to_string(object).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    } else {
        words()
    };
    let text = text.trim_end();
    if !text.is_empty()
        && let Err(error) = output::print(|out| writeln!(out, "{text}"))
    {
        say(error);
        std::process::exit(2);
    }
}

/// Prints the result as one JSON object, or in words unless the command is to be quiet.
pub fn summary(speech: Speech, object: &impl Serialize, words: impl FnOnce() -> String) {
    match speech {
        Speech { json: false, quiet: true, .. } => {}
        Speech { aside: true, .. } => note(words().trim_end()),
        Speech { json, .. } => result(json, object, words),
    }
}

/// Paths as text, which not every path is.
pub(super) fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// A table in words: the first column to the left, the others to the right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |c: usize| rows.iter().filter_map(|row| row.get(c)).map(|f| f.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let fields = row.iter().zip(&widths).enumerate().map(|(c, (field, &width))| match c {
            0 => format!("{field:<width$}"),
            _ => format!("  {field:>width$}"),
        });
        text.push_str(fields.collect::<String>().trim_end());
        text.push('\n');
    }
    text
}

/// A figure for a table: three to five digits.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "-".into(),
        size if size == 0.0 || (1e-3..1e4).contains(&size) => {
            let before = if size >= 1.0 { size.log10().floor() as usize + 1 } else { 1 };
            format!("{value:.*}", 5_usize.saturating_sub(before))
        }
        _ => format!("{value:.3e}"),
    }
}

/// A warning about the inputs that leave the training range, the worst first; none where none does.
pub(super) fn out_of_range_in_words(origin: &str, found: &[OutOfRange]) -> Vec<String> {
    let mut found: Vec<&OutOfRange> = found.iter().collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    let Some(worst) = found.first() else { return Vec::new() };
    let units = if worst.share > 0.5 { "; are the units those of the training data?" } else { "" };
    let part =
        |input: &&OutOfRange| format!("'{}' in {:.2} % of the samples", input.input, 100.0 * input.share);
    let shown: Vec<String> = found.iter().take(SHOWN).map(part).collect();
    let more = match found.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let inputs = count(found.len(), "input");
    vec![format!("{origin}: {inputs} outside of the training range: {}{more}{units}", shown.join(", "))]
}

/// A number of things, in good grammar.
pub(super) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        for (value, expected) in [
            (0.0, "0.0000"),
            (0.01234567, "0.0123"),
            (1.234567, "1.2346"),
            (123.4567, "123.46"),
            (1e-9, "1.000e-9"),
            (-2.5e7, "-2.500e7"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(figure(value), expected);
        }
    }

    #[test]
    fn tables_line_up() {
        let rows = [vec!["".into(), "a".into()], vec!["long".into(), "12".into()]];
        assert_eq!(table(&rows), "       a\nlong  12\n");
    }
}
