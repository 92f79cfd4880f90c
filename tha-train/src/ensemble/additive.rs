//! Additive heads: each is fitted to what the others leave, cyclically, until the validation residual stops falling;
//! then all of them together take joint Gauss-Newton steps. The weights are 1.
//!
//! Exact when every d-tuple of inputs lies inside some subset, where averaging only shrinks.

use super::Watch;
use super::heads::{Failure, Head, Material, Part, Stop, head_options, sort_out};
use super::joint::{Joint, LIMIT};
use crate::checkpoint::{self, Checkpoint};
use crate::data::Lagged;
use crate::fit::FitError;
use crate::fit::judged::ChosenHead;
use crate::solve::{self, Fit, Problem, Ridge};
use nalgebra::DMatrix;
use std::time::Instant;

/// Cycles over the heads at most.
const CYCLES: usize = 12;
/// A cycle that lowers the validation residual by less than this part of it is the last but one.
const PROGRESS: f64 = 0.01;
/// Joint steps at most, and how many may pass without a better validation residual.
const JOINT_STEPS: usize = 40;
const PATIENCE: usize = 4;

/// Heads, and how many joint steps over all of them followed.
pub(super) struct Added {
    pub heads: Vec<Head>,
    pub failures: Vec<Failure>,
    pub joint_steps: usize,
}

/// Trains the heads on one part of the data. `next` names the subset of head k, given the residual so far.
pub(super) fn train(
    material: &Material<'_>,
    count: usize,
    mut next: impl FnMut(usize, &DMatrix<f64>) -> Option<Vec<usize>>,
    options: &solve::Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Added, FitError> {
    let part = &material.parts[0];
    let (fit, judge) = (&part.fit, &part.judge);
    let norm = part.judge.y.norm().max(f64::MIN_POSITIVE);
    let (mut left, mut judge_left) = (part.fit.y.clone(), part.judge.y.clone());
    let (mut subsets, mut results) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for k in 0..count {
        let Some(subset) = next(k, &left) else { break };
        let result = first_fit(k, &subset, part, &left, &judge_left, options, checkpoint, watch);
        if let Ok(head) = &result {
            left -= head.fits[0].train.evaluate(&fit.of_inputs(&subset));
            judge_left -= head.fits[0].train.evaluate(&judge.of_inputs(&subset));
            let rest = start.elapsed().as_secs_f64() / (k + 1) as f64 * (count - k - 1) as f64;
            watch.head(k, k + 1, count, judge_left.norm() / norm, rest);
        }
        subsets.push(subset);
        results.push(result);
    }
    let (mut heads, failures) = sort_out(material, &subsets, results)?;
    // Without those that failed.
    let joint = Joint::new(inputs(&heads), trains(&heads));
    left = &fit.y - joint.evaluate(fit);
    let mut best = ((&judge.y - joint.evaluate(judge)).norm(), heads.clone());

    for cycle in 1..CYCLES {
        let before = best.0;
        cycle_once(&format!("cycle-{cycle:03}"), &mut heads, fit, &mut left, options, checkpoint, watch)?;
        let residual = &judge.y - Joint::new(inputs(&heads), trains(&heads)).evaluate(judge);
        watch.cycle(cycle + 1, residual.norm() / norm);
        if residual.norm() < best.0 {
            best = (residual.norm(), heads.clone());
        }
        if best.0 > before * (1.0 - PROGRESS) {
            break;
        }
    }
    let (mut error, mut heads) = best;

    let mut joint = Joint::new(inputs(&heads), trains(&heads));
    let mut joint_steps = 0;
    if joint.parameters() <= LIMIT {
        let mut waiting = 0;
        for step in 1..=JOINT_STEPS {
            if watch.stop() {
                return Err(FitError::Stopped);
            }
            if joint.step(fit).is_none() || waiting == PATIENCE {
                break;
            }
            let residual = (&judge.y - joint.evaluate(judge)).norm();
            watch.joint(step, residual / norm);
            waiting += 1;
            if residual < error * (1.0 - 1e-4) {
                (error, waiting, joint_steps) = (residual, 0, step);
                set(&mut heads, &joint.trains);
            }
        }
    }
    let residual = error / norm;
    for head in &mut heads {
        head.fits[0].validation_residual = Some(residual);
    }
    Ok(Added { heads, failures, joint_steps })
}

/// The same descent on other samples, from where the heads are: one cycle, then as many joint steps as were chosen.
pub(super) fn refit(
    rows: &Lagged<'_>,
    heads: &[ChosenHead],
    joint_steps: usize,
    options: &solve::Options,
    stage: &str,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Vec<Fit>, FitError> {
    let head = |head: &ChosenHead| Head {
        inputs: head.inputs.clone(),
        fits: vec![head.fit.clone()],
        seconds: 0.0,
        outputs: head.outputs.clone(),
    };
    let mut heads: Vec<Head> = heads.iter().map(head).collect();
    let mut left = &rows.y - Joint::new(inputs(&heads), trains(&heads)).evaluate(rows);
    cycle_once(stage, &mut heads, rows, &mut left, options, checkpoint, watch)?;
    let mut joint = Joint::new(inputs(&heads), trains(&heads));
    for _ in 0..joint_steps {
        if watch.stop() {
            return Err(FitError::Stopped);
        }
        if joint.step(rows).is_none() {
            break;
        }
    }
    set(&mut heads, &joint.trains);
    Ok(heads.into_iter().map(|mut head| head.fits.swap_remove(0)).collect())
}

/// The first fit of head `k`, to what the heads before it leave: the ridge is chosen here.
#[expect(clippy::too_many_arguments, reason = "one caller, and every argument is a thing of its own")]
fn first_fit(
    k: usize,
    subset: &[usize],
    part: &Part<'_>,
    left: &DMatrix<f64>,
    judge_left: &DMatrix<f64>,
    options: &solve::Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Head, FitError> {
    let start = Instant::now();
    let stage = format!("added-{k:05}");
    let outputs = 0..left.ncols();
    let from = (subset, part.fit.rows.len(), left.as_slice(), judge_left.as_slice());
    let fit = checkpoint::keep(checkpoint, &stage, &from, || {
        let rows = Problem { x: &part.fit.of_inputs(subset), y: left };
        let judge = Problem { x: &part.judge.of_inputs(subset), y: judge_left };
        // The rank is not chosen: what a head has to say is known only when the others have said theirs.
        let ranks = Some(vec![options.max_rank.min(rows.x.ncols()); options.degree - 1]);
        let options = solve::Options { ranks, ..head_options(options, k) };
        let mut fit = solve::fit(&rows, Some(&judge), &options, &Stop(watch))?;
        fit.log.clear();
        Ok(fit)
    })?;
    Ok(Head { inputs: subset.to_vec(), fits: vec![fit], seconds: start.elapsed().as_secs_f64(), outputs })
}

/// Every head once more, each to what the others leave now. `left` is y less all heads, before and after.
fn cycle_once(
    stage: &str,
    heads: &mut [Head],
    rows: &Lagged<'_>,
    left: &mut DMatrix<f64>,
    options: &solve::Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<(), FitError> {
    for (k, head) in heads.iter_mut().enumerate() {
        let x = rows.of_inputs(&head.inputs);
        let stage = format!("{stage}-{k:05}");
        *left += head.fits[0].train.evaluate(&x);
        let from = (&head.inputs, &head.fits[0], left.as_slice());
        let fit = checkpoint::keep(checkpoint, &stage, &from, || {
            let options =
                solve::Options { ridge: Ridge::Fixed(head.fits[0].ridge), ..head_options(options, k) };
            let mut fit = solve::refit(&Problem { x: &x, y: left }, &head.fits[0], &options, &Stop(watch))?;
            fit.log.clear();
            Ok(fit)
        })?;
        *left -= fit.train.evaluate(&x);
        head.fits = vec![fit];
    }
    Ok(())
}

fn inputs(heads: &[Head]) -> Vec<Vec<usize>> {
    heads.iter().map(|head| head.inputs.clone()).collect()
}

fn trains(heads: &[Head]) -> Vec<crate::tt::TensorTrain> {
    heads.iter().map(|head| head.fits[0].train.clone()).collect()
}

fn set(heads: &mut [Head], trains: &[crate::tt::TensorTrain]) {
    for (head, train) in heads.iter_mut().zip(trains) {
        head.fits[0].train = train.clone();
    }
}
