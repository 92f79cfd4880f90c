//! Wiener-Hammerstein: for each output j, z = sum_i g_ji * u_i (filters over m1 samples), w = c_1 z + ... + c_d z^d,
//! y = h_j * w (a filter over m2 samples). With m1 + m2 - 1 = M it is a Volterra system of memory M and degree d.

use super::{SynthParams, System};
use crate::data::Dataset;
use crate::network::Normal;
use serde_json::{Value, json};

pub(super) struct WienerHammerstein {
    branches: Vec<Branch>,
}

struct Branch {
    /// Taps of the first filter, per input.
    first: Vec<Vec<f64>>,
    /// c_1..c_d.
    polynomial: Vec<f64>,
    /// Taps of the second filter.
    second: Vec<f64>,
}

impl WienerHammerstein {
    pub(super) fn random(options: &SynthParams, normal: &mut Normal) -> Self {
        let m1 = options.memory.div_ceil(2);
        let m2 = options.memory + 1 - m1;
        let mut branch = |_| {
            let mut first: Vec<Vec<f64>> = (0..options.channels).map(|_| taps(m1, normal)).collect();
            // z has unit variance for white inputs, so that every power of it matters.
            let norm = first.iter().flatten().map(|tap| tap * tap).sum::<f64>().sqrt();
            first.iter_mut().flatten().for_each(|tap| *tap /= norm);
            let mut power = |k: usize| normal.draw().signum() * if k == 1 { 1.0 } else { 0.8 / k as f64 };
            let polynomial = (1..=options.degree).map(&mut power).collect();
            Branch { first, polynomial, second: taps(m2, normal) }
        };
        Self { branches: (0..options.outputs).map(&mut branch).collect() }
    }
}

/// Random taps that fade; never all zero.
fn taps(count: usize, normal: &mut Normal) -> Vec<f64> {
    (0..count).map(|lag| 0.7_f64.powi(lag as i32) * normal.draw()).collect()
}

impl Branch {
    fn respond(&self, inputs: &Dataset) -> Vec<f64> {
        let mut z = vec![0.0; inputs.len()];
        for (u, taps) in inputs.u.iter().zip(&self.first) {
            add_filtered(&mut z, u, taps);
        }
        let polynomial = |z: f64| self.polynomial.iter().rev().fold(0.0, |sum, c| (sum + c) * z);
        let w: Vec<f64> = z.into_iter().map(polynomial).collect();
        let mut y = vec![0.0; w.len()];
        add_filtered(&mut y, &w, &self.second);
        y
    }
}

fn add_filtered(sum: &mut [f64], signal: &[f64], taps: &[f64]) {
    for (lag, tap) in taps.iter().enumerate() {
        for (value, past) in sum.iter_mut().skip(lag).zip(signal) {
            *value += tap * past;
        }
    }
}

impl System for WienerHammerstein {
    fn respond(&self, inputs: &Dataset) -> Vec<Vec<f64>> {
        self.branches.iter().map(|branch| branch.respond(inputs)).collect()
    }

    fn scale_outputs(&mut self, factors: &[f64]) {
        for (branch, factor) in self.branches.iter_mut().zip(factors) {
            branch.second.iter_mut().for_each(|tap| *tap *= factor);
        }
    }

    fn truth(&self) -> Value {
        let branch = |b: &Branch| json!({ "first": b.first, "polynomial": b.polynomial, "second": b.second });
        json!({ "outputs": self.branches.iter().map(branch).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_branch_by_hand() {
        let system =
            Branch { first: vec![vec![1.0, 0.5]], polynomial: vec![1.0, 2.0], second: vec![1.0, -1.0] };
        let inputs = Dataset::new("", vec![vec![2.0, 0.0, 1.0]], vec![]);
        // z = 2, 1, 1; w = z + 2 z^2 = 10, 3, 3; y = w(t) - w(t-1).
        assert_eq!(system.respond(&inputs), [10.0, -7.0, 0.0]);
    }
}
