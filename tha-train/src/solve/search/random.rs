//! Random networks: every rank up to the cap once, then ranks above it on rows that are enough for them.
//!
//! At the true rank local minima are many; a rank above it most starts fit, and come down. On few rows a rank above the
//! true one fits anything, so the sketch becomes as large as such a network asks for.

use super::super::SolveError;
use super::{Rule, Search, Source, Start, sampled};
use crate::network::dimension;

/// Longer networks are products of too many random matrices to be starts.
const LONGEST: usize = 6;
/// Ranks above the cap, in turn: two ranks above costs more and leaves the fewest local minima.
const ABOVE: [usize; 3] = [1, 1, 2];
/// Rows of the sketch per dimension of a network one rank above the cap, as far as there are so many, and the fewest for a
/// rank above the cap to be started at.
const ROWS: usize = 4;
const FEWEST: usize = 2;

struct Random {
    /// Ranks to come, the next one last.
    levels: Vec<usize>,
    /// Stride of the larger sketch, until it is taken.
    stride: Option<usize>,
}

pub(super) fn open(search: &mut Search<'_>) -> Option<Box<dyn Source>> {
    let (cap, entries) = (search.params.max_rank, search.problem.y.len());
    let size = |level: usize| dimension(&search.ranks(level), search.outputs(), search.q());
    let highest = (cap..=cap + 2).rev().find(|level| FEWEST * size(*level) <= entries).unwrap_or(cap);
    // Where nearly every polynomial has the rank of the cap, there are no local minima to avoid.
    let highest = if search.telling(cap) && search.has(Rule::Above) { highest } else { cap };
    let below = (2..=cap.min(highest)).filter(|level| search.telling(*level));
    let above = ABOVE.iter().cycle().map(|above| highest.min(cap + above));
    let mut levels: Vec<usize> = below.chain(above).take(search.params.restarts).collect();
    levels.reverse();
    let stride = search.direct.is_none().then(|| entries / (ROWS * size(highest.min(cap + 1))));
    (search.params.degree <= LONGEST).then(|| Box::new(Random { levels, stride }) as Box<dyn Source>)
}

impl Source for Random {
    fn next(&mut self, search: &mut Search<'_>) -> Result<Option<Start>, SolveError> {
        let Some(level) = self.levels.pop() else { return Ok(None) };
        if level > search.params.max_rank
            && let Some(stride) = self.stride.take()
        {
            search.take_sketch(stride);
        }
        Ok(Some(Start { network: search.random(level), vouched: false, widened: false }))
    }
}

impl Search<'_> {
    /// Takes every `stride`-th row from here on.
    fn take_sketch(&mut self, stride: usize) {
        (self.sketch, self.x, self.y) = sampled(self.problem, stride.max(1));
        self.agreeing.fill(0);
        for best in self.best.iter_mut().flatten() {
            best.loss = self.sketch.loss(&best.network);
        }
    }
}
