//! From networks to the contents of a model file.

use super::Model;
use crate::data::Dataset;
use crate::network::{Core, Network};
use crate::stage::{InputMap, OutputMap, Scaling};
use std::ops::Range;
use tha_core::build::{self, Head, InputChannel, ModelSpec, OutputChannel, Provenance, Stage};
use tha_core::{NonFinitePolicy, RangePolicy};

/// What a model file says beside its heads.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Names of the channels come from here.
    pub data: &'a Dataset,
    /// The rows that were fitted, in order; their windows give the training range of the inputs.
    pub rows: &'a [usize],
    /// The standardisation the heads were fitted with.
    pub scaling: &'a Scaling,
    /// RMS residual of each output on data the model was not fitted to.
    pub residual: &'a [f64],
    /// M.
    pub memory: usize,
    /// Filters, features and maps; the default: all lags of all inputs.
    pub stage: Stage,
    /// What to do outside the training range.
    pub range: RangePolicy,
    /// Seed of all randomness.
    pub seed: u64,
    /// Anything worth keeping with the model.
    pub note: String,
}

/// A head to put into a model.
#[derive(Clone, Debug)]
pub struct HeadPart<'a> {
    /// Indices of its inputs, increasing.
    pub inputs: Vec<usize>,
    /// The outputs it serves.
    pub outputs: Range<usize>,
    /// Its weight in each of these.
    pub weights: Vec<f64>,
    /// Indices of the features it uses, increasing; empty where the stage lists none.
    pub features: Vec<usize>,
    /// Its network of these outputs, in standardised units.
    pub network: &'a Network,
}

impl<'a> HeadPart<'a> {
    /// A head on all lags of its inputs, with one weight.
    pub fn of_lags(inputs: Vec<usize>, outputs: Range<usize>, weight: f64, network: &'a Network) -> Self {
        Self { inputs, weights: vec![weight; outputs.len()], outputs, features: Vec::new(), network }
    }
}

impl Frame<'_> {
    /// A model of the given heads; their coefficients are rounded to f32.
    pub fn model(&self, heads: &[HeadPart<'_>]) -> Model {
        self.unrounded(heads).rounded()
    }

    /// The same before rounding: how good the fit is, not what the file loses.
    pub(crate) fn unrounded(&self, heads: &[HeadPart<'_>]) -> Model {
        let networks = heads.iter().map(|head| head.network.clone()).collect();
        Model { spec: self.spec(heads), networks, integers: None }
    }

    fn spec(&self, heads: &[HeadPart<'_>]) -> ModelSpec {
        let input = |((name, column), map): ((&String, &Vec<f64>), &InputMap)| {
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            let mut next = 0;
            for &row in self.rows {
                for value in &column[next.max(row + 1 - self.memory)..=row] {
                    (low, high) = (low.min(*value), high.max(*value));
                }
                next = row + 1;
            }
            InputChannel {
                name: name.clone(),
                offset: map.offset,
                gain: map.gain,
                low: low as f32,
                high: high as f32,
            }
        };
        let output = |(j, (name, map)): (usize, (&String, &OutputMap))| OutputChannel {
            name: name.clone(),
            offset: map.offset,
            scale: map.scale,
            residual: self.residual.get(j).copied().unwrap_or(0.0) as f32,
        };
        let narrow = |core: &Core| {
            build::Core::new(core.left, core.q, core.right, core.data.iter().map(|&v| v as f32).collect())
        };
        ModelSpec {
            inputs: self.data.inputs.iter().zip(&self.data.u).zip(&self.scaling.inputs).map(input).collect(),
            outputs: self.data.outputs.iter().zip(&self.scaling.outputs).enumerate().map(output).collect(),
            memory: self.memory,
            stage: self.stage.clone(),
            range: self.range,
            non_finite: NonFinitePolicy::default(),
            interval: None,
            heads: heads
                .iter()
                .map(|part| Head {
                    inputs: part.inputs.clone(),
                    outputs: part.outputs.clone(),
                    weights: part.weights.iter().map(|&weight| weight as f32).collect(),
                    features: part.features.clone(),
                    cores: part.network.cores.iter().map(narrow).collect(),
                })
                .collect(),
            provenance: Provenance {
                tool: concat!("tha-train ", env!("CARGO_PKG_VERSION")).into(),
                seed: self.seed,
                data_hash: self.data.fingerprint(),
                note: self.note.clone(),
            },
        }
    }
}
