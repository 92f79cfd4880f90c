//! The input stage: filters over the standardised inputs, features of their outputs, piecewise-linear maps of the features.
//!
//! *Sections* with the same coefficients whose sources follow one another are one [`Run`]. With n samples since the start,
//!
//! ```text
//! average     s += g (u - s)                      g = max(alpha, 1 / n): a running mean that becomes an exponential one
//! resonator   a = d u + e1 y1 + e2 y2             all-pass, the source of the next section, if there is one
//!             y1 = b u + c11 y1 + c12 y2          a complex pair of poles inside the unit circle
//!             y2 = c21 y1 + c22 y2
//! ```
//!
//! where the y on the right are those before. Signals have positions: the window first, newest lag first, p values each; then the runs. A
//! run of averages has one row of values, a run of resonators two, y1 and y2, and the row a where it feeds others. A *feature* is a signal or
//! the difference of two. A *map* replaces a feature by the cell of its nodes that it lies in and by how far it has come in there.

use core::cell::Cell;
use core::hint::black_box;

use bytemuck::{Pod, Zeroable};

use crate::contract::View;
use crate::format::RangePolicy;
use crate::kernel::split_at;

/// Sections with the same coefficients, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub(crate) struct Run {
    pub kind: u32,
    /// Position of the source of the first section; the others follow.
    pub source: u32,
    /// Sections.
    pub count: u32,
    /// alpha, or c11, c12, c21, c22, b, d, e1, e2.
    pub coefficients: [f32; 8],
}

impl Run {
    pub const AVERAGE: u32 = 0;
    /// Resonators that feed no other sections. (1 was another form of them.)
    pub const RESONATOR: u32 = 2;
    pub const FEEDING: u32 = 3;

    /// Rows of `count` values, of which the last feeds other sections, if any does.
    pub fn rows(&self) -> usize {
        rows(self.kind)
    }

    pub fn values(&self) -> usize {
        self.rows().wrapping_mul(self.count as usize)
    }
}

/// Rows of a run, in floats as in integers: the kind of resonators is how many they have.
pub(crate) fn rows(kind: u32) -> usize {
    if kind == Run::AVERAGE { 1 } else { kind as usize }
}

/// z = plus - minus, seen between low and high in training.
#[derive(Clone, Copy, Debug, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub(crate) struct FeatureRecord {
    /// Positions; `minus` is [`NONE`](Self::NONE) where nothing is subtracted.
    pub plus: u32,
    pub minus: u32,
    pub low: f32,
    pub high: f32,
}

impl FeatureRecord {
    pub const NONE: u32 = u32::MAX;
}

/// The tables of the stage. All empty: the features are the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stage<'a> {
    pub runs: &'a [Run],
    pub features: &'a [FeatureRecord],
    /// Nodes of the mapped features, which are the last of all.
    pub counts: &'a [u32],
    pub nodes: &'a [f32],
    /// Coefficients of what is beyond the range, output by output; empty without them.
    pub linear: &'a [f32],
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

/// Lets all sections take the newest sample of `window`, the `taken`th since the start.
#[inline(never)]
pub(crate) fn filter(runs: &[Run], window: &[Cell<f32>], signals: &[Cell<f32>], taken: u32) {
    if taken <= 1 {
        let zero = black_box(0.0);
        signals.iter().for_each(|signal| signal.set(zero));
    }
    let mean = 1.0 / taken as f32;
    let mut rest = signals;
    for run in runs {
        let (source, count) = (run.source as usize, run.count as usize);
        let from = match source.checked_sub(window.len()) {
            None => window.get(source..),
            Some(source) => signals.get(source..),
        };
        let Some(from) = from.and_then(|from| from.get(..count)) else { return };
        rest = if run.kind == Run::AVERAGE {
            let Some((own, values)) = rest.split_at_checked(count) else { return };
            let [alpha, ..] = run.coefficients;
            average(if alpha > mean { alpha } else { mean }, from, own);
            values
        } else {
            let Some((own, values)) = rest.split_at_checked(run.values()) else { return };
            resonate(&run.coefficients, from, own);
            values
        };
    }
}

#[inline]
fn average(gain: f32, source: &[Cell<f32>], own: &[Cell<f32>]) {
    let step = |(s, u): (&Cell<f32>, &Cell<f32>)| s.set(s.get() + gain * (u.get() - s.get()));
    // Four at a time: the loop costs as much as one.
    let ((fours, ones), (from, last)) = (own.as_chunks::<4>(), source.as_chunks::<4>());
    for (own, source) in fours.iter().zip(from) {
        own.iter().zip(source).for_each(step);
    }
    ones.iter().zip(last).for_each(step);
}

#[inline(never)]
fn resonate(&[c11, c12, c21, c22, b, d, e1, e2]: &[f32; 8], source: &[Cell<f32>], own: &[Cell<f32>]) {
    let Some((first, own)) = own.split_at_checked(source.len()) else { return };
    let Some((second, feed)) = own.split_at_checked(source.len()) else { return };
    if !feed.is_empty() {
        for ((a, u), (y1, y2)) in feed.iter().zip(source).zip(first.iter().zip(second)) {
            a.set(d * u.get() + e1 * y1.get() + e2 * y2.get());
        }
    }
    let step = |((y1, y2), u): ((&Cell<f32>, &Cell<f32>), &Cell<f32>)| {
        let (one, two) = (y1.get(), y2.get());
        y1.set(b * u.get() + c11 * one + c12 * two);
        y2.set(c21 * one + c22 * two);
    };
    // Two at a time: four would take more flash than there is.
    let ((y1, last1), (y2, last2), (u, last)) =
        (first.as_chunks::<2>(), second.as_chunks::<2>(), source.as_chunks::<2>());
    for ((y1, y2), u) in y1.iter().zip(y2).zip(u) {
        y1.iter().zip(y2).zip(u).for_each(step);
    }
    last1.iter().zip(last2).zip(last).for_each(step);
}

/// The features of the newest sample: plain ones as they are, of mapped ones how far they have come in their cell, with the
/// cells as bits; what is beyond the range, if there is a linear part for it. All in `room`, with rows for as many `mapped` ones of a head.
/// Gives back whether anything is beyond. `SMALL` as in [`run`](crate::push::run).
#[inline(never)]
pub(crate) fn features<'w, const SMALL: bool>(
    view: &mut View<'w, '_>,
    mapped: usize,
    range: RangePolicy,
    signals: &[f32],
    room: &'w mut [f32],
) -> bool {
    let View { stage, window, z, cells, beyond, rows, .. } = view;
    let rest;
    (*z, rest) = split_at(room, stage.features.len());
    let (own, rest) = split_at(rest, stage.counts.len());
    *cells = own;
    let (own, rest) = split_at(rest, if stage.linear.is_empty() { 0 } else { stage.features.len() });
    *beyond = own;
    *rows = split_at(rest, mapped).0;
    let at = |position: u32| {
        let position = position as usize;
        let value = match position.checked_sub(window.len()) {
            None => window.get(position),
            Some(position) => signals.get(position),
        };
        value.copied().unwrap_or(0.0)
    };
    let clamps = range != RangePolicy::Pass;
    let mut outside = false;
    let mut beyond = beyond.iter_mut();
    for (z, feature) in z.iter_mut().zip(stage.features) {
        let mut value = at(feature.plus);
        if feature.minus != FeatureRecord::NONE {
            value -= at(feature.minus);
        }
        let mut clamped = if value < feature.low { feature.low } else { value };
        clamped = if clamped > feature.high { feature.high } else { clamped };
        let excess = value - clamped;
        outside |= excess != 0.0;
        *z = if clamps { clamped } else { value };
        if let Some(beyond) = beyond.next() {
            *beyond = excess;
        }
    }
    if !cells.is_empty() {
        locate(stage, split_at(z, stage.plain()).1, cells);
    }
    outside
}

/// Limits what is beyond the range to the width of the range: the linear part goes on no farther.
#[inline(never)]
pub(crate) fn limit(stage: &Stage<'_>, beyond: &mut [f32]) {
    for (beyond, feature) in beyond.iter_mut().zip(stage.features) {
        let width = feature.high - feature.low;
        let above = if *beyond < -width { -width } else { *beyond };
        *beyond = if above > width { width } else { above };
    }
}

/// Replaces mapped features by how far they have come in their cells.
#[inline(never)]
fn locate(stage: &Stage<'_>, z: &mut [f32], cells: &mut [f32]) {
    let mut nodes = stage.nodes;
    for ((z, cell), &count) in z.iter_mut().zip(cells).zip(stage.counts) {
        let Some((own, later)) = nodes.split_at_checked(count as usize) else { break };
        nodes = later;
        let Some((which, t)) = find(own, *z) else { break };
        *cell = f32::from_bits(which);
        *z = t;
    }
}

/// The cell of increasing `nodes` that `z` lies in, and how far it has come in there, 0 to 1. The same time for every `z`.
#[inline]
fn find(nodes: &[f32], z: f32) -> Option<(u32, f32)> {
    let [_, inner @ .., _] = nodes else { return None };
    // The node in the middle says which half to look at. With an even number of nodes it belongs to both.
    let half = inner.len() / 2;
    let start = if inner.get(half).is_some_and(|middle| *middle <= z) { inner.len() - half } else { 0 };
    // The sign of z - node says which nodes are above z; adding 0 to z makes equal ones differ by +0.
    let positive = z + 0.0;
    let above = |cell: usize, node: &f32| cell - ((positive - *node).to_bits() >> 31) as usize;
    let cell = inner.get(start..)?.get(..half)?.iter().fold(start + half, above);
    let &[from, to, ..] = nodes.get(cell..)? else { return None };
    let t = (z - from) / (to - from);
    // Clamped as whole numbers, which have the same order from 0 on.
    let t = t.to_bits() as i32;
    Some((cell as u32, f32::from_bits((t & !(t >> 31)).min(1.0f32.to_bits() as i32) as u32)))
}
