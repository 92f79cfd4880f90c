//! The `tha-firmware-sim` command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    tha_firmware_sim::cli::main()
}
