//! One coordinate system for two models: the full model's standardised inputs and outputs.
//!
//! The files may standardise differently. With x' = (u - o') g' in the ensemble's file and x = (u - o) g in the full
//! model's, x'_i = (g'/g) x_i + g' (o - o') x_0: a linear map on the slices of every core, which keeps each head inside
//! its subset. Outputs differ by a factor and a constant; the constant is a network of rank one, shared among the heads.
//! The polynomials are compared; a clamp of the inputs to their training range is not part of the theory.

use super::AnalysisError;
use super::mask::{columns_of, embed, lag_owners};
use crate::data::Dataset;
use crate::host;
use crate::model::Model;
use crate::network::{Core, Features, Network};
use crate::stage::{InputMap, OutputMap, Scaling};
use nalgebra::DMatrix;
use tha_core::build::{self, InputChannel, ModelSpec};

/// A full model B*, heads Bhat_k with weights w_k, and rows x_t, y_t, all in the same coordinates.
#[derive(Clone, Debug)]
pub struct Pair {
    /// N x q, the first column one, then the lags of all inputs, or the features and hat functions of the file.
    pub x: DMatrix<f64>,
    /// The input that every column of x but the first belongs to.
    pub owners: Vec<usize>,
    /// N x l.
    pub y: DMatrix<f64>,
    /// Names of the p inputs.
    pub inputs: Vec<String>,
    /// Names of the l outputs.
    pub outputs: Vec<String>,
    /// Physical units per standardised unit of each output.
    pub scales: Vec<f64>,
    /// B*.
    pub full: Network,
    /// The heads.
    pub heads: Vec<Part>,
    /// Largest difference between the files' own predictions and those made here, relative to the largest output;
    /// what is beyond rounding comes from clamping. `None` where there is no file.
    pub conversion_gap: Option<f64>,
}

/// A head in the full model's coordinates.
#[derive(Clone, Debug)]
pub struct Part {
    /// S_k, increasing.
    pub subset: Vec<usize>,
    /// w_k.
    pub weight: f64,
    /// Bhat_k over the columns of its subset.
    pub network: Network,
    /// The ranks it was fitted with; a constant taken into `network` may have added one to its own.
    pub ranks: Vec<usize>,
}

impl Part {
    /// The columns of x that the head sees.
    pub fn features(&self, x: &DMatrix<f64>, owners: &[usize]) -> DMatrix<f64> {
        x.select_columns(&columns_of(&self.subset, owners))
    }
}

impl Pair {
    /// Degree d.
    pub fn degree(&self) -> usize {
        self.full.degree()
    }

    /// Both models on a data set that was read with the full model's columns ([`Model::columns`]).
    pub fn from_models(full: &Model, ensemble: &Model, data: &Dataset) -> Result<Self, AnalysisError> {
        let (a, b) = (full.spec(), ensemble.spec());
        for (what, full, ensemble) in [("memory", a.memory, b.memory), ("degree", a.degree(), b.degree())] {
            if full != ensemble {
                return Err(AnalysisError::Shape { what, full, ensemble });
            }
        }
        let listed = !a.stage.features.is_empty() || !b.stage.features.is_empty();
        let same = || a.stage == b.stage && scaling(a).inputs == scaling(b).inputs;
        if listed && !same() {
            return Err(AnalysisError::Stage);
        }
        let rows = data.scored_rows(a.settled());
        if rows.is_empty() {
            return Err(AnalysisError::Empty { memory: a.settled() });
        }
        let owners = owners(a);
        check_size(a, owners.len() + 1, rows.len())?;
        let scaling = scaling(a);
        // Lags are compared as they are, features that are listed as the files clamp them.
        let lagged = data.lagged(if listed { 1 } else { a.memory }, &scaling, rows.clone());
        let x = if listed { full.features_at(data, &rows) } else { lagged.rows(0, lagged.nrows()) };
        let own = heads(a, a)?;
        let q = owners.len() + 1;
        let whole = own
            .iter()
            .map(|head| {
                let mut network = embed(&head.network, &head.subset, &owners);
                network.scale(head.weight);
                network
            })
            .reduce(|sum, network| sum.add(&network))
            .unwrap_or_else(|| Network::zeros(a.outputs.len(), q, &vec![1; a.degree() - 1]));
        let mut pair = Self {
            x,
            owners,
            y: lagged.y,
            inputs: a.inputs.iter().map(|channel| channel.name.clone()).collect(),
            outputs: a.outputs.iter().map(|channel| channel.name.clone()).collect(),
            scales: scaling.outputs.iter().map(|map| f64::from(map.scale)).collect(),
            full: whole,
            heads: heads(a, b)?,
            conversion_gap: None,
        };
        pair.conversion_gap = Some(pair.compare(full, ensemble, data, &rows, &scaling));
        Ok(pair)
    }

    /// sum_k w_k U Bhat_k.
    pub fn ensemble_prediction(&self) -> DMatrix<f64> {
        let zero = DMatrix::zeros(self.x.nrows(), self.y.ncols());
        self.heads.iter().fold(zero, |sum, head| {
            sum + head.network.evaluate(&head.features(&self.x, &self.owners)) * head.weight
        })
    }

    fn compare(
        &self,
        full: &Model,
        ensemble: &Model,
        data: &Dataset,
        rows: &[usize],
        scaling: &Scaling,
    ) -> f64 {
        let order = |names: &[String], wanted: &[String]| -> Vec<usize> {
            wanted.iter().filter_map(|name| names.iter().position(|n| n == name)).collect()
        };
        let b = ensemble.spec();
        let names: Vec<String> = b.inputs.iter().map(|channel| channel.name.clone()).collect();
        let theirs = Dataset {
            inputs: names.clone(),
            u: order(&data.inputs, &names).into_iter().map(|i| data.u[i].clone()).collect(),
            ..data.clone()
        };
        let theirs = ensemble.predict(&theirs, rows);
        let theirs = theirs.select_columns(&order(&ensemble.output_names(), &self.outputs));
        let gap = |mut file: DMatrix<f64>, ours: DMatrix<f64>| {
            for (mut column, map) in file.column_iter_mut().zip(&scaling.outputs) {
                column.apply(|value| *value = map.standardise(*value));
            }
            (file - &ours).amax() / ours.amax().max(f64::MIN_POSITIVE)
        };
        let own = gap(full.predict(data, rows), self.full.evaluate(&self.x));
        own.max(gap(theirs, self.ensemble_prediction()))
    }
}

/// Refuses what this machine cannot hold: all windows, once more for the heads, and the full model as one network, whose ranks are
/// the sums of those of its heads.
fn check_size(full: &ModelSpec, q: usize, rows: usize) -> Result<(), AnalysisError> {
    let q = q as f64;
    let ranks = |k: usize| full.heads.iter().map(|head| head.cores[k].left as f64).sum::<f64>();
    let components = |k: usize| ranks(k) * if k + 1 < full.degree() { ranks(k + 1) } else { 1.0 };
    let coefficients = q * (0..full.degree()).map(components).sum::<f64>();
    let bytes = 8.0 * (2.0 * rows as f64 * q + coefficients);
    let remedy = "use fewer samples, or compare models of fewer inputs";
    Ok(host::check_room("the windows of all inputs", bytes, remedy)?)
}

/// The input of every column of x but the first.
fn owners(spec: &ModelSpec) -> Vec<usize> {
    if spec.stage.features.is_empty() {
        return lag_owners(spec.inputs.len(), spec.memory);
    }
    let owner =
        |feature: &build::Feature| spec.stage.input_of(feature.plus).expect("a file names its inputs");
    spec.stage.features.iter().flat_map(|f| std::iter::repeat_n(owner(f), f.rows())).collect()
}

/// The standardisation that a model file holds.
fn scaling(spec: &ModelSpec) -> Scaling {
    let input = |channel: &InputChannel| InputMap { offset: channel.offset, gain: channel.gain };
    let output = |channel: &build::OutputChannel| OutputMap { offset: channel.offset, scale: channel.scale };
    Scaling {
        inputs: spec.inputs.iter().map(input).collect(),
        outputs: spec.outputs.iter().map(output).collect(),
    }
}

/// The heads of `from` in the coordinates of `to`.
fn heads(to: &ModelSpec, from: &ModelSpec) -> Result<Vec<Part>, AnalysisError> {
    let input = |channel: &InputChannel| {
        to.inputs
            .iter()
            .position(|c| c.name == channel.name)
            .ok_or_else(|| AnalysisError::Channel { kind: "input", name: channel.name.clone() })
    };
    let places: Vec<usize> = from.inputs.iter().map(input).collect::<Result<_, AnalysisError>>()?;
    if to.outputs.len() != from.outputs.len() {
        return Err(AnalysisError::Outputs { full: to.outputs.len(), ensemble: from.outputs.len() });
    }
    // For each output of `to`: where it is in `from`, the factor, and the constant that is missing.
    let output = |channel: &build::OutputChannel| {
        let at = from.outputs.iter().position(|c| c.name == channel.name);
        let at = at.ok_or_else(|| AnalysisError::Channel { kind: "output", name: channel.name.clone() })?;
        let (theirs, scale) = (&from.outputs[at], f64::from(channel.scale));
        let constant = (f64::from(theirs.offset) - f64::from(channel.offset)) / scale;
        Ok((at, f64::from(theirs.scale) / scale, constant))
    };
    let outputs: Vec<(usize, f64, f64)> =
        to.outputs.iter().map(output).collect::<Result<_, AnalysisError>>()?;
    let weights: Vec<f64> = from.heads.iter().map(|head| f64::from(head.weight())).collect();
    let shares = shares(&weights);
    let head = |(head, share): (&build::Head, f64)| {
        let head = &head.over_all(from.outputs.len());
        // Subsets in increasing order of the full model's inputs; slices follow.
        let mut order: Vec<(usize, usize)> =
            head.inputs.iter().enumerate().map(|(k, &i)| (places[i], k)).collect();
        order.sort_unstable();
        let size = order.len();
        // Slice of the head, gain a and shift b of x' = a x + b for every slice but the constant.
        let lags = || {
            (0..from.memory)
                .flat_map(|lag| order.iter().map(move |&(place, k)| (1 + lag * size + k, place, k)))
                .map(|(slice, place, k)| {
                    let (theirs, ours) = (&from.inputs[head.inputs[k]], &to.inputs[place]);
                    let gain = f64::from(theirs.gain);
                    let shift = gain * (f64::from(ours.offset) - f64::from(theirs.offset));
                    (slice, gain / f64::from(ours.gain), shift)
                })
                .collect()
        };
        // Features that are listed are the same in both files.
        let slices: Vec<(usize, f64, f64)> = match head.features.is_empty() {
            true => lags(),
            false => (1..head.cores[0].q).map(|row| (row, 1.0, 0.0)).collect(),
        };
        let mut network = Network { cores: head.cores.iter().map(|core| change(core, &slices)).collect() };
        let first = &mut network.cores[0];
        let width = first.q * first.right;
        first.data = outputs
            .iter()
            .flat_map(|&(at, factor, _)| first.data[at * width..][..width].iter().map(move |v| v * factor))
            .collect();
        let ranks = network.ranks();
        if outputs.iter().any(|(.., constant)| *constant != 0.0) {
            network = network.add(&constant(&network, &outputs, share));
        }
        let subset = order.iter().map(|&(place, _)| place).collect();
        Part { subset, weight: f64::from(head.weight()), network, ranks }
    };
    Ok(from.heads.iter().zip(shares).map(head).collect())
}

/// Parts of a constant for the heads, so that their weighted sum is the constant: the same for all where the weights
/// sum to one.
fn shares(weights: &[f64]) -> Vec<f64> {
    let (sum, square) = (weights.iter().sum::<f64>(), weights.iter().map(|w| w * w).sum::<f64>());
    let equal = (sum - 1.0).abs() < super::CONVEX && weights.iter().all(|w| *w >= 0.0);
    weights.iter().map(|w| if equal { sum.recip() } else { w / square.max(f64::MIN_POSITIVE) }).collect()
}

/// A core over x from a core over x'.
fn change(core: &build::Core, slices: &[(usize, f64, f64)]) -> Core {
    let mut changed = Core::zeros(core.left, core.q, core.right);
    for a in 0..core.left {
        for b in 0..core.right {
            let old = |i: usize| f64::from(core.data[(a * core.q + i) * core.right + b]);
            let mut constant = old(0);
            for (i, &(slice, gain, shift)) in slices.iter().enumerate() {
                changed.data[(a * core.q + i + 1) * core.right + b] = gain * old(slice);
                constant += shift * old(slice);
            }
            changed.data[a * core.q * core.right + b] = constant;
        }
    }
    changed
}

/// A network of rank one that is constant: `share` of the missing constant of every output.
fn constant(like: &Network, outputs: &[(usize, f64, f64)], share: f64) -> Network {
    let mut network = Network::zeros(like.outputs(), like.q(), &vec![1; like.degree() - 1]);
    for (k, core) in network.cores.iter_mut().enumerate() {
        let width = core.q;
        for (row, output) in core.data.chunks_exact_mut(width).zip(outputs) {
            row[0] = if k == 0 { share * output.2 } else { 1.0 };
        }
    }
    network
}
