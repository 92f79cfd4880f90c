//! The `tha-train` command line.

// They panic where nobody listens; what `tha_cli` prints with does not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod commands;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
