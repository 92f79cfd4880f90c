//! A random tensor network of given rank: y_t = V1(x_t) V2(x_t) ... Vd(x_t), with coefficients that f32 holds exactly,
//! so that the model file *is* the truth.

use super::{SynthParams, System};
use crate::data::Dataset;
use crate::model::{Frame, HeadPart, Model};
use crate::network::{Network, Normal};
use crate::stage::{InputMap, OutputMap, Scaling};
use serde_json::{Value, json};
use tha_core::RangePolicy;

pub(super) struct Volterra {
    memory: usize,
    network: Network,
    scaling: Scaling,
}

impl Volterra {
    pub(super) fn random(options: &SynthParams, normal: &mut Normal) -> Self {
        let q = options.channels * options.memory + 1;
        let ranks = vec![options.rank; options.degree - 1];
        let mut network = Self {
            memory: options.memory,
            network: Network::random(options.outputs, q, &ranks, normal),
            scaling: Scaling {
                inputs: vec![InputMap { offset: 0.0, gain: 1.0 }; options.channels],
                outputs: vec![OutputMap { offset: 0.0, scale: 1.0 }; options.outputs],
            },
        };
        network.round();
        network
    }

    fn round(&mut self) {
        for core in &mut self.network.cores {
            core.data.iter_mut().for_each(|value| *value = f64::from(*value as f32));
        }
    }
}

impl System for Volterra {
    fn respond(&self, inputs: &Dataset) -> Vec<Vec<f64>> {
        let mut y = vec![vec![0.0; self.memory - 1]; self.scaling.outputs.len()];
        for rows in inputs.scored_rows(self.memory).chunks(4096) {
            let block = self.network.evaluate(&inputs.lagged(self.memory, &self.scaling, rows.to_vec()));
            for (column, values) in y.iter_mut().zip(block.column_iter()) {
                column.extend(values.iter());
            }
        }
        y
    }

    fn scale_outputs(&mut self, factors: &[f64]) {
        let first = &mut self.network.cores[0];
        for (row, factor) in first.data.chunks_mut(first.q * first.right).zip(factors) {
            row.iter_mut().for_each(|value| *value *= factor);
        }
        self.round();
    }

    fn truth(&self) -> Value {
        json!({ "ranks": self.network.ranks(), "parameters": self.network.parameters(), "model": "truth.tha" })
    }

    fn model(&self, train: &Dataset, options: &SynthParams) -> Option<Model> {
        let frame = Frame {
            data: train,
            rows: &train.scored_rows(self.memory),
            scaling: &self.scaling,
            residual: &[],
            memory: self.memory,
            stage: Default::default(),
            range: RangePolicy::Pass,
            seed: options.seed,
            note: "synth volterra: the truth".into(),
        };
        let inputs = (0..options.channels).collect();
        Some(frame.model(&[HeadPart::of_lags(inputs, 0..options.outputs, 1.0, &self.network)]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, generate};
    use super::*;

    #[test]
    fn the_truth_file_predicts_the_test_data() {
        let options = SynthParams { channels: 3, outputs: 2, ..SynthParams::new(Kind::Volterra) };
        let data = generate(&options).unwrap();
        let model = data.model.unwrap();
        assert!(model.evaluate(&data.test).relative_residual < 1e-14);
        let noise = model.evaluate(&data.train).relative_residual;
        assert!((0.005..0.011).contains(&noise), "{noise}");
    }
}
