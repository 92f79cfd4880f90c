//! What an automatic fit found, and how it came by it.

use super::blend::mean_and_error;
use super::ground::Ground;
use super::trial::Trial;
use super::{Delivered, Honest, Setting, deliver};
use crate::metrics::Metrics;
use crate::model::Model;
use crate::quantize::Quantized;
use serde::Serialize;

/// What an automatic fit found.
#[derive(Clone, Debug)]
pub struct AutoOutcome {
    /// The model in f32.
    pub model: Model,
    /// The model in integers, where they were asked for, and what they cost.
    pub quantized: Option<Quantized>,
    /// Its figures on the rows it was fitted to.
    pub train: Metrics,
    /// What to expect on other data.
    pub nested: Honest,
    /// The same for the best linear model of lags.
    pub linear: Option<Honest>,
    /// Nothing was better than linear: that is what the model is.
    pub nothing_better: bool,
    /// The heads of the model.
    pub heads: Vec<Delivered>,
    /// Everything that was tried, in order.
    pub tried: Vec<Tried>,
    /// What to expect of models of so many bytes at most; none where nothing is as small.
    pub budgets: [(usize, Option<f64>); 3],
    /// What to expect of integers within a budget that was asked for, where the model is of floats.
    pub in_integers: Option<f64>,
    /// Whether the search came to its end.
    pub complete: bool,
    /// Settings that could not be fitted, and why.
    pub failures: Vec<(Setting, String)>,
    /// How to come by the same model again.
    pub recipe: Recipe,
}

/// The options with which the same model is delivered again, byte for byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Settings on all inputs.
    pub trials: usize,
    /// Heads on subsets of the inputs.
    pub heads: usize,
    /// Numbers of settings, in the order in which they came up, for which there was not enough time.
    pub skip: Vec<usize>,
    /// One head alone.
    pub single: bool,
    /// Bytes of the model file, where that is not as usual.
    pub budget_flash: Option<usize>,
    /// Most multiply-accumulates per sample.
    pub budget_macs: Option<usize>,
    /// Coverage of the intervals, where that is not as usual.
    pub coverage: Option<f64>,
    /// Memory and degree, where the model is that of a plain fit; but for the coverage the others do not matter then.
    pub plain: Option<(usize, usize)>,
}

/// A setting that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// The best ridge of each output.
    pub ridges: Vec<f64>,
    /// Its error on all blocks.
    pub error: f64,
    /// Its error on each.
    pub blocks: Vec<f64>,
    /// The standard error over them.
    pub standard_error: f64,
    /// Bytes of flash and multiply-accumulates per sample of a model of it alone, about.
    pub flash_bytes: usize,
    /// See `flash_bytes`.
    pub macs_per_sample: usize,
}

impl Tried {
    pub(super) fn new(ground: &Ground<'_>, trial: &Trial<'_>, extend: bool) -> Self {
        let all = &ground.all;
        let ridges = trial.best_ridges(extend, all);
        let error = trial.error_with(extend, all, &ridges);
        let blocks = trial.by_block(extend, all);
        let standard_error = mean_and_error(&blocks).1;
        let setting = trial.setting.clone();
        let (flash_bytes, macs_per_sample) = deliver::size_alone(&setting, extend, ground.data);
        let ridges = ridges.iter().map(|&ridge| trial.ridges[ridge]).collect();
        Self { setting, ridges, error, blocks, standard_error, flash_bytes, macs_per_sample }
    }
}
