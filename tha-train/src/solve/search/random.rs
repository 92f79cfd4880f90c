//! Random networks: every rank that tells something has its turn, then the highest ones again.

use super::super::SolveError;
use super::{Search, Source, Start};

/// Longer networks are products of too many random matrices to be starts.
const LONGEST: usize = 6;

struct Random {
    levels: Vec<usize>,
}

pub(super) fn open(search: &mut Search<'_, '_>) -> Option<Box<dyn Source>> {
    let cap = search.params.max_rank;
    let telling = (2..cap).filter(|level| search.telling(*level));
    // A small cap leaves no room to come down from.
    let above = if cap < 3 && search.params.ranks.is_none() { cap + 1 } else { cap };
    let again = [above, cap, (2..cap).rev().find(|level| search.telling(*level)).unwrap_or(cap)];
    let all = telling.chain(again.into_iter().cycle());
    let mut levels: Vec<usize> = all.take(search.params.restarts).collect();
    levels.reverse();
    (search.params.degree <= LONGEST).then(|| Box::new(Random { levels }) as Box<dyn Source>)
}

impl Source for Random {
    fn next(&mut self, search: &mut Search<'_, '_>) -> Result<Option<Start>, SolveError> {
        Ok(self.levels.pop().map(|level| Start {
            network: search.random(level),
            vouched: false,
            widened: false,
        }))
    }
}
