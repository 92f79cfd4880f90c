//! Starts whose end cores vanish where the direct solution does: found by pairs of subspaces, round by round.

use super::super::direct::DirectFit;
use super::super::subspaces::{Polynomial, Subspace};
use super::super::{SolveError, als, quartic};
use super::{Candidate, ENOUGH, EXACT, GROWN, NEGLIGIBLE, RACE_RIDGE, SMALL, Track};
use crate::network::{Core, Network};
use std::collections::HashSet;

/// Starts of the search for subspaces, per start of the race and rank above one, and how many of those found are paired.
const SUBSPACES: usize = 12;
const LIKELY: usize = 6;
/// Where the direct solution is exact, so many times longer is searched before the first is found.
const PATIENCE: usize = 4;
/// Where the direct solution is known no better than this, its zeros are those of the noise.
const BLURRED: f64 = 0.1;

impl Track<'_, '_> {
    /// Starts whose end cores vanish where the direct solution does.
    pub(super) fn start_from_subspaces(
        &mut self,
        judge: &DirectFit,
    ) -> Result<Option<Candidate>, SolveError> {
        if self.options.degree > GROWN {
            return Ok(None);
        }
        let polynomial = Polynomial::new(&judge.tensor, self.x.ncols(), self.options.degree);
        // What the noise leaves of a zero of the direct solution.
        let share = judge.dimension as f64 / self.all.entries() as f64;
        let level = 2.0 * (judge.variance * share).max(EXACT).sqrt();
        if level > BLURRED {
            return Ok(None);
        }
        let promising = 2.0 * judge.variance.max(EXACT) * self.sketch.entries() as f64;
        let exact = judge.variance <= NEGLIGIBLE;
        for rank in (2..=self.options.max_rank).filter(|rank| polynomial.special(*rank, exact)) {
            let tries = if exact { PATIENCE * rank } else { rank };
            let mut found: Vec<(usize, Subspace)> = Vec::new();
            let mut tried = HashSet::new();
            let mut rest: Vec<(f64, Network)> = Vec::new();
            let mut descents = 0;
            for round in 0..SUBSPACES * (rank - 1) {
                for turn in 0..self.options.restarts {
                    let subspace = polynomial.search(rank, &mut self.draws);
                    let known = found.iter_mut().find(|(_, known)| known.distance(&subspace) < 0.3);
                    match known {
                        _ if subspace.level > level => (),
                        Some((_, known)) if known.level <= subspace.level => (),
                        Some(known) => *known = (round * self.options.restarts + turn, subspace),
                        None => found.push((round * self.options.restarts + turn, subspace)),
                    }
                }
                found.sort_by(|a, b| a.1.level.total_cmp(&b.1.level));
                if found.is_empty() && round + 1 >= tries {
                    break;
                }
                // Where even the direct solution misses a part, its zeros have little to say.
                if judge.variance > SMALL && self.agreeing[rank] >= ENOUGH {
                    break;
                }
                // The middle, or the rest of the train, tells at once which are worth a descent.
                for (i, j) in pairs(found.len().min(LIKELY)) {
                    if !tried.insert((found[i].0, found[j].0)) {
                        continue;
                    }
                    let train = match i == j {
                        true => self.ending_with(&found[j].1, rank),
                        false if self.outputs > 1 => continue,
                        false => match self.between(&found[i].1, &found[j].1, judge) {
                            Some(train) => train,
                            None => continue,
                        },
                    };
                    let loss = self.sketch.loss(&train);
                    if loss > promising || descents >= 2 * self.options.restarts {
                        rest.push((loss, train));
                        continue;
                    }
                    descents += 1;
                    if let Some(winner) = self.come_down(train, rank)? {
                        return Ok(Some(winner));
                    }
                }
                // Of the others the best has its turn.
                rest.sort_by(|a, b| b.0.total_cmp(&a.0));
                if round < self.options.restarts
                    && let Some((_, train)) = rest.pop()
                    && let Some(winner) = self.come_down(train, rank)?
                {
                    return Ok(Some(winner));
                }
            }
        }
        Ok(None)
    }

    /// A train with the forms of two subspaces at its ends and the middle that fits best, for one output.
    fn between(&mut self, first: &Subspace, last: &Subspace, judge: &DirectFit) -> Option<Network> {
        let (first, last) = (first.forms(), last.forms());
        let (q, rank) = first.shape();
        let mut train = if self.options.degree == 4 {
            quartic::between(&first, &last, &self.x, &self.y, judge.variance.max(NEGLIGIBLE))?
        } else {
            let mut train = Network::zeros(1, q, &[rank, rank]);
            train.cores[0] = Core::from_unfolding(1, q, rank, &first);
            train.cores[2] = Core::from_unfolding(rank, q, 1, &last.transpose());
            als::update(&mut train, 1, &self.sketch, RACE_RIDGE, &mut self.normal);
            train
        };
        train.balance();
        Some(train)
    }

    /// A train of a rank with the forms of one subspace at its end, the rest random and adapted to them.
    fn ending_with(&mut self, last: &Subspace, rank: usize) -> Network {
        let mut ranks = self.ranks(rank);
        let end = ranks.len();
        ranks[end - 1] = rank;
        let mut train = self.random(&ranks);
        train.cores[end] = Core::from_unfolding(rank, train.q(), 1, &last.forms().transpose());
        for k in (0..end).rev() {
            als::update(&mut train, k, &self.sketch, RACE_RIDGE, &mut self.normal);
        }
        train.balance();
        train
    }
}

/// Pairs of the first `count` found, the likely ones first, and each by itself.
fn pairs(count: usize) -> Vec<(usize, usize)> {
    let mut pairs: Vec<_> = (0..count).flat_map(|j| (0..=j).map(move |i| (i, j))).collect();
    pairs.sort_by_key(|(i, j)| i + j);
    pairs
}
