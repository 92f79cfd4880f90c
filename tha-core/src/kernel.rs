//! The contraction y = V1(x) V2(x) ... Vd(x), right to left, with vectors only.
//!
//! For every core of size r_a x q x r_b the kernel forms the r_a r_b sums
//!
//! ```text
//! t[a, b] = V[a, 0, b] + V[a, 1, b] x_1 + V[a, 2, b] x_2 + ... + V[a, q-1, b] x_{q-1}       (x_0 = 1)
//! ```
//!
//! and then, from the last core to the first, v'[a] = 0 + t[a, 0] v[0] + t[a, 1] v[1] + ... . Every sum is taken
//! from left to right and each product is rounded before it is added (no fused multiply-add): that order is the
//! contract which makes the result the same bits on every target, and it does not depend on the layout below.
//!
//! Layout: the sums of all cores of a head, Vd first, V1 last, b fastest, are one list of n sums. It is cut into
//! blocks of 16, then at most one block each of 8, 4, 2 and 1. A block of width W holds its q rows of W coefficients
//! one after the other, so that W sums grow side by side in registers from one sequential read of flash and one
//! load of x_i.

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

/// All `t.len()` sums of a head over the features `x` (without the leading 1).
#[inline(never)]
pub(crate) fn sums(x: &[f32], mut cores: &[f32], mut t: &mut [f32]) {
    while t.len() >= 16 {
        (cores, t) = block_16(x, cores, t);
    }
    if t.len() >= 8 {
        (cores, t) = block_8(x, cores, t);
    }
    if t.len() >= 4 {
        (cores, t) = block_4(x, cores, t);
    }
    if t.len() >= 2 {
        (cores, t) = block_2(x, cores, t);
    }
    if !t.is_empty() {
        block_1(x, cores, t);
    }
}

/// One block; gives back the rest of the cores and of the sums. Spelled out sum by sum, so that the sums stay in
/// registers also where the compiler optimises for size.
macro_rules! block {
    ($name:ident, $width:literal, $($sum:ident $w:ident),+) => {
        #[inline]
        fn $name<'c, 't>(x: &[f32], cores: &'c [f32], t: &'t mut [f32]) -> (&'c [f32], &'t mut [f32]) {
            let Some((block, cores)) = cores.split_at_checked($width * (x.len() + 1)) else { return Default::default() };
            let Some((&[$(mut $sum),+], rows)) = block.split_first_chunk() else { return Default::default() };
            for (&[$($w),+], &x) in rows.as_chunks::<$width>().0.iter().zip(x) {
                $($sum += $w * x;)+
            }
            let Some((out, t)) = t.split_first_chunk_mut::<$width>() else { return Default::default() };
            *out = [$($sum),+];
            (cores, t)
        }
    };
}

block!(block_16, 16, s0 w0, s1 w1, s2 w2, s3 w3, s4 w4, s5 w5, s6 w6, s7 w7, s8 w8, s9 w9, s10 w10, s11 w11, s12 w12, s13 w13, s14 w14, s15 w15);
block!(block_8, 8, s0 w0, s1 w1, s2 w2, s3 w3, s4 w4, s5 w5, s6 w6, s7 w7);
block!(block_4, 4, s0 w0, s1 w1, s2 w2, s3 w3);
block!(block_2, 2, s0 w0, s1 w1);
block!(block_1, 1, s0 w0);

/// Multiplies the sums `t` of a head out, right to left. `ranks` are r_0, ..., r_d = 1; `v` and `next` have room for
/// the largest. The result is the first r_0 values of the slice that comes back.
#[inline]
pub(crate) fn chain<'v>(ranks: &[u32], t: &'v [f32], v: &'v mut [f32], next: &'v mut [f32]) -> &'v [f32] {
    let (mut v, mut next) = (v, next);
    let [lefts @ .., right, _] = ranks else { return t };
    // The last core has r_d = 1: its sums are the first vector.
    let Some((first, mut t)) = t.split_at_checked(*right as usize) else { return t };
    if lefts.is_empty() {
        return first;
    }
    let mut vector = Some(first);
    let mut right = first.len();
    for &left in lefts.iter().rev() {
        let Some(out) = next.get_mut(..left as usize) else { break };
        let x = vector.take().or(v.get(..right)).unwrap_or_default();
        t = apply(t, x, out);
        core::mem::swap(&mut v, &mut next);
        right = left as usize;
    }
    v
}

/// out[a] = sum over b of t[a, b] x[b]; gives back what follows t. The usual ranks have loops of their own, in which
/// x stays in registers.
#[inline]
fn apply<'t>(mut t: &'t [f32], x: &[f32], out: &mut [f32]) -> &'t [f32] {
    match *x {
        [a] => rows(t, [a], out),
        [a, b] => rows(t, [a, b], out),
        [a, b, c] => rows(t, [a, b, c], out),
        [a, b, c, d] => rows(t, [a, b, c, d], out),
        [a, b, c, d, e] => rows(t, [a, b, c, d, e], out),
        [a, b, c, d, e, f] => rows(t, [a, b, c, d, e, f], out),
        [a, b, c, d, e, f, g, h] => rows(t, [a, b, c, d, e, f, g, h], out),
        _ => {
            for out in out {
                let Some((row, later)) = t.split_at_checked(x.len()) else { break };
                *out = row.iter().zip(x).fold(0.0, |sum, (t, x)| sum + t * x);
                t = later;
            }
            t
        }
    }
}

#[inline]
fn rows<'t, const R: usize>(mut t: &'t [f32], x: [f32; R], out: &mut [f32]) -> &'t [f32] {
    for out in out {
        let Some((row, later)) = t.split_first_chunk::<R>() else { break };
        *out = row.iter().zip(x).fold(0.0, |sum, (t, x)| sum + t * x);
        t = later;
    }
    t
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
            sums(&x, &cores, &mut t);
            let expected: Vec<f32> = (0..n)
                .map(|o| {
                    coefficient(o, 0) + 0.5 * coefficient(o, 1) - 2.0 * coefficient(o, 2)
                        + 3.0 * coefficient(o, 3)
                })
                .collect();
            assert_eq!(t, expected);
        }
    }
}
