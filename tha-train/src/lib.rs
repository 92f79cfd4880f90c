//! Identifies nonlinear dynamic systems from recorded inputs and outputs as Volterra tensor networks.

// They panic where nobody listens.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod analysis;
pub mod bound;
mod checkpoint;
pub mod data;
pub mod ensemble;
pub mod export;
pub mod fit;
pub mod host;
mod linalg;
pub mod metrics;
pub mod model;
pub mod network;
pub mod output;
mod progress;
pub mod reference;
pub mod report;
pub mod solve;
pub mod stage;
pub mod synth;
pub mod tune;

pub use fit::{FitError, FitParams};
pub use progress::{Event, Progress, Silent};

/// Version and, in a checkout, commit.
pub const VERSION: &str = env!("THA_VERSION");
