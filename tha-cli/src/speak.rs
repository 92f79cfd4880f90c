//! Lines on standard error, and the result on standard output.

use super::{Speech, program, with_flags};
use serde::Serialize;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// A line on standard error, after the name of the program.
pub fn say(line: impl Display) {
    note(format_args!("{}: {line}", program()));
}

/// A line on standard error, with flags in the place of parameters. Where nobody can read it, the work goes on all the same.
pub fn note(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{}", with_flags(&line.to_string()));
}

/// Writes to standard output; the error is one line. A reader that hangs up early is no failure.
pub fn print(content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match content(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output: cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints the result: one JSON object, or words.
pub fn result(json: bool, object: &impl Serialize, words: impl FnOnce() -> String) {
    let text = if json {
        serde_json::to_string(object).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    } else {
        words()
    };
    let text = text.trim_end();
    if !text.is_empty()
        && let Err(error) = print(|out| writeln!(out, "{text}"))
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
