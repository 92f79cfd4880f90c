//! Random networks of ranks above the cap, where the cap may be the true rank.
//!
//! At the true rank local minima are many, two ranks above hardly any is left. The sketch becomes as many rows as
//! such a network asks for: on fewer it would fit anything.

use super::super::SolveError;
use super::{Search, Source, Start, sampled};
use crate::network::dimension;

/// Rows per dimension of the largest model, as far as there are so many, and at least.
const ROWS: usize = 4;
const FEWEST: usize = 2;
/// One of these for so many random starts.
const SHARE: usize = 3;

struct Above {
    level: usize,
    left: usize,
}

pub(super) fn open(search: &mut Search<'_, '_>) -> Option<Box<dyn Source>> {
    let (cap, entries) = (search.params.max_rank, search.problem.y.len());
    let size = |level: usize| dimension(&search.ranks(level), search.outputs(), search.q());
    let level = [cap + 2, cap + 1].into_iter().find(|level| FEWEST * size(*level) <= entries)?;
    // Random starts find quadratic networks, and a small residual without a direct solution is not doubted.
    let suits = (3..=6).contains(&search.params.degree) && search.params.ranks.is_none();
    if !suits || search.direct.is_none() && search.near() {
        return None;
    }
    if search.direct.is_none() {
        let stride = (entries / (ROWS * size(level))).max(1);
        (search.sketch, search.x, search.y) = sampled(search.problem, stride);
        for best in search.best.iter_mut().flatten() {
            best.loss = search.sketch.loss(&best.network);
        }
    }
    Some(Box::new(Above { level, left: search.params.restarts / SHARE }))
}

impl Source for Above {
    fn next(&mut self, search: &mut Search<'_, '_>) -> Result<Option<Start>, SolveError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        Ok(Some(Start { network: search.random(self.level), vouched: false, widened: false }))
    }
}
