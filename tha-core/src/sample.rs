//! Everything about a sample but the outputs: it is checked, entered into the history, standardised, and filtered.

use core::cell::Cell;

use crate::error::PushError;
use crate::format::{NonFinitePolicy, RangePolicy};
use crate::kernel::split_at;
use crate::model::{InputScaling, Model};
use crate::push::ChannelFlags;
use crate::stage;
use crate::state::{Parts, split};

/// Lets the history and the filters take a sample; comes back how many are missing before there is an output. `SMALL` as in
/// [`run`](crate::push::run).
#[inline(never)]
pub(crate) fn enter<const SMALL: bool>(
    model: &Model<'_>,
    parts: &mut Parts<'_>,
    u: &[f32],
) -> Result<usize, PushError> {
    take(model, parts, u)?;
    filter(model, parts);
    Ok(parts.progress.remaining())
}

/// Everything about a sample but the filters and outputs: checks it, enters it into the history, notes what was odd.
#[inline]
fn take(model: &Model<'_>, parts: &mut Parts<'_>, u: &[f32]) -> Result<(), PushError> {
    let Parts { history, channels, progress, .. } = parts;
    let [raw, window, signals] = split(history, progress);
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
    let last = progress.slot * p;
    progress.slot = progress.slot.checked_sub(1).unwrap_or(progress.memory.saturating_sub(1));
    let newest = progress.slot * p;
    // Cells, because for M = 1 the previous sample is overwritten by the newest, and because of the mirror.
    let raw = Cell::from_mut(raw).as_slice_of_cells();
    let slots = Cell::from_mut(window).as_slice_of_cells();
    let missing = Err(PushError::OtherModel);
    let Some(previous) = row(raw, last, p) else { return missing };
    let Some(raw) = row(raw, newest, p) else { return missing };
    let Some(slot) = row(slots, newest, p) else { return missing };
    let Some(mirror) = row(slots, newest + p * progress.memory, p) else { return missing };
    let (Some(inputs), Some(channels)) = (model.inputs.get(..p), channels.get_mut(..p)) else {
        return missing;
    };
    if progress.taken == 0 {
        for (raw, input) in previous.iter().zip(inputs) {
            raw.set(input.offset);
        }
    }
    let mut noticed = 0;
    for (k, (((&u, flags), input), raw)) in u.iter().zip(channels).zip(inputs).zip(raw).enumerate() {
        let (mut value, mut odd) = (u, 0);
        if !u.is_finite() {
            (value, odd) = (previous.get(k).map_or(0.0, Cell::get), ChannelFlags::HELD);
        }
        raw.set(value);
        if value < input.low {
            odd |= ChannelFlags::BELOW;
        }
        if value > input.high {
            odd |= ChannelFlags::ABOVE;
        }
        *flags = ChannelFlags(odd);
        noticed |= odd;
    }
    for (((raw, input), slot), mirror) in raw.iter().zip(inputs).zip(slot).zip(mirror) {
        let x = input.standardise(raw.get(), clamp);
        slot.set(x);
        mirror.set(x);
    }
    if !model.stage.features.is_empty() {
        for (slot, mirror) in slot.iter().zip(mirror) {
            slot.set(limited(slot.get()));
            mirror.set(slot.get());
        }
    }
    let felt = model.felt() as u32;
    let mut left = felt;
    if !signals.is_empty() {
        // A filter forgets a sample by a part: a thousandth of a large one takes longer to reach what is small. Computed for
        // every sample, so that all take the same time.
        let largest = slot.iter().fold(0, |largest, x| (x.get().to_bits() << 1).max(largest));
        let doublings = (largest >> 24).saturating_sub(127 + 2);
        left = felt.saturating_add((felt / 10 + 1).saturating_mul(doublings));
    }
    progress.note(noticed, felt, left);
    Ok(())
}

/// Lets the filters take the sample that was entered last.
#[inline]
fn filter(model: &Model<'_>, parts: &mut Parts<'_>) {
    let Parts { history, progress, .. } = parts;
    if !model.stage.runs.is_empty() {
        let [_, window, signals] = split(history, progress);
        let cells = Cell::from_mut(window).as_slice_of_cells();
        let window = row(cells, progress.slot * progress.inputs, progress.inputs * progress.memory);
        let signals = Cell::from_mut(signals).as_slice_of_cells();
        stage::filter(model.stage.runs, window.unwrap_or_default(), signals, progress.taken);
    }
}

/// Whether inputs are clamped: where features are listed, those are, and their filters see what comes.
#[inline]
fn clamps(model: &Model<'_>, range: Option<RangePolicy>) -> bool {
    model.stage.features.is_empty() && range.unwrap_or(model.range_policy()) != RangePolicy::Pass
}

/// `p` values from `at` on.
#[inline]
fn row(all: &[Cell<f32>], at: usize, p: usize) -> Option<&[Cell<f32>]> {
    all.get(at..)?.get(..p)
}

/// Filters must stay finite, whatever comes.
#[inline]
fn limited(x: f32) -> f32 {
    let least = if x < -LIMIT { -LIMIT } else { x };
    if least > LIMIT { LIMIT } else { least }
}

/// Fills the window anew from the raw history, with the scaling of `model`, and recounts what is out of its range. Filters go
/// on as they are.
pub(crate) fn restandardise(model: &Model<'_>, parts: &mut Parts<'_>) {
    let Parts { history, progress, .. } = parts;
    let [raw, window, signals] = split(history, progress);
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
        window.iter_mut().for_each(|x| *x = limited(*x));
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
