//! One head per output, each on the few inputs that serve its output best.
//!
//! Outputs that depend on different inputs (the joints of a robot, the zones of a building) share nothing but the
//! recording. A model of all outputs on all inputs then learns the coincidences of the recorded trajectories, and fails on
//! others. Here every output has its own inputs, ranks and ridge: the inputs are chosen forward, one at a time, each the one
//! that lowers the residual on the judged samples most, until none lowers it enough.

use super::heads::{Head, Material, Stop, head_options};
use super::{Chosen, Extra, Options, Watch, cost, file_bytes};
use crate::checkpoint::{self, Checkpoint};
use crate::data::{Lagged, Subset};
use crate::fit::judged::ChosenHead;
use crate::fit::{self, FitError, Setting, fit_setting};
use crate::solve::{self, Fit, Problem, Ridge};
use crate::tt::{Core, TensorTrain};
use nalgebra::DMatrix;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The squared error on the judged samples, the inputs, and a fit for each part.
type Trial = (f64, Vec<usize>, Vec<Fit>);

/// An input joins when it lowers the residual on the judged samples by this part of it.
const GAIN: f64 = 0.01;

/// Chooses and fits a head for every output.
pub(super) fn choose(
    material: &Material<'_>,
    options: &fit::Options,
    ensemble: &Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Chosen, FitError> {
    let outputs = material.data.outputs.len();
    let (start, done) = (Instant::now(), AtomicUsize::new(0));
    let heads: Vec<Head> = (0..outputs)
        .into_par_iter()
        .map(|j| {
            let begun = Instant::now();
            let (inputs, fits) =
                checkpoint::keep(checkpoint, &format!("output-{j:05}"), &material.scope, || {
                    grow(material, j, ensemble.subset_size, options, watch)
                })?;
            let seconds = begun.elapsed().as_secs_f64();
            let head = Head { inputs, fits, seconds, outputs: j..j + 1 };
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            let left = start.elapsed().as_secs_f64() / count as f64 * (outputs - count) as f64;
            watch.head(j, count, outputs, head.validation(), left);
            Ok(head)
        })
        .collect::<Result<_, FitError>>()?;

    let costs: Vec<_> = heads.iter().map(cost).collect();
    let flash = file_bytes(material, &heads, options)?;
    let rest = flash - costs.iter().map(|cost| cost.flash).sum::<usize>();
    if !ensemble.room(rest).holds(costs.iter().copied()) {
        // No output can be left out.
        return Err(FitError::Budget { flash, macs: costs.iter().map(|cost| cost.macs).sum() });
    }
    let before = (heads.len(), flash);
    let weights = vec![1.0; outputs];
    Ok((heads, weights, Extra { joint_steps: 0, failures: Vec::new(), before, hint: None }))
}

/// The chosen inputs and settings, fitted to other samples.
pub(super) fn refit(
    rows: &Lagged<'_>,
    heads: &[ChosenHead],
    options: &solve::Options,
    watch: &dyn Watch,
) -> Result<Vec<Fit>, FitError> {
    let refit = |(j, head): (usize, &ChosenHead)| {
        let problem = Problem { x: &rows.of_inputs(&head.inputs), y: &rows.y.columns(j, 1).into_owned() };
        let setting = Fit { train: narrow(&head.fit.train, j), ..head.fit.clone() };
        let options = solve::Options { ridge: Ridge::Fixed(setting.ridge), ..head_options(options, j) };
        let fit = solve::refit(&problem, &setting, &options, &Stop(watch))?;
        Ok(widen(fit, j, heads.len()))
    };
    heads.par_iter().enumerate().map(refit).collect()
}

/// The inputs and fits of the head of output `j`, grown input by input.
fn grow(
    material: &Material<'_>,
    j: usize,
    size: usize,
    options: &fit::Options,
    watch: &dyn Watch,
) -> Result<(Vec<usize>, Vec<Fit>), FitError> {
    let solve = head_options(&options.solve, j);
    let mut best: Option<Trial> = None;
    for _ in 0..size.min(material.inputs()) {
        let known = best.as_ref().map_or(&[][..], |(_, inputs, _)| inputs);
        let others: Vec<usize> = (0..material.inputs()).filter(|c| !known.contains(c)).collect();
        let trials: Vec<Result<Trial, FitError>> = others
            .par_iter()
            .map(|&c| {
                let mut inputs = [known, &[c]].concat();
                inputs.sort_unstable();
                let (error, fits) = judged(material, j, &inputs, &solve, watch)?;
                Ok((error, inputs, fits))
            })
            .collect();
        let (mut winner, mut reason): (Option<Trial>, _) = (None, String::new());
        for trial in trials {
            match trial {
                Ok(trial) if winner.as_ref().is_none_or(|(least, ..)| trial.0 < *least) => {
                    winner = Some(trial)
                }
                Ok(_) => {}
                Err(FitError::Solve(error)) => reason = error.to_string(),
                Err(error) => return Err(error),
            }
        }
        let enough = best.as_ref().map_or(f64::INFINITY, |(error, ..)| (1.0 - GAIN).powi(2) * error);
        match winner {
            Some(winner) if winner.0 < enough => best = Some(winner),
            None if best.is_none() => return Err(FitError::NoHead { reason }),
            _ => break,
        }
    }
    let Some((_, inputs, fits)) = best else {
        return Err(FitError::NoHead { reason: "its residual is not finite".into() });
    };
    let fits = fits.into_iter().map(|fit| widen(fit, j, material.data.outputs.len())).collect();
    Ok((inputs, fits))
}

/// Fits output `j` to some inputs on every part with one setting for all parts; the error on the judged samples first.
fn judged<'a>(
    material: &'a Material<'a>,
    j: usize,
    inputs: &'a [usize],
    options: &solve::Options,
    watch: &dyn Watch,
) -> Result<(f64, Vec<Fit>), FitError> {
    let output = |y: &DMatrix<f64>| y.columns(j, 1).into_owned();
    let rows = |samples: &'a Lagged<'a>| (samples.of_inputs(inputs), output(&samples.y));
    let parts: Vec<_> = material.parts.iter().map(|part| (rows(&part.fit), rows(&part.judge))).collect();
    let mut fits = Vec::with_capacity(parts.len());
    for ((x, y), (judge_x, judge_y)) in &parts {
        let judge = Problem { x: judge_x, y: judge_y };
        fits.push(solve::fit(&Problem { x, y }, Some(&judge), options, &Stop(watch))?);
    }
    let error = |fits: &[Fit]| {
        let square = |fit: &Fit, x: &Subset<'_>, y: &DMatrix<f64>| (fit.train.evaluate(x) - y).norm_squared();
        fits.iter().zip(&parts).map(|(fit, (_, (x, y)))| square(fit, x, y)).sum::<f64>()
    };
    let settings: Vec<Setting> = fits.iter().map(Setting::of).collect();
    if settings.iter().all(|setting| *setting == settings[0]) {
        return Ok((error(&fits), fits));
    }
    let mut best: Option<(f64, Vec<Fit>)> = None;
    for (k, setting) in settings.iter().enumerate() {
        if settings[..k].contains(setting) {
            continue;
        }
        let mut trial = Vec::with_capacity(parts.len());
        for (((x, y), (judge_x, judge_y)), near) in parts.iter().zip(&fits) {
            let rows = Problem { x, y };
            let mut fit = fit_setting(&rows, near, setting.clone(), options, &Stop(watch))?;
            let left = (fit.train.evaluate(judge_x) - judge_y).norm();
            fit.validation_residual = Some(left / judge_y.norm().max(f64::MIN_POSITIVE));
            trial.push(fit);
        }
        let error = error(&trial);
        if best.as_ref().is_none_or(|(least, _)| error < *least) {
            best = Some((error, trial));
        }
    }
    Ok(best.expect("there is a setting"))
}

/// The network of one output as one of all outputs: the others are zero.
fn widen(mut fit: Fit, j: usize, outputs: usize) -> Fit {
    fit.log.clear();
    let first = &fit.train.cores[0];
    let mut wide = Core::zeros(outputs, first.q, first.right);
    let row = first.data.len();
    wide.data[j * row..(j + 1) * row].copy_from_slice(&first.data);
    fit.train.cores[0] = wide;
    fit
}

/// The part of a network that belongs to output `j`.
fn narrow(train: &TensorTrain, j: usize) -> TensorTrain {
    let mut train = train.clone();
    let first = &train.cores[0];
    let row = first.q * first.right;
    let data = first.data[j * row..(j + 1) * row].to_vec();
    train.cores[0] = Core { left: 1, data, ..*first };
    train
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tt::Normal;

    #[test]
    fn a_network_of_one_output_among_others() {
        let mut normal = Normal::new(1);
        let train = TensorTrain::random(1, 4, &[2, 3], &mut normal);
        let x = DMatrix::from_fn(5, 4, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let fit = Fit {
            train: train.clone(),
            ridge: 0.0,
            decay: None,
            sweeps: 0,
            train_residual: 0.0,
            validation_residual: None,
            log: Vec::new(),
        };
        let wide = widen(fit, 1, 3);
        let y = wide.train.evaluate(&x);
        assert_eq!(y.column(1), train.evaluate(&x).column(0));
        assert!(y.column(0).iter().chain(y.column(2).iter()).all(|y| *y == 0.0));
        assert_eq!(narrow(&wide.train, 1), train);
    }
}
