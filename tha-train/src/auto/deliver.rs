//! From a blend to a model: every head is fitted to all rows, and one bank of filters serves them all. The weighted sum of heads of
//! degree one is of degree one, so that one head in the file stands for all of them.

use super::blend::{Blend, Member};
use super::ground::Ground;
use super::setting::Setting;
use super::trial::Trial;
use super::{bases, matter};
use crate::data::Dataset;
use crate::fit::FitError;
use crate::model::{Frame, HeadPart, Model};
use crate::network::{Network, useful_ranks};
use crate::progress::Silent;
use crate::solve::{Last, Problem, along};
use crate::stage::{Basis, Staged, Union, Used};
use nalgebra::DMatrix;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use tha_core::RangePolicy;

/// Numbers of x at most in the fit to all rows, 320 MB: of more rows every n-th is taken, still hundreds for each parameter.
const NUMBERS: usize = 40_000_000;

/// Bytes at most, measured: of the file without a model, of a channel beside its name, of a head beside its numbers, of a feature and of
/// the filters.
const FILE: usize = 640;
const CHANNEL: usize = 24;
const HEAD: usize = 64;
const FEATURE: usize = 20;
const AVERAGE: usize = 8;
const RESONATOR: usize = 56;

/// A head of the delivered model; those of degree one stand in its file as their sum.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// What it is.
    pub setting: Setting,
    /// The outputs it serves.
    pub outputs: Range<usize>,
    /// Its weight in each of them.
    pub weights: Vec<f64>,
    /// Its ridge.
    pub ridge: f64,
    /// Its inner ranks.
    pub ranks: Vec<usize>,
    /// ||Y - Yhat|| / ||Y|| of its outputs on the rows it was fitted to, standardised.
    pub train_residual: f64,
}

/// The fits of a member: output by output where each has a network of its own.
fn fits(member: &Member, setting: &Setting) -> Vec<(Range<usize>, usize, Vec<f64>)> {
    let outputs = member.weights.len();
    if setting.separate || setting.degree == 1 {
        let used = (0..outputs).filter(|&j| member.weights[j] > 0.0);
        return used.map(|j| (j..j + 1, member.ridges[j], vec![member.weights[j]])).collect();
    }
    vec![(0..outputs, member.ridges[0], member.weights.clone())]
}

/// The outputs of the heads of degree one, which stand in the file as sums: one head for all outputs where the same ones serve all of
/// them, else one for each.
fn sums<T: PartialEq>(of_outputs: &[T]) -> Vec<Range<usize>> {
    if of_outputs.windows(2).all(|pair| pair[0] == pair[1]) {
        return std::iter::once(0..of_outputs.len()).collect();
    }
    (0..of_outputs.len()).map(|j| j..j + 1).collect()
}

/// Inputs whose features several heads may share, behind each kind of filters and maps.
#[derive(Clone, Default, PartialEq)]
struct Shared(Vec<(Basis, Option<usize>, Seen)>);

/// Inputs by name, and how many more that are not known before the fit.
#[derive(Clone, Default, PartialEq)]
struct Seen {
    named: Vec<usize>,
    others: usize,
}

impl Shared {
    fn add(&mut self, setting: &Setting, inputs: usize) {
        let known =
            self.0.iter().position(|(basis, maps, _)| (*basis, *maps) == (setting.basis, setting.maps));
        let at = known.unwrap_or_else(|| {
            self.0.push((setting.basis, setting.maps, Seen::default()));
            self.0.len() - 1
        });
        let seen = &mut self.0[at].2;
        match (&setting.inputs, setting.keep) {
            (Some(named), _) => seen.named.extend(named),
            (None, Some(keep)) => seen.others += keep,
            (None, None) => seen.named.extend(0..inputs),
        }
        seen.named.sort_unstable();
        seen.named.dedup();
    }

    /// Basis, pieces of the maps and number of features, at most.
    fn features(&self, inputs: usize) -> impl Iterator<Item = (Basis, Option<usize>, usize)> {
        self.0.iter().map(move |(basis, maps, seen)| {
            let count = (seen.named.len() + seen.others).min(inputs);
            (*basis, *maps, count * basis.features())
        })
    }
}

/// Rows of a feature in a core: the nodes of its map are the ends of its pieces and of its range.
fn rows(maps: Option<usize>) -> usize {
    maps.map_or(1, |pieces| pieces + 3)
}

/// Bytes of the file and multiply-accumulates per sample, at most.
pub(super) fn size(blend: &Blend, trials: &[Trial<'_>], data: &Dataset) -> (usize, usize) {
    let members = blend.members.iter().map(|member| (&trials[member.trial].setting, member));
    size_of(members, blend.extend, data)
}

/// The same of one setting by itself.
pub(super) fn size_alone(setting: &Setting, extend: bool, data: &Dataset) -> (usize, usize) {
    let alone = Blend::alone(0, vec![0; data.outputs.len()], extend);
    size_of(alone.members.iter().map(|member| (setting, member)), extend, data)
}

fn size_of<'a>(
    members: impl Iterator<Item = (&'a Setting, &'a Member)>,
    extend: bool,
    data: &Dataset,
) -> (usize, usize) {
    let (inputs, outputs) = (data.inputs.len(), data.outputs.len());
    let names: usize = data.inputs.iter().chain(&data.outputs).map(|name| name.len() + CHANNEL).sum();
    let (mut bytes, mut macs) = (FILE + names, 0);
    let mut all = Shared::default();
    let mut linear = vec![Shared::default(); outputs];
    // Sums of a head, its inputs, and its features with their rows in a core.
    let mut head = |sums: usize, seen: usize, features: &[(usize, usize)]| {
        let count: usize = features.iter().map(|(count, _)| count).sum();
        let columns = |most: usize| 1 + features.iter().map(|(n, rows)| n * most.min(*rows)).sum::<usize>();
        bytes += HEAD + 4 * (sums * columns(usize::MAX) + count + seen);
        // A value stands between two nodes.
        macs += sums * columns(2);
    };
    for (setting, member) in members {
        all.add(setting, inputs);
        if setting.degree == 1 {
            let served = (0..outputs).filter(|&j| member.weights[j] > 0.0);
            served.for_each(|j| linear[j].add(setting, inputs));
            continue;
        }
        let seen = setting.count(inputs);
        for (served, _, _) in fits(member, setting) {
            let ranks = useful_ranks(setting.degree, served.len(), setting.columns(inputs), setting.rank);
            let bonds = [&[served.len()], &ranks[..], &[1]].concat();
            let sums = bonds.windows(2).map(|pair| pair[0] * pair[1]).sum();
            head(sums, seen, &[(seen * setting.basis.features(), rows(setting.maps))]);
        }
    }
    for served in sums(&linear) {
        let features: Vec<(usize, usize)> =
            linear[served.start].features(inputs).map(|(_, maps, count)| (count, rows(maps))).collect();
        if !features.is_empty() {
            head(served.len(), inputs, &features);
        }
    }
    for (basis, maps, count) in all.features(inputs) {
        // A resonator has two features.
        let section = match basis {
            Basis::Lags(_) => 0,
            Basis::Levels(_) | Basis::Differences(_) => AVERAGE,
            Basis::Kautz { .. } | Basis::Poles(_) => RESONATOR / 2,
        };
        let nodes = maps.map_or(0, |_| 4 * rows(maps));
        let extension = if extend { 4 * outputs } else { 0 };
        bytes += count * (FEATURE + section + nodes + extension);
    }
    (bytes, macs)
}

/// A head that was fitted, behind its own stage.
struct Fitted {
    head: Delivered,
    inputs: Vec<usize>,
    used: Used,
    network: Network,
}

/// A head of the file, behind the bank that serves all of them.
struct Placed {
    inputs: Vec<usize>,
    outputs: Range<usize>,
    weights: Vec<f64>,
    features: Vec<usize>,
    network: Network,
}

/// Fits the heads of a blend to all rows and makes a model of them.
pub(super) fn deliver(
    ground: &Ground<'_>,
    trials: &[Trial<'_>],
    blend: &Blend,
    (residual, note): (&[f64], String),
) -> Result<(Model, Vec<Delivered>, Vec<usize>), FitError> {
    let (data, outputs) = (ground.data, ground.y.ncols());
    let settled = blend
        .members
        .iter()
        .map(|member| bases::warm_up(data, &trials[member.trial].setting.basis))
        .collect::<Result<Vec<_>, _>>()?;
    let settled = 1 + settled.into_iter().max().unwrap_or(0);
    let rows = data.scored_rows(settled);
    let mut union = Union::new(outputs);
    let mut jobs = Vec::new();
    for member in &blend.members {
        let trial = &trials[member.trial];
        let staged = ground.staged(&trial.setting, rows.clone())?;
        let inputs = matter::inputs(ground, &trial.setting, &ground.rows, &trial.ridges, &Silent)?;
        let used = union.add(staged.stage(), &inputs);
        if blend.extend {
            union.extend(staged.stage(), &inputs, &used, &staged.linear_part(&inputs), &member.weights);
        }
        let staged = Arc::new(staged);
        for (served, ridge, weights) in fits(member, &trial.setting) {
            jobs.push((trial, inputs.clone(), staged.clone(), used.clone(), served, ridge, weights));
        }
    }
    let made = jobs.into_par_iter().map(|(trial, inputs, staged, used, outputs, ridge, weights)| {
        let mut setting = trial.setting.clone();
        let ridges = &trial.ridges[..=ridge];
        let (mut network, train_residual) =
            refit(ground, &setting, &staged, &inputs, outputs.clone(), ridges)?;
        network.balance();
        let (ridge, ranks) = (trial.ridges[ridge], network.ranks());
        let network = staged.stage().deliver(&network, &inputs);
        if setting.keep.is_some() {
            setting.inputs = Some(inputs.clone());
        }
        let head = Delivered { setting, outputs, weights, ridge, ranks, train_residual };
        Ok(Fitted { head, inputs, used, network })
    });
    let made: Vec<Fitted> = made.collect::<Result<_, FitError>>()?;
    let (linear, products): (Vec<&Fitted>, Vec<&Fitted>) =
        made.iter().partition(|fitted| fitted.network.degree() == 1);
    let mut placed: Vec<Placed> = products
        .into_iter()
        .map(|Fitted { head, inputs, used, network }| {
            let (features, network) = union.place(used, network);
            let (outputs, weights) = (head.outputs.clone(), head.weights.clone());
            Placed { inputs: inputs.clone(), outputs, weights, features, network }
        })
        .collect();
    let of_outputs: Vec<Vec<&Setting>> = (0..outputs)
        .map(|j| {
            linear.iter().filter(|one| one.head.outputs.contains(&j)).map(|one| &one.head.setting).collect()
        })
        .collect();
    for outputs in sums(&of_outputs) {
        let summed: Vec<&Fitted> =
            linear.iter().copied().filter(|one| outputs.contains(&one.head.outputs.start)).collect();
        if summed.is_empty() {
            continue;
        }
        let mut inputs: Vec<usize> = summed.iter().flat_map(|one| one.inputs.iter().copied()).collect();
        inputs.sort_unstable();
        inputs.dedup();
        let summed: Vec<_> = summed
            .iter()
            .map(|one| (&one.used, &one.network, &one.head.outputs, &one.head.weights[..]))
            .collect();
        let (used, network, weights) = union.sum(&summed, &outputs);
        let (features, network) = union.place(&used, &network);
        placed.push(Placed { inputs, outputs, weights, features, network });
    }
    let parts: Vec<HeadPart<'_>> = placed
        .iter()
        .map(|one| HeadPart {
            inputs: one.inputs.clone(),
            outputs: one.outputs.clone(),
            weights: one.weights.clone(),
            features: one.features.clone(),
            network: &one.network,
        })
        .collect();
    let frame = Frame {
        data,
        rows: &rows,
        scaling: &ground.scaling,
        residual,
        memory: union.memory(),
        stage: union.spec(blend.extend, settled),
        range: if blend.extend { RangePolicy::Extend } else { RangePolicy::Clamp },
        seed: ground.seed,
        note,
    };
    let model = frame.model(&parts);
    Ok((model, made.into_iter().map(|one| one.head).collect(), rows))
}

/// Fits a head along the ridges: on the rows that settings were compared on, then on all.
fn refit(
    ground: &Ground<'_>,
    setting: &Setting,
    staged: &Staged<'_>,
    inputs: &[usize],
    outputs: Range<usize>,
    ridges: &[f64],
) -> Result<(Network, f64), FitError> {
    let fit = |staged: &Staged<'_>, ridges: &[f64], how: Option<Last<'_>>| -> Result<Network, FitError> {
        let x = staged.of_inputs(inputs);
        let y: DMatrix<f64> = staged.y.columns_range(outputs.clone()).into_owned();
        let mut last = None;
        let visit = |_, _, network| last = Some(network);
        let course = ground.course(setting, ridges);
        along(&Problem { x: &x, y: &y }, &course, how, &Silent, visit)?;
        last.ok_or(FitError::Stopped)
    };
    let few = staged.rows.len() < 2 * ground.rows.len();
    let network = if few {
        fit(staged, ridges, Some(Last { from: None }))?
    } else {
        let near = fit(&staged.at(ground.rows.clone()), ridges, None)?;
        let every = (staged.rows.len() * setting.columns(inputs.len())).div_ceil(NUMBERS);
        let rows = staged.rows.iter().copied().step_by(every).collect();
        fit(&staged.at(rows), &ridges[ridges.len() - 1..], Some(Last { from: Some(&near) }))?
    };
    let x = staged.of_inputs(inputs);
    let truth = staged.y.columns_range(outputs);
    let error = network.evaluate(&x) - truth;
    let residual = error.norm() / truth.norm().max(f64::MIN_POSITIVE);
    Ok((network, residual))
}
