//! Long networks: a product of many random matrices is no start, so they grow from rank one.

use super::super::SolveError;
use super::super::levenberg::SHORT;
use super::{SMALL, Search, Source, Start};
use crate::network::Network;

/// One network of rank one for so many starts, at most.
const SHARE: usize = 3;
/// New entries against the root mean square of the old ones, and entries of a first network against its constant.
const SMALLER: f64 = 0.1;
/// Growth goes on while it leaves less of the loss than this.
const GAIN: f64 = 0.9;

/// Networks of rank one until one comes near, then the best of all ranks, one rank wider, for as long as it gets better.
struct Grown {
    first: usize,
    loss: f64,
}

pub(super) fn open(search: &mut Search<'_>) -> Option<Box<dyn Source>> {
    let suits = search.params.degree > SHORT && search.params.ranks.is_none();
    let first = search.params.restarts.div_ceil(SHARE);
    suits.then(|| Box::new(Grown { first, loss: f64::INFINITY }) as Box<dyn Source>)
}

impl Source for Grown {
    fn next(&mut self, search: &mut Search<'_>) -> Result<Option<Start>, SolveError> {
        let near = search.best[1].as_ref().is_some_and(|best| best.loss <= SMALL * search.sketch.square);
        if self.first > 0 && !near {
            self.first -= 1;
            let network = constant(search);
            return Ok(Some(Start { network, vouched: false, widened: false }));
        }
        let below = search.best[..search.params.max_rank].iter().flatten();
        let best = below.min_by(|a, b| a.loss.total_cmp(&b.loss)).filter(|best| best.loss < GAIN * self.loss);
        let Some(best) = best.cloned() else { return Ok(None) };
        (self.first, self.loss) = (0, best.loss);
        let network = widened(search, &best.network, best.level() + 1);
        Ok(Some(Start { network, vouched: false, widened: true }))
    }
}

/// A network of rank one that is nearly constant: a product of many factors near one, where one of random factors would vary
/// over orders of magnitude.
fn constant(search: &mut Search<'_>) -> Network {
    let mut network = Network::zeros(search.outputs(), search.q(), &search.ranks(1));
    for core in &mut network.cores {
        let q = core.q;
        for (at, value) in core.data.iter_mut().enumerate() {
            *value = f64::from(at % q == 0) + SMALLER * search.draws.draw();
        }
    }
    network
}

/// The network with wider bonds, the new entries small and random.
fn widened(search: &mut Search<'_>, network: &Network, level: usize) -> Network {
    let mut wide = Network::zeros(search.outputs(), search.q(), &search.ranks(level));
    for (to, from) in wide.cores.iter_mut().zip(&network.cores) {
        let square: f64 = from.data.iter().map(|v| v * v).sum();
        let size = SMALLER * (square / from.data.len() as f64).sqrt();
        for a in 0..to.left {
            for i in 0..to.q {
                for b in 0..to.right {
                    let old = a < from.left && b < from.right;
                    to.data[(a * to.q + i) * to.right + b] =
                        if old { from.get(a, i, b) } else { size * search.draws.draw() };
                }
            }
        }
    }
    wide
}
