//! The `tha-train` command line.

fn main() {}
