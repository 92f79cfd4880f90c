//! The full model: one head on all inputs.

use super::judged::{Choice, ChosenHead, HeldOut, Procedure};
use super::{FitError, Options};
use crate::data::{Dataset, Lagged, Scaling};
use crate::metrics::Metrics;
use crate::solve::{self, Decay, Fit, Observer, Problem, Ridge};
use crate::tt::{Features, TensorTrain};
use nalgebra::DMatrix;
use std::time::Instant;

/// Random starts where a fold's proposal has smaller ranks than the setting: an estimate is enough here.
const COLD_STARTS: usize = 3;

/// How the full model is made.
pub(super) struct Full<'a> {
    pub data: &'a Dataset,
    pub options: &'a Options,
    pub observer: &'a dyn Observer,
}

impl Procedure for Full<'_> {
    type Extra = ();

    fn choose(&self, rows: &[usize], held_out: HeldOut) -> Result<(Choice, ()), FitError> {
        let start = Instant::now();
        let scaling = Scaling::from_rows(self.data, rows)?;
        let samples = |rows: Vec<usize>| self.data.lagged(self.options.memory, &scaling, rows);
        let mut parts = Vec::new();
        for split in held_out.splits(self.data, rows)? {
            parts.push((samples(split.train), samples(split.validation)));
        }
        let mut fits = Vec::with_capacity(parts.len());
        for (part, held) in &parts {
            fits.push(solve::fit(&problem(part), Some(&problem(held)), &self.options.solve, self.observer)?);
        }
        let best = self.agree(&parts, &fits, &scaling)?;
        let held: Vec<_> = parts.iter().map(|(_, held)| self.data.outputs_at(&held.rows)).collect();
        let held_out = Metrics::new(&self.data.outputs, &stack(&held), &best.1);
        let fit = fits.swap_remove(best.0);
        let inputs = (0..self.data.inputs.len()).collect();
        let outputs = 0..self.data.outputs.len();
        let head = ChosenHead { inputs, weight: 1.0, fit, seconds: start.elapsed().as_secs_f64(), outputs };
        let rows = parts.swap_remove(0).0.rows;
        Ok((Choice { scaling, rows, heads: vec![head], held_out, joint: false }, ()))
    }

    fn refit(&self, choice: &Choice, (): &(), rows: Vec<usize>, _: &str) -> Result<Choice, FitError> {
        let start = Instant::now();
        let samples = self.data.lagged(self.options.memory, &choice.scaling, rows);
        let mut choice = choice.clone();
        let head = &mut choice.heads[0];
        head.fit = solve::refit(&problem(&samples), &head.fit, &self.options.solve, self.observer)?;
        head.seconds += start.elapsed().as_secs_f64();
        choice.rows = samples.rows;
        Ok(choice)
    }

    fn note(&self, choice: &Choice, validation: &Metrics) -> String {
        format!("{} samples, validation NRMSE {:.4}", choice.rows.len(), validation.nrmse)
    }
}

impl Full<'_> {
    /// One setting for all parts: every part proposes one (ranks, ridge, prior), every setting is fitted to every part as
    /// the final refit will do it, without early stopping, and the one with the smallest error over all held-out rows wins.
    /// Gives the part that proposed it, and what it predicts.
    fn agree(
        &self,
        parts: &[(Lagged<'_>, Lagged<'_>)],
        fits: &[Fit],
        scaling: &Scaling,
    ) -> Result<(usize, DMatrix<f64>), FitError> {
        let predictions = |fits: &[Fit]| -> DMatrix<f64> {
            let one =
                |(fit, (_, held)): (&Fit, &(Lagged<'_>, Lagged<'_>))| predict(&fit.train, held, scaling);
            stack(&fits.iter().zip(parts).map(one).collect::<Vec<_>>())
        };
        let settings: Vec<Setting> = fits.iter().map(Setting::of).collect();
        if settings.iter().all(|setting| *setting == settings[0]) {
            return Ok((0, predictions(fits)));
        }
        let truth: Vec<_> = parts.iter().map(|(_, held)| self.data.outputs_at(&held.rows)).collect();
        let truth = stack(&truth);
        let mut best: Option<(f64, usize, DMatrix<f64>)> = None;
        for (k, setting) in settings.iter().enumerate() {
            if settings[..k].contains(setting) {
                continue;
            }
            let mut trial = Vec::with_capacity(parts.len());
            for ((part, _), near) in parts.iter().zip(fits) {
                let rows = problem(part);
                trial.push(fit_setting(&rows, near, setting.clone(), &self.options.solve, self.observer)?);
            }
            let prediction = predictions(&trial);
            // NRMSE: the outputs count alike, whatever their units.
            let error = Metrics::new(&self.data.outputs, &truth, &prediction).nrmse;
            if best.as_ref().is_none_or(|(least, ..)| error < *least) {
                best = Some((error, k, prediction));
            }
        }
        let (_, k, prediction) = best.expect("there is a setting");
        Ok((k, prediction))
    }
}

/// The solver's view of some samples.
fn problem<'a>(samples: &'a Lagged<'_>) -> Problem<'a> {
    Problem { x: samples, y: &samples.y }
}

/// A network's outputs in physical units.
fn predict(train: &TensorTrain, x: &dyn Features, scaling: &Scaling) -> DMatrix<f64> {
    let mut y = train.evaluate(x);
    for (mut column, map) in y.column_iter_mut().zip(&scaling.outputs) {
        column.apply(|value| *value = map.restore(*value));
    }
    y
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
pub(crate) fn stack(parts: &[DMatrix<f64>]) -> DMatrix<f64> {
    let rows: Vec<_> = parts.iter().flat_map(|part| part.row_iter()).collect();
    DMatrix::from_rows(&rows)
}
