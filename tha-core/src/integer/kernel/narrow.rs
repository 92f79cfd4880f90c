//! Blocks of four sums with eight registers: the first pair before the second is loaded.

use core::sync::atomic::{Ordering, compiler_fence};

use super::{Word, halves};

/// A feature where a head gathers it.
pub type X = i32;

/// Whether a branch costs less than a limit.
pub const BRANCHES: bool = true;

/// The constants and the plain features of blocks of four sums.
#[inline(never)]
pub fn plain(x: &[X], rows: usize, starts: &[[i32; 4]], mut cores: &[[Word; 2]], out: &mut [[i32; 4]]) {
    for (start, out) in starts.iter().zip(out) {
        let Some((own, rest)) = cores.split_at_checked(rows) else { break };
        block(x, start, out, own);
        cores = rest;
    }
}

/// In a function of its own, so that the loop has the registers to itself.
#[inline(never)]
fn block(x: &[X], start: &[i32; 4], out: &mut [i32; 4], rows: &[[Word; 2]]) {
    let [mut a, mut b, mut c, mut d] = *start;
    for (&x, [first, second]) in x.iter().zip(rows) {
        let [low, high] = halves(first);
        a += low * x;
        b += high * x;
        // Else both would be loaded at once.
        compiler_fence(Ordering::SeqCst);
        let [low, high] = halves(second);
        c += low * x;
        d += high * x;
    }
    *out = [a, b, c, d];
}
