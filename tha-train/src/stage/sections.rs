//! Sections: filters of first and second order, as a model file describes them and [`Reference`](crate::reference) computes them.
//!
//! | filter | recurrence | passes on |
//! |---|---|---|
//! | average | s += max(alpha, 1/n) (u - s), n samples since the start | s |
//! | resonator | y_1 = b u + m (c y_1 - s y_2), y_2 = s y_1 + c y_2: the state turns, and a part of it shrinks | the all-pass m u - b (c y_1 - s y_2) of the y before |
//!
//! An average starts as a running mean, so it has no transient; it has settled when it is one no more, at n = 1 / alpha. A resonator
//! starts at rest and has settled when its start has faded. Rows before that are not scored: what a system does there depends on
//! what nobody has recorded. The outputs of resonators in a row are orthonormal filters (Kautz functions). Coefficients are those of a model file, f32; the arithmetic is f64.

use super::StageError;
use tha_core::build::{Filter, Resonator};

/// The average of a time constant in samples.
pub(super) fn average(tau: f64) -> Filter {
    Filter::Average { alpha: -libm::expm1(-tau.recip()) as f32 }
}

/// The resonator with the poles re + im i and re - im i.
pub(super) fn resonator(re: f64, im: f64) -> Result<Filter, StageError> {
    let modulus = libm::hypot(f64::from(re as f32), f64::from(im as f32)) as f32;
    if modulus >= 1.0 {
        return Err(StageError::Unstable { re, im, modulus });
    }
    if im as f32 == 0.0 {
        return Err(StageError::Overdamped { re });
    }
    Ok(Filter::Resonator(Resonator::new(re, im)))
}

/// The resonator of a complex pole, the average of a real one.
pub(super) fn pole(re: f64, im: f64) -> Result<Filter, StageError> {
    if im == 0.0 { Ok(average(-libm::log(re).recip())) } else { resonator(re, im) }
}
