//! Everything about a sample but the outputs: it is checked, entered into the history, scaled, and filtered.

use core::cell::Cell;

use super::model::{InputCounts, Model};
use super::stage;
use super::state::Parts;
use super::{ALPHA, LIMIT, limit};
use crate::error::PushError;
use crate::format::{NonFinitePolicy, RangePolicy};
use crate::push::ChannelFlags;

/// Lets the history and the filters take counts; comes back how many samples are missing before there is an output.
#[inline(never)]
pub(super) fn enter(model: &Model<'_>, parts: &mut Parts<'_>, counts: &[i16]) -> Result<usize, PushError> {
    take(model, parts, counts, |_, &count| Some(count))
}

/// The same in physical units.
#[inline(never)]
pub(super) fn enter_physical(
    model: &Model<'_>,
    parts: &mut Parts<'_>,
    u: &[f32],
) -> Result<usize, PushError> {
    if parts.progress.non_finite.unwrap_or(model.non_finite_policy()) == NonFinitePolicy::Refuse
        && let Some(channel) = u.iter().position(|u| !u.is_finite())
        && u.len() == parts.progress.inputs
        && model.checksum() == parts.progress.checksum
    {
        return Err(PushError::NonFinite { channel });
    }
    take(model, parts, u, InputCounts::count)
}

impl InputCounts {
    /// The counts of a physical value, the nearest that there are; nothing for what is not finite.
    #[inline]
    #[must_use]
    pub fn count(&self, u: &f32) -> Option<i16> {
        let counts = (u - self.zero) * self.rate;
        let rounded = if counts < 0.0 { counts - 0.5 } else { counts + 0.5 };
        // The conversion rounds towards 0 and ends at the ends of i32.
        let whole = (rounded as i32).max(i16::MIN.into()).min(i16::MAX.into());
        u.is_finite().then_some(whole as i16)
    }

    /// The counts of the mean, where x is 0.
    #[inline]
    #[must_use]
    pub fn mean(&self) -> i16 {
        let gain = i32::from(self.gain).max(1);
        let count = self.offset.wrapping_neg() / gain;
        count.max(i16::MIN.into()).min(i16::MAX.into()) as i16
    }

    /// x before any limit.
    #[inline]
    fn scale(&self, count: i32) -> i32 {
        (count * i32::from(self.gain) + self.offset) >> self.shift
    }
}

/// Checks a sample, enters it, notes what was odd, and lets the filters take it.
#[inline]
fn take<T>(
    model: &Model<'_>,
    parts: &mut Parts<'_>,
    sample: &[T],
    count: impl Fn(&InputCounts, &T) -> Option<i16>,
) -> Result<usize, PushError> {
    let Parts { counts, window, channels, progress, .. } = parts;
    if model.checksum() != progress.checksum {
        return Err(PushError::OtherModel);
    }
    let p = progress.inputs;
    if sample.len() != p {
        return Err(PushError::Inputs { expected: p, found: sample.len() });
    }
    let (most, clamp) = (most(model), clamps(model, progress.range));
    let last = progress.slot * p;
    progress.slot = progress.slot.checked_sub(1).unwrap_or(progress.memory.saturating_sub(1));
    let newest = progress.slot * p;
    // Cells, because for M = 1 the previous sample is overwritten by the newest, and because of the mirror.
    let counts = Cell::from_mut(&mut **counts).as_slice_of_cells();
    let slots = Cell::from_mut(&mut **window).as_slice_of_cells();
    let missing = Err(PushError::OtherModel);
    let Some(previous) = row(counts, last, p) else { return missing };
    let Some(counts) = row(counts, newest, p) else { return missing };
    let Some(slot) = row(slots, newest, p) else { return missing };
    let Some(mirror) = row(slots, newest + p * progress.memory, p) else { return missing };
    let Some(inputs) = model.inputs.get(..p) else { return missing };
    if progress.taken == 0 {
        previous.iter().zip(inputs).for_each(|(place, input)| place.set(input.mean()));
    }
    let mut noticed = 0;
    let places = counts.iter().zip(previous).zip(slot).zip(mirror);
    for (((value, flags), input), (((raw, previous), slot), mirror)) in
        sample.iter().zip(&mut **channels).zip(inputs).zip(places)
    {
        let (taken, mut odd) = match count(input, value) {
            Some(count) => (count, 0),
            None => (previous.get(), ChannelFlags::HELD),
        };
        raw.set(taken);
        let mut c = taken;
        if taken < input.low {
            odd |= ChannelFlags::BELOW;
            c = if clamp { input.low } else { c };
        }
        if taken > input.high {
            odd |= ChannelFlags::ABOVE;
            c = if clamp { input.high } else { c };
        }
        let (x, change) = limit(input.scale(c.into()), most);
        // A limit is a range too.
        if change != 0 {
            odd |= if x < 0 { ChannelFlags::BELOW } else { ChannelFlags::ABOVE };
        }
        slot.set(x as i16);
        mirror.set(x as i16);
        *flags = ChannelFlags(odd);
        noticed |= odd;
    }
    progress.note(noticed, model.felt() as u32, model.felt() as u32);
    Ok(filter(model, parts))
}

/// Lets the filters take the sample that was entered last.
#[inline]
fn filter(model: &Model<'_>, parts: &mut Parts<'_>) -> usize {
    let Parts { window, signals, progress, .. } = parts;
    if !model.stage.runs.is_empty() {
        let cells = Cell::from_mut(&mut **window).as_slice_of_cells();
        let window = row(cells, progress.slot * progress.inputs, progress.inputs * progress.memory);
        let signals = Cell::from_mut(&mut **signals).as_slice_of_cells();
        // Until all averages are exponential; afterwards a division less.
        let mean =
            if progress.taken > progress.settled { 0 } else { (1 << ALPHA) / progress.taken.max(1) as i32 };
        let limited =
            stage::filter(model.stage.runs, window.unwrap_or_default(), signals, progress.taken, mean);
        if limited {
            progress.range_left = progress.range_left.max(model.felt() as u32);
        }
    }
    progress.remaining()
}

/// The largest x at an input: in front of filters all of 16 bits, since features have limits of their own.
#[inline]
fn most(model: &Model<'_>) -> i32 {
    if model.stage.features.is_empty() { 1 << model.bits } else { LIMIT }
}

/// Whether inputs are clamped: where features are listed, those are, and their filters see what comes.
#[inline]
fn clamps(model: &Model<'_>, range: Option<RangePolicy>) -> bool {
    model.stage.features.is_empty() && range.unwrap_or(model.range_policy()) != RangePolicy::Pass
}

/// `p` values from `at` on.
#[inline]
fn row<T>(all: &[Cell<T>], at: usize, p: usize) -> Option<&[Cell<T>]> {
    all.get(at..)?.get(..p)
}

/// Fills the window anew from the counts, with the scaling of `model`, and recounts what is out of its range. Filters go on as they
/// are.
pub(super) fn rescale(model: &Model<'_>, parts: &mut Parts<'_>) {
    let Parts { counts, window, progress, signals, .. } = parts;
    progress.checksum = model.checksum();
    progress.settled = model.settled() as u32;
    if signals.is_empty() {
        progress.range_left = 0;
    }
    let (most, clamp) = (most(model), clamps(model, progress.range));
    let p = progress.inputs;
    let (lower, upper) = window.split_at_mut_checked(p * progress.memory).unwrap_or_default();
    for age in (0..progress.memory.min(progress.taken as usize)).rev() {
        let slot = progress.slot + age;
        let first = p * if slot < progress.memory { slot } else { slot - progress.memory };
        let (Some(counts), Some(lower), Some(upper)) =
            (counts.get(first..), lower.get_mut(first..), upper.get_mut(first..))
        else {
            return;
        };
        for ((&count, input), (slot, mirror)) in
            counts.iter().zip(model.inputs).zip(lower.iter_mut().zip(upper))
        {
            let inside = count.max(input.low).min(input.high);
            let (x, change) = limit(input.scale(if clamp { inside } else { count }.into()), most);
            if inside != count || change != 0 {
                progress.range_left = progress.range_left.max((model.felt() - age) as u32);
            }
            *slot = x as i16;
            *mirror = x as i16;
        }
    }
}
