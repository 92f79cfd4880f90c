//! Descending on the sketch, and coming down in rank.

use super::super::SolveError;
use super::super::levenberg::Descent;
use super::super::log::{Step, StepKind, record};
use super::super::reduce::Spectrum;
use super::{Candidate, RIDGE, Rule, Search, chance};
use crate::network::Network;

/// Losses this close, relatively, are those of the same minimum.
const SAME: f64 = 0.02;
/// Steps of a descent at most, and the ratio of successive losses above which it ends.
pub(super) const STEPS: usize = 60;
pub(super) const PACE: f64 = 0.99;
/// Relative squared residual above which a network at the cap is no nearer to the truth at a lower rank.
pub(super) const FAR: f64 = 0.02;

impl Search<'_> {
    /// Reduces the rank to the cap, and on for as long as the loss rises by no more than chance; tells whether it was
    /// reduced so.
    pub(super) fn lowered(&mut self, mut candidate: Candidate) -> Result<(Candidate, bool), SolveError> {
        let mut came_down = false;
        while let Some(level) = self.below(candidate.level()) {
            let above = candidate.level() > self.params.max_rank;
            if self.direct.is_none() && !above && candidate.loss > FAR * self.sketch.square {
                break;
            }
            let Some(network) = self.reduced(&candidate.network, level) else { break };
            let lower = self.descended(network, StepKind::Reduction)?;
            let chance = self.compatible(&lower, &candidate);
            // It is left among the best of its rank.
            if !chance && !above {
                break;
            }
            // Where the lower rank fits better, the higher one had not arrived, and proves nothing.
            came_down = chance && (self.exact(lower.loss) || lower.loss >= (1.0 - SAME) * candidate.loss);
            candidate = lower;
        }
        Ok((candidate, came_down))
    }

    /// The next rank down from `level`: one less, but below the cap only what tells something.
    fn below(&self, level: usize) -> Option<usize> {
        let possible = |l: &usize| level > self.params.max_rank || self.telling(*l);
        (1..level).rev().find(possible).filter(|_| self.params.ranks.is_none())
    }

    /// The network cut to a lower rank.
    fn reduced(&self, network: &Network, level: usize) -> Option<Network> {
        let ranks = self.ranks(level);
        let mut network = network.clone();
        for bond in (1..network.degree()).rev() {
            if ranks[bond - 1] < network.cores[bond].left {
                network =
                    Spectrum::new(&network, bond, &self.x, self.has(Rule::Projection))?.cut(ranks[bond - 1]);
            }
        }
        network.balance();
        Some(network)
    }

    /// Descends on the sketch until the progress is slow.
    pub(super) fn descended(&mut self, network: Network, kind: StepKind) -> Result<Candidate, SolveError> {
        let mut descent = Descent::new(network);
        for step in 0..STEPS {
            let before = descent.loss;
            let moved = descent.step(&self.sketch, RIDGE);
            let slow = step > 6 && descent.loss > PACE * before;
            if moved.is_none() || slow || self.exact(100.0 * descent.loss) {
                break;
            }
        }
        let (ranks, loss) = (descent.network.ranks(), descent.loss);
        let candidate = Candidate { network: descent.network, loss };
        let level = candidate.level();
        if let Some(best) = self.best.get_mut(level) {
            let known = best.as_ref().map_or(f64::INFINITY, |best| best.loss);
            if loss < (1.0 - SAME) * known {
                self.agreeing[level] = 1;
            } else if loss < (1.0 + SAME) * known {
                self.agreeing[level] += 1;
            }
            if loss < known {
                *best = Some(candidate.clone());
            }
        }
        let loss = loss / self.sketch.square;
        record(self.progress, Step { kind, loss, gain: 0.0, truncation: 0.0, ranks })?;
        Ok(candidate)
    }

    /// The smaller model is not worse than chance allows, on the sketch.
    fn compatible(&self, lower: &Candidate, upper: &Candidate) -> bool {
        let freedom = self.sketch.entries().saturating_sub(upper.dimension()).max(1) as f64;
        let spare = upper.dimension().saturating_sub(lower.dimension());
        self.exact(lower.loss) || lower.loss - upper.loss <= upper.loss / freedom * chance(spare)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rows::Rows;
    use super::super::super::{Problem, Run, SolveParams};
    use super::super::*;
    use crate::progress::Silent;

    /// Rows of a planted network of ranks `ranks`, in white coordinates.
    fn planted(q: usize, ranks: &[usize], count: usize) -> (DMatrix<f64>, DMatrix<f64>) {
        let mut normal = Normal::new(11);
        let truth = Network::random(1, q, ranks, &mut normal);
        let x = DMatrix::from_fn(count, q, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let y = truth.evaluate(&x);
        let unit = y.norm() / (count as f64).sqrt();
        (x, y / unit)
    }

    /// Relative squared residual, and the ranks, of the best network when only one kind of starts is there.
    fn found(kind: Rule, q: usize, ranks: &[usize], cap: usize, count: usize) -> (f64, Vec<usize>) {
        let (x, y) = planted(q, ranks, count);
        let problem = Problem { x: &x, y: &y };
        let params = SolveParams { degree: ranks.len() + 1, max_rank: cap, ..SolveParams::default() };
        let suits = matches!(kind, Rule::Subspaces);
        let direct =
            suits.then(|| super::super::super::direct::solution(&problem, params.degree, 600).unwrap());
        let rows = Rows::new(&problem, 1);
        let source = SOURCES.iter().find(|source| source.0 == kind).expect("all kinds are listed");
        let run = Run { options: &params, progress: &Silent };
        let found = Search::new(&problem, &rows, direct.as_ref(), run).candidates(&[*source]).unwrap();
        let best = found.into_iter().min_by(|a, b| a.loss.total_cmp(&b.loss)).expect("a candidate");
        (rows.loss(&best.network) / rows.square, best.network.ranks())
    }

    #[test]
    fn every_kind_of_starts_finds_a_planted_network() {
        for (kind, q, ranks, cap, count) in [
            (Rule::Subspaces, 7, vec![2, 2], 3, 700),
            (Rule::Subspaces, 6, vec![2, 2, 2], 2, 800),
            (Rule::Directed, 61, vec![1, 1], 2, 3000),
            (Rule::Grown, 4, vec![2; 5], 3, 600),
            (Rule::Random, 6, vec![2, 2], 2, 400),
        ] {
            let (loss, found) = found(kind, q, &ranks, cap, count);
            // As near as the polish needs it.
            assert!(loss < 1e-4, "{kind:?}: {loss}");
            assert!(
                found.iter().zip(&ranks).all(|(found, rank)| *found <= (*rank).max(cap)),
                "{kind:?}: {found:?}"
            );
        }
    }

    #[test]
    fn a_network_of_too_high_rank_comes_down_to_the_true_one() {
        let (x, y) = planted(9, &[2, 2], 700);
        let problem = Problem { x: &x, y: &y };
        let params = SolveParams { max_rank: 4, ..SolveParams::default() };
        let rows = Rows::new(&problem, 1);
        let run = Run { options: &params, progress: &Silent };
        let mut search = Search::new(&problem, &rows, None, run);
        let mut come_down = || {
            let network = search.random(4);
            let start = search.descended(network, StepKind::Start(0)).unwrap();
            let (candidate, came_down) = search.lowered(start).unwrap();
            came_down && candidate.network.ranks() == [2, 2] && candidate.loss < 1e-9 * search.sketch.square
        };
        // A start may end in a local minimum; not all of them do.
        let arrived = (0..6).filter(|_| come_down()).count();
        assert!(arrived >= 1, "{arrived} of 6");
    }
}
