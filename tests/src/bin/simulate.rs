//! The `tha-firmware-sim` command line as a program of this package, so that its tests can run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    tha_firmware_sim::cli::main()
}
