//! Starts whose end cores vanish where the direct solution does: found by pairs of subspaces, round by round.

use super::super::direct::DirectFit;
use super::super::subspaces::{Polynomial, Subspace};
use super::super::{SolveError, als, quartic};
use super::{EXACT, RIDGE, Rule, Search, Source, Start};
use crate::network::{Core, Network};
use std::collections::HashSet;

/// Longer networks have too many cores between their ends.
const LONGEST: usize = 4;
/// Rounds per rank above one, and how many of the subspaces found are paired.
const ROUNDS: usize = 20;
const LIKELY: usize = 6;
/// Rounds per rank until the first subspace is found; where there is none, there is no larger one either.
const PATIENCE: usize = 3;
/// Where the direct solution is known no better than this, its zeros are those of the noise.
const BLURRED: f64 = 0.1;
/// Subspaces this close (sine of the largest angle) are the same.
const SAME: f64 = 0.3;

struct Subspaces {
    polynomial: Polynomial,
    /// What the noise leaves of a zero of the direct solution, root mean square.
    level: f64,
    /// Pairs of subspaces either fit at once or not at all: a cubic of one output without noise.
    strict: bool,
    /// Ranks to come, the next one last.
    ranks: Vec<usize>,
    round: usize,
    /// Subspaces of the present rank, each with the number of its draw, the best first.
    found: Vec<(usize, Subspace)>,
    drawn: usize,
    tried: HashSet<(usize, usize)>,
    /// Networks to start from next, and others by falling loss.
    promising: Vec<Network>,
    rest: Vec<(f64, Network)>,
}

pub(super) fn open(search: &mut Search<'_>) -> Option<Box<dyn Source>> {
    let (direct, params) = (search.direct?, search.params);
    let share = direct.dimension as f64 / search.all.entries() as f64;
    let level = 2.0 * (direct.variance * share).max(EXACT).sqrt();
    if params.degree > LONGEST || level > BLURRED || params.ranks.is_some() {
        return None;
    }
    let polynomial = Polynomial::new(&direct.tensor, search.q(), params.degree);
    let exact = direct.variance <= EXACT;
    // A polynomial that vanishes on a subspace does so on all within it, so those of the highest rank are found first.
    let ranks = (2..=params.max_rank).filter(|rank| polynomial.special(*rank, exact)).collect();
    let strict = exact && params.degree == 3 && search.outputs() == 1;
    let (found, tried, promising, rest) = (Vec::new(), HashSet::new(), Vec::new(), Vec::new());
    let source =
        Subspaces { polynomial, level, strict, ranks, round: 0, found, drawn: 0, tried, promising, rest };
    Some(Box::new(source))
}

impl Source for Subspaces {
    fn next(&mut self, search: &mut Search<'_>) -> Result<Option<Start>, SolveError> {
        let direct = search.direct.expect("opened with a direct solution");
        loop {
            if let Some(network) = self.promising.pop() {
                return Ok(Some(Start { network, vouched: false, widened: false }));
            }
            let Some(&rank) = self.ranks.last() else { return Ok(None) };
            if self.found.is_empty() && self.round >= PATIENCE * rank {
                return Ok(None);
            }
            if self.round == ROUNDS * (rank - 1) {
                self.ranks.pop();
                self.round = 0;
                self.found.clear();
                self.tried.clear();
                self.rest.clear();
                continue;
            }
            self.draw(rank, search);
            self.pair(rank, search, direct);
            // Of those that do not promise much the best has its turn, but not before the second round.
            if (1..search.params.restarts).contains(&self.round) {
                self.promising.splice(0..0, self.rest.pop().map(|(_, network)| network));
            }
            self.round += 1;
        }
    }
}

impl Subspaces {
    /// Looks for subspaces of codimension `rank`; where pairs tell at once, until there is a new one.
    fn draw(&mut self, rank: usize, search: &mut Search<'_>) {
        for _ in 0..search.params.restarts {
            let subspace = self.polynomial.search(rank, &mut search.draws);
            self.drawn += 1;
            let known = self.found.iter_mut().find(|(_, known)| known.distance(&subspace) < SAME);
            match known {
                _ if subspace.level > self.level => (),
                Some((_, known)) if known.level <= subspace.level => (),
                Some(known) => *known = (self.drawn, subspace),
                None => {
                    self.found.push((self.drawn, subspace));
                    if self.strict {
                        break;
                    }
                }
            }
        }
        self.found.sort_by(|a, b| a.1.level.total_cmp(&b.1.level));
    }

    /// Networks from pairs of subspaces; what is between tells at once which are worth a descent.
    fn pair(&mut self, rank: usize, search: &mut Search<'_>, direct: &DirectFit) {
        let enough = 2.0 * direct.variance.max(EXACT) * search.sketch.entries() as f64;
        let count = self.found.len().min(LIKELY);
        let mut pairs: Vec<_> = (0..count).flat_map(|j| (0..=j).map(move |i| (i, j))).collect();
        pairs.sort_by_key(|(i, j)| i + j);
        for (i, j) in pairs {
            if !self.tried.insert((self.found[i].0, self.found[j].0)) {
                continue;
            }
            let (first, last) = (&self.found[i].1, &self.found[j].1);
            let network = match i == j {
                true if self.strict => None,
                true => Some(ending_with(last, rank, search)),
                false if search.outputs() > 1 => None,
                false => between(first, last, search, direct),
            };
            let Some(network) = network else { continue };
            let loss = search.sketch.loss(&network);
            if loss <= enough {
                self.promising.insert(0, network);
            } else if !self.strict {
                self.rest.push((loss, network));
            }
        }
        self.rest.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
}

/// A network with the forms of two subspaces at its ends and the middle that fits best, for one output.
fn between(
    first: &Subspace,
    last: &Subspace,
    search: &mut Search<'_>,
    direct: &DirectFit,
) -> Option<Network> {
    let (first, last) = (first.forms(), last.forms());
    let (q, rank) = first.shape();
    let mut network = if search.params.degree == LONGEST {
        if !search.has(Rule::Quartics) {
            return None;
        }
        quartic::between(&first, &last, &search.x, &search.y, direct.variance.max(EXACT))?
    } else {
        let mut network = Network::zeros(1, q, &[rank, rank]);
        network.cores[0] = Core::from_unfolding(1, q, rank, &first);
        network.cores[2] = Core::from_unfolding(rank, q, 1, &last.transpose());
        als::update(&mut network, 1, &search.sketch, RIDGE);
        network
    };
    network.balance();
    Some(network)
}

/// A network of a rank with the forms of one subspace at its end, the rest random and adapted to them.
fn ending_with(last: &Subspace, rank: usize, search: &mut Search<'_>) -> Network {
    let mut network = search.random(rank);
    let end = network.degree() - 1;
    network.cores[end] = Core::from_unfolding(rank, network.q(), 1, &last.forms().transpose());
    for k in (0..end).rev() {
        als::update(&mut network, k, &search.sketch, RIDGE);
    }
    network.balance();
    network
}
