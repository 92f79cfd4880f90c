//! Long networks: a product of many random matrices is no start, so they grow from rank one.

use super::super::SolveError;
use super::{Search, Source, Start};
use crate::network::Network;

/// Shorter networks need not grow.
const SHORT: usize = 4;
/// New entries against the root mean square of the old ones.
const SMALLER: f64 = 0.1;

/// Several networks of rank one, then the best so far, one rank wider each time.
struct Grown {
    turn: usize,
}

pub(super) fn open(search: &mut Search<'_, '_>) -> Option<Box<dyn Source>> {
    let suits = search.params.degree > SHORT && search.params.ranks.is_none();
    suits.then(|| Box::new(Grown { turn: 0 }) as Box<dyn Source>)
}

impl Source for Grown {
    fn next(&mut self, search: &mut Search<'_, '_>) -> Result<Option<Start>, SolveError> {
        self.turn += 1;
        if self.turn <= search.params.restarts {
            return Ok(Some(Start { network: search.random(1), vouched: false, widened: false }));
        }
        let wider = self.turn - search.params.restarts;
        let best = search.best.get(wider).and_then(Option::as_ref).filter(|_| wider < search.params.max_rank);
        let Some(network) = best.map(|best| best.network.clone()) else { return Ok(None) };
        Ok(Some(Start { network: widened(search, &network, wider + 1), vouched: false, widened: true }))
    }
}

/// The network with wider bonds, the new entries small and random.
fn widened(search: &mut Search<'_, '_>, network: &Network, level: usize) -> Network {
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
