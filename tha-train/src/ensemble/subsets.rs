//! SelectSubsets of Algorithm 1: which inputs each head sees.
//!
//! Only a head that sees all factors of a product can say it. The strategies leave products to chance (`random`, `weighted`), make
//! sure of all of them (`covering`), or look for those that are missing (`adaptive`).

use crate::network::choose;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How the subsets are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Strategy {
    /// At random, without duplicates, every input used when there is room.
    #[default]
    Random,
    /// At random, by relevance to what a linear model leaves.
    Weighted,
    /// Every d-tuple of inputs inside some subset, by a greedy covering design.
    Covering,
    /// One after the other, where the residual of the ensemble so far depends most.
    Adaptive,
    /// One head per output, on the inputs that serve it best on the judged samples.
    PerOutput,
    /// Given, each strictly increasing.
    Given(Vec<Vec<usize>>),
}

impl Strategy {
    /// Whether the one subset is given.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::Given(subsets) if subsets.len() == 1)
    }
}

/// `count` subsets of `size` of `p` inputs, dealt from shuffled decks: after p / size of them every input was used.
pub(super) fn random(p: usize, size: usize, count: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    let count = count.min(choose(p, size));
    let mut subsets = Vec::new();
    let mut seen = BTreeSet::new();
    let mut deck: Vec<usize> = Vec::new();
    while subsets.len() < count {
        let mut subset = BTreeSet::new();
        while subset.len() < size {
            if deck.is_empty() {
                deck = (0..p).collect();
                deck.shuffle(rng);
            }
            // A card that the hand holds already goes to the bottom of the deck.
            match deck.iter().rposition(|card| !subset.contains(card)) {
                Some(at) => {
                    subset.insert(deck.remove(at));
                }
                None => deck.clear(),
            }
        }
        let mut subset: Vec<usize> = subset.into_iter().collect();
        // A duplicate is replaced by a fresh draw; the deck goes on, so that coverage does not suffer.
        while !seen.insert(subset.clone()) {
            let mut all: Vec<usize> = (0..p).collect();
            all.shuffle(rng);
            subset = all[..size].to_vec();
            subset.sort_unstable();
        }
        subsets.push(subset);
    }
    subsets
}

/// `count` subsets drawn without replacement with probability proportional to `relevance`, without duplicates.
pub(super) fn weighted(
    relevance: &[f64],
    size: usize,
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<usize>> {
    let p = relevance.len();
    let count = count.min(choose(p, size));
    // A tenth is spread evenly: no input is beyond reach, and every subset is drawn sooner or later.
    let total: f64 = relevance.iter().sum();
    let weight = |c: usize| if total > 0.0 { 0.9 * relevance[c] / total } else { 0.0 } + 0.1 / p as f64;
    let mut seen = BTreeSet::new();
    let mut subsets = Vec::new();
    while subsets.len() < count {
        // Efraimidis and Spirakis: the smallest Exponential / weight win.
        let mut exponential = || -libm::log(1.0 - rng.random::<f64>());
        let mut keys: Vec<(f64, usize)> = (0..p).map(|c| (exponential() / weight(c), c)).collect();
        keys.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut subset: Vec<usize> = keys[..size].iter().map(|key| key.1).collect();
        subset.sort_unstable();
        if seen.insert(subset.clone()) {
            subsets.push(subset);
        }
    }
    subsets
}

/// Tuples beyond which a covering design is not attempted.
pub(super) const TUPLE_LIMIT: usize = 4_000_000;
/// Candidates for each subset of a covering design.
const TRIES: usize = 24;

/// Subsets until every t-tuple of the `p` inputs lies inside one of them, or `most` of them; and the fraction of the
/// tuples that do. Greedy: each subset is grown input by input from a tuple not covered yet, always by the input that
/// completes the most new tuples; the best of several such subsets is kept.
pub(super) fn covering(
    p: usize,
    size: usize,
    t: usize,
    most: usize,
    rng: &mut ChaCha8Rng,
) -> (Vec<Vec<usize>>, f64) {
    let t = t.min(size);
    let tuples = choose(p, t);
    let mut covered = vec![false; tuples];
    let mut open = tuples;
    let mut next_open = 0;
    let mut subsets: Vec<Vec<usize>> = Vec::new();
    while open > 0 && subsets.len() < most {
        while covered[next_open] {
            next_open += 1;
        }
        let mut best: (usize, Vec<usize>) = (0, Vec::new());
        for attempt in 0..TRIES {
            // The first open tuple for sure; others at random.
            let mut start = next_open;
            if attempt > 0 {
                let from = rng.random_range(0..tuples);
                start = (from..tuples).chain(0..from).find(|&k| !covered[k]).unwrap_or(next_open);
            }
            let mut subset = unrank(start, p, t);
            while subset.len() < size {
                let mut order: Vec<usize> = (0..p).filter(|c| !subset.contains(c)).collect();
                order.shuffle(rng);
                let gain = |c: usize| new_tuples(&subset, c, t, &covered);
                let Some(choice) = order.iter().copied().max_by_key(|&c| gain(c)) else { break };
                subset.push(choice);
            }
            subset.sort_unstable();
            let mut count = 0;
            tuples_within(&subset, t, |at| count += usize::from(!covered[at]));
            if count > best.0 {
                best = (count, subset);
            }
        }
        let (count, subset) = best;
        open -= count;
        tuples_within(&subset, t, |at| covered[at] = true);
        subsets.push(subset);
    }
    (subsets, (tuples - open) as f64 / tuples as f64)
}

/// The fraction of all t-tuples of inputs that lie inside some subset.
pub(super) fn coverage(p: usize, t: usize, subsets: &[Vec<usize>]) -> Option<f64> {
    let tuples = choose(p, t);
    if tuples > TUPLE_LIMIT || tuples == 0 {
        return None;
    }
    let mut covered = vec![false; tuples];
    for subset in subsets {
        tuples_within(subset, t, |at| covered[at] = true);
    }
    Some(covered.iter().filter(|&&c| c).count() as f64 / tuples as f64)
}

/// How many open t-tuples `input` completes together with t - 1 members of `subset`.
fn new_tuples(subset: &[usize], input: usize, t: usize, covered: &[bool]) -> usize {
    let mut count = 0;
    combinations(subset.len(), t - 1, |pick| {
        let mut tuple: Vec<usize> = pick.iter().map(|&k| subset[k]).collect();
        tuple.push(input);
        tuple.sort_unstable();
        count += usize::from(!covered[rank(&tuple)]);
    });
    count
}

/// Calls `visit` with the position of every t-tuple of members of an increasing subset.
fn tuples_within(subset: &[usize], t: usize, mut visit: impl FnMut(usize)) {
    combinations(subset.len(), t, |pick| visit(rank(&pick.iter().map(|&k| subset[k]).collect::<Vec<_>>())));
}

/// Calls `visit` with every increasing choice of `k` of 0..n.
fn combinations(n: usize, k: usize, mut visit: impl FnMut(&[usize])) {
    if k > n {
        return;
    }
    let mut pick: Vec<usize> = (0..k).collect();
    loop {
        visit(&pick);
        let Some(at) = (0..k).rev().find(|&i| pick[i] < n - k + i) else { return };
        pick[at] += 1;
        for i in at + 1..k {
            pick[i] = pick[i - 1] + 1;
        }
    }
}

/// The position of an increasing tuple in colexicographic order: the sum of C(c_i, i + 1).
fn rank(tuple: &[usize]) -> usize {
    tuple.iter().enumerate().map(|(i, &c)| choose(c, i + 1)).sum()
}

/// The increasing tuple at a position.
fn unrank(mut position: usize, p: usize, t: usize) -> Vec<usize> {
    let mut tuple = vec![0; t];
    let mut high = p;
    for i in (0..t).rev() {
        while choose(high - 1, i + 1) > position {
            high -= 1;
        }
        high -= 1;
        tuple[i] = high;
        position -= choose(high, i + 1);
    }
    tuple
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    #[test]
    fn no_more_subsets_are_drawn_than_there_are() {
        assert_eq!((choose(80, 80), choose(80, 79), choose(80, 40), choose(3, 4)), (1, 80, usize::MAX, 0));
        assert_eq!(random(80, 80, 2, &mut rng(1)).len(), 1);
        assert_eq!(weighted(&[1.0; 80], 80, 2, &mut rng(1)).len(), 1);
    }

    #[test]
    fn ranks_count_through_all_tuples() {
        for (p, t) in [(5, 1), (6, 2), (7, 3), (6, 6)] {
            let mut next = BTreeSet::new();
            combinations(p, t, |pick| {
                next.insert(rank(pick));
                assert_eq!(unrank(rank(pick), p, t), pick);
            });
            assert_eq!(next, (0..choose(p, t)).collect());
        }
    }

    #[test]
    fn random_subsets_are_distinct_and_use_every_input() {
        for (p, size, count) in [(16, 4, 24), (7, 3, 3), (5, 5, 9), (6, 2, 100), (100, 4, 25)] {
            let subsets = random(p, size, count, &mut rng(1));
            assert_eq!(subsets.len(), count.min(choose(p, size)));
            assert_eq!(subsets.iter().collect::<BTreeSet<_>>().len(), subsets.len());
            assert!(subsets.iter().all(|s| s.len() == size && s.windows(2).all(|w| w[0] < w[1])));
            if count * size >= p {
                let used: BTreeSet<_> = subsets.iter().flatten().collect();
                assert_eq!(used.len(), p, "{p} {size} {count}");
            }
            assert_eq!(subsets, random(p, size, count, &mut rng(1)));
        }
    }

    #[test]
    fn weighted_subsets_favour_relevant_inputs() {
        let mut relevance = vec![0.01; 20];
        relevance[3] = 5.0;
        relevance[11] = 5.0;
        let subsets = weighted(&relevance, 3, 40, &mut rng(2));
        let uses = |c: usize| subsets.iter().filter(|s| s.contains(&c)).count();
        assert!(uses(3) > 25 && uses(11) > 25 && uses(5) < 15, "{} {} {}", uses(3), uses(11), uses(5));
        assert_eq!(weighted(&[1.0, 0.0, 0.0], 2, 10, &mut rng(3)).len(), 3, "all there are");
    }

    #[test]
    fn coverings_cover() {
        for (p, size, t, at_most) in
            [(12, 4, 2, 16), (16, 4, 2, 28), (9, 3, 2, 15), (8, 4, 3, 18), (5, 5, 3, 1)]
        {
            let (subsets, fraction) = covering(p, size, t, usize::MAX, &mut rng(4));
            assert_eq!(fraction, 1.0);
            assert_eq!(coverage(p, t, &subsets), Some(1.0));
            assert!(subsets.len() <= at_most, "{p} {size} {t}: {} subsets", subsets.len());
        }
        let (subsets, fraction) = covering(12, 4, 2, 5, &mut rng(5));
        assert_eq!(subsets.len(), 5);
        assert!(fraction > 0.4 && fraction < 0.5, "{fraction}");
        assert_eq!(coverage(12, 2, &subsets), Some(fraction));
    }
}
