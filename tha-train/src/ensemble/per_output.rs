//! One head per output, each on the few inputs that serve its output best.
//!
//! Outputs that depend on different inputs (the joints of a robot, the zones of a building) share nothing but the
//! recording. A model of all outputs on all inputs then learns the coincidences of the recorded trajectories, and fails on
//! others. Here every output has its own inputs, ranks and ridge: the inputs are chosen forward, one at a time, each the one
//! that lowers the residual on the judged samples most, until none lowers it enough.

use super::heads::{Head, Material, side_by_side};
use super::{Chosen, Ensemble, Extra, chosen, cost, file_bytes};
use crate::checkpoint;
use crate::fit::FitError;
use crate::progress::OnlyStop;
use crate::solve::{self, Problem};
use rayon::prelude::*;
use std::time::Instant;

/// An input joins when it lowers the error on the held-out samples by this part of it.
const GAIN: f64 = 0.01;

/// Chooses and fits a head for every output.
pub(super) fn choose(of: &Ensemble<'_>, material: &Material<'_>) -> Result<Chosen, FitError> {
    let outputs = material.data.outputs.len();
    let heads = side_by_side(outputs, |j| head(of, material, j), of.run.progress);
    let heads = heads.into_iter().collect::<Result<Vec<_>, _>>()?;
    let costs: Vec<_> = heads.iter().map(|head| cost(&head.inputs, &head.choice.networks[0])).collect();
    let (heads, held_out) = chosen(material, &heads, &vec![1.0; outputs]);
    let flash = file_bytes(material, &heads, of.options)?;
    let rest = flash - costs.iter().map(|cost| cost.flash).sum::<usize>();
    if !of.ensemble.room(rest).holds(costs.iter().copied()) {
        // No output can be left out.
        return Err(FitError::Budget { flash, macs: costs.iter().map(|cost| cost.macs).sum() });
    }
    let before = (heads.len(), flash);
    Ok((heads, held_out, Extra { before, ..Extra::default() }))
}

/// The head of output `j`.
pub(super) fn head(of: &Ensemble<'_>, material: &Material<'_>, j: usize) -> Result<Head, FitError> {
    let begun = Instant::now();
    let stage = format!("output-{j:05}");
    let (inputs, choice) = checkpoint::keep(of.run.checkpoint, &stage, &material.scope, || {
        grow(material, j, of.ensemble.subset_size)
    })?;
    Ok(Head { number: j, inputs, choice, seconds: begun.elapsed().as_secs_f64(), outputs: j..j + 1 })
}

/// The head of output `j`, grown input by input.
fn grow(material: &Material<'_>, j: usize, size: usize) -> Result<(Vec<usize>, solve::Choice), FitError> {
    let run = material.run;
    let y = material.samples.y.columns(j, 1).into_owned();
    let solve = run.settings(j);
    let mut best: Option<(Vec<usize>, solve::Choice)> = None;
    for _ in 0..size.min(material.inputs()) {
        let known = best.as_ref().map_or(&[][..], |(inputs, _)| inputs);
        let others: Vec<usize> = (0..material.inputs()).filter(|c| !known.contains(c)).collect();
        let trials: Vec<_> = others
            .par_iter()
            .map(|&c| {
                let mut inputs = [known, &[c]].concat();
                inputs.sort_unstable();
                let problem = Problem { x: &material.samples.of_inputs(&inputs), y: &y };
                let choice = solve::choose(&problem, &material.blocks, &solve, &OnlyStop(run.progress))?;
                Ok((inputs, choice))
            })
            .collect();
        let (mut winner, mut reason): (Option<(Vec<usize>, solve::Choice)>, _) = (None, String::new());
        for trial in trials {
            match trial {
                Ok(trial) if winner.as_ref().is_none_or(|least| trial.1.error < least.1.error) => {
                    winner = Some(trial)
                }
                Ok(_) => {}
                Err(FitError::Solve(error)) => reason = error.to_string(),
                Err(error) => return Err(error),
            }
        }
        let enough = best.as_ref().map_or(f64::INFINITY, |(_, choice)| (1.0 - GAIN) * choice.error);
        match winner {
            Some(winner) if winner.1.error < enough => best = Some(winner),
            None if best.is_none() => return Err(FitError::NoHead { reason }),
            _ => break,
        }
    }
    best.ok_or_else(|| FitError::NoHead { reason: "its residual is not finite".into() })
}
