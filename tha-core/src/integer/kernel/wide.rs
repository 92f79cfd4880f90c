//! Blocks of four sums, two features at a time. The features have 16 bits too, so that a word holds two: some processors multiply halves of words.

use super::{Word, halves};
use crate::integer::head::cast;

/// A feature where a head gathers it.
pub type X = i16;

/// Whether a branch costs less than a limit.
pub const BRANCHES: bool = false;

/// The constants and the plain features of blocks of four sums. In a function of its own, so that the loop has the registers to itself.
#[inline(never)]
pub fn plain(x: &[X], rows: usize, starts: &[[i32; 4]], cores: &[[Word; 2]], out: &mut [[i32; 4]]) {
    let (twos, last) = x.as_chunks::<2>();
    let twos: &[Word] = cast(twos.as_flattened());
    let mut rest = cores;
    for (&[mut a, mut b, mut c, mut d], out) in starts.iter().zip(&mut *out) {
        let Some((own, later)) = rest.split_at_checked(rows) else { break };
        rest = later;
        for ([[w, v], [y, z]], x) in own.as_chunks::<2>().0.iter().zip(twos) {
            let (w, v, y, z, [x, t]) = (halves(w), halves(v), halves(y), halves(z), halves(x));
            a += w[0] * x;
            b += w[1] * x;
            c += v[0] * x;
            d += v[1] * x;
            a += y[0] * t;
            b += y[1] * t;
            c += z[0] * t;
            d += z[1] * t;
        }
        *out = [a, b, c, d];
    }
    // Where their number is odd the last feature is added by itself: the loop above has the registers.
    if let &[x] = last {
        let x = i32::from(x);
        let mut rest = cores.get(2 * twos.len()..).unwrap_or_default();
        for out in out {
            let Some([w, v]) = rest.first() else { break };
            let (w, v, [a, b, c, d]) = (halves(w), halves(v), *out);
            *out = [a + w[0] * x, b + w[1] * x, c + v[0] * x, d + v[1] * x];
            rest = rest.get(rows..).unwrap_or_default();
        }
    }
}
