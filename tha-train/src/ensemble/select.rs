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

/// Heads that may be taken: the products of their predictions, in all and by fold, what they take, and the room for them.
pub(super) struct Offer<'a> {
    pub all: &'a Products,
    pub folds: &'a [Products],
    pub combine: Combine,
    pub costs: &'a [Cost],
    pub room: Room,
}

impl Offer<'_> {
    /// Weights for all heads that are worth it and fit into the room.
    pub(super) fn select(&self) -> Option<Selection> {
        let backward = self.backward();
        if self.room.flash.is_none() && self.room.macs.is_none() {
            return backward;
        }
        let forward = self.forward().map(|heads| Selection { weights: self.solve(&heads), heads });
        let loss = |selection: &Selection| self.all.select(&selection.heads).loss(&selection.weights);
        match (backward, forward) {
            (Some(a), Some(b)) => Some(if loss(&a) <= loss(&b) { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    fn solve(&self, heads: &[usize]) -> DVector<f64> {
        let products = self.all.select(heads);
        match self.combine {
            Combine::Stack => {
                stack(&products, &self.folds.iter().map(|fold| fold.select(heads)).collect::<Vec<_>>())
            }
            _ => average(&products),
        }
    }

    fn fits(&self, heads: &[usize]) -> bool {
        self.room.holds(heads.iter().map(|&k| self.costs[k]))
    }

    /// From all heads down: the one with the smallest share for its cost goes, the weights are found anew.
    fn backward(&self) -> Option<Selection> {
        let all = self.all;
        let mut heads: Vec<usize> = (0..self.costs.len()).collect();
        loop {
            let weights = self.solve(&heads);
            let share = |i: usize| weights[i].abs() * all.gram[(heads[i], heads[i])].sqrt();
            let before = heads.len();
            let kept: Vec<usize> =
                (0..before).filter(|&i| share(i) > NEGLIGIBLE * all.square.sqrt()).collect();
            if kept.is_empty() {
                // Nothing explains anything; one head says so as well as many.
                let first = heads.into_iter().find(|&k| self.fits(&[k]))?;
                return Some(Selection { weights: self.solve(&[first]), heads: vec![first] });
            }
            let over = !self.fits(&heads);
            if kept.len() < before {
                heads = kept.into_iter().map(|i| heads[i]).collect();
            } else if over {
                let value = |i: &usize| share(*i) / self.room.share(self.costs[heads[*i]]);
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
    fn forward(&self) -> Option<Vec<usize>> {
        let mut heads: Vec<usize> = Vec::new();
        let mut loss = self.all.square;
        loop {
            let with = |k: usize| [&heads[..], &[k]].concat();
            let candidates = (0..self.costs.len()).filter(|k| !heads.contains(k) && self.fits(&with(*k)));
            let gains = candidates.map(|k| {
                let products = self.all.select(&with(k));
                let after = products.loss(&average(&products));
                ((loss - after) / self.room.share(self.costs[k]), after, k)
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

    fn select(room: Room) -> Option<Selection> {
        let costs = &[Cost { flash: 100, macs: 10 }; 3];
        Offer { all: &example(), folds: &[], combine: Combine::Average, costs, room }.select()
    }

    #[test]
    fn useless_heads_are_pruned() {
        let chosen = select(Room::default()).unwrap();
        assert_eq!(chosen.heads, [0, 1]);
        assert!((chosen.weights.sum() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn budgets_are_kept_with_the_best_head() {
        let chosen = select(Room { flash: Some(150), macs: None }).unwrap();
        assert_eq!(chosen.heads, [1]);
        assert!(select(Room { flash: None, macs: Some(9) }).is_none());
    }
}
