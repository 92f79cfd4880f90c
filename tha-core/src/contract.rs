//! The ensemble: every head gathers its features, contracts its cores ([`kernel`]) and adds its weighted share to the outputs.

use core::cell::Cell;

use crate::kernel::{self, Features};
use crate::model::Model;
use crate::stage::Stage;

/// What the heads see of the newest sample, and where they gather it.
pub(crate) struct View<'w, 'a> {
    pub stage: &'w Stage<'a>,
    /// The last M samples of so many inputs, newest first.
    pub window: &'w [f32],
    pub inputs: usize,
    /// The features, the cells of the mapped ones, and what is beyond the range; empty where the features are the window.
    pub z: &'w mut [f32],
    pub cells: &'w mut [f32],
    pub beyond: &'w mut [f32],
    /// Room for the features and the mapped features of a head.
    pub gathered: &'w mut [f32],
    pub rows: &'w mut [f32],
}

/// A head in one of the outputs it serves, where the weights follow the measured outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    #[cfg(feature = "monitor")]
    pub output: usize,
    pub weight: f32,
    /// What it said to the last sample, standardised.
    pub y: f32,
}

/// Adds what the heads say to the outputs `y`, with the weights in the file or, if there are any, with those of `followed`, which
/// then learn what was said; `t` is room for the sums of a head. Compiled with this crate and its optimisation level, for speed; what
/// is around it, with the firmware.
#[inline(never)]
pub(crate) fn add(
    model: &Model<'_>,
    view: &mut View<'_, '_>,
    t: &mut [f32],
    mut followed: &mut [Value],
    y: &mut [f32],
) {
    for head in model.heads() {
        let Some(t) = t.get_mut(..head.sums) else { break };
        let features = if !view.z.is_empty() {
            view.staged(head.features, head.q)
        } else {
            let mut x = view.window;
            if head.inputs.len() != view.inputs {
                let Some(gathered) = view.gathered.get_mut(..head.q.wrapping_sub(1)) else { break };
                gather(view.window, view.inputs, head.inputs, gathered);
                x = gathered;
            }
            Features { x, rows: &[], t: &[], q: head.q }
        };
        kernel::sums(&features, head.cores, t);
        let v = kernel::chain(head.ranks, t);
        if let (&[weight], [v], true) = (head.weights, v, followed.is_empty()) {
            if let Some(y) = y.get_mut(head.first) {
                *y += weight * v.get();
            }
            continue;
        }
        let (own, rest) =
            core::mem::take(&mut followed).split_at_mut_checked(head.outputs).unwrap_or_default();
        followed = rest;
        share(head.weights, v, own, y.get_mut(head.first..).unwrap_or_default());
    }
}

impl<'w, 'a> View<'w, 'a> {
    /// Nothing seen yet.
    #[inline]
    pub fn new(stage: &'w Stage<'a>) -> Self {
        let (window, inputs) = Default::default();
        let (z, cells, beyond, gathered, rows) = Default::default();
        Self { stage, window, inputs, z, cells, beyond, gathered, rows }
    }

    /// Those of the listed features that a head uses.
    #[inline(never)]
    fn staged(&mut self, features: &[u32], q: usize) -> Features<'_> {
        let all =
            if features.len() == self.z.len() { &*self.z } else { pick(self.z, features, self.gathered) };
        let plain = cut(self.stage, features, self.cells, self.rows);
        let (x, t) = all.split_at_checked(plain).unwrap_or_default();
        Features { x, rows: self.rows.get(..t.len()).unwrap_or_default(), t, q }
    }
}

/// Adds what a head says, `v`, with the weights in the file, of which format 1 has one for all outputs, or its `own`.
#[inline(never)]
fn share(weights: &[f32], v: &[Cell<f32>], own: &mut [Value], y: &mut [f32]) {
    let step = usize::from(weights.len() > 1);
    for (j, (y, v)) in y.iter_mut().zip(v).enumerate() {
        let mut weight = weights.get(step * j).copied().unwrap_or(0.0);
        if let Some(value) = own.get_mut(j) {
            value.y = v.get();
            weight = value.weight;
        }
        *y += weight * v.get();
    }
}

/// Those of the features `z` that a head uses, where it does not use all.
#[inline(never)]
fn pick<'w>(z: &[f32], features: &[u32], gathered: &'w mut [f32]) -> &'w [f32] {
    for (place, &feature) in gathered.iter_mut().zip(features) {
        *place = z.get(feature as usize).copied().unwrap_or(0.0);
    }
    gathered.get(..features.len()).unwrap_or_default()
}

/// For the mapped ones of the features of a head the row of the lower node of their cell; comes back how many are plain.
#[inline(never)]
fn cut(stage: &Stage<'_>, features: &[u32], cells: &[f32], rows: &mut [f32]) -> usize {
    let first_mapped = stage.plain();
    let plain = features.partition_point(|&feature| (feature as usize) < first_mapped);
    let mut first = 1 + plain as u32;
    let mut place = |(row, (cell, count)): (&mut f32, (&f32, &u32))| {
        *row = f32::from_bits(first.wrapping_add(cell.to_bits()));
        first = first.wrapping_add(*count);
    };
    let all = cells.iter().zip(stage.counts);
    if features.len() - plain == cells.len() {
        rows.iter_mut().zip(all).for_each(place);
    } else {
        for (row, &feature) in rows.iter_mut().zip(features.iter().skip(plain)) {
            let Some(map) = all.clone().nth((feature as usize).wrapping_sub(first_mapped)) else { break };
            place((row, map));
        }
    }
    plain
}

/// The features of a head of lags: its inputs at every lag, newest first. `room` is for just so many.
#[inline]
fn gather(window: &[f32], p: usize, inputs: &[u32], room: &mut [f32]) {
    // Small heads have loops of their own, in which the indices are checked once and stay in registers.
    match *inputs {
        [a] => gather_few(window, p, [a], room),
        [a, b] => gather_few(window, p, [a, b], room),
        [a, b, c] => gather_few(window, p, [a, b, c], room),
        [a, b, c, d] => gather_few(window, p, [a, b, c, d], room),
        _ => gather_many(window, p, inputs, room),
    }
}

#[inline(never)]
fn gather_many(window: &[f32], p: usize, inputs: &[u32], room: &mut [f32]) {
    let (mut places, mut rest) = (room.iter_mut(), window);
    while let Some((lag, later)) = rest.split_at_checked(p) {
        for (&input, place) in inputs.iter().zip(&mut places) {
            *place = lag.get(input as usize).copied().unwrap_or(0.0);
        }
        rest = later;
    }
}

#[inline]
fn gather_few<const K: usize>(window: &[f32], p: usize, inputs: [u32; K], room: &mut [f32]) {
    let p = p.max(1);
    if inputs.iter().any(|&input| input as usize >= p) {
        return;
    }
    for (lag, places) in window.chunks_exact(p).zip(room.as_chunks_mut::<K>().0) {
        for (input, place) in inputs.into_iter().zip(places) {
            *place = lag.get(input as usize).copied().unwrap_or(0.0);
        }
    }
}
