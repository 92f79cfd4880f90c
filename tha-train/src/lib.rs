//! Identifies nonlinear dynamic systems from recorded inputs and outputs as Volterra tensor networks, and as ensembles of
//! them, for microcontrollers.
//!
//! | from | by | to |
//! |---|---|---|
//! | a file | [`Source`], [`Columns`] | [`Dataset`] |
//! | a known truth | [`SynthParams`], [`generate`] | [`Synthetic`] data |
//! | data | [`FitParams`] | [`Outcome`]: a [`Model`] and its figures |
//! | data | [`Plan`] | the same outcome, from heads that were fitted on any machines |
//! | data | [`AutoParams`] | [`AutoOutcome`]: a model without any choice of one's own; [`Tuning`]: error against size |
//! | a model and data | [`Model`] | predictions, [`Metrics`], the `.tha` file |
//! | two models and data | [`Pair`], [`analyze`] | [`Analysis`]: how far an ensemble is from the full model, and why |
//! | a model | [`export_c`], [`export_rust`], [`html`] | source code, a page |
//!
//! Parameters are checked against the data before any work is done. Errors are one line; they name parameters in backticks, as
//! the methods of [`FitParams`] are called, and the remedy. Everything is deterministic: the same data, parameters and seed
//! give the same bytes for any number of threads.
//!
//! ```
//! use tha_train::{AnalysisParams, FitParams, Pair, Silent, SynthKind, SynthParams};
//! use tha_train::{analyze, export_rust, generate};
//!
//! let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?;
//! let params = FitParams::new().memory(4).degree(2).max_rank(2);
//! let full = params.clone().check(&data.train)?.fit(&data.train, &Silent)?.model;
//! let heads = params.heads(2).subset_size(1).check(&data.train)?.fit(&data.train, &Silent)?.model;
//! println!("{} and {}", full.evaluate(&data.test).nrmse, heads.evaluate(&data.test).nrmse);
//!
//! let pair = Pair::from_models(&full, &heads, &data.test)?;
//! assert!(analyze(&pair, &AnalysisParams::default()).failures().is_empty());
//! assert!(export_rust("plant", full.spec(), &full.to_bytes()?).text.contains("static"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// They panic where nobody listens.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod auto;
mod checkpoint;
mod data;
mod ensemble;
mod fit;
mod linalg;
mod metrics;
mod model;
mod plan;
mod progress;
mod quantize;
mod synth;

// What is hidden here is for the programs, benchmarks and tests of this workspace, and may change at any time.
#[doc(hidden)]
pub mod analysis;
#[doc(hidden)]
pub mod bound;
#[doc(hidden)]
pub mod device;
#[doc(hidden)]
pub mod export;
#[doc(hidden)]
pub mod host;
#[doc(hidden)]
pub mod inspect;
#[doc(hidden)]
pub mod network;
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
pub mod reference;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod solve;
#[doc(hidden)]
pub mod stage;

/// What else the programs and tests need of modules that are private.
#[doc(hidden)]
pub mod internals {
    pub use crate::auto::{Candidate, Delivered, Honest, Part, Recipe, Setting, Tried};
    pub use crate::data::{Split, write_csv};
    pub use crate::ensemble::Summary;
    pub use crate::fit::HeadReport;
    pub use crate::model::{Frame, HeadPart, Interval, OutOfRange};
    pub use crate::plan::{HeadDone, Merged, ranges};
    pub use crate::quantize::OutputError;
}

pub use analysis::{Analysis, AnalysisError, AnalysisParams, Pair, analyze};
pub use auto::{AutoOutcome, AutoParams, Tuning};
pub use data::{Columns, DataError, Dataset, Record, Source};
pub use ensemble::{Combine, Strategy};
pub use export::{c as export_c, rust as export_rust};
pub use fit::{FitError, FitParams, Outcome, ValidFitParams, Validation};
pub use metrics::Metrics;
pub use model::{Model, ModelError};
pub use plan::{Made, Plan};
pub use progress::{Event, Progress, Silent};
pub use quantize::{QuantizeParams, Quantized, quantize};
pub use report::{Report, html};
pub use solve::{Decay, Ridge, Solver};
pub use stage::Basis;
pub use synth::{Kind as SynthKind, SynthError, SynthParams, Synthetic, generate};
pub use tha_core::RangePolicy;

/// Version and, in a checkout, commit.
pub const VERSION: &str = env!("THA_VERSION");
