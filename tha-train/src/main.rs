//! The `tha-train` command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    tha_train::cli::main()
}
