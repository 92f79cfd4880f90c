//! The choice on contiguous folds: every fold proposes a setting (ranks, ridge, prior), every setting is fitted without its
//! fold's samples and judged on them, fold after fold, and the one with the smallest error over all samples wins.
//!
//! The second round fits as the final refit will, with ranks and ridge given and no early stopping: what is judged is
//! what will be delivered. It starts from the fold's own proposal where that has the ranks, or ranks to cut down.

use super::choice::{Candidate, Choice, candidate, predict, problem};
use super::{FitError, Options};
use crate::data::{Dataset, Split};
use crate::metrics::Metrics;
use crate::solve::{self, Decay, Fit, Observer, Problem, Ridge};
use nalgebra::DMatrix;

/// Random starts where a fold's proposal has smaller ranks than the setting: an estimate is enough here.
const COLD_STARTS: usize = 3;

pub(super) fn choose_by_folds(
    data: &Dataset,
    count: usize,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Choice<'static>, FitError> {
    let splits = Split::folds(data, options.memory, count)?;
    let mut proposals = Vec::with_capacity(count);
    for Split { train, validation } in splits.clone() {
        proposals.push(candidate(data, train, data, validation, options, observer)?.0);
    }
    let setting = |proposal: &Candidate| Setting::of(&proposal.fit);
    let mut distinct: Vec<usize> = Vec::new();
    for k in 0..proposals.len() {
        if !distinct.iter().any(|&other| setting(&proposals[other]) == setting(&proposals[k])) {
            distinct.push(k);
        }
    }
    let truth = stack(proposals.iter().map(|proposal| &proposal.truth));
    if distinct.len() == 1 {
        let prediction = stack(proposals.iter().map(|proposal| &proposal.prediction));
        return Ok(Candidate { truth, prediction, ..proposals.swap_remove(0) }.chosen(data, None));
    }

    let mut predictions: Vec<Vec<DMatrix<f64>>> = vec![Vec::new(); distinct.len()];
    for (split, proposal) in splits.into_iter().zip(&proposals) {
        let part = data.lagged(options.memory, &proposal.scaling, split.train);
        let judge = data.lagged(options.memory, &proposal.scaling, split.validation);
        for (&k, predictions) in distinct.iter().zip(&mut predictions) {
            let setting = setting(&proposals[k]);
            let fit = fit_setting(&problem(&part), &proposal.fit, setting, &options.solve, observer)?;
            predictions.push(predict(&fit.train, &judge, &proposal.scaling));
        }
    }
    let mut predictions: Vec<DMatrix<f64>> = predictions.iter().map(|folds| stack(folds.iter())).collect();
    // NRMSE: the outputs count alike, whatever their units.
    let error = |&i: &usize| Metrics::new(&data.outputs, &truth, &predictions[i]).nrmse;
    let best = (0..distinct.len()).min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or(0);
    let prediction = predictions.swap_remove(best);
    Ok(Candidate { truth, prediction, ..proposals.swap_remove(distinct[best]) }.chosen(data, None))
}

/// What a fit chooses and a refit keeps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    ranks: Vec<usize>,
    ridge: f64,
    decay: Option<f64>,
}

impl Setting {
    pub(crate) fn of(fit: &Fit) -> Self {
        Self { ranks: fit.train.ranks(), ridge: fit.ridge, decay: fit.decay }
    }
}

/// Fits a given setting to the rows that `near` was fitted to.
pub(crate) fn fit_setting(
    rows: &Problem<'_>,
    near: &Fit,
    Setting { ranks, ridge, decay }: Setting,
    options: &solve::Options,
    observer: &dyn Observer,
) -> Result<Fit, FitError> {
    let mut start = near.clone();
    if let Some(&cap) = ranks.iter().max() {
        start.train.round(0.0, cap);
    }
    (start.ridge, start.decay) = (ridge, decay);
    if start.train.ranks() == ranks {
        return Ok(solve::refit(rows, &start, options, observer)?);
    }
    let restarts = options.restarts.min(COLD_STARTS);
    let ridge = Ridge::Fixed(ridge);
    let decay = decay.map_or(Decay::None, Decay::Fixed);
    let fixed = solve::Options { ranks: Some(ranks), ridge, decay, restarts, ..options.clone() };
    Ok(solve::fit(rows, None, &fixed, observer)?)
}

/// Matrices on top of each other.
fn stack<'a>(parts: impl Iterator<Item = &'a DMatrix<f64>>) -> DMatrix<f64> {
    let rows: Vec<_> = parts.flat_map(|part| part.row_iter()).collect();
    DMatrix::from_rows(&rows)
}
