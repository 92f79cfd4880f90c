//! The result on standard output, and tables in words.

use super::args::Speech;
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Prints the result: one JSON object, or words unless quiet. A reader that hangs up early is no failure.
pub(super) fn result(speech: Speech, object: &impl Serialize, words: impl FnOnce() -> String) {
    let text = match speech {
        Speech { json: true, .. } => {
            serde_json::to_string(object).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
        }
        Speech { quiet: true, .. } => return,
        _ => words(),
    };
    let mut out = std::io::stdout();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("tha-firmware-sim: standard output: cannot be written: {error}");
            std::process::exit(2);
        }
        _ => {}
    }
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
