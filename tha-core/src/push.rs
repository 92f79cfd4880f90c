//! [`push`]: one sample in, one output out.
//!
//! Per sample: every input is checked and standardised once; the filters take it and the features follow ([`stage`]); every
//! head gathers its features, contracts its cores right to left ([`kernel`]) and adds its weighted share; the sum is brought
//! back to physical units. Time per sample depends on the model alone.

use core::cell::Cell;
use core::ops::Range;

use crate::error::PushError;
use crate::format::{NonFinitePolicy, RangePolicy};
use crate::head::HeadView;
use crate::kernel::{self, Features, split_at};
use crate::model::{InputScaling, Model};
use crate::stage;
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
#[inline(never)]
fn push_parts<'s>(model: &Model<'_>, parts: Parts<'s>, u: &[f32]) -> Step<'s> {
    run(model, parts, u, &mut StoredWeights)
}

/// Who says how much a head counts, and wants to know what it said.
pub(crate) trait Weigh {
    /// Adds what a head says, `v`, to the outputs it serves.
    fn add(&mut self, head: &HeadView<'_>, v: &[f32], y: &mut [f32]);
}

struct StoredWeights;

impl Weigh for StoredWeights {
    #[inline]
    fn add(&mut self, head: &HeadView<'_>, v: &[f32], y: &mut [f32]) {
        match *head.weights {
            [weight] => {
                for (y, v) in y.iter_mut().zip(v) {
                    *y += weight * *v;
                }
            }
            ref weights => {
                for ((y, v), weight) in y.iter_mut().zip(v).zip(weights) {
                    *y += *weight * *v;
                }
            }
        }
    }
}

#[inline]
pub(crate) fn run<'s>(
    model: &Model<'_>,
    mut parts: Parts<'s>,
    u: &[f32],
    weights: &mut impl Weigh,
) -> Step<'s> {
    if let Err(error) = take(model, &mut parts, u) {
        return Step::Refused(error);
    }
    filter(model, &mut parts);
    let remaining = parts.progress.remaining();
    if remaining > 0 {
        return Step::Warming { remaining };
    }
    let (y, beyond) = contract(model, &mut parts, weights);
    let Parts { scratch, channels, progress, .. } = parts;
    let noticed = progress.noticed;
    let y = scratch.get(y).unwrap_or_default();
    let flags = Flags {
        out_of_range: noticed & (ChannelFlags::BELOW | ChannelFlags::ABOVE) != 0,
        window_out_of_range: progress.range_left > 0 || beyond,
        held: noticed & ChannelFlags::HELD != 0,
        window_held: progress.held_left > 0,
        // Every output is looked at, for the same time whatever they are.
        overflow: y.iter().fold(false, |overflow, y| overflow | !y.is_finite()),
    };
    Step::Ready(Output { y, flags, channels })
}

/// Everything about a sample but the outputs: checks it, enters it into the history and the filters, notes what was odd.
pub(crate) fn take(model: &Model<'_>, parts: &mut Parts<'_>, u: &[f32]) -> Result<(), PushError> {
    let Parts { raw, window, signals, channels, progress, .. } = parts;
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

    let clamp = clamps(model, progress.range);
    // Cells, because for M = 1 the previous sample is overwritten by the newest.
    let raw = Cell::from_mut(&mut **raw).as_slice_of_cells();
    let previous = raw.get(progress.slot * p..).unwrap_or_default();
    if progress.taken == 0 {
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
    if !model.stage.features.is_empty() {
        limit(window.get_mut(newest..newest + p));
        limit(window.get_mut(newest + p * progress.memory..newest + p * progress.memory + p));
    }
    progress.noticed = noticed;
    progress.taken = progress.taken.saturating_add(1);
    let felt = model.felt() as u32;
    // A filter forgets a sample by a part: a thousandth of a large one takes longer to reach what is small. Computed for every
    // sample, so that all take the same time.
    let newest = window.get(newest..newest + if signals.is_empty() { 0 } else { p }).unwrap_or_default();
    let largest = newest.iter().fold(0, |largest, x| (x.to_bits() << 1).max(largest));
    let doublings = (largest >> 24).saturating_sub(127 + 2);
    let left = felt.saturating_add((felt / 10 + 1).saturating_mul(doublings));
    let outside = noticed & (ChannelFlags::BELOW | ChannelFlags::ABOVE) != 0;
    progress.range_left = progress.range_left.saturating_sub(1).max(if outside { left } else { 0 });
    progress.held_left =
        if noticed & ChannelFlags::HELD != 0 { felt } else { progress.held_left.saturating_sub(1) };
    Ok(())
}

/// Lets the filters take the sample that was entered last.
#[inline]
pub(crate) fn filter(model: &Model<'_>, parts: &mut Parts<'_>) {
    let Parts { window, signals, progress, .. } = parts;
    if !model.stage.runs.is_empty() {
        let newest = progress.slot * progress.inputs;
        let window = window.get(newest..newest + progress.inputs * progress.memory).unwrap_or_default();
        stage::filter(model.stage.runs, window, signals, progress.taken);
    }
}

/// Whether inputs are clamped: where features are listed, those are, and their filters see what comes.
fn clamps(model: &Model<'_>, range: Option<RangePolicy>) -> bool {
    model.stage.features.is_empty() && range.unwrap_or(model.range_policy()) != RangePolicy::Pass
}

/// Filters must stay finite, whatever comes.
fn limit(x: Option<&mut [f32]>) {
    for x in x.unwrap_or_default() {
        *x = if *x < -LIMIT { -LIMIT } else { *x };
        *x = if *x > LIMIT { LIMIT } else { *x };
    }
}

/// Fills the window anew from the raw history, with the scaling of `model`, and recounts what is out of its range. Filters go
/// on as they are.
pub(crate) fn restandardise(model: &Model<'_>, parts: &mut Parts<'_>) {
    let Parts { raw, window, progress, signals, .. } = parts;
    progress.checksum = model.checksum();
    progress.settled = model.settled() as u32;
    if signals.is_empty() {
        progress.range_left = 0;
    }
    let clamp = clamps(model, progress.range);
    let p = progress.inputs;
    let (lower, upper) = split_at(window, p * progress.memory);
    for age in (0..progress.memory.min(progress.taken as usize)).rev() {
        let slot = progress.slot + age;
        let first = p * if slot < progress.memory { slot } else { slot - progress.memory };
        let slots = split_at(lower, first).1.iter_mut().zip(split_at(upper, first).1);
        for ((&value, input), (slot, mirror)) in split_at(raw, first).1.iter().zip(model.inputs).zip(slots) {
            if value < input.low || value > input.high {
                progress.range_left = progress.range_left.max((model.felt() - age) as u32);
            }
            let x = input.standardise(value, clamp);
            *slot = x;
            *mirror = x;
        }
    }
    if !model.stage.features.is_empty() {
        limit(Some(window));
    }
}

/// The largest standardised input in front of a filter: f32 has room for all that follows.
pub(crate) const LIMIT: f32 = (1u64 << 40) as f32;

impl InputScaling {
    /// x = (u - offset) * gain, after clamping.
    #[inline]
    fn standardise(&self, u: f32, clamp: bool) -> f32 {
        let u = if clamp && u < self.low { self.low } else { u };
        let u = if clamp && u > self.high { self.high } else { u };
        (u - self.offset) * self.gain
    }
}

/// The ensemble's outputs for the newest sample: where in `scratch` they are, and whether a feature is out of its range.
fn contract(model: &Model<'_>, parts: &mut Parts<'_>, weights: &mut impl Weigh) -> (Range<usize>, bool) {
    let Parts { window, signals, scratch, progress, .. } = parts;
    let (needs, stage) = (model.needs(), &model.stage);
    let (inputs, used) = (progress.inputs, stage.features.len());
    let start = progress.slot * inputs;
    let window = window.get(start..start + inputs * progress.memory).unwrap_or_default();

    let (z, rest) = split_at(scratch, used);
    let (cells, rest) = split_at(rest, stage.counts.len());
    let (beyond, rest) = split_at(rest, if stage.linear.is_empty() { 0 } else { used });
    let (gathered, rest) = split_at(rest, needs.gather);
    let (rows, rest) = split_at(rest, needs.mapped);
    let (t, rest) = split_at(rest, needs.sums);
    let (y, _) = split_at(rest, progress.outputs);
    y.fill(0.0);
    let range = progress.range.unwrap_or(model.range_policy());
    let outside = used > 0 && stage::features(stage, range, window, signals, z, cells, beyond);
    for head in model.heads() {
        let mut features = Features { x: window, rows: &[], t: &[], q: head.q };
        if used > 0 {
            let mut all = &*z;
            if head.features.len() != used {
                pick(z, head.features, gathered);
                all = gathered;
            }
            let plain = head.features.partition_point(|&feature| (feature as usize) < stage.plain());
            let (x, rest) = all.split_at_checked(plain).unwrap_or_default();
            let mapped = head.features.get(plain..).unwrap_or_default();
            stage.rows(mapped, 1 + plain, cells, rows);
            features = Features { x, rows: rows.get(..mapped.len()).unwrap_or_default(), t: rest, q: head.q };
        } else if head.inputs.len() != inputs {
            let (gathered, _) = split_at(gathered, head.q - 1);
            gather(window, inputs, head.inputs, gathered);
            features.x = gathered;
        }
        let (t, _) = split_at(t, head.sums);
        kernel::sums(features, head.cores, t);
        let v = kernel::chain(head.ranks, t);
        let (_, y) = split_at(y, head.first);
        weights.add(&head, v, y);
    }
    if range == RangePolicy::Extend && !beyond.is_empty() {
        for (y, linear) in y.iter_mut().zip(stage.linear.chunks_exact(used.max(1))) {
            *y = linear.iter().zip(&*beyond).fold(*y, |y, (w, beyond)| y + *w * *beyond);
        }
    }
    for (y, output) in y.iter_mut().zip(model.outputs) {
        *y = output.offset + output.scale * *y;
    }
    let length = y.len();
    let start = used + cells.len() + beyond.len() + needs.gather + needs.mapped + needs.sums;
    (start..start + length, outside)
}

/// The features of a head that uses some of all.
#[inline(never)]
fn pick(z: &[f32], features: &[u32], gathered: &mut [f32]) {
    for (place, &feature) in gathered.iter_mut().zip(features) {
        *place = z.get(feature as usize).copied().unwrap_or(0.0);
    }
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
