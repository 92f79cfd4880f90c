//! [`Reweighter`] (feature `monitor`): the ensemble follows drift by moving its weights, on the device.
//!
//! Exponentiated gradient on the simplex: after each measured y, with the heads' outputs yhat_k and the ensemble's
//! yhat = sum of w_k yhat_k, all standardised,
//!
//! ```text
//! g_k = (yhat - y) . yhat_k        w_k <- w_k exp(-rate (g_k - g)) / Z        w_k <- (1 - share) w_k + share / K
//! ```
//!
//! with g the weighted mean of the g_k. The weights stay non-negative with sum 1, the paper's constraint, whatever
//! the data; `share` keeps every head alive, so that one that was useless can come back. O(K l) per sample, no
//! allocation; `micromath` for the exponential, whose error of a few per cent only scales the step.

use heapless::Vec;
use micromath::F32Ext;

use crate::error::CapacityError;
use crate::model::{HeadView, Model};
use crate::push::{Step, Weigh, run};
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
    /// The weights in the model are not a convex combination (a `stack` or `additive` ensemble), so the simplex is
    /// not where they belong.
    NotConvex {
        /// Sum of the weights.
        sum: f32,
        /// Smallest weight.
        least: f32,
    },
    /// `HEADS` or `VALUES` is too small.
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

/// Weights that follow the measured outputs of one stream. `HEADS` >= K, `VALUES` >= K l.
#[derive(Clone, Debug)]
pub struct Reweighter<const HEADS: usize, const VALUES: usize> {
    options: ReweightOptions,
    weights: Vec<f32, HEADS>,
    /// The heads' standardised outputs for the last sample, head by head.
    outputs: Vec<f32, VALUES>,
    gradient: Vec<f32, HEADS>,
    /// Whether `outputs` belongs to the last sample.
    ready: bool,
}

impl<const HEADS: usize, const VALUES: usize> Reweighter<HEADS, VALUES> {
    /// Starts from the weights in `model`.
    ///
    /// # Errors
    /// [`ReweightError`] when the weights are not a convex combination or the capacities too small.
    pub fn new(model: &Model<'_>, options: ReweightOptions) -> Result<Self, ReweightError> {
        let sum: f32 = model.heads().map(|head| head.weight).sum();
        let least = model.heads().map(|head| head.weight).fold(f32::INFINITY, f32::min);
        if least < 0.0 || (sum - 1.0).abs() > 1e-3 {
            return Err(ReweightError::NotConvex { sum, least });
        }
        let capacity = |capacity, found, needed| {
            ReweightError::Capacity(CapacityError { capacity, found, needed, needs: None })
        };
        let shape = model.shape();
        let mut weights = Vec::new();
        for head in model.heads() {
            weights.push(head.weight).map_err(|_| capacity("HEADS", HEADS, shape.heads))?;
        }
        let values = shape.heads.saturating_mul(shape.outputs);
        let mut outputs = Vec::new();
        outputs.resize(values, 0.0).map_err(|_| capacity("VALUES", VALUES, values))?;
        let options = ReweightOptions { rate: options.rate.max(0.0), share: options.share.clamp(0.0, 1.0) };
        let gradient = weights.clone();
        Ok(Self { options, weights, outputs, gradient, ready: false })
    }

    /// [`push`](crate::push()), with the followed weights in place of the stored ones.
    pub fn push<'s, const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize>(
        &mut self,
        model: &Model<'_>,
        state: &'s mut State<INPUTS, HISTORY, SCRATCH>,
        u: &[f32],
    ) -> Step<'s> {
        let mut weights = Followed { weights: &self.weights, outputs: &mut self.outputs };
        let step = run(model, state.parts(), u, &mut weights);
        self.ready = matches!(step, Step::Ready(_));
        step
    }

    /// Moves the weights towards the heads that explain `measured` (physical units), which belongs to the sample
    /// pushed last. Returns whether it did: not while warming up, not twice for one sample, not for values that
    /// are not finite.
    pub fn learn(&mut self, model: &Model<'_>, measured: &[f32]) -> bool {
        let l = model.outputs().len();
        let usable = core::mem::take(&mut self.ready)
            && measured.len() == l
            && self.outputs.len() == self.weights.len() * l
            && measured.iter().chain(&self.outputs).all(|value| value.is_finite());
        if !usable {
            return false;
        }
        self.gradient.fill(0.0);
        for (j, (scaling, &y)) in model.outputs().iter().zip(measured).enumerate() {
            let heads = || self.outputs.iter().skip(j).step_by(l);
            let yhat: f32 = self.weights.iter().zip(heads()).map(|(w, y)| w * y).sum();
            let residual = yhat - (y - scaling.offset) / scaling.scale;
            for (gradient, y) in self.gradient.iter_mut().zip(heads()) {
                *gradient += residual * y;
            }
        }
        let mean: f32 = self.weights.iter().zip(&self.gradient).map(|(w, g)| w * g).sum();
        let mut sum = 0.0;
        for (weight, gradient) in self.weights.iter_mut().zip(&self.gradient) {
            // An outlier must not overflow the exponential.
            *weight *= F32Ext::exp((self.options.rate * (mean - gradient)).clamp(-20.0, 20.0));
            sum += *weight;
        }
        let share = self.options.share;
        let even = share / self.weights.len() as f32;
        for weight in &mut self.weights {
            *weight = *weight / sum * (1.0 - share) + even;
        }
        true
    }

    /// The weights now, in the order of the heads.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }
}

struct Followed<'r> {
    weights: &'r [f32],
    outputs: &'r mut [f32],
}

impl Weigh for Followed<'_> {
    fn weigh(&mut self, k: usize, head: &HeadView<'_>, y: &[f32]) -> f32 {
        let l = head.ranks.first().map_or(0, |&outputs| outputs as usize);
        if let Some(place) = self.outputs.get_mut(k * l..(k + 1) * l) {
            for (place, y) in place.iter_mut().zip(y) {
                *place = *y;
            }
        }
        self.weights.get(k).copied().unwrap_or(0.0)
    }
}
