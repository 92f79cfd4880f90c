//! Nothing came near: starts of ranks above the cap.
//!
//! At the true rank local minima are many, two ranks above hardly any is left. So where the cap may be the true rank, a
//! few starts begin above it, on as many rows as their size asks for: on fewer they would fit anything.

use super::super::SolveError;
use super::super::count::dimension;
use super::{Candidate, ENOUGH, Track, sampled};

/// Rows per dimension of the largest model, as far as there are so many, and at least.
const ROWS: usize = 4;
const FEWEST: usize = 2;
/// Starts of the race for one of these.
const SHARE: usize = 3;

impl Track<'_, '_> {
    /// Starts above the cap until one comes down to it without a loss or two agree.
    pub(super) fn start_above(&mut self) -> Result<Option<Candidate>, SolveError> {
        let (q, cap, entries) = (self.x.ncols(), self.options.max_rank, self.problem.y.len());
        let size = |level: usize| dimension(&self.ranks(level), self.outputs, q);
        let Some(level) = [cap + 2, cap + 1].into_iter().find(|level| FEWEST * size(*level) <= entries)
        else {
            return Ok(None);
        };
        // Of quadratic networks random starts find nearly all; where several agree there is nothing else to find.
        if self.options.degree < 3 || self.agreeing[cap] >= ENOUGH {
            return Ok(None);
        }
        if self.judge.is_none() {
            let stride = (entries / (ROWS * size(level))).max(1);
            (self.sketch, self.x, self.y) = sampled(self.problem, stride);
            for best in self.best.iter_mut().flatten() {
                best.loss = self.sketch.loss(&best.train);
            }
        }
        self.agreeing.fill(1);
        for _ in 0..self.options.restarts / SHARE {
            let train = self.random(&self.ranks(level));
            if let Some(winner) = self.come_down(train, level)? {
                return Ok(Some(winner));
            }
            if self.agreeing[cap] > 1 {
                break;
            }
        }
        Ok(None)
    }
}
