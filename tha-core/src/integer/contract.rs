//! The ensemble: every head gathers its features, contracts its cores ([`kernel`]) and adds its weighted share to the outputs.

use super::head::{Chosen, Heads};
use super::kernel::{self, Features, X};
use super::stage::Stage;

/// What the heads see of the newest sample, and where they work.
pub(super) struct Work<'w, 'a> {
    pub stage: &'w Stage<'a>,
    /// The last M samples of so many inputs, newest first.
    pub window: &'w [i16],
    pub inputs: usize,
    /// The features, and the cells of the mapped ones; empty where the features are the window.
    pub x: &'w [i16],
    pub cells: &'w [u16],
    /// Room for the features, the rows of the mapped ones and the sums of a head.
    pub gathered: &'w mut [X],
    pub rows: &'w mut [u16],
    pub acc: &'w mut [i32],
    /// The unit of the features.
    pub one: i32,
}

/// Adds what the heads say to the outputs `y`; comes back whether a limit changed anything. Compiled with this crate and its
/// optimisation level, for speed; what is around it, with the firmware.
pub(super) fn add(heads: Heads<'_>, work: Work<'_, '_>, y: &mut [i32]) -> bool {
    let Work { stage, window, inputs, x, cells, gathered, rows, acc, one } = work;
    let mut changed = false;
    for head in heads {
        let Some(acc) = acc.get_mut(..head.constants.len()) else { break };
        let used = if head.features.is_empty() {
            gather(window, inputs, head.inputs, gathered)
        } else {
            pick(x, head.features, gathered)
        };
        let (mut plain, mut own_rows) = (used, &[][..]);
        if !cells.is_empty() {
            plain = cut(stage, head.features, cells, rows);
            own_rows = rows.get(..used - plain).unwrap_or_default();
        }
        let Some((plain, t)) = gathered.get(..used).and_then(|own| own.split_at_checked(plain)) else {
            break;
        };
        let features = Features { plain, rows: own_rows, t, one };
        kernel::sums(features, head.rows, head.constants, head.cores, acc);
        let (v, limited) = kernel::chain(head.ranks, head.shifts, acc);
        changed |= limited;
        let served = y.get_mut(head.first..).unwrap_or_default();
        for ((y, weight), v) in served.iter_mut().zip(head.weights).zip(v) {
            *y += i32::from(*weight) * v.get();
        }
    }
    changed
}

/// Those of the features that a head uses; comes back how many.
#[inline(never)]
fn pick(x: &[i16], features: Chosen<'_>, gathered: &mut [X]) -> usize {
    for (place, feature) in gathered.iter_mut().zip(features.iter()) {
        *place = x.get(feature).map_or(0, |&x| X::from(x));
    }
    features.len()
}

/// The features of a head of lags: its inputs at every lag, newest first; comes back how many.
#[inline]
fn gather(window: &[i16], p: usize, inputs: &[u16], room: &mut [X]) -> usize {
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
fn gather_many(window: &[i16], p: usize, inputs: &[u16], room: &mut [X]) -> usize {
    let (mut places, mut rest, mut used) = (room.iter_mut(), window, 0);
    while let Some((lag, later)) = rest.split_at_checked(p.max(1)) {
        for (&input, place) in inputs.iter().zip(&mut places) {
            *place = lag.get(usize::from(input)).map_or(0, |&x| X::from(x));
        }
        (rest, used) = (later, used + inputs.len());
    }
    used
}

#[inline]
fn gather_few<const K: usize>(window: &[i16], p: usize, inputs: [u16; K], room: &mut [X]) -> usize {
    if inputs.iter().any(|&input| usize::from(input) >= p) {
        return 0;
    }
    let (mut rest, mut used) = (window, 0);
    for places in room.as_chunks_mut::<K>().0 {
        let Some((lag, later)) = rest.split_at_checked(p) else { break };
        for (input, place) in inputs.into_iter().zip(places) {
            *place = lag.get(usize::from(input)).map_or(0, |&x| X::from(x));
        }
        (rest, used) = (later, used + K);
    }
    used
}

/// For the mapped ones of the features of a head the row of the lower node of their cell; comes back how many are plain.
#[inline(never)]
fn cut(stage: &Stage<'_>, features: Chosen<'_>, cells: &[u16], rows: &mut [u16]) -> usize {
    let (first_mapped, mut plain) = (stage.plain(), 0);
    let (mut first, mut places) = (0u16, rows.iter_mut());
    for feature in features.iter() {
        let Some(map) = feature.checked_sub(first_mapped) else {
            (plain, first) = (plain + 1, first.wrapping_add(1));
            continue;
        };
        let (Some(place), Some(cell), Some(&count)) = (places.next(), cells.get(map), stage.counts.get(map))
        else {
            break;
        };
        *place = first.wrapping_add(*cell);
        first = first.wrapping_add(count as u16);
    }
    plain
}
