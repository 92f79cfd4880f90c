//! [`push`] and [`push_counts`]: one sample in, one output out.

use core::hint::black_box;

use super::contract::{self, Work};
use super::head::cast_mut;
use super::model::{Model, Unit};
use super::sample::{enter, enter_physical};
use super::stage::{self, Room};
use super::state::{Parts, State, split_at};
use crate::error::PushError;
use crate::facts::OutputScaling;
use crate::format::RangePolicy;
use crate::push::{ChannelFlags, Flags};

/// What [`push`] and [`push_counts`] have to say about a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'s> {
    /// The sample was taken; that many more are needed before there is an output.
    Warming {
        /// Samples still missing.
        remaining: usize,
    },
    /// The sample was taken and gave an output.
    Ready(Output<'s>),
    /// The sample was not taken; the state is as before.
    Refused(PushError),
}

impl<'s> Step<'s> {
    /// The output, if there is one.
    #[must_use]
    pub fn output(&self) -> Option<Output<'s>> {
        match self {
            Self::Ready(output) => Some(*output),
            _ => None,
        }
    }
}

/// The outputs for a sample, and how far to trust them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output<'s> {
    /// l outputs in counts, worth [`Unit::unit`] each.
    pub counts: &'s [i32],
    /// Warnings that concern the outputs. `overflow`: a vector of a head was limited to 16 bits.
    pub flags: Flags,
    /// What was noticed at each input of this sample.
    pub channels: &'s [ChannelFlags],
    /// Half the width of the interval around each output, physical units, as in [`crate::Output`].
    pub half_widths: &'s [f32],
    scaling: &'s [OutputScaling],
    units: &'s [Unit],
}

impl<'s> Output<'s> {
    /// Output `j` in physical units.
    #[must_use]
    pub fn value(&self, j: usize) -> Option<f32> {
        let (scaling, unit) = (self.scaling.get(j)?, self.units.get(j)?);
        self.counts.get(j).map(|&counts| scaling.offset + unit.unit * counts as f32)
    }

    /// All outputs in physical units.
    pub fn values(&self) -> impl Iterator<Item = f32> + use<'s> {
        let output = *self;
        (0..output.counts.len()).filter_map(move |j| output.value(j))
    }
}

/// Takes the sample `u` (p values, physical units), rounds it to counts and computes the outputs.
///
/// Never fails and never panics: what cannot be used comes back as [`Step::Refused`].
#[inline]
pub fn push<'s, const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize>(
    model: &Model<'s>,
    state: &'s mut State<INPUTS, HISTORY, SCRATCH>,
    u: &[f32],
) -> Step<'s> {
    let mut parts = state.parts();
    let missing = enter_physical(model, &mut parts, u);
    finish(model, parts, missing)
}

/// Takes the sample `counts` (p values as the converter gives them) and computes the outputs, without any float.
///
/// Never fails and never panics: what cannot be used comes back as [`Step::Refused`].
#[inline]
pub fn push_counts<'s, const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize>(
    model: &Model<'s>,
    state: &'s mut State<INPUTS, HISTORY, SCRATCH>,
    counts: &[i16],
) -> Step<'s> {
    let mut parts = state.parts();
    let missing = enter(model, &mut parts, counts);
    finish(model, parts, missing)
}

#[inline]
fn finish<'s>(model: &Model<'s>, mut parts: Parts<'s>, missing: Result<usize, PushError>) -> Step<'s> {
    match missing {
        Err(error) => Step::Refused(error),
        Ok(0) => {
            let [outside, overflow] = contract(model, &mut parts);
            let Parts { scratch, channels, progress, .. } = parts;
            Step::Ready(Output {
                counts: scratch.get(..progress.outputs).unwrap_or_default(),
                flags: progress.flags(outside, overflow),
                channels,
                half_widths: model.half_widths,
                scaling: model.outputs,
                units: model.units,
            })
        }
        Ok(remaining) => Step::Warming { remaining },
    }
}

/// The ensemble's outputs for the newest sample, at the front of `scratch`; whether a feature is out of its range, and whether a vector
/// was limited.
#[inline(never)]
fn contract(model: &Model<'_>, parts: &mut Parts<'_>) -> [bool; 2] {
    let Parts { window, signals, scratch, progress, .. } = parts;
    let (needs, stage, inputs) = (model.needs, &model.stage, progress.inputs);
    let range = progress.range.unwrap_or(model.range_policy());
    let window =
        window.get(progress.slot * inputs..).and_then(|window| window.get(..inputs * progress.memory));
    let window = window.unwrap_or_default();

    let (y, rest) = split_at(scratch, progress.outputs);
    let (acc, rest) = split_at(rest, needs.sums);
    let (gathered, rest) = split_at(rest, needs.gather);
    let (rows, rest) = split_at(rest, needs.mapped.div_ceil(2));
    let (x, rest) = split_at(rest, stage.features.len().div_ceil(2));
    let (cells, beyond) = split_at(rest, stage.counts.len().div_ceil(2));
    let beyond = if stage.linear.is_empty() { Default::default() } else { beyond };
    let mut room = Room { x: cast_mut(x), cells: cast_mut(cells), beyond: cast_mut(beyond) };
    let outside =
        !stage.features.is_empty() && stage::features(stage, range, model.bits, window, signals, &mut room);
    let Room { x, cells, beyond } = room;
    // Not `fill`: that would link a memset, and call it for a few words.
    let zero = black_box(0);
    y.iter_mut().for_each(|y| *y = zero);
    let (gathered, rows, one) = (cast_mut(gathered), cast_mut(rows), 1 << model.bits);
    let work = Work { stage, window, inputs, x, cells, gathered, rows, acc, one };
    let overflow = contract::add(model.heads(), work, y);
    if range == RangePolicy::Extend && !beyond.is_empty() {
        let features = stage.features.len();
        let rows = stage.linear.chunks_exact(features.max(1)).zip(stage.linear_shifts);
        for (y, (linear, &shift)) in y.iter_mut().zip(rows) {
            let half = (1 << shift) >> 1;
            let terms = linear.iter().zip(&*beyond).map(|(w, beyond)| i32::from(*w) * i32::from(*beyond));
            *y += terms.fold(half, |sum, term| sum + term) >> shift;
        }
    }
    [outside, overflow]
}
