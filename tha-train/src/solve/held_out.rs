//! Blocks as judges: networks are fitted without each block in turn and scored on it.

use super::choose::{Choice, RIDGES, Settings, least};
use super::log::go_on;
use super::path::{Blocks, Fitted, Path, squares};
use super::quadratic::Quadratic;
use super::{Ridge, Run, SolveError, SolveParams, Solver, exact, published};
use crate::network::Network;
use crate::progress::Silent;
use rayon::prelude::*;

/// A path ends after so many ridges without a smaller error.
const PATIENCE: usize = 2;
/// Steps that take a network from all blocks but one to all but another: the optimum is near.
const STEPS: usize = 1;

/// The blocks as judges of networks that have not seen them.
pub(super) struct HeldOut<'a> {
    pub(super) blocks: &'a Blocks<'a>,
    /// Of every output.
    pub(super) spread: &'a [f64],
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
    pub(super) fn error(&self, network: &Network) -> f64 {
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
    pub(super) fn everywhere(&self, found: Network, run: Run<'_>) -> Result<Choice, SolveError> {
        let parts = &self.blocks.parts;
        let mut networks = Vec::with_capacity(parts.len());
        let options = &SolveParams { sweeps: STEPS, ..run.options.clone() };
        let run = Run { options, ..run };
        for (fitted, _) in &parts[..parts.len() - 1] {
            let moments = fitted.quadratic.as_ref().and_then(Quadratic::moments);
            let problem = fitted.part.problem();
            networks.push(exact::polish(&problem, moments.as_ref(), &found, run)?.0);
        }
        let settings = Settings { ranks: found.ranks(), gamma: 1.0, ridge: 0.0, decay: None, exact: true };
        networks.push(found);
        Ok(self.score(settings, networks))
    }

    /// Follows the ridges with everything else given; the best of them.
    pub(super) fn follow(&self, settings: &Settings, run: Run<'_>) -> Result<Choice, SolveError> {
        let ridges: &[f64] = match &run.options.ridge {
            Ridge::Auto => &RIDGES,
            Ridge::Fixed(ridge) => std::slice::from_ref(ridge),
        };
        let parts = &self.blocks.parts;
        let mut paths = Vec::with_capacity(parts.len());
        for (fitted, _) in parts {
            paths.push(Path::new(fitted, parts.len(), settings, run.options, None)?);
        }
        let mut tried: Vec<Choice> = Vec::new();
        let mut waiting = 0;
        for &ridge in ridges {
            paths.par_iter_mut().try_for_each(|path| path.follow(ridge, &Silent))?;
            go_on(run.progress)?;
            let networks = paths.iter().map(Path::network).collect();
            let choice = self.score(Settings { ridge, ..settings.clone() }, networks);
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
    pub(super) fn follow_published(&self, settings: &Settings, run: Run<'_>) -> Result<Choice, SolveError> {
        let ridges: Vec<f64> = match (run.options.ridge, run.options.solver) {
            (Ridge::Fixed(ridge), _) => vec![ridge],
            (Ridge::Auto, Solver::Direct) => RIDGES.iter().map(|ridge| 1e-4 * ridge).chain([0.0]).collect(),
            (Ridge::Auto, _) => vec![0.0],
        };
        let mut tried = Vec::with_capacity(ridges.len());
        for ridge in ridges {
            let settings = Settings { ridge, ..settings.clone() };
            let fit = |(fitted, _): &(Fitted<'_>, _)| {
                published(&fitted.part.problem(), &settings, run).map(|(network, _)| network)
            };
            let networks = self.blocks.parts.iter().map(fit).collect::<Result<Vec<_>, _>>()?;
            tried.push(self.score(settings, networks));
        }
        Ok(least(&tried).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::super::choose::choose;
    use super::*;
    use crate::network::Normal;
    use nalgebra::DMatrix;

    #[test]
    fn every_block_is_scored_by_a_network_that_has_not_seen_it() {
        let mut normal = Normal::new(4);
        let x = DMatrix::from_fn(200, 5, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let y = DMatrix::from_fn(200, 2, |t, j| x[(t, 1 + j)] * x[(t, 3)] + 0.3 * normal.draw());
        let blocks: Vec<usize> = (0..200).map(|t| t % 4).collect();
        let options = SolveParams { degree: 2, max_rank: 2, ..SolveParams::default() };
        let problem = Problem { x: &x, y: &y };
        let before = choose(&problem, &blocks, Run { options: &options, progress: &Silent }).unwrap();
        // Other outputs in block 2 change every network but the one that left it out.
        let mut other = y.clone();
        (0..200).filter(|t| blocks[*t] == 2).for_each(|t| other.row_mut(t).fill(5.0));
        let ridge = Ridge::Fixed(before.settings.ridge);
        let options = SolveParams { ridge, ..options };
        let networks = |y: &DMatrix<f64>| {
            let blocks = Blocks::new(&Problem { x: &x, y }, &blocks, 2);
            let settings = Settings { ridge: 0.0, ranks: vec![2], ..before.settings.clone() };
            let held_out = HeldOut { blocks: &blocks, spread: &[1.0, 1.0] };
            held_out.follow(&settings, Run { options: &options, progress: &Silent }).unwrap().networks
        };
        let (a, b) = (networks(&y), networks(&other));
        assert_eq!((0..4).map(|k| a[k] == b[k]).collect::<Vec<_>>(), [false, false, true, false]);
    }
}
