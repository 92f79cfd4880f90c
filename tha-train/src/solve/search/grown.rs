//! Long trains: a product of many random matrices is no start, so they grow from rank one.

use super::super::SolveError;
use super::{Candidate, NEGLIGIBLE, Track};
use crate::network::Network;

impl Track<'_, '_> {
    /// The best of several trains of rank one, widened step by step until that no longer pays or the residual is beyond
    /// the accuracy of any measurement.
    pub(super) fn grow(&mut self) -> Result<Option<Candidate>, SolveError> {
        let mut best: Option<Candidate> = None;
        for _ in 0..self.options.restarts {
            let train = self.random(&self.ranks(1));
            let candidate = self.start(train, 1)?;
            if best.as_ref().is_none_or(|b| candidate.loss < b.loss) {
                best = Some(candidate);
            }
        }
        let mut candidate = best.expect("at least one start");
        for level in 2..=self.options.max_rank {
            if candidate.loss <= NEGLIGIBLE * self.sketch.square() {
                return Ok(Some(candidate));
            }
            let train = self.widened(&candidate.train, &self.ranks(level));
            let wider = self.start(train, level)?;
            if self.compatible(&candidate, &wider) {
                break;
            }
            candidate = wider;
        }
        Ok((candidate.loss <= NEGLIGIBLE * self.sketch.square()).then_some(candidate))
    }

    /// The train with wider bonds, the new entries small and random.
    fn widened(&mut self, train: &Network, ranks: &[usize]) -> Network {
        let mut wide = Network::zeros(self.outputs, train.q(), ranks);
        for (to, from) in wide.cores.iter_mut().zip(&train.cores) {
            let square: f64 = from.data.iter().map(|v| v * v).sum();
            let size = 0.1 * (square / from.data.len() as f64).sqrt();
            for a in 0..to.left {
                for i in 0..to.q {
                    for b in 0..to.right {
                        let old = a < from.left && b < from.right;
                        to.data[(a * to.q + i) * to.right + b] =
                            if old { from.get(a, i, b) } else { size * self.draws.draw() };
                    }
                }
            }
        }
        wide
    }
}
