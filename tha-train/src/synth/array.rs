//! A sensor array. Channel i hears its neighbours, z_i = u_i + k_i (u_{i-1} + u_{i+1}); follows with its own time
//! constant, w_i(t) = a_i w_i(t-1) + (1 - a_i) z_i(t); and saturates, s_i = L_i tanh(w_i / L_i). The outputs mix the
//! channels and products of neighbours, y_j = sum_i C_ji s_i + sum_i D_ji s_i s_{i+1}.
//!
//! It is not a polynomial of finite memory, but close to one: poles are such that at most [`TAIL`] of a step is left
//! after M samples.

use super::{SynthParams, System, between};
use crate::data::Dataset;
use crate::network::Normal;
use serde_json::{Value, json};

/// Largest part of a channel's step response that may remain after M samples.
const TAIL: f64 = 0.05;

pub(super) struct Array {
    cross_talk: Vec<f64>,
    poles: Vec<f64>,
    levels: Vec<f64>,
    linear: Vec<Vec<f64>>,
    products: Vec<Vec<f64>>,
}

impl Array {
    pub(super) fn random(options: &SynthParams, normal: &mut Normal) -> Self {
        let p = options.channels;
        let slowest = libm::pow(TAIL, 1.0 / options.memory as f64);
        let mut channels = |low, high| (0..p).map(|_| between(low, high, normal)).collect::<Vec<f64>>();
        let (cross_talk, poles, levels) = (channels(0.05, 0.25), channels(0.0, slowest), channels(1.0, 3.0));
        let mut weights = |size: f64| {
            let row = |normal: &mut Normal| (0..p).map(|_| size * normal.draw()).collect::<Vec<f64>>();
            (0..options.outputs).map(|_| row(normal)).collect::<Vec<_>>()
        };
        Self { cross_talk, poles, levels, linear: weights(1.0), products: weights(0.3) }
    }

    /// The reading s_i of every channel.
    fn readings(&self, u: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let p = u.len();
        let reading = |i: usize| {
            let (before, after) = (&u[(i + p - 1) % p], &u[(i + 1) % p]);
            let (k, a, level) = (self.cross_talk[i], self.poles[i], self.levels[i]);
            let mut w = 0.0;
            let sample = |t: usize| {
                w = a * w + (1.0 - a) * (u[i][t] + k * (before[t] + after[t]));
                level * libm::tanh(w / level)
            };
            (0..u[i].len()).map(sample).collect()
        };
        (0..p).map(reading).collect()
    }
}

impl System for Array {
    fn respond(&self, inputs: &Dataset) -> Vec<Vec<f64>> {
        let s = self.readings(&inputs.u);
        let output = |(linear, products): (&Vec<f64>, &Vec<f64>)| {
            let mut y = vec![0.0; inputs.len()];
            for (i, (c, d)) in linear.iter().zip(products).enumerate() {
                let next = &s[(i + 1) % s.len()];
                for ((y, own), next) in y.iter_mut().zip(&s[i]).zip(next) {
                    *y += c * own + d * own * next;
                }
            }
            y
        };
        self.linear.iter().zip(&self.products).map(output).collect()
    }

    fn scale_outputs(&mut self, factors: &[f64]) {
        for weights in [&mut self.linear, &mut self.products] {
            for (row, factor) in weights.iter_mut().zip(factors) {
                row.iter_mut().for_each(|weight| *weight *= factor);
            }
        }
    }

    fn truth(&self) -> Value {
        json!({
            "cross_talk": self.cross_talk,
            "poles": self.poles,
            "saturation_levels": self.levels,
            "linear": self.linear,
            "products": self.products,
        })
    }
}
