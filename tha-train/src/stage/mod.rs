//! The input stage: from samples to the features x_t that a network sees.
//!
//! ```text
//! u -> standardise -> filters -> features z -> maps -> x = [1, z standardised, ramps standardised] -> network
//!      Scaling        Bank                     Ramp    Staged
//! ```
//!
//! The paper's model is the special case "lags, no maps": x_t = [1, u(t), u(t-1), ..., u(t-M+1)]. A fitted network over x is
//! delivered over the features themselves and the nodes of their maps (`device`).

mod bank;
mod basis;
mod beyond;
mod device;
mod error;
mod hats;
mod maps;
mod poles;
mod rows;
mod scaling;
mod sections;
mod union;

pub(crate) use bank::Outputs;
pub use bank::{Bank, Feature};
pub use basis::{Basis, Poles};
pub use error::StageError;
pub(crate) use maps::cell;
pub use poles::poles;
pub use rows::{Staged, Subset};
pub(crate) use scaling::root_mean_square;
pub use scaling::{InputMap, OutputMap, Scaling, eating_offset, mean_and_std};
pub(crate) use union::{Union, Used};

use crate::data::Dataset;
use maps::{MOST, Ramp, Unit, distinct, map, range};
use nalgebra::DMatrix;
use rayon::prelude::*;
use std::sync::Arc;
use tha_core::RangePolicy;
use tha_core::build;

/// Filters, maps and ranges with the numbers that training rows gave them.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    scaling: Scaling,
    bank: Bank,
    policy: RangePolicy,
    /// One for each feature of the bank.
    known: Vec<Known>,
}

/// What training rows say about a feature.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    /// Least and greatest value.
    range: [f32; 2],
    /// Where its map bends, with the ends of the range; none for a feature that goes on as it is.
    nodes: Vec<f32>,
    unit: Unit,
    ramps: Vec<Ramp>,
}

impl Stage {
    /// Fits ranges, maps of so many pieces and the standardisation of features to rows of a recording. Each row must have the
    /// history that the basis needs ([`Bank::history`]).
    pub fn fit(
        data: &Dataset,
        rows: &[usize],
        scaling: &Scaling,
        basis: &Basis,
        pieces: Option<usize>,
        policy: RangePolicy,
    ) -> Result<Self, StageError> {
        Ok(Self::filtered(data, rows, scaling, basis, pieces, policy, None)?.0)
    }

    /// What the filters of a basis give at some rows: for many stages behind the same filters.
    pub(crate) fn filters(
        data: &Dataset,
        rows: &[usize],
        scaling: &Scaling,
        basis: &Basis,
    ) -> Result<Arc<Outputs>, StageError> {
        Ok(Arc::new(basis.bank(data.inputs.len())?.run_at(data, &scaling.inputs, Some(rows))))
    }

    /// The same with what the filters gave on the way, unless that is known.
    fn filtered(
        data: &Dataset,
        rows: &[usize],
        scaling: &Scaling,
        basis: &Basis,
        pieces: Option<usize>,
        policy: RangePolicy,
        filters: Option<Arc<Outputs>>,
    ) -> Result<(Self, Arc<Outputs>), StageError> {
        if let Some(found) = pieces.filter(|pieces| !(2..=MOST).contains(pieces)) {
            return Err(StageError::Pieces { found, most: MOST });
        }
        let bank = basis.bank(data.inputs.len())?;
        let outputs = filters.unwrap_or_else(|| Arc::new(bank.run(data, &scaling.inputs)));
        let column = |feature: &Feature| {
            let mut z = vec![0.0; rows.len()];
            outputs.read(feature, data, &scaling.inputs, rows, &mut z);
            z
        };
        let ranges = ranges(&bank, &outputs, data, scaling, rows);
        let known = |(feature, &range): (&Feature, &[f32; 2])| {
            // Inputs are standardised already.
            let (mut unit, mut enough) = (Unit::IDENTITY, false);
            let (mut nodes, mut ramps) = (Vec::new(), Vec::new());
            if !feature.is_delay() || pieces.is_some() {
                let z = column(feature);
                if !feature.is_delay() {
                    unit = Unit::new(z.iter().copied());
                }
                if let Some(pieces) = pieces {
                    enough = distinct(&z, pieces + 1) > pieces;
                    (nodes, ramps) = map(z, range, pieces);
                }
            }
            (Known { range, nodes, unit, ramps }, enough)
        };
        let (known, enough): (Vec<Known>, Vec<bool>) =
            bank.features.par_iter().zip(&ranges).map(known).unzip();
        if let Some(pieces) = pieces
            && !(enough.contains(&true) && known.iter().any(|known| !known.ramps.is_empty()))
        {
            return Err(StageError::Distinct { pieces });
        }
        Ok((Self { scaling: scaling.clone(), bank, policy, known }, outputs))
    }

    /// The same lags with ranges that hold other rows too: a refit to more rows sees all of them as they are.
    pub(crate) fn widened(mut self, data: &Dataset, rows: &[usize]) -> Self {
        let outputs = self.bank.run(data, &self.scaling.inputs);
        let ranges = ranges(&self.bank, &outputs, data, &self.scaling, rows);
        for (known, [lo, hi]) in self.known.iter_mut().zip(ranges) {
            known.range = [known.range[0].min(lo), known.range[1].max(hi)];
        }
        self
    }

    /// Whether networks over the features of both have the same columns.
    pub(crate) fn has_columns_of(&self, other: &Self) -> bool {
        let columns = |stage: &Self| stage.known.iter().map(|known| known.ramps.len()).collect::<Vec<_>>();
        self.bank == other.bank && columns(self) == columns(other)
    }

    /// Lag windows of any range.
    fn lags(memory: usize, scaling: &Scaling) -> Self {
        let bank = Basis::Lags(memory).bank(scaling.inputs.len()).expect("a memory from one on");
        let anything = Known {
            range: [f32::NEG_INFINITY, f32::INFINITY],
            nodes: Vec::new(),
            unit: Unit::IDENTITY,
            ramps: Vec::new(),
        };
        let known = vec![anything; bank.features.len()];
        Self { scaling: scaling.clone(), bank, policy: RangePolicy::Pass, known }
    }

    /// The filters and features.
    pub fn bank(&self) -> &Bank {
        &self.bank
    }

    /// The standardisation of the channels.
    pub fn scaling(&self) -> &Scaling {
        &self.scaling
    }

    /// Least and greatest value of a feature on the training rows.
    pub fn range(&self, feature: usize) -> [f32; 2] {
        self.known[feature].range
    }

    /// The stage as a model file holds it, `linear` being the linear part that goes on where the policy is to extend. The
    /// paper's lags without maps are what a file means that lists no features.
    pub(crate) fn spec(&self, linear: Option<&DMatrix<f64>>) -> build::Stage {
        if self.is_plain() {
            return build::Stage::default();
        }
        let feature = |&k: &usize| {
            let (Feature { signal, minus, .. }, known) = (self.bank.features[k], &self.known[k]);
            let [low, high] = known.range;
            build::Feature { plus: signal, minus, low, high, nodes: known.nodes.clone() }
        };
        let order = self.order();
        let linear = linear.map_or_else(Vec::new, |part| {
            part.column_iter().flat_map(|output| order.iter().map(move |&k| output[k] as f32)).collect()
        });
        let mut stage = build::Stage {
            sections: self.bank.sections.clone(),
            features: order.iter().map(feature).collect(),
            linear,
            ..build::Stage::default()
        };
        stage.settle();
        stage
    }

    /// The numbers that the features of some inputs have in [`Stage::spec`], increasing.
    pub(crate) fn listed(&self, inputs: &[usize]) -> Vec<usize> {
        if self.is_plain() {
            return Vec::new();
        }
        let belongs = |&(_, k): &(usize, &usize)| inputs.contains(&self.bank.features[*k].input);
        self.order().iter().enumerate().filter(belongs).map(|(at, _)| at).collect()
    }

    /// Lags alone, as a file means them that lists no features.
    pub(crate) fn is_plain(&self) -> bool {
        self.policy != RangePolicy::Extend
            && self.bank.features.iter().all(Feature::is_delay)
            && self.known.iter().all(|known| known.nodes.is_empty())
    }

    /// The features in the order of a file: those with a map last.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.known.len()).collect();
        order.sort_by_key(|&k| !self.known[k].nodes.is_empty());
        order
    }

    /// The features of some inputs, in the order of the bank.
    fn features_of(&self, inputs: &[usize]) -> impl Iterator<Item = usize> {
        let p = self.bank.inputs.max(1);
        (0..self.bank.features.len() / p).flat_map(move |k| inputs.iter().map(move |input| k * p + input))
    }

    /// The same in the order of a model file: the mapped ones last.
    fn delivered_features(&self, inputs: &[usize]) -> Vec<usize> {
        let mut features: Vec<usize> = self.features_of(inputs).collect();
        features.sort_by_key(|feature| !self.known[*feature].nodes.is_empty());
        features
    }

    /// What the network sees of a value: the range clamps it, unless plain features pass.
    fn seen(&self, feature: usize) -> impl Fn(f64) -> f64 + use<> {
        let Known { range, nodes, .. } = &self.known[feature];
        let free = self.policy == RangePolicy::Pass && nodes.is_empty();
        let [lo, hi] = range.map(f64::from);
        move |z| if free { z } else { z.clamp(lo, hi) }
    }
}

/// Least and greatest value of every feature at some rows; the lags of an input are one quantity.
fn ranges(
    bank: &Bank,
    outputs: &Outputs,
    data: &Dataset,
    scaling: &Scaling,
    rows: &[usize],
) -> Vec<[f32; 2]> {
    let of_feature = |feature: &Feature| {
        let mut z = vec![0.0; rows.len()];
        outputs.read(feature, data, &scaling.inputs, rows, &mut z);
        range(z.into_iter())
    };
    let mut ranges: Vec<[f32; 2]> = bank.features.par_iter().map(of_feature).collect();
    let mut of_input = vec![[f32::INFINITY, f32::NEG_INFINITY]; bank.inputs];
    let delays = || bank.features.iter().enumerate().filter(|(_, feature)| feature.is_delay());
    for (k, feature) in delays() {
        let [lo, hi] = of_input[feature.input];
        of_input[feature.input] = [lo.min(ranges[k][0]), hi.max(ranges[k][1])];
    }
    delays().for_each(|(k, feature)| ranges[k] = of_input[feature.input]);
    ranges
}
