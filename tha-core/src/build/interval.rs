//! [`Interval`]: how far measured outputs are from those of the model, by the errors for rows that it was not fitted to.

use alloc::vec::Vec;

use crate::description::MILLION;
use crate::facts::Facts;

/// Around every output an interval that holds the measured one with a given probability, the coverage C.
///
/// The half-width is the ceil((n + 1) C)-th smallest of n absolute errors: a new error that comes from where these came from
/// is within it with a probability of at least C, whatever its distribution (split conformal prediction). It is symmetric,
/// because a device then needs one number per output and one rule to follow drift.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    millionths: u32,
    half_widths: Vec<f32>,
}

impl Interval {
    /// From errors for rows that were neither fitted nor chosen by, physical units, one list per output; those that are not finite do
    /// not count. `None` where an output has too few for the coverage, fewer than C / (1 - C), or the coverage is not between 0 and
    /// 1.
    pub fn from_residuals<R: IntoIterator<Item = f64>>(
        coverage: f64,
        residuals: impl IntoIterator<Item = R>,
    ) -> Option<Self> {
        let millionths = libm::round(coverage * f64::from(MILLION));
        if !(millionths >= 1.0 && millionths < f64::from(MILLION)) {
            return None;
        }
        let millionths = millionths as u32;
        let half_width = |errors: R| {
            let mut sizes: Vec<f64> =
                errors.into_iter().map(f64::abs).filter(|size| size.is_finite()).collect();
            // In whole numbers: (n + 1) C must not be rounded up by its own rounding.
            let rank = ((sizes.len() as u64 + 1) * u64::from(millionths)).div_ceil(MILLION.into()) as usize;
            sizes.sort_by(f64::total_cmp);
            sizes.get(rank.wrapping_sub(1)).map(|&size| rounded_up(size))
        };
        let half_widths: Option<Vec<f32>> = residuals.into_iter().map(half_width).collect();
        Some(Self { millionths, half_widths: half_widths? })
    }

    /// C, such as 0.9.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        f64::from(self.millionths) / f64::from(MILLION)
    }

    /// Half the width around each output, physical units.
    #[must_use]
    pub fn half_widths(&self) -> &[f32] {
        &self.half_widths
    }

    /// The coverage as the file has it.
    pub(super) fn millionths(&self) -> u32 {
        self.millionths
    }

    /// Of a file.
    pub(super) fn read(model: &Facts<'_>) -> Option<Self> {
        let millionths = model.millionths();
        (millionths > 0).then(|| Self { millionths, half_widths: model.half_widths().into() })
    }
}

/// The smallest f32 that is not below `size`: rounding must not cost coverage.
fn rounded_up(size: f64) -> f32 {
    let near = size as f32;
    let up = if f64::from(near) < size { near.next_up() } else { near };
    up.min(f32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(coverage: f64, errors: &[f64]) -> Option<f32> {
        Interval::from_residuals(coverage, [errors.iter().copied()]).map(|interval| interval.half_widths[0])
    }

    #[test]
    fn the_rank_is_that_of_one_more_error() {
        let nine = [9.0, -1.0, 2.0, -3.0, 4.0, 5.0, 6.0, -7.0, 8.0];
        // ceil(10 * 0.9) = 9 of 9, ceil(10 * 0.5) = 5, ceil(10 * 0.01) = 1; ceil(9 * 0.9) = 9 of 8 are too few.
        assert_eq!((of(0.9, &nine), of(0.5, &nine), of(0.01, &nine)), (Some(9.0), Some(5.0), Some(1.0)));
        assert_eq!((of(0.9, &nine[..8]), of(0.91, &nine), of(0.5, &[])), (None, None, None));
        assert_eq!(
            (of(0.5, &[f64::NAN, 3.0, f64::INFINITY]), of(1.0, &nine), of(0.0, &nine)),
            (Some(3.0), None, None)
        );
    }

    #[test]
    fn rounding_never_narrows() {
        for size in [0.1, 1.0 / 3.0, 0.7, 1e-50, 1e30] {
            assert!(f64::from(of(0.5, &[size]).unwrap()) >= size);
        }
    }
}
