//! The input stage: filters over the standardised inputs, features of their outputs, piecewise-linear maps of the features.
//!
//! *Sections* with the same coefficients whose sources follow one another are one [`Run`]. With n samples since the start,
//!
//! ```text
//! average     s += g (u - s)                      g = max(alpha, 1 / n): a running mean that becomes an exponential one
//! resonator   a = d u + e1 Re q + e2 Im q         all-pass, the source of the next section
//!             q = p q + u                         complex, |p| < 1
//!             y1 = k1 Re q + k2 Im q,  y2 = k3 Im q
//! ```
//!
//! Signals have positions: the window first, newest lag first, p values each; then the runs. A run of averages has one row
//! of values, a run of resonators five: Re q, Im q, y1, y2, a. A *feature* is a signal or the difference of two. A *map* replaces
//! a feature by the cell of its nodes that it lies in and by how far it has come in there.

use bytemuck::{Pod, Zeroable};

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
    /// alpha, or p, k1, k2, k3, d, e1, e2.
    pub coefficients: [f32; 8],
}

impl Run {
    pub const AVERAGE: u32 = 0;
    pub const RESONATOR: u32 = 1;

    /// Rows of `count` values: the first that a feature can use, the one that feeds other sections, and all.
    pub fn rows(&self) -> (usize, usize, usize) {
        if self.kind == Self::AVERAGE { (0, 0, 1) } else { (2, 4, 5) }
    }

    pub fn values(&self) -> usize {
        self.rows().2.wrapping_mul(self.count as usize)
    }
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

    /// For the mapped features of a head, whose rows begin at `first`: the row of the lower node of their cells.
    #[inline]
    pub fn rows(&self, mapped: &[u32], mut first: usize, cells: &[f32], rows: &mut [f32]) {
        for (row, &feature) in rows.iter_mut().zip(mapped) {
            let map = (feature as usize).wrapping_sub(self.plain());
            let (Some(cell), Some(&count)) = (cells.get(map), self.counts.get(map)) else { break };
            *row = f32::from_bits((first as u32).wrapping_add(cell.to_bits()));
            first = first.wrapping_add(count as usize);
        }
    }
}

/// Lets all sections take the newest sample of `window`, the `taken`th since the start.
#[inline]
pub(crate) fn filter(runs: &[Run], window: &[f32], signals: &mut [f32], taken: u32) {
    if taken <= 1 {
        signals.fill(0.0);
    }
    let mean = 1.0 / taken as f32;
    let mut used = 0;
    for run in runs {
        let (earlier, own) = split_at(signals, used);
        let (own, _) = split_at(own, run.values());
        used += own.len();
        let (source, count) = (run.source as usize, run.count as usize);
        let source = match source.checked_sub(window.len()) {
            None => window.get(source..source + count),
            Some(source) => earlier.get(source..source + count),
        };
        let source = source.unwrap_or_default();
        if run.kind == Run::AVERAGE {
            let [alpha, ..] = run.coefficients;
            let gain = if alpha > mean { alpha } else { mean };
            for (s, u) in own.iter_mut().zip(source) {
                *s += gain * (*u - *s);
            }
        } else {
            resonate(run.coefficients, source, own);
        }
    }
}

#[inline]
fn resonate([p_re, p_im, k1, k2, k3, d, e1, e2]: [f32; 8], source: &[f32], own: &mut [f32]) {
    let (re, rest) = split_at(own, source.len());
    let (im, rest) = split_at(rest, source.len());
    let (y1, rest) = split_at(rest, source.len());
    let (y2, a) = split_at(rest, source.len());
    for (((((re, im), y1), y2), a), &u) in re.iter_mut().zip(im).zip(y1).zip(y2).zip(a).zip(source) {
        *a = d * u + e1 * *re + e2 * *im;
        (*re, *im) = (p_re * *re - p_im * *im + u, p_im * *re + p_re * *im);
        *y1 = k1 * *re + k2 * *im;
        *y2 = k3 * *im;
    }
}

/// The features of the newest sample: plain ones as they are, of mapped ones how far they have come in their cell, with the
/// cells (as bits) in `cells`. `beyond` takes what is beyond the range, if it has room. Gives back whether anything is.
#[inline]
pub(crate) fn features(
    stage: &Stage<'_>,
    range: RangePolicy,
    window: &[f32],
    signals: &[f32],
    z: &mut [f32],
    cells: &mut [f32],
    beyond: &mut [f32],
) -> bool {
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
    let mut nodes = stage.nodes;
    let (_, mapped) = split_at(z, stage.plain());
    for ((z, cell), &count) in mapped.iter_mut().zip(cells).zip(stage.counts) {
        let Some((own, later)) = nodes.split_at_checked(count as usize) else { break };
        nodes = later;
        let (which, t) = find(own, *z);
        *cell = f32::from_bits(which);
        *z = t;
    }
    outside
}

/// The cell of increasing `nodes` that `z` lies in, and how far it has come in there, 0 to 1. The same time for every `z`.
#[inline]
fn find(nodes: &[f32], z: f32) -> (u32, f32) {
    let inner = nodes.get(1..nodes.len().wrapping_sub(1)).unwrap_or_default();
    let cell = inner.iter().fold(0, |cell, node| cell + u32::from(z >= *node));
    let (from, to) = match nodes.get(cell as usize..) {
        Some(&[from, to, ..]) => (from, to),
        _ => (0.0, 1.0),
    };
    let t = (z - from) / (to - from);
    (cell, t.clamp(0.0, 1.0))
}
