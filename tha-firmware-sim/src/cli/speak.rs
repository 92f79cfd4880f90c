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

/// A table in words under its head: numbers to the right, words to the left.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let fields = |c: usize| rows.iter().filter_map(move |row| row.get(c));
    let widths: Vec<usize> =
        (0..columns).map(|c| fields(c).map(|f| f.chars().count()).max().unwrap_or(0)).collect();
    let numbers: Vec<bool> =
        (0..columns).map(|c| fields(c).skip(1).all(|field| field.parse::<f64>().is_ok())).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((field, &width), &number) in row.iter().zip(&widths).zip(&numbers) {
            let field = if number { format!("{field:>width$}") } else { format!("{field:<width$}") };
            line.push_str(&field);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
