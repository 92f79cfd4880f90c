//! One choice: settings are scored on blocks of rows that a fit has not seen, and the simplest one that is level with the
//! best is taken.
//!
//! A setting is ranks, gamma, a ridge and perhaps a prior over the lags. For each setting but the ridge, a network follows
//! the ridges from strong to weak, each fit starting where the last one ended, without block k, and is scored on block k;
//! the ridge with the least error over all blocks is its own. Gamma, prior and rank are tried one after the other, each with
//! the best of what was tried before.

use super::canonical::Effort;
use super::held_out::HeldOut;
use super::path::{Blocks, Fitted, Path};
use super::{Decay, Problem, Ridge, Run, SolveError, Solver, exact};
use crate::network::Network;
use crate::stage::mean_and_std;
use serde::{Deserialize, Serialize};

/// Ridges from strong to weak: how many observations of unit size weigh as much as the prior.
pub(super) const RIDGES: [f64; 16] =
    [1e3, 300.0, 1e2, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8];
/// Gamma is tried in these steps from 1, up or down, within these limits.
const STEP: f64 = 3.0;
const GAMMAS: (f64, f64) = (0.1, 20.0);
/// A network without a penalty that leaves less than this on a block is what there is to find.
const SETTLED: f64 = 0.03;
/// One that leaves more is taken if it leaves less than this part of what the best setting leaves.
const CLEARLY: f64 = 0.95;
/// Below this error a quadratic network is polished.
const NEAR: f64 = 0.1;
/// The last fit, on all rows.
const FINAL: Effort = Effort { sweeps: 12, steps: 20 };
/// A simpler setting is level with the best if its error is larger by less than one standard error of the difference and
/// by less than this part.
const LEVEL: f64 = 0.02;

/// What a choice decides and a refit keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Inner ranks r_1..r_{d-1}.
    pub ranks: Vec<usize>,
    /// Mean square of all features together, that of the constant being one.
    pub gamma: f64,
    /// Weight of ||B||^2 against the sum of squared errors of outputs of unit mean square.
    pub ridge: f64,
    /// Time constant of the prior over the lags, where there is one.
    pub decay: Option<f64>,
    /// Fitted without a penalty, by steps over all cores: a network that was found to fit all but exactly.
    pub exact: bool,
}

/// A setting and how good it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Choice {
    /// The setting.
    pub settings: Settings,
    /// Root mean square error over all blocks, relative to that of the outputs, mean over the outputs.
    pub error: f64,
    /// The same for each block.
    pub blocks: Vec<f64>,
    /// For each block, the network that was fitted without it.
    pub networks: Vec<Network>,
}

impl Choice {
    /// Where a fit to all rows starts: at the network that was fitted to all but the last block.
    pub fn start(&self) -> Option<&Network> {
        self.networks.last()
    }
}

/// Scores settings on blocks and chooses; `blocks` holds the number of the block of every row.
pub(super) fn choose(problem: &Problem<'_>, blocks: &[usize], run: Run<'_>) -> Result<Choice, SolveError> {
    let options = run.options;
    let ranks = |cap| options.start_ranks(problem, cap);
    let blocks = Blocks::new(problem, blocks, options.degree);
    // An output that does not move has no relative error; its absolute error counts.
    let spread: Vec<f64> = problem
        .y
        .column_iter()
        .map(|y| mean_and_std(y.iter().copied()).1)
        .map(|spread| if spread > 0.0 { spread } else { 1.0 })
        .collect();
    let held_out = HeldOut { blocks: &blocks, spread: &spread };
    let last = blocks.parts.len() - 1;
    let penalised = matches!(options.ridge, Ridge::Fixed(ridge) if ridge > 0.0);
    let free = options.degree > 1
        && options.solver == Solver::Ladder
        && !penalised
        && !matches!(options.decay, Decay::Fixed(_));
    let mut found = None;
    if free {
        let (fitted, held) = &blocks.parts[last];
        found = exact::find(&fitted.part.problem(), &held.problem(), fitted.floor(), run)?;
    }
    if let Some(network) = found.take_if(|network| held_out.error(network) < SETTLED) {
        return held_out.everywhere(network, run);
    }
    let score = |settings: &Settings| match options.solver {
        Solver::Ladder => held_out.follow(settings, run),
        _ => held_out.follow_published(settings, run),
    };
    let mut tried: Vec<Choice> = Vec::new();
    let gamma = options.gamma.unwrap_or(if options.solver == Solver::Ladder { 1.0 } else { 0.3 });
    let mut best = Settings { ranks: ranks(options.max_rank), gamma, ridge: 0.0, decay: None, exact: false };
    for decay in options.decays() {
        tried.push(score(&Settings { decay, ..best.clone() })?);
    }
    if options.degree > 1 && options.solver == Solver::Ladder {
        best = least(&tried).settings.clone();
        // Up or down, for as long as it pays.
        for factor in [STEP, STEP.recip()].into_iter().filter(|_| options.gamma.is_none()) {
            let mut gamma = 1.0;
            let before = tried.len();
            loop {
                gamma *= factor;
                let known = least(&tried).error;
                tried.push(score(&Settings { gamma, ..best.clone() })?);
                if least(&tried).error >= known || !(GAMMAS.0..GAMMAS.1).contains(&gamma) {
                    break;
                }
            }
            if tried.len() > before + 1 {
                break;
            }
        }
        best = least(&tried).settings.clone();
        let mut cap = options.max_rank / 2;
        while cap > 0 && options.ranks.is_none() {
            if ranks(cap) != best.ranks {
                tried.push(score(&Settings { ranks: ranks(cap), ..best.clone() })?);
            }
            cap /= 2;
        }
    }
    let chosen = take_simplest(tried);
    let found = match found {
        None if free && options.degree == 2 && chosen.error < NEAR => {
            // A random start has most likely led a quadratic network to its best minimum.
            let (fitted, _) = &blocks.parts[last];
            Some(exact::polish(&fitted.part.problem(), None, &chosen.networks[last], run)?.0)
        }
        found => found,
    };
    match found {
        Some(found) if held_out.error(&found) < CLEARLY * chosen.blocks[last] => {
            held_out.everywhere(found, run)
        }
        _ => Ok(chosen),
    }
}

pub(super) fn least(tried: &[Choice]) -> &Choice {
    tried.iter().min_by(|a, b| a.error.total_cmp(&b.error)).expect("at least one setting was tried")
}

/// Small ranks are simple.
fn take_simplest(mut tried: Vec<Choice>) -> Choice {
    let size = |choice: &Choice| choice.settings.ranks.iter().sum::<usize>() as f64;
    let scores: Vec<_> = tried.iter().map(|one| (one.error, &one.blocks[..], size(one))).collect();
    let taken = simplest(&scores).expect("at least one setting was tried");
    tried.swap_remove(taken)
}

/// The number of the simplest of some settings that are level with the best; of equally simple ones the best. A setting is its error over
/// all blocks, that on each block, and how far from simple it is.
pub(crate) fn simplest(tried: &[(f64, &[f64], f64)]) -> Option<usize> {
    let (least, of_best, _) = *tried.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let level = |(error, blocks, _): &(f64, &[f64], f64)| {
        let differences: Vec<f64> = blocks.iter().zip(of_best).map(|(a, b)| a - b).collect();
        let (mean, standard_error) = mean_and_error(&differences);
        *error <= (1.0 + LEVEL) * least && mean <= standard_error
    };
    let levels = tried.iter().enumerate().filter(|(_, one)| level(one));
    levels.min_by(|(_, a), (_, b)| a.2.total_cmp(&b.2).then(a.0.total_cmp(&b.0))).map(|(k, _)| k)
}

/// Mean, and its standard error.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let (mean, deviation) = mean_and_std(values.iter().copied());
    (mean, deviation / (values.len() as f64 - 1.0).max(1.0).sqrt())
}

/// Fits given settings to all rows: from a network that was fitted with them to others, or along the ridges. Gives the
/// number of sweeps or steps too.
pub(super) fn fit_settings(
    problem: &Problem<'_>,
    settings: &Settings,
    from: Option<&Network>,
    run: Run<'_>,
) -> Result<(Network, usize), SolveError> {
    let Run { options, progress } = run;
    if let (true, Some(from)) = (settings.exact, from) {
        return exact::polish(problem, None, from, run);
    }
    let fitted = Fitted::all(problem, options.degree);
    let mut path = Path::new(&fitted, 1, settings, options, from)?;
    if from.is_none() {
        for ridge in RIDGES.into_iter().filter(|&ridge| ridge > settings.ridge) {
            path.follow(ridge, progress)?;
        }
    }
    let sweeps = path.descend(settings.ridge, FINAL, progress)?;
    Ok((path.network(), sweeps))
}

#[cfg(test)]
mod tests {
    use super::super::SolveParams;
    use super::*;
    use crate::network::Normal;
    use crate::progress::Silent;
    use nalgebra::DMatrix;

    fn choice(rank: usize, blocks: &[f64]) -> Choice {
        let settings = Settings { ranks: vec![rank], gamma: 1.0, ridge: 1.0, decay: None, exact: false };
        let error = blocks.iter().sum::<f64>() / blocks.len() as f64;
        Choice { settings, error, blocks: blocks.to_vec(), networks: Vec::new() }
    }

    #[test]
    fn the_simplest_that_is_level_with_the_best_is_taken() {
        let best = choice(4, &[0.50, 0.40, 0.60]);
        let taken = |others: &[Choice]| {
            take_simplest([std::slice::from_ref(&best), others].concat()).settings.ranks[0]
        };
        // Sometimes better, sometimes worse, and worse by less than two per cent.
        assert_eq!(taken(&[choice(2, &[0.52, 0.39, 0.60])]), 2);
        // Worse on every block alike.
        assert_eq!(taken(&[choice(2, &[0.505, 0.405, 0.605])]), 4);
        // Level, but too much worse.
        assert_eq!(taken(&[choice(1, &[0.70, 0.25, 0.60])]), 4);
        assert_eq!(taken(&[choice(2, &[0.52, 0.39, 0.60]), choice(1, &[0.51, 0.40, 0.595])]), 1);
    }

    #[test]
    fn noise_asks_for_a_strong_ridge_and_none_for_a_weak_one() {
        let mut normal = Normal::new(1);
        let x = DMatrix::from_fn(300, 11, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let law = DMatrix::from_fn(11, 1, |_, _| normal.draw());
        let blocks: Vec<usize> = (0..300).map(|t| t * 5 / 300).collect();
        let mut ridge = |noise: f64| {
            let y = (&x * &law).map(|v| v + noise * normal.draw());
            let options = SolveParams { degree: 1, ..SolveParams::default() };
            let run = Run { options: &options, progress: &Silent };
            let choice = choose(&Problem { x: &x, y: &y }, &blocks, run).unwrap();
            (choice.settings.ridge, choice.error)
        };
        let (clean, noisy) = (ridge(0.0), ridge(30.0));
        assert!(clean.0 <= 1e-6 && clean.1 < 1e-6, "{clean:?}");
        assert!(noisy.0 >= 10.0 && noisy.1 > 0.9, "{noisy:?}");
    }
}
