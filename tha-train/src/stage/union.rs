//! One stage for heads that were fitted behind different ones: the union of their sections and features, each once.

use super::Stage;
use crate::network::{Core, Network};
use nalgebra::DMatrix;
use std::ops::Range;
use tha_core::build::{self, Section, Signal, Source};

/// Sections and features of several stages.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    sections: Vec<Section>,
    /// With the linear coefficients of each output.
    features: Vec<(build::Feature, Vec<f64>)>,
    outputs: usize,
}

/// The features of a head, by their numbers in a union, in the order of its network.
#[derive(Clone, Debug)]
pub(crate) struct Used(Vec<usize>);

impl Union {
    /// Nothing yet, for so many outputs.
    pub(crate) fn new(outputs: usize) -> Self {
        Self { sections: Vec::new(), features: Vec::new(), outputs }
    }

    /// Adds the features that a head on some inputs sees behind a stage, in the order of [`Stage::deliver`].
    pub(crate) fn add(&mut self, stage: &Stage, inputs: &[usize]) -> Used {
        let mut places = Vec::with_capacity(stage.bank.sections.len());
        for section in &stage.bank.sections {
            let source = match section.source {
                Source::Section(earlier) => Source::Section(places[earlier]),
                input => input,
            };
            let section = Section { source, ..*section };
            let known = self.sections.iter().position(|other| *other == section);
            places.push(known.unwrap_or_else(|| {
                self.sections.push(section);
                self.sections.len() - 1
            }));
        }
        let moved = |signal: Signal| match signal {
            Signal::Section { section, output } => Signal::Section { section: places[section], output },
            lag => lag,
        };
        let feature = |k: usize| {
            let (of_bank, known) = (stage.bank.features[k], &stage.known[k]);
            let feature = build::Feature {
                plus: moved(of_bank.signal),
                minus: of_bank.minus.map(moved),
                low: known.range[0],
                high: known.range[1],
                nodes: known.nodes.clone(),
            };
            let at = self.features.iter().position(|(other, _)| *other == feature);
            at.unwrap_or_else(|| {
                self.features.push((feature, vec![0.0; self.outputs]));
                self.features.len() - 1
            })
        };
        Used(stage.delivered_features(inputs).into_iter().map(feature).collect())
    }

    /// Adds a part of the linear coefficients of a head, one row for each feature of its stage and one column for each output.
    pub(crate) fn extend(
        &mut self,
        stage: &Stage,
        inputs: &[usize],
        used: &Used,
        linear: &DMatrix<f64>,
        weights: &[f64],
    ) {
        for (&feature, &at) in stage.delivered_features(inputs).iter().zip(&used.0) {
            for (j, (sum, weight)) in self.features[at].1.iter_mut().zip(weights).enumerate() {
                *sum += weight * linear[(feature, j)];
            }
        }
    }

    /// Heads of degree one, each with the outputs it serves and its weights there, as one head of some outputs: their sums, with the
    /// sum of their weights for each output.
    pub(crate) fn sum(
        &self,
        heads: &[(&Used, &Network, &Range<usize>, &[f64])],
        outputs: &Range<usize>,
    ) -> (Used, Network, Vec<f64>) {
        let mut features: Vec<usize> = heads.iter().flat_map(|(used, ..)| used.0.iter().copied()).collect();
        features.sort_unstable();
        features.dedup();
        // Where the rows of each feature begin, behind the constant.
        let mut starts = vec![0; self.features.len()];
        let mut q = 1;
        for &feature in &features {
            starts[feature] = q;
            q += self.features[feature].0.rows();
        }
        let mut core = Core::zeros(outputs.len(), q, 1);
        let mut totals = vec![0.0; outputs.len()];
        for (used, network, served, weights) in heads {
            let from = &network.cores[0];
            for (a, weight) in weights.iter().enumerate() {
                let Some(j) = (served.start + a).checked_sub(outputs.start).filter(|&j| j < outputs.len())
                else {
                    continue;
                };
                totals[j] += weight;
                let rows = used.0.iter().flat_map(|&k| starts[k]..starts[k] + self.features[k].0.rows());
                for (at, row) in std::iter::once(0).chain(rows).enumerate() {
                    core.data[j * q + row] += weight * from.data[a * from.q + at];
                }
            }
        }
        for (row, total) in core.data.chunks_mut(q).zip(&totals).filter(|(_, total)| **total > 0.0) {
            row.iter_mut().for_each(|value| *value /= total);
        }
        (Used(features), Network { cores: vec![core] }, totals)
    }

    /// Samples of each input that are kept.
    pub(crate) fn memory(&self) -> usize {
        let lag = |signal: &Signal| match signal {
            Signal::Lag { lag, .. } => *lag,
            Signal::Section { .. } => 0,
        };
        let lags =
            self.features.iter().flat_map(|(feature, _)| [Some(&feature.plus), feature.minus.as_ref()]);
        1 + lags.flatten().map(lag).max().unwrap_or(0)
    }

    /// The stage as a model file holds it: features with a map last. It counts as settled when its filters are, or from the sample on
    /// from which it was fitted.
    pub(crate) fn spec(&self, extend: bool, fitted_from: usize) -> build::Stage {
        let order = self.order();
        let linear = (0..self.outputs).flat_map(|j| order.iter().map(move |&k| self.features[k].1[j] as f32));
        let mut stage = build::Stage {
            sections: self.sections.clone(),
            features: order.iter().map(|&k| self.features[k].0.clone()).collect(),
            linear: if extend { linear.collect() } else { Vec::new() },
            ..build::Stage::default()
        };
        stage.settle();
        stage.settled = stage.settled.min(fitted_from);
        stage
    }

    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.features.len()).collect();
        order.sort_by_key(|&k| !self.features[k].0.nodes.is_empty());
        order
    }

    /// The numbers of a head's features in [`Union::spec`], increasing, and its network with the rows in that order.
    pub(crate) fn place(&self, used: &Used, network: &Network) -> (Vec<usize>, Network) {
        let mut place = vec![0; self.features.len()];
        self.order().iter().enumerate().for_each(|(at, &k)| place[k] = at);
        // Where each feature goes, and its rows in a core.
        let mut start = 1;
        let mut listed: Vec<(usize, Range<usize>)> = Vec::with_capacity(used.0.len());
        for &k in &used.0 {
            let rows = self.features[k].0.rows();
            listed.push((place[k], start..start + rows));
            start += rows;
        }
        listed.sort_by_key(|(place, _)| *place);
        let rows: Vec<usize> =
            std::iter::once(0).chain(listed.iter().flat_map(|(_, rows)| rows.clone())).collect();
        let permuted = |core: &Core| {
            let mut to = Core::zeros(core.left, core.q, core.right);
            for (a, (at, &from)) in
                (0..core.left).flat_map(|a| rows.iter().enumerate().map(move |row| (a, row)))
            {
                let place = |i: usize| (a * core.q + i) * core.right;
                to.data[place(at)..][..core.right].copy_from_slice(&core.data[place(from)..][..core.right]);
            }
            to
        };
        let network = Network { cores: network.cores.iter().map(permuted).collect() };
        (listed.into_iter().map(|(place, _)| place).collect(), network)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scaling;
    use super::super::rows::tests::noise;
    use super::*;
    use crate::model::{Frame, HeadPart};
    use crate::network::{Features, Normal};
    use std::slice::from_ref;
    use tha_core::RangePolicy;

    #[test]
    fn heads_behind_different_stages_make_one_model() {
        let heads = [
            ("levels:4", None, vec![1], &[2][..]),
            ("lags:3", None, vec![0, 1], &[2]),
            ("levels:2", Some(4), vec![0, 1], &[2]),
            ("kautz:0.6,0.5,2", None, vec![0], &[2]),
            // Of degree one: these are summed.
            ("levels:2", Some(4), vec![1], &[]),
            ("lags:2", None, vec![0, 1], &[]),
            ("lags:3", None, vec![0], &[]),
        ];
        let mut union = Union::new(1);
        let (data, _) = noise("lags:1", None, RangePolicy::Extend);
        let rows = data.scored_rows(40);
        let mut truth = DMatrix::zeros(rows.len(), 1);
        let mut made = Vec::new();
        let scaling = Scaling::from_rows(&data, &rows).unwrap();
        for (k, (basis, pieces, inputs, ranks)) in heads.iter().enumerate() {
            let basis = basis.parse().unwrap();
            let stage =
                Stage::fit(&data, &rows[..150], &scaling, &basis, *pieces, RangePolicy::Extend).unwrap();
            let samples = stage.clone().rows(&data, rows.clone());
            let x = samples.of_inputs(inputs);
            let network = Network::random(1, x.ncols(), ranks, &mut Normal::new(k as u64));
            let linear = samples.linear_part(inputs);
            let weight = 0.1 + 0.2 * k as f64;
            truth += weight * (network.evaluate(&x) + samples.extension(&linear));
            let used = union.add(&stage, inputs);
            union.extend(&stage, inputs, &used, &linear, &[weight]);
            made.push((inputs.clone(), weight, used, stage.deliver(&network, inputs)));
        }
        // The averages of levels:2 are among those of levels:4.
        assert_eq!(union.spec(true, usize::MAX).sections.len(), 3 * 2 + 2 * 2);
        let linear = made.split_off(4);
        let summed: Vec<_> = linear
            .iter()
            .map(|(_, weight, used, network)| (used, network, &(0..1), from_ref(weight)))
            .collect();
        let (used, network, weights) = union.sum(&summed, &(0..1));
        assert!((weights[0] - (0.9 + 1.1 + 1.3)).abs() < 1e-12);
        assert_eq!(used.0.len(), 3 + 3 + 2, "features of several heads stand once");
        made.push((vec![0, 1], weights[0], used, network));
        let placed: Vec<_> = made.iter().map(|(_, _, used, network)| union.place(used, network)).collect();
        let parts: Vec<HeadPart<'_>> = made
            .iter()
            .zip(&placed)
            .map(|((inputs, weight, ..), (features, network))| HeadPart {
                inputs: inputs.clone(),
                outputs: 0..1,
                weights: vec![*weight],
                features: features.clone(),
                network,
            })
            .collect();
        let frame = Frame {
            data: &data,
            rows: &rows,
            scaling: &scaling,
            residual: &[1.0],
            memory: union.memory(),
            stage: union.spec(true, usize::MAX),
            range: RangePolicy::Extend,
            seed: 0,
            note: String::new(),
        };
        let model = frame.model(&parts);
        scaling.restore(&mut truth);
        let error = (model.predict(&data, &rows).column(0) - truth.column(0)).amax() / truth.amax();
        assert!(error < 1e-5, "{error}");
    }
}
