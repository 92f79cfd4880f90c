//! Replays recordings through tha-core, on the host and on emulated Cortex-M boards, and compares the stream with the
//! f64 batch prediction of tha-train.
//!
//! - [`replay`]: a recording through the stream, against the batch and the [`bound`](tha_train::bound) of its rounding;
//! - [`emulator`]: the same on a board's instruction set;
//! - `faults`: what the device does when sensors, power or flash misbehave;
//! - `boards`: which boards a model fits;
//! - [`soak`]: millions of samples with random resets and swaps;
//! - `watch`: a recording as it runs, in the terminal.

// They panic where nobody listens; `note` and `print` of tha-train do not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod boards;
pub mod cli;
pub mod emulator;
mod faults;
pub mod model_file;
pub mod replay;
pub mod soak;
pub mod stream;
mod watch;
