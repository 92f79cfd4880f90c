//! From a blend to a model: every head is fitted to all rows, and one bank of filters serves them all.

use super::blend::{Blend, Member};
use super::ground::Ground;
use super::matter;
use super::setting::Setting;
use super::trial::Trial;
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

/// A head of the delivered model.
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

/// The heads of a member: output by output where each has a network of its own.
fn heads(member: &Member, setting: &Setting) -> Vec<(Range<usize>, usize, Vec<f64>)> {
    let outputs = member.weights.len();
    if setting.separate || setting.degree == 1 {
        let used = (0..outputs).filter(|&j| member.weights[j] > 0.0);
        return used.map(|j| (j..j + 1, member.ridges[j], vec![member.weights[j]])).collect();
    }
    vec![(0..outputs, member.ridges[0], member.weights.clone())]
}

/// Bytes of the file and multiply-accumulates per sample, at most.
pub(super) fn size(blend: &Blend, trials: &[Trial], data: &Dataset) -> (usize, usize) {
    let members = blend.members.iter().map(|member| (&trials[member.trial].setting, member));
    size_of(members, blend.extend, data)
}

/// The same of one setting by itself.
pub(super) fn size_alone(setting: &Setting, data: &Dataset) -> (usize, usize) {
    let alone = Blend::alone(0, vec![0; data.outputs.len()], true);
    size_of(alone.members.iter().map(|member| (setting, member)), true, data)
}

fn size_of<'a>(
    members: impl Iterator<Item = (&'a Setting, &'a Member)>,
    extend: bool,
    data: &Dataset,
) -> (usize, usize) {
    let (inputs, outputs) = (data.inputs.len(), data.outputs.len());
    let names: usize = data.inputs.iter().chain(&data.outputs).map(|name| name.len() + CHANNEL).sum();
    let (mut bytes, mut macs) = (FILE + names, 0);
    let mut banks: Vec<((Basis, Option<usize>), usize)> = Vec::new();
    for (setting, member) in members {
        let seen = setting.count(inputs);
        let features = seen * setting.basis.features();
        let nodes = setting.maps.map_or(1, |pieces| pieces + 3);
        for (served, _, _) in heads(member, setting) {
            let ranks = useful_ranks(setting.degree, served.len(), setting.columns(inputs), setting.rank);
            let bonds = [&[served.len()], &ranks[..], &[1]].concat();
            let sums: usize = bonds.windows(2).map(|pair| pair[0] * pair[1]).sum();
            bytes += 4 * sums * (1 + features * nodes) + 2 * features + HEAD;
            macs += sums * (1 + features * nodes.min(2));
        }
        // Heads behind the same filters share those of the inputs that several of them see; at worst they are others.
        let bank = (setting.basis, setting.maps);
        let known = banks.iter().position(|(other, _)| *other == bank).unwrap_or(banks.len());
        if known == banks.len() {
            banks.push((bank, 0));
        }
        let more = seen.min(inputs - banks[known].1);
        banks[known].1 += more;
        if more > 0 {
            // A resonator has two features.
            let section = match setting.basis {
                Basis::Lags(_) => 0,
                Basis::Levels(_) | Basis::Differences(_) => AVERAGE,
                Basis::Kautz { .. } | Basis::Poles(_) => RESONATOR / 2,
            };
            let maps = setting.maps.map_or(0, |_| 4 * nodes);
            let extension = if extend { 4 * outputs } else { 0 };
            bytes += more * setting.basis.features() * (FEATURE + section + maps + extension);
        }
    }
    (bytes, macs)
}

/// Fits the heads of a blend to all rows and makes a model of them.
pub(super) fn deliver(
    ground: &Ground<'_>,
    trials: &[Trial],
    blend: &Blend,
    (residual, note): (&[f64], String),
) -> Result<(Model, Vec<Delivered>, Vec<usize>), FitError> {
    let (data, outputs) = (ground.data, ground.y.ncols());
    let settled = blend
        .members
        .iter()
        .map(|member| trials[member.trial].setting.basis.bank(1).map(|bank| bank.history() + 1))
        .collect::<Result<Vec<_>, _>>()?;
    let rows = data.scored_rows(settled.into_iter().max().unwrap_or(1));
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
        for (served, ridge, weights) in heads(member, &trial.setting) {
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
        Ok((head, inputs, used, network))
    });
    let made: Vec<(Delivered, Vec<usize>, Used, Network)> = made.collect::<Result<_, FitError>>()?;
    let placed: Vec<(Vec<usize>, Network)> =
        made.iter().map(|(_, _, used, network)| union.place(used, network)).collect();
    let parts: Vec<HeadPart<'_>> = made
        .iter()
        .zip(&placed)
        .map(|((head, inputs, ..), (features, network))| HeadPart {
            inputs: inputs.clone(),
            outputs: head.outputs.clone(),
            weights: head.weights.clone(),
            features: features.clone(),
            network,
        })
        .collect();
    let frame = Frame {
        data,
        rows: &rows,
        scaling: &ground.scaling,
        residual,
        memory: union.memory(),
        stage: union.spec(blend.extend),
        range: if blend.extend { RangePolicy::Extend } else { RangePolicy::Clamp },
        seed: ground.seed,
        note,
    };
    let model = frame.model(&parts);
    Ok((model, made.into_iter().map(|(head, ..)| head).collect(), rows))
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
