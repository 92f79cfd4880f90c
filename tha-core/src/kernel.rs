//! The contraction y = V1(x) V2(x) ... Vd(x), right to left, with vectors only.
//!
//! For every core of size r_a x q x r_b the kernel forms the r_a r_b sums
//!
//! ```text
//! t[a, b] = V[a, 0, b] + V[a, 1, b] x_1 + V[a, 2, b] x_2 + ... + V[a, q-1, b] x_{q-1}       (x_0 = 1)
//! ```
//!
//! where a mapped feature has a row for each of its nodes, of which two count: with t how far it has come between nodes n and
//! n + 1, it adds V[a, n, b] (1 - t) and then V[a, n+1, b] t. Then, from the last core to the first, v'[a] = 0 + t[a, 0] v[0] + t[a, 1] v[1] + ... . Every sum is taken
//! from left to right and each product is rounded before it is added (no fused multiply-add): that order is the
//! contract which makes the result the same bits on every target, and it does not depend on the layout below.
//!
//! Layout: the sums of all cores of a head, Vd first, V1 last, b fastest, are one list of n sums. It is cut into
//! blocks of 16, then at most one block each of 8, 4, 2 and 1. A block of width W holds its q rows of W coefficients
//! one after the other, so that W sums grow side by side in registers from one sequential read of flash and one
//! load of x_i.

use core::cell::Cell;

/// Where coefficient `i` of sum `o` stands in a head of `n` sums of `q` coefficients.
pub(crate) fn position(n: usize, q: usize, o: usize, i: usize) -> usize {
    let mut start = 0;
    for width in [16, 8, 4, 2, 1] {
        let end = n - (n - start) % width;
        if o < end {
            let block = start + (o - start) / width * width;
            return block * q + i * width + (o - block);
        }
        start = end;
    }
    n * q
}

/// The features of a head.
#[derive(Clone, Copy, Default)]
pub(crate) struct Features<'x> {
    /// The plain ones, without the leading 1.
    pub x: &'x [f32],
    /// Of the mapped ones: the row of the lower node (as bits), and how far they have come from there.
    pub rows: &'x [f32],
    pub t: &'x [f32],
    /// Rows of a core.
    pub q: usize,
}

/// All `t.len()` sums of a head.
#[inline]
pub(crate) fn sums(x: &Features<'_>, mut cores: &[f32], mut t: &mut [f32]) {
    while t.len() >= 16 {
        (cores, t) = next(x, cores, t, block_16);
    }
    if t.is_empty() {
        return;
    }
    if t.len() >= 8 {
        (cores, t) = next(x, cores, t, block_8);
    }
    if t.is_empty() {
        return;
    }
    if t.len() >= 4 {
        (cores, t) = next(x, cores, t, block_4);
    }
    if t.len() >= 2 {
        (cores, t) = next(x, cores, t, block_2);
    }
    if !t.is_empty() {
        next(x, cores, t, block_1);
    }
}

/// The next block, of W sums; gives back the rest of the cores and of the sums.
#[inline]
fn next<'c, 't, const W: usize>(
    x: &Features<'_>,
    cores: &'c [f32],
    t: &'t mut [f32],
    block: impl Fn(&Features<'_>, &[[f32; W]], &mut [f32; W]),
) -> (&'c [f32], &'t mut [f32]) {
    let Some((out, t)) = t.split_first_chunk_mut() else { return Default::default() };
    let Some((own, cores)) = cores.split_at_checked(W * x.q) else { return (&[], t) };
    block(x, own.as_chunks().0, out);
    (cores, t)
}

/// One block. Spelled out sum by sum, so that the sums stay in registers also where the compiler optimises for size.
macro_rules! block {
    ($name:ident, $width:literal, $($sum:ident $w:ident),+) => {
        #[inline]
        fn $name(x: &Features<'_>, rows: &[[f32; $width]], out: &mut [f32; $width]) {
            let Some((&[$(mut $sum),+], later)) = rows.split_first() else { return };
            let Some(plain) = later.get(..x.x.len()) else { return };
            for (&[$($w),+], &x) in plain.iter().zip(x.x) {
                $($sum += $w * x;)+
            }
            *out = [$($sum),+];
            if !x.rows.is_empty() {
                add_maps(rows.as_flattened(), x, out);
            }
        }
    };
}

/// Adds the mapped features of a block to its plain ones.
#[inline(never)]
fn add_maps(rows: &[f32], x: &Features<'_>, out: &mut [f32]) {
    let width = out.len();
    for (row, &upper) in x.rows.iter().zip(x.t) {
        let lower = 1.0 - upper;
        let Some(low) = rows.get((row.to_bits() as usize).wrapping_mul(width)..) else { break };
        let Some(high) = low.get(width..) else { break };
        for ((sum, low), high) in out.iter_mut().zip(low).zip(high) {
            *sum += low * lower;
            *sum += high * upper;
        }
    }
}

/// Blocks of 8 and 16 where floats are passed in registers. 8 sums and 8 coefficients of a row are arguments: they come in registers that follow
/// one another (s0 to s7 and s8 to s15 of a Cortex-M4F), so that one instruction loads a row, or half of one. What makes the compiler
/// keep it so, found by trial in its listings: a way out of the loop between sums and the loads after them, by turns to different places, where the
/// coefficients are used once more. None of these ways is taken, but for the one at the end of the maps: no row is missing.
#[cfg(any(target_abi = "eabihf", test))]
macro_rules! wide_blocks {
    ($($sum:ident $other:ident $w:ident),+) => {
        #[inline]
        fn block_8(x: &Features<'_>, rows: &[[f32; 8]], out: &mut [f32; 8]) {
            let Some((&[$($sum),+], later)) = rows.split_first() else { return };
            // Where there are only constants this row is none, and is not used.
            let &[$($w),+] = later.first().unwrap_or(&[0.0; 8]);
            grow_8($($sum),+, $($w),+, rows, x, out);
        }

        #[inline(never)]
        #[allow(clippy::too_many_arguments, reason = "they are passed in registers")]
        fn grow_8($(mut $sum: f32),+, $(mut $w: f32),+, rows: &[[f32; 8]], x: &Features<'_>, out: &mut [f32; 8]) {
            let mut later = rows.get(2..).unwrap_or_default();
            for &x in x.x {
                $($sum += $w * x;)+
                let [row, rest @ ..] = later else { break };
                later = rest;
                [$($w),+] = *row;
            }
            for (row, &upper) in x.rows.iter().zip(x.t) {
                let lower = 1.0 - upper;
                let row = row.to_bits() as usize;
                // Implied by the next line, which then needs no check of its own.
                if row >= rows.len().saturating_sub(1) {
                    break;
                }
                let Some([low, high, ..]) = rows.get(row..) else { break };
                let [$($w),+] = *low;
                $($sum += $w * lower;)+
                let [$($w),+] = *high;
                $($sum += $w * upper;)+
            }
            *out = [$($sum),+];
        }

        /// As two halves of 8 sums. The coefficients of both take the same registers in turn.
        #[inline]
        fn block_16(x: &Features<'_>, rows: &[[f32; 16]], out: &mut [f32; 16]) {
            let halves = rows.as_flattened().as_chunks::<8>().0;
            let Some((&[$($sum),+], later)) = halves.split_first() else { return };
            let &[$($w),+] = later.get(1).unwrap_or(&[0.0; 8]);
            let Some(out) = out.as_chunks_mut().0.first_chunk_mut() else { return };
            grow_16($($sum),+, $($w),+, later, x, out);
            if let Some(row) = x.rows.first() {
                let [[$($sum),+], _] = *out;
                let Some(&[$($w),+]) = halves.get(2 * row.to_bits() as usize) else { return };
                map_16($($sum),+, $($w),+, halves, x, out);
            }
        }

        /// `halves` from the second one of the constants on.
        #[inline(never)]
        #[allow(clippy::too_many_arguments, reason = "they are passed in registers")]
        fn grow_16($(mut $sum: f32),+, $(mut $w: f32),+, halves: &[[f32; 8]], x: &Features<'_>, out: &mut [[f32; 8]; 2]) {
            let Some((&[$(mut $other),+], later)) = halves.split_first() else { return };
            let mut later = later.get(1..).unwrap_or_default();
            for &x in x.x {
                $($sum += $w * x;)+
                let [half, rest @ ..] = later else { return };
                [$($w),+] = *half;
                $($other += $w * x;)+
                let [row, rest @ ..] = rest else { break };
                later = rest;
                [$($w),+] = *row;
            }
            // Adds nothing: the use that keeps the second halves where they are.
            $($other += $w * 0.0;)+
            *out = [[$($sum),+], [$($other),+]];
        }

        /// The mapped features, from the second half of the lower row of the first on; the first half is $w.
        #[inline(never)]
        #[allow(clippy::too_many_arguments, reason = "they are passed in registers")]
        fn map_16($(mut $sum: f32),+, $(mut $w: f32),+, halves: &[[f32; 8]], x: &Features<'_>, out: &mut [[f32; 8]; 2]) {
            let [$(mut $other),+] = out[1];
            let mut maps = x.rows.iter().zip(x.t);
            let Some((row, &(mut upper))) = maps.next() else { return };
            let Some([_, rest @ ..]) = halves.get(2 * row.to_bits() as usize..) else { return };
            let mut rest = rest;
            'second: {
                'first: {
                    loop {
                        let lower = 1.0 - upper;
                        $($sum += $w * lower;)+
                        let [half, high @ ..] = rest else { break 'first };
                        [$($w),+] = *half;
                        $($other += $w * lower;)+
                        let [half, high @ ..] = high else { break 'second };
                        [$($w),+] = *half;
                        $($sum += $w * upper;)+
                        let [half, ..] = high else { break 'second };
                        [$($w),+] = *half;
                        let Some((row, &next)) = maps.next() else { break 'second };
                        $($other += $w * upper;)+
                        upper = next;
                        let Some([half, low @ ..]) = halves.get(2 * row.to_bits() as usize..) else { break 'first };
                        rest = low;
                        [$($w),+] = *half;
                    }
                }
                $($sum += $w * upper;)+
            }
            $($other += $w * upper;)+
            *out = [[$($sum),+], [$($other),+]];
        }
    };
}

#[cfg(any(target_abi = "eabihf", test))]
wide_blocks!(s0 o0 w0, s1 o1 w1, s2 o2 w2, s3 o3 w3, s4 o4 w4, s5 o5 w5, s6 o6 w6, s7 o7 w7);
#[cfg(not(any(target_abi = "eabihf", test)))]
block!(block_16, 16, s0 w0, s1 w1, s2 w2, s3 w3, s4 w4, s5 w5, s6 w6, s7 w7, s8 w8, s9 w9, s10 w10, s11 w11, s12 w12, s13 w13, s14 w14, s15 w15);
#[cfg(not(any(target_abi = "eabihf", test)))]
block!(block_8, 8, s0 w0, s1 w1, s2 w2, s3 w3, s4 w4, s5 w5, s6 w6, s7 w7);
block!(block_4, 4, s0 w0, s1 w1, s2 w2, s3 w3);
block!(block_2, 2, s0 w0, s1 w1);
block!(block_1, 1, s0 w0);

/// Multiplies the sums `t` of a head out, right to left; `ranks` are r_0, ..., r_d = 1. The result, r_0 values, comes
/// back. Every vector overwrites the first sums of its core: row a is read before place a <= a r_b is written.
#[inline]
pub(crate) fn chain<'t>(ranks: &[u32], t: &'t mut [f32]) -> &'t [Cell<f32>] {
    let t = Cell::from_mut(t).as_slice_of_cells();
    let [lefts @ .., right, _] = ranks else { return &[] };
    // The last core has r_d = 1: its sums are the first vector.
    let Some((mut x, mut rest)) = t.split_at_checked(*right as usize) else { return &[] };
    for &left in lefts.iter().rev() {
        let Some((core, later)) = rest.split_at_checked((left as usize).wrapping_mul(x.len())) else {
            return &[];
        };
        apply(core, x);
        let Some(out) = core.get(..left as usize) else { return &[] };
        (x, rest) = (out, later);
    }
    x
}

/// t[a] = sum over b of t[a, b] x[b], where the 0 that the sums begin with is left out: it decides the sign of a zero, which is lost
/// when the head is added to the outputs. The usual ranks have loops of their own, in which x stays in registers.
#[inline]
fn apply(t: &[Cell<f32>], x: &[Cell<f32>]) {
    match x {
        [a, b] => rows(t, [a, b]),
        [a, b, c] => rows(t, [a, b, c]),
        [a, b, c, d] => rows(t, [a, b, c, d]),
        [a, b, c, d, e, f, g, h] => long_rows(t, [a, b, c, d, e, f, g, h]),
        _ => any_rank(t, x),
    }
}

#[inline(never)]
fn any_rank(t: &[Cell<f32>], x: &[Cell<f32>]) {
    let mut rest = t;
    for out in t {
        let Some((row, later)) = rest.split_at_checked(x.len()) else { break };
        let terms = row.iter().zip(x).map(|(t, x)| t.get() * x.get());
        let Some(sum) = terms.reduce(|sum, term| sum + term) else { break };
        out.set(sum);
        rest = later;
    }
}

#[inline]
fn rows<const R: usize>(t: &[Cell<f32>], x: [&Cell<f32>; R]) {
    let x = x.map(Cell::get);
    for (row, out) in t.as_chunks::<R>().0.iter().zip(t) {
        out.set(row.iter().zip(x).map(|(t, x)| t.get() * x).reduce(|sum, term| sum + term).unwrap_or(0.0));
    }
}

/// The same; the compiler needs fewer instructions for long rows in this form.
#[inline]
fn long_rows<const R: usize>(t: &[Cell<f32>], x: [&Cell<f32>; R]) {
    let (x, mut rest) = (x.map(Cell::get), t.as_chunks::<R>().0);
    for out in t {
        let Some((row, later)) = rest.split_first() else { break };
        out.set(row.iter().zip(x).map(|(t, x)| t.get() * x).reduce(|sum, term| sum + term).unwrap_or(0.0));
        rest = later;
    }
}

/// `split_at_mut` for lengths that validation has made sure of.
#[inline]
pub(crate) fn split_at(slice: &mut [f32], at: usize) -> (&mut [f32], &mut [f32]) {
    slice.split_at_mut_checked(at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;

    #[test]
    fn positions_are_a_permutation() {
        for n in 1..40 {
            for q in 1..6 {
                let mut seen = vec![false; n * q];
                for o in 0..n {
                    for i in 0..q {
                        let at = position(n, q, o, i);
                        assert!(!core::mem::replace(&mut seen[at], true), "n {n} q {q} o {o} i {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_read_the_layout() {
        for n in 1..40 {
            let x = [0.5f32, -2.0, 3.0];
            let q = x.len() + 1;
            let coefficient = |o: usize, i: usize| (o * 10 + i) as f32;
            let mut cores = vec![0.0; n * q];
            for o in 0..n {
                for i in 0..q {
                    cores[position(n, q, o, i)] = coefficient(o, i);
                }
            }
            let mut t = vec![f32::NAN; n];
            sums(&Features { x: &x, rows: &[], t: &[], q }, &cores, &mut t);
            let expected: Vec<f32> = (0..n)
                .map(|o| {
                    coefficient(o, 0) + 0.5 * coefficient(o, 1) - 2.0 * coefficient(o, 2)
                        + 3.0 * coefficient(o, 3)
                })
                .collect();
            assert_eq!(t, expected);

            // The same rows as one plain feature and one mapped, three quarters on the way between its two nodes.
            let features = Features { x: &x[..1], rows: &[f32::from_bits(2)], t: &[0.75], q };
            sums(&features, &cores, &mut t);
            let expected: Vec<f32> = (0..n)
                .map(|o| {
                    let plain = coefficient(o, 0) + 0.5 * coefficient(o, 1);
                    plain + 0.25 * coefficient(o, 2) + 0.75 * coefficient(o, 3)
                })
                .collect();
            assert_eq!(t, expected);
        }
    }
}
