//! The heads of an integer model, read from the block in place.

use core::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::kernel::{Word, halves};
use crate::head::count_sums;

/// How far the results of a core are shifted to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub struct Shifts {
    /// Its sums.
    pub sum: u16,
    /// The sums times the vector from the right; not used in the last core, where there is none.
    pub product: u16,
}

/// Iterator over the heads of an integer [`Model`](super::Model).
#[derive(Clone, Debug)]
pub struct Heads<'a> {
    pub(super) rest: &'a [u32],
}

/// One network of integers.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The inputs it sees.
    pub inputs: &'a [u16],
    /// The features it uses; empty where they are the lags of its inputs.
    pub features: &'a [u16],
    /// Its weight in each of the outputs it serves.
    pub weights: &'a [i16],
    /// r_0, ..., r_d.
    pub ranks: &'a [u32],
    /// Of the cores V1, ..., Vd.
    pub shifts: &'a [Shifts],
    /// The constants of the sums, one more where their number is odd.
    pub constants: &'a [i32],
    /// Coefficients of a sum, without its constant.
    pub rows: usize,
    pub(super) first: usize,
    pub(super) cores: &'a [Word],
}

impl<'a> Iterator for Heads<'a> {
    type Item = Head<'a>;

    #[inline]
    fn next(&mut self) -> Option<Head<'a>> {
        let (&[inputs, first, outputs, degree, features, sums, rows], rest) =
            self.rest.split_first_chunk()?;
        let (inputs, outputs, features) = (inputs as usize, outputs as usize, features as usize);
        let (degree, rows) = (degree as usize, rows as usize);
        let even = (sums as usize).wrapping_add(1) & !1;
        let (ranks, rest) = rest.split_at_checked(degree.wrapping_add(1))?;
        let (shifts, rest) = rest.split_at_checked(degree)?;
        let (inputs, rest) = shorts(rest, inputs)?;
        let (weights, rest) = shorts(rest, outputs)?;
        let (features, rest) = shorts(rest, features)?;
        let (constants, rest) = rest.split_at_checked(even)?;
        let (cores, rest) = rest.split_at_checked((even / 2).wrapping_mul(rows))?;
        self.rest = rest;
        Some(Head {
            inputs,
            features,
            weights,
            ranks,
            shifts: cast(shifts),
            constants: cast(constants),
            rows,
            first: first as usize,
            cores: cast(cores),
        })
    }
}

impl Head<'_> {
    /// The outputs it serves.
    #[must_use]
    pub fn outputs(&self) -> Range<usize> {
        self.first..self.first + self.weights.len()
    }

    /// The constant and the coefficients of the sum (a, b) of core `k` of V1, ..., Vd, all counted from 0.
    pub fn sum(&self, k: usize, a: usize, b: usize) -> Option<(i32, impl Iterator<Item = i16>)> {
        let right = *self.ranks.get(k + 1)? as usize;
        let sum = count_sums(self.ranks.get(k + 1..)?)? + a * right + b;
        let words = self.cores.get(sum / 2 * self.rows..)?.get(..self.rows)?;
        let own = move |word: &Word| {
            if sum.is_multiple_of(2) { halves(word)[0] as i16 } else { halves(word)[1] as i16 }
        };
        Some((*self.constants.get(sum)?, words.iter().map(own)))
    }
}

/// `n` numbers of 16 bits, padded to a word, and what follows.
#[inline]
pub(super) fn shorts<T: Pod>(words: &[u32], n: usize) -> Option<(&[T], &[u32])> {
    let (own, rest) = words.split_at_checked(n.div_ceil(2))?;
    Some((cast::<u32, T>(own).get(..n)?, rest))
}

/// The same bits as other numbers, of 32 or 16 bits; cannot fail.
#[inline]
pub(super) fn cast<A: Pod, B: Pod>(words: &[A]) -> &[B] {
    bytemuck::try_cast_slice(words).unwrap_or(&[])
}

/// The same for room to write.
#[inline]
pub(super) fn cast_mut<A: Pod, B: Pod>(words: &mut [A]) -> &mut [B] {
    bytemuck::try_cast_slice_mut(words).unwrap_or_default()
}
