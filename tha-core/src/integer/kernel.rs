//! The contraction y = V1(x) V2(x) ... Vd(x) in integers, right to left, with vectors only.
//!
//! Layout: the sums of all cores of a head, Vd first, V1 last, b fastest, are one list, with a sum of zeros behind it where their number is odd.
//! Two neighbours share their words: word i of a pair has coefficient i of the first in its lower half and of the second in its upper
//! half. So one load of x_i and one of a word feed two sums, whatever row a mapped feature chooses.

use core::cell::Cell;

use super::{LIMIT, Shifts, limit};

/// The features of a head.
#[derive(Clone, Copy)]
pub(super) struct Features<'x> {
    /// The plain ones, without the leading 1.
    pub plain: &'x [i16],
    /// Of the mapped ones: the row of the lower node, and how far they have come from there, 0 to `one`.
    pub rows: &'x [u16],
    pub t: &'x [i16],
    pub one: i32,
}

/// Two pairs at a time share the loads of x. A Cortex-M0, known by having no atomics, has registers for one.
const TWO_PAIRS: bool = !cfg!(all(target_arch = "arm", not(target_has_atomic = "32")));

/// All sums of a head, of `rows` coefficients each; `acc` has their constants.
#[inline]
pub(super) fn sums(x: Features<'_>, rows: usize, mut cores: &[u32], acc: &mut [i32]) {
    let (mut pairs, _) = acc.as_chunks_mut::<2>();
    if TWO_PAIRS {
        let (quads, _) = pairs.as_chunks_mut::<2>();
        for quad in quads.iter_mut() {
            let Some((first, rest)) = cores.split_at_checked(rows) else { return };
            let Some((second, rest)) = rest.split_at_checked(rows) else { return };
            add_two(x, [first, second], quad);
            cores = rest;
        }
        let done = 2 * quads.len();
        pairs = pairs.get_mut(done..).unwrap_or_default();
    }
    for pair in pairs {
        let Some((own, rest)) = cores.split_at_checked(rows) else { return };
        add_one(x, own, pair);
        cores = rest;
    }
}

/// The halves of a word.
#[inline]
pub(super) fn halves(word: u32) -> [i32; 2] {
    [i32::from(word as i16), (word as i32) >> 16]
}

#[inline]
fn add_one(x: Features<'_>, words: &[u32], pair: &mut [i32; 2]) {
    let [mut a, mut b] = *pair;
    for (&word, &x) in words.iter().zip(x.plain) {
        let (low, high) = (halves(word), i32::from(x));
        a += low[0] * high;
        b += low[1] * high;
    }
    for (&row, &upper) in x.rows.iter().zip(x.t) {
        let Some(&[from, to, ..]) = words.get(usize::from(row)..) else { break };
        let (upper, lower) = (i32::from(upper), x.one - i32::from(upper));
        let (from, to) = (halves(from), halves(to));
        a += from[0] * lower + to[0] * upper;
        b += from[1] * lower + to[1] * upper;
    }
    *pair = [a, b];
}

#[inline]
fn add_two(x: Features<'_>, [first, second]: [&[u32]; 2], quad: &mut [[i32; 2]; 2]) {
    let [[mut a, mut b], [mut c, mut d]] = *quad;
    for ((&one, &two), &x) in first.iter().zip(second).zip(x.plain) {
        let (one, two, x) = (halves(one), halves(two), i32::from(x));
        a += one[0] * x;
        b += one[1] * x;
        c += two[0] * x;
        d += two[1] * x;
    }
    for (&row, &upper) in x.rows.iter().zip(x.t) {
        let row = usize::from(row);
        let (Some(&[one, three, ..]), Some(&[two, four, ..])) = (first.get(row..), second.get(row..)) else {
            break;
        };
        let (upper, lower) = (i32::from(upper), x.one - i32::from(upper));
        let (one, two, three, four) = (halves(one), halves(two), halves(three), halves(four));
        a += one[0] * lower + three[0] * upper;
        b += one[1] * lower + three[1] * upper;
        c += two[0] * lower + four[0] * upper;
        d += two[1] * lower + four[1] * upper;
    }
    *quad = [[a, b], [c, d]];
}

/// Multiplies the sums of a head out, right to left; `ranks` are r_0, ..., r_d = 1. Come back the r_0 values, and whether a
/// limit changed anything on the way. Every vector overwrites the first sums of its core: row a is read before place a is written.
#[inline]
pub(super) fn chain<'t>(ranks: &[u32], shifts: &[Shifts], acc: &'t mut [i32]) -> (&'t [Cell<i32>], bool) {
    let acc = Cell::from_mut(acc).as_slice_of_cells();
    let ([lefts @ .., right, _], [earlier @ .., last]) = (ranks, shifts) else { return (&[], false) };
    let Some((mut v, mut rest)) = acc.split_at_checked(*right as usize) else { return (&[], false) };
    let mut changed = 0;
    for place in v {
        let (value, change) = limit(place.get() >> last.sum, LIMIT);
        place.set(value);
        changed |= change;
    }
    for (&left, shifts) in lefts.iter().zip(earlier).rev() {
        let Some((core, later)) = rest.split_at_checked((left as usize).wrapping_mul(v.len())) else { break };
        let Some(out) = core.get(..left as usize) else { break };
        let half = (1 << shifts.product) >> 1;
        let mut row = core;
        for place in out {
            let Some((own, others)) = row.split_at_checked(v.len()) else { break };
            let terms = own.iter().zip(v).map(|(acc, v)| (acc.get() >> shifts.sum) * v.get());
            let sum = terms.fold(half, |sum, term| sum + term);
            let (value, change) = limit(sum >> shifts.product, LIMIT);
            place.set(value);
            changed |= change;
            row = others;
        }
        (v, rest) = (out, later);
    }
    (v, changed != 0)
}
