//! Additive heads: each is fitted to what the others leave, cyclically, until the residual on the last block stops
//! falling; then all of them together, core after core. The weights are 1.
//!
//! Exact when every d-tuple of inputs lies inside some subset, where averaging only shrinks.

use super::heads::{Failure, Material, Run, sort_out};
use super::joint::{Joint, LIMIT};
use super::options::Plan;
use super::select::{Cost, NEGLIGIBLE};
use super::{Chosen, Ensemble, Extra, cost, file_bytes, hint, relevance};
use crate::checkpoint;
use crate::data::Split;
use crate::fit::judged::ChosenHead;
use crate::fit::{FitError, figures};
use crate::progress::{Event, OnlyStop};
use crate::solve::{self, Fit, Problem};
use crate::stage::Staged;
use nalgebra::DMatrix;
use std::time::Instant;

/// Cycles over the heads at most.
const CYCLES: usize = 12;
/// A cycle that lowers the validation residual by less than this part of it is the last but one.
const PROGRESS: f64 = 0.01;
/// Joint steps at most, and how many may pass without a better validation residual.
const JOINT_STEPS: usize = 40;
const PATIENCE: usize = 4;

/// Heads fitted to the first part of the samples, and how many joint steps over all of them followed.
struct Added<'a> {
    heads: Vec<ChosenHead>,
    failures: Vec<Failure>,
    joint_steps: usize,
    /// The last block, which said when to stop.
    held_out: Staged<'a>,
    /// Relative residual there.
    residual: f64,
}

/// Additive heads.
pub(super) fn choose(of: &Ensemble<'_>, material: &Material<'_>, plan: Plan) -> Result<Chosen, FitError> {
    let Ensemble { options, ensemble, .. } = *of;
    let p = material.inputs();
    let mut added = match plan {
        Plan::Fixed(subsets) => train_on(material, &subsets)?,
        Plan::Adaptive(count) => {
            let mut taken: Vec<Vec<usize>> = Vec::new();
            let next = |_: usize, samples: &Staged<'_>, left: &DMatrix<f64>| {
                let table = relevance::dependence(samples, left, p);
                let subset = relevance::strongest(&table, ensemble.subset_size, &taken)?;
                taken.push(subset.clone());
                Some(subset)
            };
            train(material, count, next)?
        }
    };
    let costs: Vec<Cost> = added.heads.iter().map(|head| cost(&head.inputs, &head.fit.network)).collect();
    let all_flash = costs.iter().map(|cost| cost.flash).sum::<usize>();
    let rest = file_bytes(material, &added.heads, options)? - all_flash;
    let before = (added.heads.len(), rest + all_flash);
    let room = ensemble.room(rest);
    let size =
        |head: &ChosenHead| head.fit.network.evaluate(&added.held_out.of_inputs(&head.inputs)).norm_squared();
    let sizes: Vec<f64> = added.heads.iter().map(size).collect();
    let square = added.held_out.y.norm_squared();
    let mut kept: Vec<usize> = (0..costs.len()).filter(|&k| sizes[k] > NEGLIGIBLE.powi(2) * square).collect();
    // The heads that say most for their cost.
    kept.sort_by(|&a, &b| {
        let value = |k: usize| sizes[k] / costs[k].flash as f64;
        value(b).total_cmp(&value(a)).then(a.cmp(&b))
    });
    while !room.holds(kept.iter().map(|&k| costs[k])) && kept.pop().is_some() {}
    if kept.is_empty() {
        return Err(ensemble.too_tight(&costs, rest));
    }
    kept.sort_unstable();
    if kept.len() < costs.len() {
        // The others take over what the dropped heads did.
        let subsets: Vec<Vec<usize>> = kept.iter().map(|&k| added.heads[k].inputs.clone()).collect();
        let failures = std::mem::take(&mut added.failures);
        added = train_on(material, &subsets)?;
        added.failures.splice(0..0, failures);
    }
    let hint = hint::for_additive(material, added.residual);
    let held_out = figures(material.data, &added.held_out, joint(&added.heads).evaluate(&added.held_out));
    let Added { heads, failures, joint_steps, .. } = added;
    Ok((heads, held_out, Extra { joint_steps, failures, before, hint }))
}

/// Samples to fit, and their blocks.
struct Part<'a> {
    fit: Staged<'a>,
    blocks: Vec<usize>,
}

/// Trains heads on given subsets.
fn train_on<'a>(material: &Material<'a>, subsets: &[Vec<usize>]) -> Result<Added<'a>, FitError> {
    train(material, subsets.len(), |k, _, _| subsets.get(k).cloned())
}

/// Trains the heads on one part of the data. `next` names the subset of head k, given the residual so far.
fn train<'a>(
    material: &Material<'a>,
    count: usize,
    mut next: impl FnMut(usize, &Staged<'_>, &DMatrix<f64>) -> Option<Vec<usize>>,
) -> Result<Added<'a>, FitError> {
    let run = material.run;
    let last = material.blocks.iter().copied().max().unwrap_or(0);
    let rows = |held: bool| -> Vec<usize> {
        let all = material.samples.rows.iter().zip(&material.blocks);
        all.filter(|(_, block)| (**block == last) == held).map(|(row, _)| *row).collect()
    };
    let blocks = Split::blocks(material.data, &rows(false));
    let (part, judge) =
        (Part { fit: material.samples.at(rows(false)), blocks }, material.samples.at(rows(true)));
    let (fit, judge) = (&part.fit, &judge);
    let norm = judge.y.norm().max(f64::MIN_POSITIVE);
    let (mut left, mut judge_left) = (fit.y.clone(), judge.y.clone());
    let (mut subsets, mut results) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for k in 0..count {
        let Some(subset) = next(k, fit, &left) else { break };
        let result = first_fit(k, &subset, &part, &left, run);
        if let Ok(head) = &result {
            left -= head.fit.network.evaluate(&fit.of_inputs(&subset));
            judge_left -= head.fit.network.evaluate(&judge.of_inputs(&subset));
            run.progress.report(&Event::head(k, k + 1, count, judge_left.norm() / norm, start));
        }
        subsets.push(subset);
        results.push(result);
    }
    let (mut heads, failures) = sort_out(material, &subsets, results)?;
    // Without those that failed.
    left = &fit.y - joint(&heads).evaluate(fit);
    let mut best = ((&judge.y - joint(&heads).evaluate(judge)).norm(), heads.clone());

    for cycle in 1..CYCLES {
        let before = best.0;
        cycle_once(&format!("cycle-{cycle:03}"), &mut heads, fit, &mut left, run)?;
        let residual = &judge.y - joint(&heads).evaluate(judge);
        run.progress.report(&Event::Cycle { cycle: cycle + 1, error: residual.norm() / norm });
        if residual.norm() < best.0 {
            best = (residual.norm(), heads.clone());
        }
        if best.0 > before * (1.0 - PROGRESS) {
            break;
        }
    }
    let (mut error, mut heads) = best;

    let mut joint = joint(&heads);
    let mut joint_steps = 0;
    if joint.size() <= LIMIT {
        let mut waiting = 0;
        for step in 1..=JOINT_STEPS {
            run.go_on()?;
            if waiting == PATIENCE || !joint.sweep(fit) {
                break;
            }
            let residual = (&judge.y - joint.evaluate(judge)).norm();
            run.progress.report(&Event::JointStep { step, error: residual / norm });
            waiting += 1;
            if residual < error * (1.0 - 1e-4) {
                (error, waiting, joint_steps) = (residual, 0, step);
                set(&mut heads, &joint.networks);
            }
        }
    }
    let residual = error / norm;
    Ok(Added { heads, failures, joint_steps, held_out: judge.clone(), residual })
}

/// The same descent on other samples, from where the heads are: one cycle, then as many joint steps as were chosen.
pub(super) fn refit(
    rows: &Staged<'_>,
    heads: &[ChosenHead],
    joint_steps: usize,
    stage: &str,
    run: Run<'_>,
) -> Result<Vec<Fit>, FitError> {
    let mut heads = heads.to_vec();
    let mut left = &rows.y - joint(&heads).evaluate(rows);
    cycle_once(stage, &mut heads, rows, &mut left, run)?;
    let mut joint = joint(&heads);
    for _ in 0..joint_steps {
        run.go_on()?;
        if !joint.sweep(rows) {
            break;
        }
    }
    set(&mut heads, &joint.networks);
    Ok(heads.into_iter().map(|head| head.fit).collect())
}

/// The first fit of head `k`, to what the heads before it leave: its settings are chosen here.
fn first_fit(
    k: usize,
    subset: &[usize],
    part: &Part<'_>,
    left: &DMatrix<f64>,
    run: Run<'_>,
) -> Result<ChosenHead, FitError> {
    let start = Instant::now();
    let fit = checkpoint::keep(run.checkpoint, &format!("added-{k:05}"), &(subset, left.as_slice()), || {
        let problem = Problem { x: &part.fit.of_inputs(subset), y: left };
        // The rank is not chosen: what a head has to say is known only when the others have said theirs.
        let ranks = Some(vec![run.solve.max_rank.min(problem.x.ncols()); run.solve.degree - 1]);
        let options = solve::SolveParams { ranks, ..run.settings(k) };
        let choice = solve::choose(&problem, &part.blocks, &options, &OnlyStop(run.progress))?;
        Ok(solve::fit(&problem, &choice.settings, choice.start(), &options, &OnlyStop(run.progress))?)
    })?;
    let (inputs, outputs) = (subset.to_vec(), 0..left.ncols());
    let seconds = start.elapsed().as_secs_f64();
    Ok(ChosenHead { number: k, inputs, weight: 1.0, fit, seconds, outputs })
}

/// Every head once more, each to what the others leave now. `left` is y less all heads, before and after.
fn cycle_once(
    stage: &str,
    heads: &mut [ChosenHead],
    rows: &Staged<'_>,
    left: &mut DMatrix<f64>,
    run: Run<'_>,
) -> Result<(), FitError> {
    for (k, head) in heads.iter_mut().enumerate() {
        let x = rows.of_inputs(&head.inputs);
        let stage = format!("{stage}-{k:05}");
        *left += head.fit.network.evaluate(&x);
        let from = (&head.inputs, &head.fit, left.as_slice());
        let fit = checkpoint::keep(run.checkpoint, &stage, &from, || {
            let problem = Problem { x: &x, y: left };
            let (settings, start) = (&head.fit.settings, Some(&head.fit.network));
            Ok(solve::fit(&problem, settings, start, &run.settings(k), &OnlyStop(run.progress))?)
        })?;
        *left -= fit.network.evaluate(&x);
        head.fit = fit;
    }
    Ok(())
}

/// The heads as one model.
fn joint(heads: &[ChosenHead]) -> Joint {
    let subsets = heads.iter().map(|head| head.inputs.clone()).collect();
    Joint { subsets, networks: heads.iter().map(|head| head.fit.network.clone()).collect() }
}

fn set(heads: &mut [ChosenHead], networks: &[crate::network::Network]) {
    for (head, network) in heads.iter_mut().zip(networks) {
        head.fit.network = network.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FitParams;
    use crate::data::Dataset;
    use crate::network::Normal;
    use crate::progress::Silent;

    #[test]
    fn heads_say_what_the_others_leave() {
        let mut normal = Normal::new(5);
        let common: Vec<f64> = (0..600).map(|_| normal.draw()).collect();
        let [a, b, c] =
            [(); 3].map(|()| common.iter().map(|c| 0.7 * c + 0.7 * normal.draw()).collect::<Vec<_>>());
        let y = (0..600).map(|t| a[t] * b[t] + b[t] - c[t] * b[t] + 0.01 * normal.draw()).collect();
        let data = Dataset::new("correlated", vec![a, b, c], vec![y]);
        let scored = data.scored_rows(1);
        let stage = FitParams::new().memory(1).check(&data).unwrap().stage(&data, &scored).unwrap();
        let options =
            solve::SolveParams { degree: 2, max_rank: 2, memory: 1, ..solve::SolveParams::default() };
        let run = Run { solve: &options, checkpoint: None, progress: &Silent };
        let material = Material::new(&data, scored, stage, run);
        let subsets = [vec![0, 1], vec![1, 2]];
        let [one, both] = [1, 2].map(|count| train_on(&material, &subsets[..count]).unwrap());
        assert!(one.residual > 0.3 && both.residual < 0.02, "{} {}", one.residual, both.residual);
        assert_eq!(both.held_out.rows, (480..600).collect::<Vec<_>>(), "the last block");
        let fits = refit(&material.samples, &both.heads, both.joint_steps, "refit", run).unwrap();
        let mut left = material.samples.y.clone();
        for (head, fit) in both.heads.iter().zip(fits) {
            assert_eq!(head.weight, 1.0);
            left -= fit.network.evaluate(&material.samples.of_inputs(&head.inputs));
        }
        assert!(left.norm() / material.samples.y.norm() < 0.02);
    }
}
