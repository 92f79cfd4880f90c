//! The heads of an integer model, read from the block in place.

use core::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::kernel::Word;
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
    /// Features of the model.
    pub(super) features: usize,
}

/// Some of the features of a model, a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen<'a> {
    bits: &'a [u32],
    len: usize,
}

impl<'a> Chosen<'a> {
    /// As it stands in the block. `None` where the bits are not so many, or of features that are not there.
    #[inline]
    pub(super) fn new(bits: &'a [u32], len: usize, features: usize) -> Option<Self> {
        let sound = bits.iter().map(|word| word.count_ones() as usize).sum::<usize>() == len
            && bits.last().is_none_or(|last| features.is_multiple_of(32) || last >> (features % 32) == 0);
        sound.then_some(Self { bits, len })
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Which, increasing.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone + use<'a> {
        let of = |(k, &word): (usize, &u32)| {
            let mut left = word;
            core::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 32).then_some(32 * k + bit)
            })
        };
        self.bits.iter().enumerate().flat_map(of)
    }
}

/// One network of integers.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The inputs it sees.
    pub inputs: &'a [u16],
    /// The features it uses; none where they are the lags of its inputs.
    pub features: Chosen<'a>,
    /// Its weight in each of the outputs it serves.
    pub weights: &'a [i16],
    /// r_0, ..., r_d.
    pub ranks: &'a [u32],
    /// Of the cores V1, ..., Vd.
    pub shifts: &'a [Shifts],
    /// The constants of the sums.
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
        let sums = sums as usize;
        let (ranks, rest) = rest.split_at_checked(degree.wrapping_add(1))?;
        let (shifts, rest) = rest.split_at_checked(degree)?;
        let (inputs, rest) = shorts(rest, inputs)?;
        let (weights, rest) = shorts(rest, outputs)?;
        let (bits, rest) = rest.split_at_checked(self.features.div_ceil(32))?;
        let (constants, rest) = rest.split_at_checked(sums)?;
        let (cores, rest) = rest.split_at_checked(sums.wrapping_mul(rows).div_ceil(2))?;
        self.rest = rest;
        Some(Head {
            inputs,
            features: Chosen { bits, len: features },
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
        Some((*self.constants.get(sum)?, self.coefficients(sum)?))
    }

    /// The coefficients of a sum, by its number.
    #[inline]
    pub(super) fn coefficients(&self, sum: usize) -> Option<impl Iterator<Item = i16>> {
        // The first sum of its block, and how many stand side by side there.
        let (mut first, mut side) = (sum & !3, 4);
        match self.constants.len().checked_sub(first)? {
            4.. => {}
            2.. if sum & 3 < 2 => side = 2,
            _ => (first, side) = (sum, 1),
        }
        let own = cast::<Word, i16>(self.cores).get(first.wrapping_mul(self.rows)..)?;
        Some(own.get(sum - first..)?.iter().step_by(side).take(self.rows).copied())
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
