//! The bound over all samples inside the training range: every number by its largest magnitude, every filter in the state in
//! which its error no longer grows.

use super::{Approximate, UNDERFLOW, UNIT, resonator_roundings};
use crate::reference::{Real, Reference};
use std::ops::{Add, Div, Mul, Sub};
use tha_core::build::{Filter, ModelSpec, Signal, Source};

/// A number of any sign up to a size, with an error. Coefficients enter by their magnitudes.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Worst(Approximate);

impl Worst {
    fn new(size: f64, error: f64) -> Self {
        Self(Approximate { value: size, error })
    }
}

impl From<f32> for Worst {
    fn from(value: f32) -> Self {
        Self(value.abs().into())
    }
}

macro_rules! by_size {
    ($($operation:ident $name:ident $by:tt;)*) => {$(
        #[allow(clippy::suspicious_arithmetic_impl, reason = "a difference can be as large as a sum")]
        impl $operation for Worst {
            type Output = Self;
            fn $name(self, other: Self) -> Self {
                Self(self.0 $by other.0)
            }
        }
    )*};
}
by_size! { Add add +; Sub sub +; Mul mul *; Div div /; }

impl Real for Worst {
    /// Inside the range nothing is clamped by more than the error.
    fn limit(self, low: f32, high: f32) -> Self {
        Self::new(self.0.value.min(f64::from(low.abs().max(high.abs()))), self.0.error)
    }

    /// Somewhere between the nodes: as large as the largest value, as steep as the steepest cell.
    fn map(sum: Self, nodes: &[f32], z: Self, value: &dyn Fn(usize) -> f32) -> Self {
        let largest = (0..nodes.len()).map(|k| value(k).abs()).fold(0.0, f32::max);
        let narrowest = nodes
            .windows(2)
            .map(|pair| f64::from(pair[1]) - f64::from(pair[0]))
            .fold(f64::INFINITY, f64::min);
        // A value from either end of the cell, each with the error of how far z has come.
        let t = Self::new(1.0, (z.0.error / narrowest + 4.1 * UNIT).min(1.0));
        let other = Self::new(0.0, t.0.error);
        sum + Self::from(largest) * t + Self::from(largest) * other
    }
}

/// The error of each output.
pub(super) fn outputs(spec: &ModelSpec) -> Vec<f64> {
    let input = |input: usize| {
        let channel = &spec.inputs[input];
        let ends = [channel.low, channel.high].map(|u| {
            let u = Approximate::sample(u.into());
            (u - Approximate::from(channel.offset)) * Approximate::from(channel.gain)
        });
        Worst::new(ends[0].value.abs().max(ends[1].value.abs()), ends[0].error.max(ends[1].error))
    };
    // Of every section its outputs and what it feeds.
    let mut sections: Vec<([Worst; 2], Worst)> = Vec::new();
    for section in &spec.stage.sections {
        let u = match section.source {
            Source::Input(i) => input(i),
            Source::Section(earlier) => sections[earlier].1,
        };
        let Approximate { value: size, error } = u.0;
        sections.push(match section.filter {
            Filter::Average { alpha } => {
                // |s| <= |u|; of a step, u - s, gain times it and the sum are rounded, and 1 / n at the start.
                let alpha = f64::from(alpha);
                let rounding = UNIT * 1.01 * (size + error) + UNDERFLOW;
                let s = Worst::new(size, error + 8.0 * rounding + 2.0 * rounding / alpha);
                ([s, s], s)
            }
            Filter::Resonator(resonator) => {
                let ([re, im], (second, reach)) = (resonator.pole(), resonator.measure());
                let left = 1.0 - libm::hypot(re, im);
                let gain = f64::from(resonator.gain).abs();
                let sizes = reach.map(|reach| reach * gain * size / left);
                let [first, other] = resonator_roundings(&resonator, sizes, size + error);
                // The error adds to the sizes that are rounded, by less than a part in a thousand while it is small.
                let error = 1.001 * (gain * error + first + second * other) / left;
                let [y1, y2] = [0, 1].map(|k| Worst::new(sizes[k], reach[k] * error));
                let [d, e1, e2] = resonator.all_pass.map(Worst::from);
                ([y1, y2], d * u + e1 * y1 + e2 * y2)
            }
        });
    }
    let signal = |signal: Signal| match signal {
        Signal::Lag { input: i, .. } => input(i),
        Signal::Section { section, output } => sections[section].0[output],
    };
    let features: Vec<Worst> = if spec.stage.features.is_empty() {
        (0..spec.memory).flat_map(|_| (0..spec.inputs.len()).map(input)).collect()
    } else {
        let feature = |feature: &tha_core::build::Feature| {
            let z = match feature.minus {
                None => signal(feature.plus),
                Some(minus) => signal(feature.plus) - signal(minus),
            };
            // Inside the training range of the features, not only of the inputs.
            z.limit(feature.low, feature.high)
        };
        spec.stage.features.iter().map(feature).collect()
    };
    Reference::<Worst>::outputs_of(spec, &features).into_iter().map(|y| y.0.error).collect()
}
