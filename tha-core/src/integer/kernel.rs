//! The contraction y = V1(x) V2(x) ... Vd(x) in integers, right to left, with vectors only.
//!
//! Layout: the sums of all cores of a head, Vd first, V1 last, b fastest, are one list, cut into blocks of four while there are so many, then of
//! two and of one. In a block the coefficients of its sums for the same feature stand side by side. So one load of x_i and one of a word feed
//! two sums, whatever row a mapped feature chooses.

use core::cell::Cell;

use super::Shifts;
use super::head::cast;

/// The features of a head.
#[derive(Clone, Copy)]
pub(super) struct Features<'x> {
    /// The plain ones, without the leading 1.
    pub plain: &'x [X],
    /// Of the mapped ones: the row of the lower node, and how far they have come from there, 0 to `one`.
    pub rows: &'x [u16],
    pub t: &'x [X],
    pub one: i32,
}

/// Two numbers of 16 bits. RISC-V loads halves and extends their sign in one instruction; the others need fewer for a word.
#[cfg(target_arch = "riscv32")]
pub(super) type Word = [i16; 2];
#[cfg(not(target_arch = "riscv32"))]
pub(super) type Word = u32;

#[cfg(target_arch = "riscv32")]
#[inline]
pub(super) fn halves([low, high]: &Word) -> [i32; 2] {
    [i32::from(*low), i32::from(*high)]
}

/// The halves of a word.
#[cfg(not(target_arch = "riscv32"))]
#[inline]
pub(super) fn halves(word: &Word) -> [i32; 2] {
    [i32::from(*word as i16), (*word as i32) >> 16]
}

// A Cortex-M0 is known by having no atomics.
#[cfg_attr(all(target_arch = "arm", not(target_has_atomic = "32")), path = "kernel/narrow.rs")]
#[cfg_attr(not(all(target_arch = "arm", not(target_has_atomic = "32"))), path = "kernel/wide.rs")]
mod plain;

pub(super) use plain::X;

/// All sums of a head, of `rows` coefficients each.
#[inline]
pub(super) fn sums(x: Features<'_>, rows: usize, constants: &[i32], cores: &[Word], acc: &mut [i32]) {
    let ((starts, start), (places, place)) = (constants.as_chunks::<4>(), acc.as_chunks_mut::<4>());
    let blocks = cores.as_chunks::<2>().0;
    plain::plain(x.plain, rows, starts, blocks, places);
    if !x.rows.is_empty() {
        mapped(x, rows, blocks, places);
    }
    if !start.is_empty() {
        few(x, rows, start, cores.get(2 * starts.len() * rows..).unwrap_or_default(), place);
    }
}

/// Adds the mapped features to blocks of four.
#[inline(never)]
fn mapped(x: Features<'_>, rows: usize, mut cores: &[[Word; 2]], out: &mut [[i32; 4]]) {
    for out in out {
        let Some((own, rest)) = cores.split_at_checked(rows) else { break };
        let [mut a, mut b, mut c, mut d] = *out;
        for (&row, &t) in x.rows.iter().zip(x.t) {
            let Some([[w, v], [y, z], ..]) = own.get(usize::from(row)..) else { break };
            let (lower, upper) = (x.one - i32::from(t), i32::from(t));
            let (w, v, y, z) = (halves(w), halves(v), halves(y), halves(z));
            a += w[0] * lower + y[0] * upper;
            b += w[1] * lower + y[1] * upper;
            c += v[0] * lower + z[0] * upper;
            d += v[1] * lower + z[1] * upper;
        }
        *out = [a, b, c, d];
        cores = rest;
    }
}

/// The sums behind the blocks of four: two, one or both.
#[inline(never)]
fn few(x: Features<'_>, rows: usize, starts: &[i32], cores: &[Word], out: &mut [i32]) {
    let ((starts, start), (places, place)) = (starts.as_chunks::<2>(), out.as_chunks_mut::<2>());
    let (pair, one) = cores.split_at_checked(starts.len() * rows).unwrap_or_default();
    if let ([start], [place]) = (starts, places) {
        let [mut a, mut b] = *start;
        for (w, &x) in pair.iter().zip(x.plain) {
            let (w, x) = (halves(w), i32::from(x));
            a += w[0] * x;
            b += w[1] * x;
        }
        for (&row, &t) in x.rows.iter().zip(x.t) {
            let Some([w, y, ..]) = pair.get(usize::from(row)..) else { break };
            let (lower, upper) = (x.one - i32::from(t), i32::from(t));
            let (w, y) = (halves(w), halves(y));
            a += w[0] * lower + y[0] * upper;
            b += w[1] * lower + y[1] * upper;
        }
        *place = [a, b];
    }
    if let ([start], [place]) = (start, place) {
        let own: &[i16] = cast(one);
        let mut a = *start;
        for (&w, &x) in own.iter().zip(x.plain) {
            a += i32::from(w) * i32::from(x);
        }
        for (&row, &t) in x.rows.iter().zip(x.t) {
            let (Some(&[w, y, ..]), upper) = (own.get(usize::from(row)..), i32::from(t)) else { break };
            a += i32::from(w) * (x.one - upper) + i32::from(y) * upper;
        }
        *place = a;
    }
}

/// Multiplies the sums of a head out, right to left; `ranks` are r_0, ..., r_d = 1. Come back the r_0 values, and whether a
/// limit changed anything on the way. Every vector overwrites the first sums of its core: row a is read before place a is written.
#[inline(never)]
pub(super) fn chain<'t>(ranks: &[u32], shifts: &[Shifts], acc: &'t mut [i32]) -> (&'t [Cell<i32>], bool) {
    let acc = Cell::from_mut(acc).as_slice_of_cells();
    let ([lefts @ .., right, _], [earlier @ .., last]) = (ranks, shifts) else { return (&[], false) };
    let Some((mut v, mut rest)) = acc.split_at_checked(*right as usize) else { return (&[], false) };
    let mut changed = 0;
    for place in v {
        place.set(narrow(place.get() >> last.sum, &mut changed));
    }
    for (&left, shifts) in lefts.iter().zip(earlier).rev() {
        let Some((core, later)) = rest.split_at_checked((left as usize).wrapping_mul(v.len())) else { break };
        let Some(out) = core.get(..left as usize) else { break };
        changed |= multiply(core, v, *shifts, out);
        (v, rest) = (out, later);
    }
    (v, changed != 0)
}

/// The rows of a core times a vector; comes back what a limit changed. The usual ranks have loops of their own, without what a loop over the
/// vector costs.
#[inline]
fn multiply(core: &[Cell<i32>], v: &[Cell<i32>], shifts: Shifts, out: &[Cell<i32>]) -> i32 {
    if let Some(v) = v.as_array::<4>() {
        rows(core.as_chunks().0, v, shifts, out)
    } else if let Some(v) = v.as_array::<8>() {
        rows(core.as_chunks().0, v, shifts, out)
    } else {
        any_rank(core, v, shifts, out)
    }
}

#[inline(never)]
fn rows<const R: usize>(
    core: &[[Cell<i32>; R]],
    v: &[Cell<i32>; R],
    shifts: Shifts,
    out: &[Cell<i32>],
) -> i32 {
    let (half, mut changed) = ((1 << shifts.product) >> 1, 0);
    for (row, place) in core.iter().zip(out) {
        let terms = row.iter().zip(v).map(|(acc, v)| (acc.get() >> shifts.sum) * v.get());
        place.set(narrow(terms.fold(half, |sum, term| sum + term) >> shifts.product, &mut changed));
    }
    changed
}

#[inline(never)]
fn any_rank(core: &[Cell<i32>], v: &[Cell<i32>], shifts: Shifts, out: &[Cell<i32>]) -> i32 {
    let (half, mut row, mut changed) = ((1 << shifts.product) >> 1, core, 0);
    for place in out {
        let Some((own, others)) = row.split_at_checked(v.len()) else { break };
        let terms = own.iter().zip(v).map(|(acc, v)| (acc.get() >> shifts.sum) * v.get());
        place.set(narrow(terms.fold(half, |sum, term| sum + term) >> shifts.product, &mut changed));
        row = others;
    }
    changed
}

/// `value` within 16 bits, noting what was changed.
#[inline]
fn narrow(value: i32, changed: &mut i32) -> i32 {
    if plain::BRANCHES && i32::from(value as i16) == value {
        return value;
    }
    let limited = value.clamp(i16::MIN.into(), i16::MAX.into());
    *changed |= value ^ limited;
    limited
}
