//! The ensemble: every head gathers its features, contracts its cores ([`kernel`]) and adds its weighted share to the outputs.

use super::head::Heads;
use super::kernel::{self, Features};
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
    pub gathered: &'w mut [i16],
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
        for (acc, constant) in acc.iter_mut().zip(head.constants) {
            *acc = *constant;
        }
        let used = match head.features {
            [] => gather(window, inputs, head.inputs, gathered),
            features => pick(x, features, gathered),
        };
        let Some(own) = gathered.get(..used) else { break };
        let plain = if cells.is_empty() { used } else { cut(stage, head.features, cells, rows) };
        let Some((plain, t)) = own.split_at_checked(plain) else { break };
        kernel::sums(Features { plain, rows, t, one }, head.rows, head.cores, acc);
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
fn pick(x: &[i16], features: &[u16], gathered: &mut [i16]) -> usize {
    for (place, &feature) in gathered.iter_mut().zip(features) {
        *place = x.get(usize::from(feature)).copied().unwrap_or(0);
    }
    features.len()
}

/// The features of a head of lags: its inputs at every lag, newest first; comes back how many.
#[inline]
fn gather(window: &[i16], p: usize, inputs: &[u16], gathered: &mut [i16]) -> usize {
    let (mut places, mut rest) = (gathered.iter_mut(), window);
    while let Some((lag, later)) = rest.split_at_checked(p) {
        for (&input, place) in inputs.iter().zip(&mut places) {
            *place = lag.get(usize::from(input)).copied().unwrap_or(0);
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    inputs.len() * (window.len() / p.max(1))
}

/// For the mapped ones of the features of a head the row of the lower node of their cell; comes back how many are plain.
#[inline(never)]
fn cut(stage: &Stage<'_>, features: &[u16], cells: &[u16], rows: &mut [u16]) -> usize {
    let first_mapped = stage.plain();
    let plain = features.partition_point(|&feature| usize::from(feature) < first_mapped);
    let (mut first, mut places) = (plain as u16, rows.iter_mut());
    for &feature in features.iter().skip(plain) {
        let map = usize::from(feature).wrapping_sub(first_mapped);
        let (Some(place), Some(cell), Some(&count)) = (places.next(), cells.get(map), stage.counts.get(map))
        else {
            break;
        };
        *place = first.wrapping_add(*cell);
        first = first.wrapping_add(count as u16);
    }
    plain
}
