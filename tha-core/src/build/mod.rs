//! Making model files on a host (feature `alloc`): [`ModelSpec`] is a model in ordinary owned types, with the
//! cores in the paper's index order; [`ModelSpec::to_bytes`] lays it out as the device reads it.
//!
//! ```text
//! u -> (u - offset) gain -> sections -> features -> maps -> x = [1, ...] -> heads -> outputs
//! ```
//!
//! The round trip is exact: `from_bytes(to_bytes(spec)) == spec`.

mod aligned;
mod error;
mod interval;
mod read;
mod settle;
mod stage;
mod units;
mod write;

use alloc::{string::String, vec, vec::Vec};
use core::ops::Range;

pub use aligned::AlignedBytes;
pub use error::BuildError;
pub use interval::Interval;
pub use stage::{Feature, Filter, Resonator, Section, Signal, Source, Stage};
pub use units::Units;

use crate::format::{NonFinitePolicy, RangePolicy};

/// A model as its maker sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// The inputs, in the order of a sample.
    pub inputs: Vec<InputChannel>,
    /// The outputs.
    pub outputs: Vec<OutputChannel>,
    /// M, samples of each input that are kept as they are, at least 1.
    pub memory: usize,
    /// From inputs to features. The default: all lags of all inputs.
    pub stage: Stage,
    /// Policy outside the training range.
    pub range: RangePolicy,
    /// Policy for NaN and infinities.
    pub non_finite: NonFinitePolicy,
    /// How far the measured outputs may be from those of the model.
    pub interval: Option<Interval>,
    /// The ensemble.
    pub heads: Vec<Head>,
    /// Where the model comes from.
    pub provenance: Provenance,
}

/// An input channel: the filters and heads see x = (u - offset) * gain.
#[derive(Clone, Debug, PartialEq)]
pub struct InputChannel {
    /// Name, without line feeds.
    pub name: String,
    /// Subtracted first.
    pub offset: f32,
    /// Multiplied then; positive.
    pub gain: f32,
    /// Smallest value seen in training.
    pub low: f32,
    /// Largest value seen in training.
    pub high: f32,
}

/// An output channel: y = offset + scale * (weighted sum of the heads).
#[derive(Clone, Debug, PartialEq)]
pub struct OutputChannel {
    /// Name, without line feeds.
    pub name: String,
    /// Added last.
    pub offset: f32,
    /// Multiplied first; positive.
    pub scale: f32,
    /// RMS residual on data the model was not fitted to, physical units; 0 if unknown.
    pub residual: f32,
}

/// Where a model comes from. The device never looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Program and version.
    pub tool: String,
    /// Seed of all randomness in training.
    pub seed: u64,
    /// Hash of the training data.
    pub data_hash: u64,
    /// Anything else, as the history of the training.
    pub note: String,
}

/// A tensor network over some features of some inputs, for some outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The inputs it sees, strictly increasing.
    pub inputs: Vec<usize>,
    /// The outputs it serves.
    pub outputs: Range<usize>,
    /// Its weight in each of these outputs.
    pub weights: Vec<f32>,
    /// The features it uses, strictly increasing, all of its inputs. Empty where the stage has no list of features: then it
    /// uses all lags of its inputs, newest first.
    pub features: Vec<usize>,
    /// V1, ..., Vd.
    pub cores: Vec<Core>,
}

/// A core V of size r_{k-1} x q x r_k.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// r_{k-1}.
    pub left: usize,
    /// Rows: one for the constant 1, one for each plain feature, then one for each node of the mapped ones.
    pub q: usize,
    /// r_k.
    pub right: usize,
    /// V(a, i, b) at `(a * q + i) * right + b`.
    pub data: Vec<f32>,
}

impl Core {
    /// A core from coefficients in the order (a, i, b), b fastest.
    #[must_use]
    pub fn new(left: usize, q: usize, right: usize, data: Vec<f32>) -> Self {
        Self { left, q, right, data }
    }
}

impl Head {
    /// A head over all lags of `inputs` (indices, strictly increasing) with the cores V1, ..., Vd, which serves as many outputs as
    /// V1 has rows, from the first on, with one weight.
    #[must_use]
    pub fn from_cores(inputs: Vec<usize>, weight: f32, cores: Vec<Core>) -> Self {
        let outputs = cores.first().map_or(0, |core| core.left);
        Self { inputs, outputs: 0..outputs, weights: vec![weight; outputs], features: Vec::new(), cores }
    }

    /// The mean of its weights over the outputs it serves; exact where they are equal.
    #[must_use]
    pub fn weight(&self) -> f32 {
        let first = self.weights.first().copied().unwrap_or(0.0);
        first
            + self.weights.iter().map(|weight| weight - first).sum::<f32>() / self.weights.len().max(1) as f32
    }
}

impl Head {
    /// The same head as one that serves all `outputs` with one weight: rows of zeros for those it does not serve.
    #[must_use]
    pub fn over_all(&self, outputs: usize) -> Self {
        let (mut wide, weight) = (self.clone(), self.weight());
        if let Some(first) = wide.cores.first_mut() {
            let row = first.q * first.right;
            let mut data = vec![0.0; outputs * row];
            let served = self.outputs.clone().zip(first.data.chunks_exact(row.max(1)).zip(&self.weights));
            for (j, (from, own)) in served {
                let factor = if *own == weight { 1.0 } else { own / weight };
                let places = data.get_mut(j * row..).unwrap_or_default();
                places.iter_mut().zip(from).for_each(|(place, value)| *place = factor * value);
            }
            (first.left, first.data) = (outputs, data);
        }
        (wide.outputs, wide.weights) = (0..outputs, vec![weight; outputs]);
        wide
    }
}

impl ModelSpec {
    /// d, the most cores of a head.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.heads.iter().map(|head| head.cores.len()).max().unwrap_or(0)
    }

    /// The number of the first sample that gives outputs.
    #[must_use]
    pub fn settled(&self) -> usize {
        self.stage.settled.max(self.memory)
    }

    /// Samples for which one that is held or out of range is felt, itself included.
    #[must_use]
    pub fn felt(&self) -> usize {
        self.stage.felt.max(self.memory)
    }
}
