//! The contraction y = V1(x) V2(x) ... Vd(x) in integers, right to left, with vectors only.
//!
//! Layout: the sums of all cores of a head, Vd first, V1 last, b fastest, are one list, with a sum of zeros behind it where their number is odd.
//! Two neighbours share their words: word i of a pair has coefficient i of the first in its lower half and of the second in its upper
//! half. So one load of x_i and one of a word feed two sums, whatever row a mapped feature chooses.

use core::cell::Cell;

use super::Shifts;

/// The features of a head.
#[derive(Clone, Copy)]
pub(super) struct Features<'x> {
    /// The plain ones, without the leading 1.
    pub plain: &'x [i32],
    /// Of the mapped ones: the row of the lower node, and how far they have come from there, 0 to `one`.
    pub rows: &'x [u16],
    pub t: &'x [i32],
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

/// Two pairs at a time share the loads of x. A Cortex-M0, known by having no atomics, has registers for one.
const TWO_PAIRS: bool = !cfg!(all(target_arch = "arm", not(target_has_atomic = "32")));

/// All sums of a head, of `rows` coefficients each.
#[inline]
pub(super) fn sums(x: Features<'_>, rows: usize, constants: &[i32], cores: &[Word], acc: &mut [i32]) {
    let (places, _) = acc.as_chunks_mut::<2>();
    let (starts, _) = constants.as_chunks::<2>();
    if TWO_PAIRS {
        let ((outs, last), (quads, start)) = (places.as_chunks_mut::<2>(), starts.as_chunks::<2>());
        plain_two(x.plain, rows, quads, cores, outs);
        if !last.is_empty() {
            let done = 2 * quads.len() * rows;
            plain_one(x.plain, rows, start, cores.get(done..).unwrap_or_default(), last);
        }
    } else {
        plain_one(x.plain, rows, starts, cores, places);
    }
    if !x.rows.is_empty() {
        mapped(x, rows, cores, places);
    }
}

/// A feature, which has 16 bits. Where a multiplication takes halves of registers this says so; elsewhere it would cost an instruction.
#[inline]
fn feature(x: i32) -> i32 {
    if TWO_PAIRS && cfg!(target_arch = "arm") { i32::from(x as i16) } else { x }
}

/// The constants and the plain features of pairs. In a function of its own, so that the loop has the registers to itself.
#[inline(never)]
fn plain_one(x: &[i32], rows: usize, starts: &[[i32; 2]], mut cores: &[Word], out: &mut [[i32; 2]]) {
    for (&start, out) in starts.iter().zip(out) {
        let Some((own, rest)) = cores.split_at_checked(rows) else { break };
        *out = pair(start, own, x);
        cores = rest;
    }
}

#[inline]
fn pair([mut a, mut b]: [i32; 2], words: &[Word], x: &[i32]) -> [i32; 2] {
    for (w, &x) in words.iter().zip(x) {
        let [low, high] = halves(w);
        a += low * x;
        b += high * x;
    }
    [a, b]
}

/// The same for two pairs at a time.
#[inline(never)]
fn plain_two(x: &[i32], rows: usize, starts: &[[[i32; 2]; 2]], cores: &[Word], out: &mut [[[i32; 2]; 2]]) {
    let (twos, last) = x.as_chunks::<2>();
    let both = (2 * rows).max(1);
    for ((own, &[[mut a, mut b], [mut c, mut d]]), out) in cores.chunks_exact(both).zip(starts).zip(&mut *out)
    {
        let (first, second) = own.split_at_checked(rows).unwrap_or_default();
        let words = first.as_chunks::<2>().0.iter().zip(second.as_chunks::<2>().0);
        for (([w, y], [v, z]), &[x, t]) in words.zip(twos) {
            let (w, v, x) = (halves(w), halves(v), feature(x));
            a += w[0] * x;
            b += w[1] * x;
            c += v[0] * x;
            d += v[1] * x;
            let (y, z, t) = (halves(y), halves(z), feature(t));
            a += y[0] * t;
            b += y[1] * t;
            c += z[0] * t;
            d += z[1] * t;
        }
        *out = [[a, b], [c, d]];
    }
    // Where their number is odd the last feature is added by itself: the loop above has the registers.
    if let &[x] = last {
        let at = 2 * twos.len();
        for (own, [first, second]) in cores.chunks_exact(both).zip(out) {
            let (Some(w), Some(v)) = (own.get(at), own.get(rows + at)) else { break };
            let (w, v) = (halves(w), halves(v));
            *first = [first[0] + w[0] * x, first[1] + w[1] * x];
            *second = [second[0] + v[0] * x, second[1] + v[1] * x];
        }
    }
}

/// Adds the mapped features.
#[inline(never)]
fn mapped(x: Features<'_>, rows: usize, mut cores: &[Word], pairs: &mut [[i32; 2]]) {
    for pair in pairs {
        let Some((own, rest)) = cores.split_at_checked(rows) else { break };
        let [mut a, mut b] = *pair;
        for (&row, &upper) in x.rows.iter().zip(x.t) {
            let Some([from, to, ..]) = own.get(usize::from(row)..) else { break };
            let lower = x.one - upper;
            let (from, to) = (halves(from), halves(to));
            a += from[0] * lower;
            b += from[1] * lower;
            a += to[0] * upper;
            b += to[1] * upper;
        }
        *pair = [a, b];
        cores = rest;
    }
}

/// Multiplies the sums of a head out, right to left; `ranks` are r_0, ..., r_d = 1. Come back the r_0 values, and whether a
/// limit changed anything on the way. Every vector overwrites the first sums of its core: row a is read before place a is written.
#[inline(never)]
pub(super) fn chain<'t>(ranks: &[u32], shifts: &[Shifts], acc: &'t mut [i32]) -> (&'t [Cell<i32>], bool) {
    let acc = Cell::from_mut(acc).as_slice_of_cells();
    let ([lefts @ .., right, _], [earlier @ .., last]) = (ranks, shifts) else { return (&[], false) };
    let Some((mut v, mut rest)) = acc.split_at_checked(*right as usize) else { return (&[], false) };
    let mut changed = false;
    for place in v {
        place.set(narrow(place.get() >> last.sum, &mut changed));
    }
    for (&left, shifts) in lefts.iter().zip(earlier).rev() {
        let Some((core, later)) = rest.split_at_checked((left as usize).wrapping_mul(v.len())) else { break };
        let Some(out) = core.get(..left as usize) else { break };
        multiply(core, v, *shifts, out, &mut changed);
        (v, rest) = (out, later);
    }
    (v, changed)
}

/// The rows of a core times a vector. The usual ranks have loops of their own, without what a loop over the vector costs.
#[inline]
fn multiply(core: &[Cell<i32>], v: &[Cell<i32>], shifts: Shifts, out: &[Cell<i32>], changed: &mut bool) {
    if let Some(v) = v.as_array::<4>() {
        rows(core.as_chunks().0, v, shifts, out, changed);
    } else if let Some(v) = v.as_array::<8>() {
        rows(core.as_chunks().0, v, shifts, out, changed);
    } else {
        any_rank(core, v, shifts, out, changed);
    }
}

#[inline(never)]
fn rows<const R: usize>(
    core: &[[Cell<i32>; R]],
    v: &[Cell<i32>; R],
    shifts: Shifts,
    out: &[Cell<i32>],
    changed: &mut bool,
) {
    let half = (1 << shifts.product) >> 1;
    for (row, place) in core.iter().zip(out) {
        let terms = row.iter().zip(v).map(|(acc, v)| (acc.get() >> shifts.sum) * v.get());
        place.set(narrow(terms.fold(half, |sum, term| sum + term) >> shifts.product, changed));
    }
}

#[inline(never)]
fn any_rank(core: &[Cell<i32>], v: &[Cell<i32>], shifts: Shifts, out: &[Cell<i32>], changed: &mut bool) {
    let (half, mut row) = ((1 << shifts.product) >> 1, core);
    for place in out {
        let Some((own, others)) = row.split_at_checked(v.len()) else { break };
        let terms = own.iter().zip(v).map(|(acc, v)| (acc.get() >> shifts.sum) * v.get());
        place.set(narrow(terms.fold(half, |sum, term| sum + term) >> shifts.product, changed));
        row = others;
    }
}

/// `value` within 16 bits, noting whether it was not.
#[inline]
fn narrow(value: i32, changed: &mut bool) -> i32 {
    if i32::from(value as i16) == value {
        return value;
    }
    *changed = true;
    if value < 0 { i16::MIN.into() } else { i16::MAX.into() }
}
