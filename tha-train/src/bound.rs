//! How far f32 on the device can be from f64 in the batch: a bound on the rounding errors of one sample, from the model
//! and the window alone.
//!
//! With unit roundoff u = 2^-24 and gamma_n = n u / (1 - n u), every stage bounds its error by the error that comes in,
//! multiplied through, and by the gamma of its own roundings times the sum of the magnitudes (which is how the condition
//! of a sum enters):
//!
//! ```text
//! x = (u - o) g            e_x = g (e_u (1 + u)^2 + gamma_2 |u - o|),          e_u = u |u| (the sample itself is f32)
//! t = V_0 + sum V_i x_i    e_t = |V_0| gamma_n + sum |V_i| (e_xi + gamma_(n+2-i) (|x_i| + e_xi)),           n = q - 1
//! v' = sum t_b v_b         e_v' = sum (|t| e_v + e_t |v| + e_t e_v) + gamma_r sum (|t| + e_t) (|v| + e_v)
//! s = sum w_k v_k          e_s = sum |w| e_v + gamma_K sum |w| (|v| + e_v)
//! y = o + c s              e_y = c e_s + gamma_2 c (|s| + e_s) + u |o|
//! ```
//!
//! Both sides use the same f32 coefficients, so their rounding in training is no part of it. Underflow adds less than
//! 2^-149 per product; the rounding of the batch itself (2^-53) and of this computation is covered by a factor. Where
//! a magnitude could leave the range of f32, the bound is infinite.

use tha_core::RangePolicy;
use tha_core::build::{Head, ModelSpec};

/// Unit roundoff of f32.
const UNIT: f64 = 1.0 / (1u64 << 24) as f64;
/// The smallest positive f32, as a bound of one underflow.
const UNDERFLOW: f64 = 1.4e-45;
/// Covers the f64 roundings of the batch and of the bound.
const SLACK: f64 = 1.0 + 1e-6;

fn gamma(n: usize) -> f64 {
    let n = n as f64 * UNIT;
    n / (1.0 - n)
}

/// A number that is known up to an error.
#[derive(Clone, Copy, Debug, Default)]
struct Approximate {
    value: f64,
    error: f64,
}

impl Approximate {
    /// The largest magnitude the computed number can have.
    fn size(self) -> f64 {
        self.value.abs() + self.error
    }
}

/// The bound for a model.
#[derive(Clone, Debug)]
pub struct ErrorBound<'s> {
    spec: &'s ModelSpec,
    /// Coefficients and values by their magnitudes: the bound over all signs.
    absolute: bool,
}

impl<'s> ErrorBound<'s> {
    /// For a model.
    #[must_use]
    pub fn new(spec: &'s ModelSpec) -> Self {
        Self { spec, absolute: false }
    }

    /// The bound of each output for the window that `u(input, lag)` gives in physical units.
    pub fn window(&self, u: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let standardised = |input: usize, lag: usize| self.standardise(input, u(input, lag));
        self.outputs(standardised)
    }

    /// The bound of each output for any window inside the training range: a property of the model alone.
    #[must_use]
    pub fn model(&self) -> Vec<f64> {
        let bound = Self { absolute: true, ..*self };
        bound.outputs(|input, _| {
            let channel = &self.spec.inputs[input];
            let ends = [channel.low, channel.high].map(|u| self.standardise(input, u.into()));
            Approximate {
                value: ends[0].value.abs().max(ends[1].value.abs()),
                error: ends[0].error.max(ends[1].error),
            }
        })
    }

    fn standardise(&self, input: usize, u: f64) -> Approximate {
        let channel = &self.spec.inputs[input];
        let u = match self.spec.range {
            RangePolicy::Clamp => u.clamp(channel.low.into(), channel.high.into()),
            RangePolicy::Pass => u,
        };
        let (difference, gain) = (u - f64::from(channel.offset), f64::from(channel.gain));
        let error = UNIT * u.abs() * (1.0 + UNIT).powi(2) + gamma(2) * difference.abs();
        Approximate { value: difference * gain, error: gain * (error + UNDERFLOW) + UNDERFLOW }
    }

    fn outputs(&self, x: impl Fn(usize, usize) -> Approximate) -> Vec<f64> {
        let mut sums = vec![Approximate::default(); self.spec.outputs.len()];
        let rounding = gamma(self.spec.heads.len());
        let mut overflow = false;
        for head in &self.spec.heads {
            let lags = 0..self.spec.memory;
            let window: Vec<Approximate> = lags
                .flat_map(|lag| head.inputs.iter().map(move |&input| (input, lag)))
                .map(|(i, l)| x(i, l))
                .collect();
            let weight = self.sign(head.weight);
            for (sum, v) in sums.iter_mut().zip(self.contract(head, &window, &mut overflow)) {
                sum.value += weight * v.value;
                sum.error += weight.abs() * (v.error + rounding * v.size()) + UNDERFLOW;
            }
        }
        let output = |(sum, channel): (&Approximate, &tha_core::build::OutputChannel)| {
            let (offset, scale) = (f64::from(channel.offset).abs(), f64::from(channel.scale));
            let size = scale * sum.size();
            let error = scale * sum.error + gamma(2) * size + UNIT * offset + UNDERFLOW;
            if overflow || out_of_range(sum.error) || size + offset > f64::from(f32::MAX) {
                return f64::INFINITY;
            }
            error * SLACK
        };
        sums.iter().zip(&self.spec.outputs).map(output).collect()
    }

    fn contract(&self, head: &Head, x: &[Approximate], overflow: &mut bool) -> Vec<Approximate> {
        // What a coefficient of magnitude one contributes to the error of its sum.
        let n = x.len();
        let share = |(i, x): (usize, &Approximate)| x.error + gamma(n + 1 - i) * x.size();
        let shares: Vec<f64> = x.iter().enumerate().map(share).collect();
        let mut v: Vec<Approximate> = Vec::new();
        for core in head.cores.iter().rev() {
            let sum = |a: usize, b: usize| {
                let coefficient = |i: usize| self.sign(core.data[(a * core.q + i) * core.right + b]);
                let mut t = Approximate { value: coefficient(0), error: 0.0 };
                t.error = gamma(n) * t.value.abs() + n as f64 * UNDERFLOW;
                for (i, (x, share)) in x.iter().zip(&shares).enumerate() {
                    let coefficient = coefficient(i + 1);
                    t.value += coefficient * x.value;
                    t.error += coefficient.abs() * share;
                }
                if out_of_range(t.error) {
                    t.error = f64::INFINITY;
                }
                t
            };
            let rounding = gamma(core.right);
            let row = |a: usize| {
                let mut out = Approximate::default();
                for (b, v) in v.iter().enumerate() {
                    let t = sum(a, b);
                    out.value += t.value * v.value;
                    out.error +=
                        t.value.abs() * v.error + t.error * v.size() + rounding * t.size() * v.size();
                    out.error += UNDERFLOW;
                }
                out
            };
            v = if v.is_empty() {
                (0..core.left).map(|a| sum(a, 0)).collect()
            } else {
                (0..core.left).map(row).collect()
            };
            *overflow |= v.iter().any(|v| out_of_range(v.error));
        }
        v
    }

    fn sign(&self, coefficient: f32) -> f64 {
        let coefficient = f64::from(coefficient);
        if self.absolute { coefficient.abs() } else { coefficient }
    }
}

/// The error is at least one roundoff of every partial sum, so where it is small no partial sum was too large.
fn out_of_range(error: f64) -> bool {
    error / UNIT > f64::from(f32::MAX) || error.is_nan()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;
    use crate::reference;
    use crate::synth::{Kind, SynthParams, generate};

    fn spec(degree: usize) -> ModelSpec {
        let options = SynthParams { channels: 3, outputs: 2, degree, ..SynthParams::new(Kind::Volterra) };
        generate(&options).unwrap().model.unwrap().spec().clone()
    }

    /// One product by hand: y = 3 x with x = u - 0, u exact: two roundings of the sum (0 + 3 x), none elsewhere.
    #[test]
    fn by_hand() {
        let mut spec = spec(1);
        spec.memory = 1;
        spec.inputs.truncate(1);
        spec.outputs.truncate(1);
        spec.heads[0].inputs = vec![0];
        spec.heads[0].weight = 1.0;
        spec.heads[0].cores = vec![tha_core::build::Core::new(1, 2, 1, vec![0.0, 3.0])];
        (spec.inputs[0].offset, spec.inputs[0].gain) = (0.0, 1.0);
        (spec.outputs[0].offset, spec.outputs[0].scale) = (0.0, 1.0);
        // e_x = 3 u, then gamma_2 of the sum, gamma_1 of the weight, gamma_2 of the output: 3 + 2 + 1 + 2 units of 3.
        let bound = ErrorBound::new(&spec).window(|_, _| 1.0)[0];
        assert!((bound / (8.0 * 3.0 * UNIT) - 1.0).abs() < 1e-5, "{}", bound / UNIT);
    }

    #[test]
    fn inside_the_range_the_bound_of_the_model_holds_for_every_window() {
        let spec = spec(3);
        let bound = ErrorBound::new(&spec);
        let all = bound.model();
        let mut normal = Normal::new(1);
        for _ in 0..200 {
            let u: Vec<f64> = (0..3 * spec.memory)
                .map(|k| {
                    let channel = &spec.inputs[k % 3];
                    let (low, high) = (f64::from(channel.low), f64::from(channel.high));
                    low + (high - low) * 0.5 * (1.0 + normal.draw().sin())
                })
                .collect();
            let one = bound.window(|input, lag| u[lag * 3 + input]);
            assert!(one.iter().zip(&all).all(|(one, all)| one <= all), "{one:?} {all:?}");
        }
    }

    #[test]
    fn leaving_the_range_of_f32_makes_it_infinite() {
        let spec = spec(3);
        let huge = vec![1e30f32; 3];
        let y = reference::outputs(&spec, &vec![huge.as_slice(); spec.memory]);
        assert!(y.iter().any(|y| !y.is_finite()));
        assert!(ErrorBound::new(&spec).window(|_, _| 1e30).iter().all(|bound| bound.is_infinite()));
    }
}
