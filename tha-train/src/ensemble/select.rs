//! Which heads are worth their flash: pruning, and the best ensemble within a budget.

use super::Combine;
use super::weights::{Products, average, stack};
use nalgebra::DVector;

/// A head whose share of the prediction is below this part of ||Y|| is dropped.
pub(super) const NEGLIGIBLE: f64 = 1e-4;

/// What the device has, for the heads alone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    pub flash: Option<usize>,
    pub macs: Option<usize>,
}

impl Room {
    pub(super) fn holds(&self, costs: impl Iterator<Item = Cost>) -> bool {
        let (flash, macs) = costs.fold((0, 0), |sum, cost| (sum.0 + cost.flash, sum.1 + cost.macs));
        self.flash.is_none_or(|room| flash <= room) && self.macs.is_none_or(|room| macs <= room)
    }

    /// The part of the room that a head takes, of the scarcer of the two.
    fn share(&self, cost: Cost) -> f64 {
        let part =
            |cost: usize, room: Option<usize>| room.map_or(0.0, |room| cost as f64 / room.max(1) as f64);
        part(cost.flash, self.flash).max(part(cost.macs, self.macs)).max(1e-12)
    }
}

/// What a head takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub flash: usize,
    pub macs: usize,
}

/// Heads and their weights.
pub(super) struct Selection {
    pub heads: Vec<usize>,
    pub weights: DVector<f64>,
}

/// Weights for all heads that are worth it and fit into the room.
pub(super) fn select(
    all: &Products,
    folds: &[Products],
    combine: Combine,
    costs: &[Cost],
    room: &Room,
) -> Option<Selection> {
    let solve = |heads: &[usize]| {
        let products = all.select(heads);
        match combine {
            Combine::Stack => {
                stack(&products, &folds.iter().map(|fold| fold.select(heads)).collect::<Vec<_>>())
            }
            _ => average(&products),
        }
    };
    let fits = |heads: &[usize]| room.holds(heads.iter().map(|&k| costs[k]));
    let backward = backward(all, &solve, &fits, costs, room);
    if room.flash.is_none() && room.macs.is_none() {
        return backward;
    }
    let forward = forward(all, &fits, costs, room).map(|heads| {
        let weights = solve(&heads);
        Selection { heads, weights }
    });
    let loss = |selection: &Selection| all.select(&selection.heads).loss(&selection.weights);
    match (backward, forward) {
        (Some(a), Some(b)) => Some(if loss(&a) <= loss(&b) { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// From all heads down: the one with the smallest share for its cost goes, the weights are found anew.
fn backward(
    all: &Products,
    solve: &dyn Fn(&[usize]) -> DVector<f64>,
    fits: &dyn Fn(&[usize]) -> bool,
    costs: &[Cost],
    room: &Room,
) -> Option<Selection> {
    let mut heads: Vec<usize> = (0..costs.len()).collect();
    loop {
        let weights = solve(&heads);
        let share = |i: usize| weights[i].abs() * all.gram[(heads[i], heads[i])].sqrt();
        let before = heads.len();
        let kept: Vec<usize> = (0..before).filter(|&i| share(i) > NEGLIGIBLE * all.square.sqrt()).collect();
        if kept.is_empty() {
            // Nothing explains anything; one head says so as well as many.
            let first = heads.into_iter().find(|&k| fits(&[k]))?;
            return Some(Selection { weights: solve(&[first]), heads: vec![first] });
        }
        let over = !fits(&heads);
        if kept.len() < before {
            heads = kept.into_iter().map(|i| heads[i]).collect();
        } else if over {
            let value = |i: &usize| share(*i) / room.share(costs[heads[*i]]);
            let least = (0..before).min_by(|a, b| value(a).total_cmp(&value(b)))?;
            heads.remove(least);
            if heads.is_empty() {
                return None;
            }
        } else {
            return Some(Selection { heads, weights });
        }
    }
}

/// From no head up: the one that lowers the loss most for its cost comes in, while there is room.
fn forward(
    all: &Products,
    fits: &dyn Fn(&[usize]) -> bool,
    costs: &[Cost],
    room: &Room,
) -> Option<Vec<usize>> {
    let mut heads: Vec<usize> = Vec::new();
    let mut loss = all.square;
    loop {
        let with = |k: usize| [&heads[..], &[k]].concat();
        let candidates = (0..costs.len()).filter(|k| !heads.contains(k) && fits(&with(*k)));
        let gains = candidates.map(|k| {
            let products = all.select(&with(k));
            let after = products.loss(&average(&products));
            ((loss - after) / room.share(costs[k]), after, k)
        });
        match gains.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((gain, after, k)) if gain > 0.0 => {
                heads.push(k);
                loss = after;
            }
            _ => break,
        }
    }
    heads.sort_unstable();
    (!heads.is_empty()).then_some(heads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::DMatrix;

    /// Three heads: truth plus independent errors, the second the best, the third useless.
    fn example() -> Products {
        let truth = DVector::from_fn(300, |t, _| (t as f64 * 0.7).sin());
        let column =
            |level: f64, rate: f64| DVector::from_fn(300, |t, _| truth[t] + level * (t as f64 * rate).cos());
        let useless = DVector::from_fn(300, |t, _| 50.0 * (t as f64 * 2.9).cos());
        let mut products = Products::new(3);
        products.add(&DMatrix::from_columns(&[column(0.5, 1.3), column(0.4, 2.1), useless]), &truth);
        products
    }

    const COSTS: [Cost; 3] = [Cost { flash: 100, macs: 10 }; 3];

    #[test]
    fn useless_heads_are_pruned() {
        let all = example();
        let chosen = select(&all, &[], Combine::Average, &COSTS, &Room::default()).unwrap();
        assert_eq!(chosen.heads, [0, 1]);
        assert!((chosen.weights.sum() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn budgets_are_kept_with_the_best_head() {
        let all = example();
        let room = Room { flash: Some(150), macs: None };
        let chosen = select(&all, &[], Combine::Average, &COSTS, &room).unwrap();
        assert_eq!(chosen.heads, [1]);
        assert!(select(&all, &[], Combine::Average, &COSTS, &Room { flash: None, macs: Some(9) }).is_none());
    }
}
