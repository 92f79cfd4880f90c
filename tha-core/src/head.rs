//! The heads of a model, read from the block in place.

use core::ops::Range;

use crate::kernel;

/// Iterator over the heads of a [`Model`](crate::Model).
#[derive(Clone, Debug)]
pub struct Heads<'a> {
    pub(crate) rest: &'a [u32],
    pub(crate) layout: Layout,
}

/// How the heads stand in the block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    /// Format 1: every head has the same degree, all outputs, one weight, and the lags of its inputs.
    One { degree: usize, memory: usize, outputs: usize },
    /// Format 2: every head says what it has.
    Two,
}

impl<'a> Iterator for Heads<'a> {
    type Item = HeadView<'a>;

    #[inline]
    fn next(&mut self) -> Option<HeadView<'a>> {
        match self.layout {
            Layout::Two => {
                let &[size, first, outputs, degree, features, sums, q, ref rest @ ..] = self.rest else {
                    return None;
                };
                let (ranks, rest) = rest.split_at_checked((degree as usize).wrapping_add(1))?;
                let (inputs, rest) = rest.split_at_checked(size as usize)?;
                let (weights, rest) = rest.split_at_checked(outputs as usize)?;
                let (features, rest) = rest.split_at_checked(features as usize)?;
                let (sums, q) = (sums as usize, q as usize);
                let (cores, rest) = rest.split_at_checked(sums.wrapping_mul(q))?;
                self.rest = rest;
                let (first, outputs) = (first as usize, outputs as usize);
                let (weights, cores) = (as_floats(weights), as_floats(cores));
                Some(HeadView { first, outputs, weights, inputs, ranks, features, cores, sums, q })
            }
            Layout::One { degree, memory, outputs } => {
                let ([size, weight, sums], rest) = self.rest.split_first_chunk()?;
                let (ranks, rest) = rest.split_at_checked(degree + 1)?;
                let (inputs, rest) = rest.split_at_checked(*size as usize)?;
                let (sums, q) = (*sums as usize, inputs.len() * memory + 1);
                let (cores, rest) = rest.split_at_checked(sums.wrapping_mul(q))?;
                self.rest = rest;
                let (weights, cores) = (as_floats(core::slice::from_ref(weight)), as_floats(cores));
                Some(HeadView { first: 0, outputs, weights, inputs, ranks, features: &[], cores, sums, q })
            }
        }
    }
}

/// One head: a tensor network over some of the features.
#[derive(Clone, Copy, Debug)]
pub struct HeadView<'a> {
    /// The outputs it serves: so many, from the first.
    pub(crate) first: usize,
    pub(crate) outputs: usize,
    /// Its share in each of them; where there is only one, in all of them.
    pub(crate) weights: &'a [f32],
    /// The inputs it sees, increasing.
    pub inputs: &'a [u32],
    /// r_0, the outputs it serves, r_1, ..., r_d = 1.
    pub ranks: &'a [u32],
    /// The features it uses, increasing; empty: the lags of its inputs, newest first.
    pub features: &'a [u32],
    /// The cores in kernel layout.
    pub(crate) cores: &'a [f32],
    /// The sum over the cores of r_{k-1} r_k.
    pub(crate) sums: usize,
    /// Rows of a core: 1, one for each plain feature, one for each node of the mapped ones.
    pub q: usize,
}

impl<'a> HeadView<'a> {
    /// The outputs it serves.
    #[must_use]
    pub fn outputs(&self) -> Range<usize> {
        self.first..self.first + self.outputs
    }

    /// Its weight in each of the outputs it serves.
    pub fn weights(&self) -> impl Iterator<Item = f32> + 'a {
        self.weights.iter().copied().cycle().take(self.outputs)
    }

    /// Core `k` of V1, ..., Vd, counted from 0.
    #[must_use]
    pub fn core(&self, k: usize) -> Option<CoreView<'a>> {
        let (left, right) = (*self.ranks.get(k)? as usize, *self.ranks.get(k + 1)? as usize);
        let first = count_sums(self.ranks.get(k + 1..)?)?;
        Some(CoreView { left, q: self.q, right, first, sums: self.sums, cores: self.cores })
    }
}

/// The sum of r_{k-1} r_k over a chain of ranks. `None` when it overflows.
#[inline]
pub(crate) fn count_sums(ranks: &[u32]) -> Option<usize> {
    let mut sums = 0u32;
    for (&left, &right) in ranks.iter().zip(ranks.get(1..)?) {
        sums = sums.checked_add(left.checked_mul(right)?)?;
    }
    Some(sums as usize)
}

/// One core V of size r_{k-1} x q x r_k.
#[derive(Clone, Copy, Debug)]
pub struct CoreView<'a> {
    /// r_{k-1}.
    pub left: usize,
    /// Rows.
    pub q: usize,
    /// r_k.
    pub right: usize,
    /// Where its sums begin among those of the head.
    first: usize,
    sums: usize,
    cores: &'a [f32],
}

impl CoreView<'_> {
    /// V(a, i, b), all counted from 0; row 0 belongs to the constant 1.
    #[must_use]
    pub fn get(&self, a: usize, i: usize, b: usize) -> Option<f32> {
        if a >= self.left || i >= self.q || b >= self.right {
            return None;
        }
        let sum = self.first + a * self.right + b;
        self.cores.get(kernel::position(self.sums, self.q, sum, i)).copied()
    }
}

/// The same words as numbers; cannot fail, as size and alignment agree.
pub(crate) fn as_floats(words: &[u32]) -> &[f32] {
    bytemuck::try_cast_slice(words).unwrap_or(&[])
}
