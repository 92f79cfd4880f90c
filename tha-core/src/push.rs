//! [`push`]: one sample in, one output out.
//!
//! Per sample: every input is checked, clamped if the policy says so, and standardised once; every head gathers
//! its features from the window, contracts its cores right to left ([`kernel`]) and adds its weighted
//! share; the sum is brought back to physical units. Time per sample depends on the model alone.

use core::cell::Cell;

use crate::error::PushError;
use crate::format::{NonFinitePolicy, RangePolicy};
use crate::kernel::{self, split_at};
use crate::model::{HeadView, InputScaling, Model, Shape};
use crate::state::{Parts, State};

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
}

/// Warnings that concern an output. All false: trust it as much as the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// An input of this sample is outside its training range.
    pub out_of_range: bool,
    /// An input of one of the M samples the output depends on is outside its training range.
    pub window_out_of_range: bool,
    /// An input of this sample was NaN or infinite and was replaced.
    pub held: bool,
    /// An input of one of the M samples the output depends on was replaced.
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
pub struct ChannelFlags(u8);

impl ChannelFlags {
    const BELOW: u8 = 1;
    const ABOVE: u8 = 2;
    const HELD: u8 = 4;
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
    model: &Model<'_>,
    state: &'s mut State<INPUTS, HISTORY, SCRATCH>,
    u: &[f32],
) -> Step<'s> {
    push_parts(model, state.parts(), u)
}

/// Not generic, so that it is compiled with this crate and its optimisation level.
fn push_parts<'s>(model: &Model<'_>, parts: Parts<'s>, u: &[f32]) -> Step<'s> {
    run(model, parts, u, &mut StoredWeights)
}

/// Who says how much a head counts, and wants to know what it said.
pub(crate) trait Weigh {
    /// The weight of head `k`, whose standardised outputs are `y`.
    fn weigh(&mut self, k: usize, head: &HeadView<'_>, y: &[f32]) -> f32;
}

struct StoredWeights;

impl Weigh for StoredWeights {
    #[inline]
    fn weigh(&mut self, _: usize, head: &HeadView<'_>, _: &[f32]) -> f32 {
        head.weight
    }
}

#[inline(never)]
pub(crate) fn run<'s>(
    model: &Model<'_>,
    mut parts: Parts<'s>,
    u: &[f32],
    weights: &mut impl Weigh,
) -> Step<'s> {
    if let Err(error) = take(model, &mut parts, u) {
        return Step::Refused(error);
    }
    let Parts { window, scratch, channels, progress, .. } = parts;
    let remaining = progress.memory.saturating_sub(progress.filled);
    if remaining > 0 {
        return Step::Warming { remaining };
    }
    let start = progress.slot * progress.inputs;
    let window = window.get(start..start + progress.inputs * progress.memory).unwrap_or(&[]);
    let y = contract(model, window, scratch, weights);
    let flags = Flags {
        out_of_range: progress.since_range == 0,
        window_out_of_range: progress.since_range < progress.memory,
        held: progress.since_held == 0,
        window_held: progress.since_held < progress.memory,
        // Every output is looked at, for the same time whatever they are.
        overflow: y.iter().fold(false, |overflow, y| overflow | !y.is_finite()),
    };
    Step::Ready(Output { y, flags, channels })
}

/// Everything about a sample but the outputs: checks it, enters it into the history, notes what was odd.
pub(crate) fn take(model: &Model<'_>, parts: &mut Parts<'_>, u: &[f32]) -> Result<(), PushError> {
    let Parts { raw, window, channels, progress, .. } = parts;
    if model.checksum() != progress.checksum {
        return Err(PushError::OtherModel);
    }
    let p = progress.inputs;
    if u.len() != p {
        return Err(PushError::Inputs { expected: p, found: u.len() });
    }
    if progress.non_finite.unwrap_or(model.non_finite_policy()) == NonFinitePolicy::Refuse
        && let Some(channel) = u.iter().position(|u| !u.is_finite())
    {
        return Err(PushError::NonFinite { channel });
    }

    let clamp = progress.range.unwrap_or(model.range_policy()) == RangePolicy::Clamp;
    // Cells, because for M = 1 the previous sample is overwritten by the newest.
    let raw = Cell::from_mut(&mut **raw).as_slice_of_cells();
    let previous = raw.get(progress.slot * p..).unwrap_or_default();
    if progress.filled == 0 {
        for (raw, input) in previous.iter().zip(model.inputs) {
            raw.set(input.offset);
        }
    }
    progress.slot = progress.slot.checked_sub(1).unwrap_or(progress.memory.saturating_sub(1));
    let newest = progress.slot * p;
    let (lower, upper) = split_at(window, p * progress.memory);
    let slots = split_at(lower, newest).1.iter_mut().zip(split_at(upper, newest).1);
    let history = previous.iter().zip(raw.get(newest..).unwrap_or_default());
    let mut noticed = 0;
    for ((((&u, flags), input), (previous, raw)), (slot, mirror)) in
        u.iter().zip(channels.iter_mut()).zip(model.inputs).zip(history).zip(slots)
    {
        let held = !u.is_finite();
        let value = if held { previous.get() } else { u };
        raw.set(value);
        let odd = u8::from(value < input.low) * ChannelFlags::BELOW
            + u8::from(value > input.high) * ChannelFlags::ABOVE
            + u8::from(held) * ChannelFlags::HELD;
        *flags = ChannelFlags(odd);
        noticed |= odd;
        let x = input.standardise(value, clamp);
        *slot = x;
        *mirror = x;
    }
    let age = |since: usize, now: bool| (since + 1).min(progress.memory) * usize::from(!now);
    let since_range = age(progress.since_range, noticed & (ChannelFlags::BELOW | ChannelFlags::ABOVE) != 0);
    let since_held = age(progress.since_held, noticed & ChannelFlags::HELD != 0);
    progress.since_range = since_range;
    progress.since_held = since_held;
    progress.filled = (progress.filled + 1).min(progress.memory);
    Ok(())
}

/// Fills the window anew from the raw history, with the scaling of `model`, and recounts what is out of its range.
pub(crate) fn restandardise(model: &Model<'_>, parts: &mut Parts<'_>) {
    let Parts { raw, window, progress, .. } = parts;
    progress.checksum = model.checksum();
    progress.since_range = progress.memory;
    let clamp = progress.range.unwrap_or(model.range_policy()) == RangePolicy::Clamp;
    let p = progress.inputs;
    let (lower, upper) = split_at(window, p * progress.memory);
    for age in (0..progress.filled).rev() {
        let slot = progress.slot + age;
        let first = p * if slot < progress.memory { slot } else { slot - progress.memory };
        let slots = split_at(lower, first).1.iter_mut().zip(split_at(upper, first).1);
        for ((&value, input), (slot, mirror)) in split_at(raw, first).1.iter().zip(model.inputs).zip(slots) {
            if value < input.low || value > input.high {
                progress.since_range = age;
            }
            let x = input.standardise(value, clamp);
            *slot = x;
            *mirror = x;
        }
    }
}

impl InputScaling {
    /// x = (u - offset) * gain, after clamping.
    #[inline]
    fn standardise(&self, u: f32, clamp: bool) -> f32 {
        let u = if clamp && u < self.low { self.low } else { u };
        let u = if clamp && u > self.high { self.high } else { u };
        (u - self.offset) * self.gain
    }
}

/// The ensemble's outputs for the features in `window`, at the end of `scratch`.
fn contract<'s>(
    model: &Model<'_>,
    window: &[f32],
    scratch: &'s mut [f32],
    weights: &mut impl Weigh,
) -> &'s [f32] {
    let needs = model.needs();
    let Shape { inputs, outputs, .. } = model.shape();
    let (features, rest) = split_at(scratch, needs.gather);
    let (t, rest) = split_at(rest, needs.sums);
    let (y, _) = split_at(rest, outputs);
    y.fill(0.0);
    for (k, head) in model.heads().enumerate() {
        let mut x = window;
        if head.inputs.len() != inputs {
            let (features, _) = split_at(features, head.q - 1);
            gather(window, inputs, head.inputs, features);
            x = features;
        }
        let (t, _) = split_at(t, head.sums);
        kernel::sums(x, head.cores, t);
        let v = kernel::chain(head.ranks, t);
        let weight = weights.weigh(k, &head, v);
        for (y, v) in y.iter_mut().zip(v) {
            *y += weight * *v;
        }
    }
    for (y, output) in y.iter_mut().zip(model.outputs) {
        *y = output.offset + output.scale * *y;
    }
    y
}

/// The features of a head: its inputs at every lag, newest first. `features` has just the room for them.
#[inline(never)]
fn gather(window: &[f32], p: usize, inputs: &[u32], features: &mut [f32]) {
    // Small heads have loops of their own, in which the indices are checked once and stay in registers.
    match *inputs {
        [a] => gather_few(window, p, [a], features),
        [a, b] => gather_few(window, p, [a, b], features),
        [a, b, c] => gather_few(window, p, [a, b, c], features),
        [a, b, c, d] => gather_few(window, p, [a, b, c, d], features),
        _ => {
            let (mut places, mut rest) = (features.iter_mut(), window);
            while let Some((lag, later)) = rest.split_at_checked(p) {
                for &input in inputs {
                    let (Some(u), Some(place)) = (lag.get(input as usize), places.next()) else { return };
                    *place = *u;
                }
                rest = later;
            }
        }
    }
}

#[inline]
fn gather_few<const K: usize>(mut window: &[f32], p: usize, inputs: [u32; K], mut features: &mut [f32]) {
    while let (Some((lag, older)), Some((places, rest))) =
        (window.split_at_checked(p), core::mem::take(&mut features).split_first_chunk_mut::<K>())
    {
        for (input, place) in inputs.into_iter().zip(places) {
            let Some(u) = lag.get(input as usize) else { return };
            *place = *u;
        }
        window = older;
        features = rest;
    }
}
