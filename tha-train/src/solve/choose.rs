//! One choice: settings are scored on blocks of rows that a fit has not seen, and the simplest one that is level with the
//! best is taken.
//!
//! A setting is ranks, gamma, a ridge and perhaps a prior over the lags. For each setting but the ridge, a network follows
//! the ridges from strong to weak, each fit starting where the last one ended, without block k, and is scored on block k;
//! the ridge with the least error over all blocks is its own. Gamma, prior and rank are tried one after the other, each with
//! the best of what was tried before.

use super::canonical::Effort;
use super::log::Log;
use super::path::{Blocks, Fitted, Path, for_each_block, squares};
use super::{Decay, Problem, Ridge, SolveError, SolveParams, Solver, exact, published};
use crate::network::Network;
use crate::progress::Progress;
use crate::stage::mean_and_std;
use serde::{Deserialize, Serialize};

/// Ridges from strong to weak: how many observations of unit size weigh as much as the prior.
const RIDGES: [f64; 16] =
    [1e3, 300.0, 1e2, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8];
/// A path ends after so many ridges without a smaller error.
const PATIENCE: usize = 2;
/// Gamma is tried in these steps from 1, up or down, within these limits.
const STEP: f64 = 3.0;
const GAMMAS: (f64, f64) = (0.1, 20.0);
/// A network without a penalty that leaves less than this on a block is what there is to find.
const SETTLED: f64 = 0.03;
/// One that leaves more is taken if it leaves less than this part of what the best setting leaves.
const CLEARLY: f64 = 0.95;
/// Steps that take a network from all blocks but one to all but another: the optimum is near.
const STEPS: usize = 2;
/// Below this error a quadratic network is polished.
const NEAR: f64 = 0.1;
/// The last fit, on all rows.
const FINAL: Effort = Effort { sweeps: 12, steps: 20, tolerance: 2e-4 };
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
pub(super) fn choose(
    problem: &Problem<'_>,
    blocks: &[usize],
    options: &SolveParams,
    progress: &dyn Progress,
) -> Result<Choice, SolveError> {
    let ranks = |cap| options.start_ranks(problem.y.ncols(), problem.x.ncols(), cap);
    let log = &mut Log::new(progress);
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
        found = exact::find(&fitted.part.problem(), &held.problem(), fitted.floor(), options, log)?;
    }
    if let Some(network) = found.take_if(|network| held_out.error(network) < SETTLED) {
        return held_out.everywhere(network, options, log);
    }
    let score = |settings: &Settings| match options.solver {
        Solver::Ladder => follow(&held_out, settings, options, progress),
        _ => follow_published(&held_out, settings, options, progress),
    };
    let mut tried: Vec<Choice> = Vec::new();
    let gamma = if options.solver == Solver::Ladder { 1.0 } else { 0.3 };
    let mut best = Settings { ranks: ranks(options.max_rank), gamma, ridge: 0.0, decay: None, exact: false };
    for decay in options.decays(true) {
        tried.push(score(&Settings { decay, ..best.clone() })?);
    }
    if options.degree > 1 && options.solver == Solver::Ladder {
        best = least(&tried).settings.clone();
        // Up or down, for as long as it pays.
        for factor in [STEP, STEP.recip()].into_iter().filter(|_| options.choose_gamma) {
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
    let chosen = simplest(tried);
    let found = match found {
        None if free && options.degree == 2 && chosen.error < NEAR => {
            // A random start has most likely led a quadratic network to its best minimum.
            let (fitted, _) = &blocks.parts[last];
            Some(exact::polish(&fitted.part.problem(), None, &chosen.networks[last], options, log)?.0)
        }
        found => found,
    };
    match found {
        Some(found) if held_out.error(&found) < CLEARLY * chosen.blocks[last] => {
            held_out.everywhere(found, options, log)
        }
        _ => Ok(chosen),
    }
}

/// The blocks as judges of networks that have not seen them.
struct HeldOut<'a> {
    blocks: &'a Blocks<'a>,
    /// Of every output.
    spread: &'a [f64],
}

impl HeldOut<'_> {
    /// Settings with what their networks, one for each block, leave on it.
    fn score(&self, settings: Settings, networks: Vec<Network>) -> Choice {
        let squares: Vec<Vec<f64>> = networks
            .iter()
            .zip(&self.blocks.parts)
            .map(|(network, (_, held))| squares(network, held))
            .collect();
        let blocks: Vec<f64> = (0..squares.len()).map(|k| self.relative(&[k], &squares)).collect();
        let error = self.relative(&(0..squares.len()).collect::<Vec<_>>(), &squares);
        Choice { settings, error, blocks, networks }
    }

    /// Relative error on the last block.
    fn error(&self, network: &Network) -> f64 {
        let last = self.blocks.parts.len() - 1;
        let mut all = vec![Vec::new(); last];
        all.push(squares(network, &self.blocks.parts[last].1));
        self.relative(&[last], &all)
    }

    /// Root mean square error over some blocks relative to the spread of the outputs, mean over the outputs.
    fn relative(&self, blocks: &[usize], squares: &[Vec<f64>]) -> f64 {
        let count: usize = blocks.iter().map(|&k| self.blocks.parts[k].1.y.nrows()).sum();
        let output = |(j, spread): (usize, &f64)| {
            let square: f64 = blocks.iter().map(|&k| squares[k][j]).sum();
            (square / count.max(1) as f64).sqrt() / spread
        };
        self.spread.iter().enumerate().map(output).sum::<f64>() / self.spread.len() as f64
    }

    /// The choice of a network that was found without the last block, polished without each of the others.
    fn everywhere(
        &self,
        found: Network,
        options: &SolveParams,
        log: &mut Log<'_>,
    ) -> Result<Choice, SolveError> {
        let parts = &self.blocks.parts;
        let mut networks = Vec::with_capacity(parts.len());
        let options = &SolveParams { sweeps: STEPS, ..options.clone() };
        for (fitted, _) in &parts[..parts.len() - 1] {
            networks.push(
                exact::polish(&fitted.part.problem(), fitted.moments.as_ref(), &found, options, log)?.0,
            );
        }
        let settings = Settings { ranks: found.ranks(), gamma: 1.0, ridge: 0.0, decay: None, exact: true };
        networks.push(found);
        Ok(self.score(settings, networks))
    }
}

fn least(tried: &[Choice]) -> &Choice {
    tried.iter().min_by(|a, b| a.error.total_cmp(&b.error)).expect("at least one setting was tried")
}

/// The setting of the smallest ranks that is level with the best; of equal ranks the best.
fn simplest(tried: Vec<Choice>) -> Choice {
    let best = least(&tried).clone();
    let level = |choice: &Choice| {
        let (mean, deviation) = mean_and_std(choice.blocks.iter().zip(&best.blocks).map(|(a, b)| a - b));
        let freedom = (choice.blocks.len() as f64 - 1.0).max(1.0);
        choice.error <= (1.0 + LEVEL) * best.error && mean <= deviation / freedom.sqrt()
    };
    let size = |choice: &Choice| choice.settings.ranks.iter().sum::<usize>();
    let simplest = tried
        .into_iter()
        .filter(level)
        .min_by(|a, b| size(a).cmp(&size(b)).then(a.error.total_cmp(&b.error)));
    simplest.unwrap_or(best)
}

/// Follows the ridges with everything else given; the best of them.
fn follow(
    held_out: &HeldOut<'_>,
    settings: &Settings,
    options: &SolveParams,
    progress: &dyn Progress,
) -> Result<Choice, SolveError> {
    let ridges: &[f64] = match &options.ridge {
        Ridge::Auto => &RIDGES,
        Ridge::Fixed(ridge) => std::slice::from_ref(ridge),
    };
    let parts = &held_out.blocks.parts;
    let mut paths = Vec::with_capacity(parts.len());
    for (fitted, _) in parts {
        paths.push(Path::new(fitted, parts.len(), settings, options, None)?);
    }
    let mut tried: Vec<Choice> = Vec::new();
    let mut waiting = 0;
    for &ridge in ridges {
        for_each_block(&mut paths, |path| path.follow(ridge, &mut Log::silent()))?;
        Log::new(progress).check()?;
        let networks = paths.iter().map(Path::network).collect();
        let choice = held_out.score(Settings { ridge, ..settings.clone() }, networks);
        waiting = if tried.last().is_none_or(|best| choice.error < best.error) { 0 } else { waiting + 1 };
        if waiting == 0 {
            tried = vec![choice];
        } else if waiting == PATIENCE {
            break;
        }
    }
    Ok(tried.swap_remove(0))
}

/// The same for the published solvers: of these only the direct one has a ridge to choose.
fn follow_published(
    held_out: &HeldOut<'_>,
    settings: &Settings,
    options: &SolveParams,
    progress: &dyn Progress,
) -> Result<Choice, SolveError> {
    let ridges: Vec<f64> = match (options.ridge, options.solver) {
        (Ridge::Fixed(ridge), _) => vec![ridge],
        (Ridge::Auto, Solver::Direct) => RIDGES.iter().map(|ridge| 1e-4 * ridge).chain([0.0]).collect(),
        (Ridge::Auto, _) => vec![0.0],
    };
    let mut tried = Vec::with_capacity(ridges.len());
    for ridge in ridges {
        let settings = Settings { ridge, ..settings.clone() };
        let log = &mut Log::new(progress);
        let fit = |(fitted, _): &(Fitted<'_>, _)| {
            published(options.solver, &fitted.part.problem(), &settings, options, log)
                .map(|(network, _)| network)
        };
        let networks = held_out.blocks.parts.iter().map(fit).collect::<Result<Vec<_>, _>>()?;
        tried.push(held_out.score(settings, networks));
    }
    Ok(least(&tried).clone())
}

/// Fits given settings to all rows: from a network that was fitted with them to others, or along the ridges. Gives the
/// number of sweeps or steps too.
pub(super) fn fit_settings(
    problem: &Problem<'_>,
    settings: &Settings,
    from: Option<&Network>,
    options: &SolveParams,
    log: &mut Log<'_>,
) -> Result<(Network, usize), SolveError> {
    if let (true, Some(from)) = (settings.exact, from) {
        return exact::polish(problem, None, from, options, log);
    }
    let fitted = Fitted::all(problem, options.degree);
    let mut path = Path::new(&fitted, 1, settings, options, from)?;
    if from.is_none() {
        for ridge in RIDGES.into_iter().filter(|&ridge| ridge > settings.ridge) {
            path.follow(ridge, log)?;
        }
    }
    let sweeps = path.descend(settings.ridge, FINAL, log)?;
    Ok((path.network(), sweeps))
}

#[cfg(test)]
mod tests {
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
        let taken =
            |others: &[Choice]| simplest([std::slice::from_ref(&best), others].concat()).settings.ranks[0];
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
            let choice = choose(&Problem { x: &x, y: &y }, &blocks, &options, &Silent).unwrap();
            (choice.settings.ridge, choice.error)
        };
        let (clean, noisy) = (ridge(0.0), ridge(30.0));
        assert!(clean.0 <= 1e-6 && clean.1 < 1e-6, "{clean:?}");
        assert!(noisy.0 >= 10.0 && noisy.1 > 0.9, "{noisy:?}");
    }

    #[test]
    fn every_block_is_scored_by_a_network_that_has_not_seen_it() {
        let mut normal = Normal::new(4);
        let x = DMatrix::from_fn(200, 5, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let y = DMatrix::from_fn(200, 2, |t, j| x[(t, 1 + j)] * x[(t, 3)] + 0.3 * normal.draw());
        let blocks: Vec<usize> = (0..200).map(|t| t % 4).collect();
        let options = SolveParams { degree: 2, max_rank: 2, ..SolveParams::default() };
        let problem = Problem { x: &x, y: &y };
        let before = choose(&problem, &blocks, &options, &Silent).unwrap();
        // Other outputs in block 2 change every network but the one that left it out.
        let mut other = y.clone();
        (0..200).filter(|t| blocks[*t] == 2).for_each(|t| other.row_mut(t).fill(5.0));
        let ridge = Ridge::Fixed(before.settings.ridge);
        let options = SolveParams { ridge, ..options };
        let networks = |y: &DMatrix<f64>| {
            let blocks = Blocks::new(&Problem { x: &x, y }, &blocks, 2);
            let settings = Settings { ridge: 0.0, ranks: vec![2], ..before.settings.clone() };
            let held_out = HeldOut { blocks: &blocks, spread: &[1.0, 1.0] };
            follow(&held_out, &settings, &options, &Silent).unwrap().networks
        };
        let (a, b) = (networks(&y), networks(&other));
        assert_eq!((0..4).map(|k| a[k] == b[k]).collect::<Vec<_>>(), [false, false, true, false]);
    }
}
