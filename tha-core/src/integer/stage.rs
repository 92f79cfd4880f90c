//! Filters, features and maps in integers.
//!
//! A signal is an input in its unit times 2^15, at most 2^30 - 1 in size. With n samples since the start,
//!
//! ```text
//! average     s += round(g (u - s))                        g = max(alpha, 1 / n), 30 bits behind the point; 64-bit product
//! resonator   y1, y2 = limit(round(C y + (b u, 0)))         and a the same with its own coefficients, all in a unit of their own
//! feature     z = round((plus - minus) gain >> shift), of a mapped feature with 8 bits more than x has
//! map         cell c, t = round(2^bits (z - n_c) / (n_{c+1} - n_c)), by a stored inverse of 16 bits
//! ```
//!
//! **No dead zone, no limit cycle of a unit.** An average errs in every step by at most half of its last bit, and (1 - alpha) of that stays:
//! together at most 1 / (2 alpha) last bits, 2^-15 units each. With the time constant T = 1 / alpha that is T / 2^16 of a unit: 1/64 for T = 1024, and
//! below half a unit up to T = 2^15. A constant input is reached up to that, and s never leaves the range of its input, because
//! rounding what lies between two whole numbers stays between them. So an average needs no limit.

use core::cell::Cell;
use core::hint::black_box;

use bytemuck::{Pod, Zeroable};

use super::{ALPHA, FINE, FRACTION, LIMIT, limit};
use crate::format::RangePolicy;
use crate::stage::rows;

/// Sections with the same coefficients, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub struct Run {
    /// 0: averages, 2: resonators, 3: resonators that feed others.
    pub kind: u16,
    /// Bits behind the point of the coefficients.
    pub shift: u16,
    /// Position of the source of the first section; the others follow.
    pub source: u32,
    /// Sections.
    pub count: u32,
    /// alpha; or c11, c12, b, c21, c22, d, e1, e2, and the unit, which b and d have in them.
    pub coefficients: [i32; 9],
}

impl Run {
    /// The kind of averages.
    pub const AVERAGE: u16 = 0;
    /// The kind of resonators that feed no other sections.
    pub const RESONATOR: u16 = 2;
    /// The kind of resonators that do.
    pub const FEEDING: u16 = 3;

    /// Rows of `count` values: one; y1 and y2; or y1, y2 and a.
    #[must_use]
    pub fn rows(&self) -> usize {
        rows(self.kind.into())
    }

    pub(crate) fn values(&self) -> usize {
        self.rows().wrapping_mul(self.count as usize)
    }
}

/// z = (plus - minus) gain >> shift, rounded, seen between low and high in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub struct FeatureRecord {
    /// Position.
    pub plus: u16,
    /// Position, or [`NONE`](Self::NONE) where nothing is subtracted.
    pub minus: u16,
    /// A gain of ten bits, times 2^6, and a shift of six.
    pub scale: u16,
    /// Smallest value in training; of a mapped feature without its last [`FINE`] bits.
    pub low: i16,
    /// Largest value in training, likewise.
    pub high: i16,
}

impl FeatureRecord {
    /// No position.
    pub const NONE: u16 = u16::MAX;

    /// Multiplied first; positive.
    #[must_use]
    pub fn gain(&self) -> i32 {
        i32::from(self.scale >> 6)
    }

    /// Then shifted to the right.
    #[must_use]
    pub fn shift(&self) -> u32 {
        u32::from(self.scale & 63)
    }
}

/// A node of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub struct Node {
    /// Where, without the last [`FINE`] bits that a mapped feature has.
    pub at: i16,
    /// 2^(15 + L) / w, with w the distance to the next node, of L bits; of the last node anything.
    pub inverse: u16,
}

/// The tables of the stage. All empty: the features are the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stage<'a> {
    pub runs: &'a [Run],
    pub features: &'a [FeatureRecord],
    /// Nodes of the mapped features, which are the last of all.
    pub counts: &'a [u32],
    pub nodes: &'a [Node],
    /// Coefficients of what is beyond the range, output by output, and how far their sums are shifted; empty without them.
    pub linear: &'a [i16],
    pub linear_shifts: &'a [u32],
    /// Values of all runs.
    pub signals: usize,
}

impl Stage<'_> {
    /// Features that are not mapped.
    #[inline]
    pub fn plain(&self) -> usize {
        self.features.len().saturating_sub(self.counts.len())
    }
}

/// round(a b / 2^shift) for a sum of such products: half of what is cut off is added first.
#[inline]
fn round(products: i64, shift: u32) -> i64 {
    (products + ((1i64 << shift) >> 1)) >> shift
}

#[inline]
fn times(a: i32, b: i32) -> i64 {
    i64::from(a) * i64::from(b)
}

/// Within +-(2^30 - 1), and whether it was not.
#[inline]
fn signal(value: i64) -> (i32, bool) {
    const MOST: i64 = (1 << 30) - 1;
    let limited = value.clamp(-MOST, MOST);
    (limited as i32, limited != value)
}

/// Lets all sections take the newest sample of `window`, the `taken`th since the start; comes back whether a limit changed anything.
#[inline(never)]
pub(super) fn filter(
    runs: &[Run],
    window: &[Cell<i16>],
    signals: &[Cell<i32>],
    taken: u32,
    mean: i32,
) -> bool {
    if taken <= 1 {
        let zero = black_box(0);
        signals.iter().for_each(|signal| signal.set(zero));
    }
    let (mut rest, mut changed) = (signals, false);
    for run in runs {
        let Some((own, values)) = rest.split_at_checked(run.values()) else { break };
        let (source, count) = (run.source as usize, run.count as usize);
        let at = |k: usize| match source.wrapping_add(k).checked_sub(window.len()) {
            None => window.get(source.wrapping_add(k)).map_or(0, |x| i32::from(x.get()) << FRACTION),
            Some(k) => signals.get(k).map_or(0, Cell::get),
        };
        if run.kind == Run::AVERAGE {
            let [alpha, ..] = run.coefficients;
            let gain = if alpha > mean { alpha } else { mean };
            for (k, s) in own.iter().enumerate() {
                s.set(s.get() + round(times(gain, at(k) - s.get()), ALPHA) as i32);
            }
        } else {
            changed |= resonate(run, own, count, at);
        }
        rest = values;
    }
    changed
}

#[inline(never)]
fn resonate(run: &Run, own: &[Cell<i32>], count: usize, at: impl Fn(usize) -> i32) -> bool {
    let [c11, c12, b, c21, c22, d, e1, e2, _] = run.coefficients;
    let (Some((first, own)), mut changed) = (own.split_at_checked(count), false) else { return false };
    let Some((second, feed)) = own.split_at_checked(count) else { return false };
    let mut set = |place: &Cell<i32>, products: i64| {
        let (value, change) = signal(round(products, run.shift.into()));
        place.set(value);
        changed |= change;
    };
    for (k, (y1, y2)) in first.iter().zip(second).enumerate() {
        let (one, two, u) = (y1.get(), y2.get(), at(k));
        if let Some(a) = feed.get(k) {
            set(a, times(d, u) + times(e1, one) + times(e2, two));
        }
        set(y1, times(c11, one) + times(c12, two) + times(b, u));
        set(y2, times(c21, one) + times(c22, two));
    }
    changed
}

/// Where the features of a sample go.
pub(super) struct Room<'r> {
    /// Plain ones as they are, of mapped ones how far they have come in their cell.
    pub x: &'r mut [i16],
    /// The cells of the mapped ones.
    pub cells: &'r mut [u16],
    /// What is beyond the range, if it has room.
    pub beyond: &'r mut [i16],
}

/// The features of the newest sample. Gives back whether anything is out of its range.
#[inline(never)]
pub(super) fn features(
    stage: &Stage<'_>,
    range: RangePolicy,
    bits: u32,
    window: &[i16],
    signals: &[i32],
    room: &mut Room<'_>,
) -> bool {
    let at = |position: u16| {
        let position = usize::from(position);
        match position.checked_sub(window.len()) {
            None => window.get(position).map_or(0, |x| i32::from(*x) << FRACTION),
            Some(position) => signals.get(position).copied().unwrap_or(0),
        }
    };
    let (plain, mut outside, mut nodes) = (stage.plain(), false, stage.nodes);
    let mut maps = room.cells.iter_mut().zip(stage.counts);
    let mut beyond = room.beyond.iter_mut();
    for (k, (x, feature)) in room.x.iter_mut().zip(stage.features).enumerate() {
        let mut value = at(feature.plus);
        if feature.minus != FeatureRecord::NONE {
            value -= at(feature.minus);
        }
        let value = round(times(value, feature.gain()), feature.shift());
        // Far above all limits.
        let value = value.clamp(-(1 << 30), 1 << 30) as i32;
        let fine = if k < plain { 0 } else { FINE };
        let clamped = value.max(i32::from(feature.low) << fine).min(i32::from(feature.high) << fine);
        outside |= value != clamped;
        if let Some(beyond) = beyond.next() {
            // The linear part goes on for the width of the range.
            let width = (i32::from(feature.high) - i32::from(feature.low)).min(LIMIT);
            *beyond = limit((value - clamped) >> fine, width).0 as i16;
        }
        let value = if range == RangePolicy::Pass { value } else { clamped };
        *x = if k < plain {
            limit(value, 1 << bits).0 as i16
        } else {
            let Some((cell, &count)) = maps.next() else { break };
            let Some((own, later)) = nodes.split_at_checked(count as usize) else { break };
            nodes = later;
            let Some((which, t)) = find(own, value, bits) else { break };
            *cell = which;
            t
        };
    }
    outside
}

/// The cell of increasing `nodes` that `z` lies in, and how far it has come in there, 0 to 2^bits. The same time for every `z`.
#[inline]
fn find(nodes: &[Node], z: i32, bits: u32) -> Option<(u16, i16)> {
    let [_, inner @ .., _] = nodes else { return None };
    let place = |node: Node| i32::from(node.at) << FINE;
    let cell: usize = inner.iter().map(|node| usize::from(place(*node) <= z)).sum();
    let &[from, to, ..] = nodes.get(cell..)? else { return None };
    let width = (i32::from(to.at) - i32::from(from.at)) as u32;
    let size = 32 - width.leading_zeros();
    // Of the 8 + L bits of the way 16 are left, or all: with the 16 of the inverse the product has at most 32.
    let down = (size + FINE).saturating_sub(16);
    let come = (z.max(place(from)).min(place(to)) - place(from)) as u32 >> down;
    let product = come.wrapping_mul(u32::from(from.inverse));
    let shift = (15 + size + FINE - down).wrapping_sub(bits);
    let t = (product >> shift) + (product >> shift.wrapping_sub(1) & 1);
    Some((cell as u16, t.min(1 << bits) as i16))
}
