//! The `tha-firmware-sim` command line.

fn main() {}
