//! What an automatic fit may do.

use super::{Part, rounds};
use crate::data::{DataError, Dataset};
use crate::fit::{FitError, FitParams, check_coverage, setters};
use crate::quantize::QuantizeParams;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Two years.
const MOST_MINUTES: f64 = 1e6;

/// How far an automatic fit goes and what it may deliver.
///
/// | Name | Default | Range |
/// |---|---|---|
/// | `minutes` | none | above 0 and up to 1000000: best effort |
/// | `trials` | none | at least 1: the same bytes every time |
/// | `heads` | 12 for each of up to three level settings from 5 inputs on, else 0 | heads on random halves of the inputs that are tried |
/// | `skip` | none | numbers of settings, in the order in which they come up, that are left out |
/// | `single` | false | one head on all inputs |
/// | `budget_flash` | 262144 | bytes of the model file |
/// | `budget_macs` | none | multiply-accumulates per sample |
/// | `coverage` | 0.9 | 0.01 to 0.999 |
/// | `checkpoint` | none | a folder |
/// | `seed` | 0 | |
/// | `portable` | false | |
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AutoParams {
    pub(super) minutes: Option<f64>,
    pub(super) trials: Option<usize>,
    pub(super) heads: Option<usize>,
    #[serde(default)]
    pub(super) skip: Vec<usize>,
    pub(super) single: bool,
    pub(super) budget_flash: usize,
    pub(super) budget_macs: Option<usize>,
    #[serde(default)]
    pub(super) integers: Option<QuantizeParams>,
    pub(super) coverage: f64,
    pub(super) checkpoint: Option<PathBuf>,
    pub(super) seed: u64,
    pub(crate) portable: bool,
    pub(super) without: Option<Part>,
}

impl Default for AutoParams {
    fn default() -> Self {
        Self::new()
    }
}

impl AutoParams {
    /// Largest model file by default.
    pub const BUDGET_FLASH: usize = 256 << 10;

    /// The defaults.
    pub fn new() -> Self {
        let budget_flash = Self::BUDGET_FLASH;
        Self {
            minutes: None,
            trials: None,
            heads: None,
            skip: Vec::new(),
            single: false,
            budget_flash,
            budget_macs: None,
            integers: None,
            coverage: FitParams::COVERAGE,
            checkpoint: None,
            seed: 0,
            portable: false,
            without: None,
        }
    }

    setters! {
        /// Time for everything.
        = minutes: impl Into<Option<f64>>;
        /// Heads on random halves of the inputs that are tried.
        = heads: impl Into<Option<usize>>;
        /// Settings on all inputs that are tried at most.
        = trials: impl Into<Option<usize>>;
        /// Settings that are left out: what a [`Recipe`](super::Recipe) names.
        = skip: Vec<usize>;
        /// Deliver one head.
        = single: bool;
        /// Largest model file, bytes.
        = budget_flash: usize;
        /// Most multiply-accumulates per sample.
        = budget_macs: impl Into<Option<usize>>;
        /// Make 16-bit integers of the model, to which the budget of flash then applies.
        = integers: impl Into<Option<QuantizeParams>>;
        /// The part of new measured outputs that the intervals of the model are to hold.
        = coverage: f64;
        /// Folder in which what was tried is kept.
        = checkpoint: impl Into<Option<PathBuf>>;
        /// Seed of everything.
        = seed: u64;
        /// Whether the kernels are those that give the same bytes on every processor, slower than those for this one.
        = portable: bool;
    }

    /// Whether the same data give the same model every time.
    pub(crate) fn repeats(&self) -> bool {
        self.minutes.is_none() && self.trials.is_some()
    }

    /// Leaves a part out, to see what it is worth.
    #[doc(hidden)]
    pub fn without(self, part: Option<Part>) -> Self {
        Self { without: part, ..self }
    }

    /// Refuses what cannot work.
    pub fn check(&self, data: &Dataset) -> Result<(), FitError> {
        let refuse = |option, found: String, expected: &str| {
            Err(FitError::Option { option, found, expected: expected.into() })
        };
        if let Some(minutes) = self.minutes.filter(|minutes| !(*minutes > 0.0 && *minutes <= MOST_MINUTES)) {
            return refuse("minutes", minutes.to_string(), "a number above 0 and up to 1000000");
        }
        if self.trials == Some(0) {
            return refuse("trials", "0".into(), "at least 1");
        }
        check_coverage(self.coverage)?;
        let finding = match (data.len(), data.inputs.len()) {
            (samples @ ..20, _) => {
                format!("{samples} samples are too few to compare settings on; 20 are the least")
            }
            (_, inputs @ rounds::LINEAR..) => format!(
                "{inputs} inputs are too many for a search; choose fewer `inputs`, or fit an ensemble with `heads`"
            ),
            _ => return Ok(()),
        };
        Err(DataError::new(&data.origin, finding).into())
    }
}
