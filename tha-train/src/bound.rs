//! How far f32 on the device can be from f64 in the batch: a bound on the rounding errors, sample by sample, from the model
//! and the samples alone.
//!
//! Running error analysis: [`Approximate`] carries a value and a bound of its error through the arithmetic of
//! [`reference`](crate::reference). With unit roundoff u = 2^-24, every operation passes on the errors that come in and adds
//! u times the size of its result:
//!
//! ```text
//! a + b     e_a + e_b + u |a + b|                        a b     |a| e_b + |b| e_a + e_a e_b + u |a b|
//! average   (1 - g) e_s + g e_u + roundings              grows to what comes in + u |s| / alpha
//! resonate  |p| e_y + e_u + roundings                    grows to (what comes in + roundings) / (1 - |p|)
//! ```
//!
//! where the filters have rules of their own: taken operation by operation, the error that a state carries over would seem to
//! grow without end. Errors of a resonator's state are told by [their size](Resonator::size), which shrinks by |p| in every step. The
//! clamps and the maps are continuous, so that a device which takes the other branch is covered too. Both sides use the same f32
//! coefficients, so their rounding in training is no part of it. Underflow adds less than 2^-149 per operation; the rounding of the
//! batch itself (2^-53) and of this computation is covered by a factor. Where a magnitude could leave the range of f32, the bound is
//! infinite.

mod worst;

use crate::reference::{Real, Reference};
use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};
use tha_core::build::{ModelSpec, Resonator};

/// Unit roundoff of f32.
const UNIT: f64 = 1.0 / (1u64 << 24) as f64;
/// The smallest positive f32, as a bound of one underflow.
const UNDERFLOW: f64 = 1.4e-45;
/// Covers the f64 roundings of the batch and of the bound.
const SLACK: f64 = 1.0 + 1e-6;

/// A number that is known up to an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Approximate {
    value: f64,
    error: f64,
}

impl Approximate {
    /// A sample of a recording, which the device gets as f32.
    fn sample(u: f64) -> Self {
        Self { value: u, error: UNIT * u.abs() + UNDERFLOW }
    }

    /// A result with the error that it inherits, and with its own rounding.
    fn rounded(value: f64, inherited: f64) -> Self {
        let error = inherited + UNIT * (value.abs() + inherited) + UNDERFLOW;
        let inside = value.abs() + error <= f64::from(f32::MAX);
        Self { value, error: if inside { error } else { f64::INFINITY } }
    }

    /// The largest magnitude the computed number can have.
    fn size(self) -> f64 {
        self.value.abs() + self.error
    }
}

impl From<f32> for Approximate {
    fn from(value: f32) -> Self {
        Self { value: value.into(), error: 0.0 }
    }
}

impl Add for Approximate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::rounded(self.value + other.value, self.error + other.error)
    }
}

impl Sub for Approximate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::rounded(self.value - other.value, self.error + other.error)
    }
}

impl Mul for Approximate {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        // An infinite error times an exact zero is no number; it is infinite all the same.
        let inherited = self.value.abs() * other.error + self.error * other.size();
        Self::rounded(self.value * other.value, if inherited.is_nan() { f64::INFINITY } else { inherited })
    }
}

impl Div for Approximate {
    type Output = Self;
    /// By a number that is exact: nodes and counts of samples are.
    fn div(self, other: Self) -> Self {
        Self::rounded(self.value / other.value, self.error / other.value.abs())
    }
}

impl PartialEq for Approximate {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialOrd for Approximate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }
}

/// What is rounded in a step of a resonator's two outputs, by the sizes of its state and its input.
fn resonator_roundings(resonator: &Resonator, [one, two]: [f64; 2], u: f64) -> [f64; 2] {
    let [a, b, c, d] = resonator.state.map(|value| f64::from(value).abs());
    let u = f64::from(resonator.gain).abs() * u;
    [u + a * one + b * two, c * one + d * two].map(|size| 3.1 * UNIT * size + 6.0 * UNDERFLOW)
}

impl Real for Approximate {
    fn limit(self, low: f32, high: f32) -> Self {
        let (low, high) = (f64::from(low), f64::from(high));
        let value = self.value.clamp(low, high);
        Self { value, error: self.error.min((value - low).max(high - value)) }
    }

    fn average(s: Self, u: Self, gain: Self) -> Self {
        let step = Self::rounded(u.value - s.value, 0.0);
        let exact = Self { error: 0.0, ..s } + gain * step;
        // gain + (1 - gain) is 1: the errors of s and u are averaged as their values are.
        let carried = (1.0 - gain.value).abs() * s.error + gain.value * u.error;
        let rounding = exact.error + 4.0 * UNIT * (carried + gain.size() * u.error.max(s.error));
        Self { value: exact.value, error: carried + rounding }
    }

    fn resonate(resonator: &Resonator, [one, two]: [Self; 2], u: Self) -> [Self; 2] {
        let [a, b, c, d] = resonator.state.map(f64::from);
        let ([re, im], (second, reach)) = (resonator.pole(), resonator.measure());
        let gain = f64::from(resonator.gain);
        let values = [gain * u.value + a * one.value + b * two.value, c * one.value + d * two.value];
        // Both parts carry what an error of one size can be in them.
        let state = one.error / reach[0];
        let [first, other] = resonator_roundings(resonator, [one.size(), two.size()], u.size());
        let error = libm::hypot(re, im) * state + gain.abs() * u.error + first + second * other;
        [0, 1].map(|k| {
            let (value, error) = (values[k], reach[k] * error);
            let inside = value.abs() + error <= f64::from(f32::MAX);
            Self { value, error: if inside { error } else { f64::INFINITY } }
        })
    }

    /// Every node within reach has its share: the device may be in the next cell.
    fn map(mut sum: Self, nodes: &[f32], z: Self, value: &dyn Fn(usize) -> f32) -> Self {
        let node = |k: usize| f64::from(nodes[k]);
        let last = nodes.len() - 1;
        let z = z.limit(nodes[0], nodes[last]);
        for k in 0..=last {
            let left = if k > 0 { node(k) - node(k - 1) } else { f64::INFINITY };
            let right = if k < last { node(k + 1) - node(k) } else { f64::INFINITY };
            let (before, after) =
                (if k > 0 { node(k - 1) } else { node(k) }, if k < last { node(k + 1) } else { node(k) });
            if z.value + z.error < before || z.value - z.error > after {
                continue;
            }
            let hat = if z.value <= node(k) {
                1.0 - (node(k) - z.value) / left
            } else {
                1.0 - (z.value - node(k)) / right
            };
            let hat = hat.clamp(0.0, 1.0);
            // z - n, the width, their quotient and 1 - t are rounded: four units of at most 1.
            let error = (z.error / left.min(right) + 4.1 * UNIT).min(1.0);
            sum = sum + Self::from(value(k)) * Self { value: hat, error };
        }
        sum
    }
}

/// The bound for a model.
#[derive(Clone, Debug)]
pub struct ErrorBound<'s> {
    spec: &'s ModelSpec,
    stream: Reference<'s, Approximate>,
}

impl<'s> ErrorBound<'s> {
    /// For a model before its first sample.
    pub fn new(spec: &'s ModelSpec) -> Self {
        Self { spec, stream: Reference::new(spec) }
    }

    /// Forgets everything, as between two records.
    pub fn reset(&mut self) {
        self.stream.reset();
    }

    /// The bound of each output after one more sample in physical units, once the model has settled.
    pub fn push(&mut self, u: &[f64]) -> Option<Vec<f64>> {
        let u: Vec<Approximate> = u.iter().map(|&u| Approximate::sample(u)).collect();
        let y = self.stream.push(&u)?;
        Some(y.into_iter().map(|y| y.error * SLACK).collect())
    }

    /// The bound of each output for any samples inside the training range: a property of the model alone.
    pub fn model(&self) -> Vec<f64> {
        worst::outputs(self.spec).into_iter().map(|error| error * SLACK).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;
    use crate::synth::{Kind, SynthParams, generate};

    fn spec(degree: usize) -> ModelSpec {
        let options = SynthParams { channels: 3, outputs: 2, degree, ..SynthParams::new(Kind::Volterra) };
        generate(&options).unwrap().model.unwrap().spec().clone()
    }

    /// One product by hand: y = 3 x with x = u - 0.
    #[test]
    fn by_hand() {
        let mut spec = spec(1);
        spec.memory = 1;
        spec.inputs.truncate(1);
        spec.outputs.truncate(1);
        let core = tha_core::build::Core::new(1, 2, 1, vec![0.0, 3.0]);
        spec.heads = vec![tha_core::build::Head::from_cores(vec![0], 1.0, vec![core])];
        (spec.inputs[0].offset, spec.inputs[0].gain) = (0.0, 1.0);
        (spec.outputs[0].offset, spec.outputs[0].scale) = (0.0, 1.0);
        // The sample, u - 0, times the gain; times 3, plus 0; times the weight, plus 0; times the scale, plus 0: 9 units of 3.
        let bound = ErrorBound::new(&spec).push(&[1.0]).unwrap()[0];
        assert!((bound / (9.0 * 3.0 * UNIT) - 1.0).abs() < 1e-5, "{}", bound / UNIT);
    }

    #[test]
    fn inside_the_range_the_bound_of_the_model_holds_for_every_window() {
        let spec = spec(3);
        let mut bound = ErrorBound::new(&spec);
        let all = bound.model();
        let mut normal = Normal::new(1);
        for t in 0..200 {
            let u: Vec<f64> = spec
                .inputs
                .iter()
                .map(|channel| {
                    let (low, high) = (f64::from(channel.low), f64::from(channel.high));
                    low + (high - low) * 0.5 * (1.0 + normal.draw().sin())
                })
                .collect();
            let one = bound.push(&u).unwrap_or_default();
            assert_eq!(one.is_empty(), t + 1 < spec.memory);
            assert!(one.iter().zip(&all).all(|(one, all)| one <= all), "{one:?} {all:?}");
        }
    }

    #[test]
    fn leaving_the_range_of_f32_makes_it_infinite() {
        let spec = spec(3);
        let (mut device, mut bound) = (Reference::<f32>::new(&spec), ErrorBound::new(&spec));
        let (mut y, mut bounds) = (None, None);
        for _ in 0..spec.memory {
            y = device.push(&[1e30; 3]);
            bounds = bound.push(&[1e30; 3]);
        }
        assert!(y.unwrap().iter().any(|y| !y.is_finite()));
        assert!(bounds.unwrap().iter().all(|bound| bound.is_infinite()));
    }
}
