//! The `tha-train` command line as a program of this package, so that its tests can run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tha_train::cli::main()
}
