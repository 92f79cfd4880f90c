//! The proof that no sum of an integer model can overflow, whatever comes: made once, by [`Model::parse`](super::Model::parse), from the limits of
//! what is multiplied and the sizes of what it is multiplied by.

use super::VECTOR;
use super::head::{Head, Heads};
use super::stage::Stage;
use crate::error::ParseError;
use crate::facts::Shape;

/// The first size that a sum must not reach.
pub(super) const TOO_LARGE: u64 = 1 << 31;

/// The proof for the sums of a head: with features of at most 2^bits in size and vectors of at most 2^15 no sum reaches 2^31.
/// Else comes back the first one that could.
#[inline]
pub(super) fn check_sums(head: &Head<'_>, stage: &Stage<'_>, bits: u32) -> Result<(), usize> {
    let (mut sum, degree) = (0, head.shifts.len());
    for k in (0..degree).rev() {
        let (Some(&left), Some(&right)) = (head.ranks.get(k), head.ranks.get(k + 1)) else { return Err(sum) };
        let Some(shifts) = head.shifts.get(k) else { return Err(sum) };
        for _ in 0..left {
            let mut row = (1u64 << shifts.product) >> 1;
            for _ in 0..right {
                let Some(coefficients) = head.coefficients(sum) else { return Err(sum) };
                let most = (largest(head, stage, coefficients) << bits) + constant(head, sum);
                if most >= TOO_LARGE {
                    return Err(sum);
                }
                // Shifts round down: a negative sum may come to one more.
                row += ((most >> shifts.sum) + 1) * u64::from(VECTOR);
                sum += 1;
            }
            if k + 1 < degree && row >= TOO_LARGE {
                return Err(sum - 1);
            }
        }
    }
    Ok(())
}

#[inline]
fn constant(head: &Head<'_>, sum: usize) -> u64 {
    head.constants.get(sum).map_or(0, |constant| constant.unsigned_abs().into())
}

/// The sum of the sizes of the coefficients of a sum, of a mapped feature the largest: its two neighbours share a whole.
#[inline(never)]
fn largest(head: &Head<'_>, stage: &Stage<'_>, mut coefficients: impl Iterator<Item = i16>) -> u64 {
    let mut size = || coefficients.next().map_or(0, |w| u64::from(w.unsigned_abs()));
    if head.features.is_empty() {
        return (0..head.rows).map(|_| size()).sum();
    }
    let rows = |feature: usize| {
        let map = feature.checked_sub(stage.plain()).and_then(|map| stage.counts.get(map));
        map.copied().unwrap_or(1)
    };
    head.features.iter().map(rows).map(|rows| (0..rows).fold(0, |most, _| size().max(most))).sum()
}

/// The proof for the outputs: the weighted sum of all heads and what is beyond the range.
#[inline]
pub(super) fn check_sum_of_heads(
    heads: Heads<'_>,
    shape: &Shape,
    stage: &Stage<'_>,
) -> Result<(), ParseError> {
    for output in 0..shape.outputs {
        let weight = |head: Head<'_>| {
            let own = output.checked_sub(head.first).and_then(|own| head.weights.get(own));
            own.map_or(0, |weight| u64::from(weight.unsigned_abs()))
        };
        let mut most = heads.clone().map(weight).sum::<u64>() * u64::from(VECTOR);
        if let Some(&shift) = stage.linear_shifts.get(output) {
            let features = stage.features.len();
            let own = stage.linear.iter().skip(output * features).take(features);
            let sum: u64 = own.map(|value| u64::from(value.unsigned_abs())).sum();
            let beyond = sum * u64::from(VECTOR) + (1 << shift.min(30)) / 2;
            if shift > 30 || beyond >= TOO_LARGE {
                return Err(ParseError::Overflow { head: shape.heads, sum: output });
            }
            most += (beyond >> shift) + 1;
        }
        if most >= TOO_LARGE {
            return Err(ParseError::Overflow { head: shape.heads, sum: output });
        }
    }
    Ok(())
}
