//! [`push`]: one sample in, one output out.
//!
//! Per sample: every input is checked and standardised once ([`sample`](crate::sample)); the filters take it and the features follow ([`stage`]); every
//! head gathers its features, contracts its cores right to left ([`kernel`]) and adds its weighted share; the sum is brought
//! back to physical units. Time per sample depends on the model alone.

use core::hint::black_box;

use crate::contract::{self, Value, View};
use crate::error::PushError;
use crate::format::RangePolicy;
use crate::kernel::split_at;
use crate::model::Model;
use crate::sample::enter;
use crate::stage;
use crate::state::{Parts, State, split};

/// What [`push`] has to say about a sample.
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
    /// l outputs in physical units.
    pub y: &'s [f32],
    /// Warnings that concern the outputs.
    pub flags: Flags,
    /// What was noticed at each input of this sample.
    pub channels: &'s [ChannelFlags],
    /// Half the width of the interval around each output, physical units: the measured output lies within it as often as
    /// [`Facts::coverage`](crate::Facts::coverage) says. Empty where the model has none.
    pub half_widths: &'s [f32],
}

/// Warnings that concern an output. All false: trust it as much as the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// An input of this sample is outside its training range.
    pub out_of_range: bool,
    /// An input of one of the samples that are still felt is outside its training range, or a feature is now.
    pub window_out_of_range: bool,
    /// An input of this sample was NaN or infinite and was replaced.
    pub held: bool,
    /// An input of one of the samples that are still felt was replaced.
    pub window_held: bool,
    /// An output is NaN or infinite: the inputs are so far out that f32 overflows.
    pub overflow: bool,
}

impl Flags {
    /// Whether any warning is set.
    #[must_use]
    pub fn any(&self) -> bool {
        self.window_out_of_range || self.window_held || self.overflow
    }
}

/// What was noticed at one input of one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelFlags(pub(crate) u8);

impl ChannelFlags {
    pub(crate) const BELOW: u8 = 1;
    pub(crate) const ABOVE: u8 = 2;
    pub(crate) const HELD: u8 = 4;
    pub(crate) const NONE: Self = Self(0);

    /// Below the training range.
    #[must_use]
    pub fn below(self) -> bool {
        self.0 & Self::BELOW != 0
    }

    /// Above the training range.
    #[must_use]
    pub fn above(self) -> bool {
        self.0 & Self::ABOVE != 0
    }

    /// NaN or infinite; the previous value was used.
    #[must_use]
    pub fn held(self) -> bool {
        self.0 & Self::HELD != 0
    }
}

/// Takes the sample `u` (p values, physical units) and computes the outputs.
///
/// Never fails and never panics: what cannot be used comes back as [`Step::Refused`].
#[inline]
pub fn push<'s, const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize>(
    model: &Model<'s>,
    state: &'s mut State<INPUTS, HISTORY, SCRATCH>,
    u: &[f32],
) -> Step<'s> {
    run(model, state.parts(), u, &mut [])
}

/// [`push`], with the weights of `followed` if there are any. Calls one after the other: each gives its stack back. `SMALL` decides nothing:
/// what has such a parameter is compiled where it is used, with the firmware and its optimisation level, for size, and not with
/// this crate, for speed.
#[inline]
pub(crate) fn run<'s>(
    model: &Model<'s>,
    mut parts: Parts<'s>,
    u: &[f32],
    followed: &mut [Value],
) -> Step<'s> {
    match enter::<true>(model, &mut parts, u) {
        Err(error) => Step::Refused(error),
        Ok(0) => {
            let outside = contract(model, &mut parts, followed);
            report(parts, outside, model.half_widths)
        }
        Ok(remaining) => Step::Warming { remaining },
    }
}

/// The outputs, and what there is to say about them.
#[inline(never)]
fn report<'s>(parts: Parts<'s>, outside: bool, half_widths: &'s [f32]) -> Step<'s> {
    let Parts { scratch, channels, progress, .. } = parts;
    let channels = channels.get(..progress.inputs).unwrap_or_default();
    let y = scratch.get(..progress.outputs).unwrap_or_default();
    // Every output is looked at, for the same time whatever they are.
    let overflow = y.iter().fold(false, |overflow, y| overflow | !y.is_finite());
    let flags = progress.flags(outside, overflow);
    Step::Ready(Output { y, flags, channels, half_widths })
}

/// The ensemble's outputs for the newest sample, at the front of `scratch`, and whether a feature is out of its range.
#[inline]
fn contract(model: &Model<'_>, parts: &mut Parts<'_>, followed: &mut [Value]) -> bool {
    let Parts { history, scratch, progress, .. } = parts;
    let [_, window, signals] = split(history, progress);
    let (needs, stage, inputs) = (model.needs(), &model.stage, progress.inputs);
    let range = progress.range.unwrap_or(model.range_policy());
    let window =
        window.get(progress.slot * inputs..).and_then(|window| window.get(..inputs * progress.memory));
    let window = window.unwrap_or_default();

    let used = stage.features.len();
    let (y, rest) = split_at(scratch, progress.outputs);
    let (t, rest) = split_at(rest, needs.sums);
    let (gathered, rest) = split_at(rest, needs.gather);
    let mut view = View { window, inputs, gathered, ..View::new(stage) };
    let outside = used > 0 && stage::features::<true>(&mut view, needs.mapped, range, signals, rest);
    // Not `fill`: that would link a memset, and call it for a few words.
    let zero = black_box(0.0);
    y.iter_mut().for_each(|y| *y = zero);
    contract::add(model, &mut view, t, followed, y);
    if range == RangePolicy::Extend {
        stage::limit(stage, view.beyond);
        for (y, linear) in y.iter_mut().zip(stage.linear.chunks_exact(used.max(1))) {
            *y = linear.iter().zip(&*view.beyond).fold(*y, |y, (w, beyond)| y + *w * *beyond);
        }
    }
    for (y, output) in y.iter_mut().zip(model.outputs) {
        *y = output.offset + output.scale * *y;
    }
    outside
}
