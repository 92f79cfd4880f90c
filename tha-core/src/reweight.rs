//! [`Reweighter`] (feature `monitor`): the ensemble follows drift by moving its weights, on the device.
//!
//! Exponentiated gradient on the simplex, for every output by itself: after each measured y, with yhat_k from each of the K
//! heads that serve the output and the ensemble's yhat = sum of w_k yhat_k, all standardised,
//!
//! ```text
//! g_k = (yhat - y) yhat_k        w_k <- w_k exp(-rate (g_k - g)) / Z        w_k <- (1 - share) w_k + share / K
//! ```
//!
//! with g the weighted mean of the g_k. The weights stay non-negative with sum 1, the paper's constraint, whatever
//! the data; `share` keeps every head alive, so that one that was useless can come back. O(K l) per sample, no
//! allocation; `micromath` for the exponential, whose error of a few per cent only scales the step.

use heapless::Vec;
use micromath::F32Ext;

use crate::contract::Value;
use crate::error::CapacityError;
use crate::model::Model;
use crate::push::{Step, run};
use crate::state::State;

/// How fast a [`Reweighter`] follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReweightOptions {
    /// Step size; 0 leaves the weights as they are. Outputs are standardised, so 0.001 is slow and 0.1 fast.
    pub rate: f32,
    /// Part of the weight that is spread evenly over the heads at every step, 0 to 1.
    pub share: f32,
}

impl Default for ReweightOptions {
    /// Rate 0.01, share 0.000001.
    fn default() -> Self {
        Self { rate: 0.01, share: 1e-6 }
    }
}

/// Why a model's weights cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReweightError {
    /// The weights of an output are not a convex combination (a `stack` or `additive` ensemble), so the simplex is
    /// not where they belong.
    NotConvex {
        /// Sum of the weights.
        sum: f32,
        /// Smallest weight.
        least: f32,
    },
    /// `VALUES` is too small.
    Capacity(CapacityError),
}

impl core::fmt::Display for ReweightError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotConvex { sum, least } => write!(
                f,
                "the weights sum to {sum} with {least} the smallest; re-weighting needs an average, \
                 trained with --combine average"
            ),
            Self::Capacity(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ReweightError {}

/// Weights that follow the measured outputs of one stream. `VALUES` >= the outputs that the heads serve, all together.
#[derive(Clone, Debug)]
pub struct Reweighter<const VALUES: usize> {
    options: ReweightOptions,
    values: Vec<Value, VALUES>,
    /// Whether the outputs belong to the last sample.
    ready: bool,
}

impl<const VALUES: usize> Reweighter<VALUES> {
    /// Starts from the weights in `model`.
    ///
    /// # Errors
    /// [`ReweightError`] when the weights are not a convex combination or the capacity is too small.
    pub fn new(model: &Model<'_>, options: ReweightOptions) -> Result<Self, ReweightError> {
        let mut values = Vec::new();
        let needed = || model.heads().map(|head| head.outputs().len()).sum();
        for head in model.heads() {
            for (output, weight) in head.outputs().zip(head.weights()) {
                values.push(Value { output, weight, y: 0.0 }).map_err(|_| {
                    let (found, needed) = (VALUES, needed());
                    ReweightError::Capacity(CapacityError { capacity: "VALUES", found, needed, needs: None })
                })?;
            }
        }
        for output in 0..model.outputs().len() {
            let of = || values.iter().filter(|value| value.output == output).map(|value| value.weight);
            let (sum, least) = (of().sum::<f32>(), of().fold(f32::INFINITY, f32::min));
            if least < 0.0 || (sum - 1.0).abs() > 1e-3 {
                return Err(ReweightError::NotConvex { sum, least });
            }
        }
        let options = ReweightOptions { rate: options.rate.max(0.0), share: options.share.clamp(0.0, 1.0) };
        Ok(Self { options, values, ready: false })
    }

    /// [`push`](crate::push()), with the followed weights in place of the stored ones.
    pub fn push<'s, const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize>(
        &mut self,
        model: &Model<'s>,
        state: &'s mut State<INPUTS, HISTORY, SCRATCH>,
        u: &[f32],
    ) -> Step<'s> {
        let step = run(model, state.parts(), u, &mut self.values);
        self.ready = matches!(step, Step::Ready(_));
        step
    }

    /// Moves the weights towards the heads that explain `measured` (physical units), which belongs to the sample
    /// pushed last. Returns whether it did: not while warming up, not twice for one sample, not for values that
    /// are not finite.
    pub fn learn(&mut self, model: &Model<'_>, measured: &[f32]) -> bool {
        let usable = core::mem::take(&mut self.ready)
            && measured.len() == model.outputs().len()
            && measured.iter().all(|y| y.is_finite())
            && self.values.iter().all(|value| value.y.is_finite());
        if !usable {
            return false;
        }
        let ReweightOptions { rate, share } = self.options;
        for (output, (scaling, &y)) in model.outputs().iter().zip(measured).enumerate() {
            let of = || self.values.iter().filter(move |value| value.output == output);
            let yhat: f32 = of().map(|value| value.weight * value.y).sum();
            let residual = yhat - (y - scaling.offset) / scaling.scale;
            let (heads, mut sum) = (of().count() as f32, 0.0);
            for value in self.values.iter_mut().filter(|value| value.output == output) {
                // g_k - g; an outlier must not overflow the exponential.
                let excess = residual * (value.y - yhat);
                value.weight *= F32Ext::exp((-rate * excess).clamp(-20.0, 20.0));
                sum += value.weight;
            }
            for value in self.values.iter_mut().filter(|value| value.output == output) {
                value.weight = value.weight / sum * (1.0 - share) + share / heads;
            }
        }
        true
    }

    /// The weights now: head by head, in the order of the outputs that each serves.
    pub fn weights(&self) -> impl Iterator<Item = f32> + '_ {
        self.values.iter().map(|value| value.weight)
    }
}
