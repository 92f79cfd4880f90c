//! Ways to weigh the heads of a pool, and what they give for blocks that the weights do not come from.

use super::blend::Case;
use super::ground::Ground;
use crate::ensemble::weights::{Products, average};
use nalgebra::{DMatrix, DVector};

/// Heads with less weight go.
const LEAST: f64 = 0.04;

/// Where the weights of heads come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// All the same.
    Equal,
    /// From all outputs together.
    Shared,
    /// Of each output from itself.
    Own,
}

/// A way to weigh heads: the first so many of the pool, all others have no weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighing {
    pub(super) heads: usize,
    pub(super) kind: Kind,
}

/// Weights of which the small ones are none, with sum 1.
fn relevant(mut weights: DVector<f64>, least: f64) -> DVector<f64> {
    let total = weights.sum();
    weights.iter_mut().filter(|weight| **weight < least * total).for_each(|weight| *weight = 0.0);
    let total = weights.sum();
    weights / total
}

/// Parts of a block that stands alone.
const PARTS: usize = 5;

/// Inner products of the predictions of a pool, for every part of the rows and every output. The parts are blocks; of one block alone, which
/// cannot judge weights that come from itself, contiguous parts.
pub(super) struct Judge<'a> {
    ground: &'a Ground<'a>,
    /// Rows of each part, and the products by output.
    parts: Vec<(usize, Vec<Products>)>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(case: &Case<'a>, pool: &[usize], ridges: &[Vec<usize>], extend: bool) -> Self {
        let Case { ground, trials, blocks, .. } = *case;
        let outputs = ground.y.ncols();
        let of_block = |block: usize| (0..ground.rows.len()).filter(move |&t| ground.blocks[t] == block);
        let mut parts: Vec<Vec<usize>> = blocks.iter().map(|&block| of_block(block).collect()).collect();
        if let [alone] = &parts[..] {
            parts = alone.chunks(alone.len().div_ceil(PARTS).max(1)).map(<[usize]>::to_vec).collect();
        }
        let products = |rows: Vec<usize>| {
            let of_output = |j: usize| {
                let mut products = Products::new(pool.len());
                let predictions = DMatrix::from_fn(rows.len(), pool.len(), |i, k| {
                    trials[pool[k]].value(ridges[k][j], extend, rows[i], j)
                });
                products.add(&predictions, &DVector::from_fn(rows.len(), |i, _| ground.y[(rows[i], j)]));
                products
            };
            (rows.len(), (0..outputs).map(of_output).collect())
        };
        Self { ground, parts: parts.into_iter().map(products).collect() }
    }

    /// Which of the first so many heads are best together, at most `most` of them; `fits` says whether there is room for one more.
    pub(super) fn together(
        &self,
        candidates: usize,
        most: usize,
        fits: &dyn Fn(&[usize], usize) -> bool,
    ) -> Vec<usize> {
        let heads: Vec<usize> = (0..candidates).collect();
        let errors = |(j, spread): (usize, &f64)| {
            let mut sum = Products::new(candidates);
            self.parts.iter().for_each(|(_, products)| sum.add_products(&products[j].select(&heads)));
            let of = |a: usize, b: usize| sum.gram[(a, b)] - sum.truth[a] - sum.truth[b] + sum.square;
            DMatrix::from_fn(candidates, candidates, |a, b| of(a, b) / (spread * spread))
        };
        together(&self.ground.spread.iter().enumerate().map(errors).collect::<Vec<_>>(), most, fits)
    }

    /// The same of some heads, in their order.
    pub(super) fn of(&self, heads: &[usize]) -> Self {
        let select = |(rows, products): &(usize, Vec<Products>)| {
            (*rows, products.iter().map(|products| products.select(heads)).collect())
        };
        Self { ground: self.ground, parts: self.parts.iter().map(select).collect() }
    }

    /// The weights of one kind.
    fn by(&self, kind: Kind, heads: &[usize], without: Option<usize>) -> Vec<DVector<f64>> {
        let outputs = self.ground.y.ncols();
        let sum = |outputs: &[usize]| {
            let mut sum = Products::new(heads.len());
            for (k, (_, products)) in self.parts.iter().enumerate() {
                if without != Some(k) || self.parts.len() == 1 {
                    outputs.iter().for_each(|&j| sum.add_products(&products[j].select(heads)));
                }
            }
            relevant(average(&sum), LEAST)
        };
        if kind == Kind::Equal {
            return vec![DVector::from_element(heads.len(), 1.0 / heads.len() as f64); outputs];
        }
        if kind == Kind::Shared {
            return vec![sum(&(0..outputs).collect::<Vec<_>>()); outputs];
        }
        (0..outputs).map(|j| sum(&[j])).collect()
    }

    /// Convex weights of some heads for each output, from all parts or all but one: the mean over the given ways.
    pub(super) fn weights(
        &self,
        heads: &[usize],
        ways: &[Weighing],
        without: Option<usize>,
    ) -> Vec<DVector<f64>> {
        let mut sum = vec![DVector::zeros(heads.len()); self.ground.y.ncols()];
        for way in ways {
            let places: Vec<usize> = (0..heads.len()).filter(|&at| heads[at] < way.heads).collect();
            let used: Vec<usize> = places.iter().map(|&at| heads[at]).collect();
            if used.is_empty() {
                continue;
            }
            for (sum, weights) in sum.iter_mut().zip(self.by(way.kind, &used, without)) {
                places.iter().zip(weights.iter()).for_each(|(&at, weight)| sum[at] += weight);
            }
        }
        // Equal weights of many heads are small and stay, unless the other ways want none of a head.
        let least = LEAST.min(0.5 / heads.len() as f64);
        sum.into_iter().map(|weights| relevant(weights, least)).collect()
    }

    /// The error of some heads on all parts and on each, with weights from the others.
    pub(super) fn nested(&self, heads: &[usize], ways: &[Weighing]) -> (f64, Vec<f64>) {
        let relative = |squares: &[f64], rows: usize| {
            let root = |(square, spread): (&f64, &f64)| (square / rows.max(1) as f64).sqrt() / spread;
            squares.iter().zip(&self.ground.spread).map(root).sum::<f64>() / squares.len().max(1) as f64
        };
        let mut by_part = Vec::with_capacity(self.parts.len());
        let (mut squares, mut rows) = (vec![0.0; self.ground.y.ncols()], 0);
        for (k, (count, products)) in self.parts.iter().enumerate() {
            let weights = self.weights(heads, ways, Some(k));
            let loss = |(products, weights): (&Products, &DVector<f64>)| products.select(heads).loss(weights);
            let losses: Vec<f64> = products.iter().zip(&weights).map(loss).collect();
            squares.iter_mut().zip(&losses).for_each(|(square, loss)| *square += loss);
            by_part.push(relative(&losses, *count));
            rows += count;
        }
        (relative(&squares, rows), by_part)
    }
}

/// The heads that are best together, from the inner products of their errors in each output: the first, then always the one that lowers the
/// error most where it gets the weight that is best beside what was taken before. Settings that are the best by themselves are often nearly
/// the same setting; what differs from them adds more.
fn together(errors: &[DMatrix<f64>], most: usize, fits: &dyn Fn(&[usize], usize) -> bool) -> Vec<usize> {
    let heads = errors.first().map_or(0, DMatrix::ncols);
    // For each output, of what the heads taken so far leave together: its products with the errors, and its square.
    let mut left: Vec<(DVector<f64>, f64)> =
        errors.iter().map(|errors| (errors.column(0).into_owned(), errors[(0, 0)])).collect();
    let mut taken = vec![0];
    while taken.len() < most.min(heads) {
        // The best weight of a head in one output, and the square that is left with it.
        let beside = |k: usize, j: usize| {
            let (products, square) = &left[j];
            let distance = square - 2.0 * products[k] + errors[j][(k, k)];
            let weight =
                if distance > 0.0 { ((square - products[k]) / distance).clamp(0.0, 1.0) } else { 0.0 };
            let rest = square - 2.0 * weight * (square - products[k]) + weight * weight * distance;
            (weight, rest.max(0.0))
        };
        let gain = |k: usize| -> f64 {
            left.iter()
                .enumerate()
                .map(|(j, (_, square))| square.max(0.0).sqrt() - beside(k, j).1.sqrt())
                .sum()
        };
        let others = (0..heads).filter(|k| !taken.contains(k)).map(|k| (gain(k), k));
        let mut others: Vec<(f64, usize)> = others.filter(|(gain, _)| *gain > 0.0).collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0));
        let Some((_, best)) = others.into_iter().find(|(_, k)| fits(&taken, *k)) else { break };
        let next: Vec<(f64, f64)> = (0..left.len()).map(|j| beside(best, j)).collect();
        for (((products, square), errors), (weight, rest)) in left.iter_mut().zip(errors).zip(next) {
            *products = &*products * (1.0 - weight) + errors.column(best) * weight;
            *square = rest;
        }
        taken.push(best);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inner products of errors.
    fn products(errors: &[[f64; 4]]) -> DMatrix<f64> {
        DMatrix::from_fn(errors.len(), errors.len(), |a, b| {
            errors[a].iter().zip(&errors[b]).map(|(a, b)| a * b).sum()
        })
    }

    #[test]
    fn what_differs_from_the_best_is_taken_before_what_resembles_it() {
        let best = [1.0, 1.0, 0.0, 0.0];
        let like_it = [1.0, 1.05, 0.0, 0.0];
        let opposite = [-1.2, -1.2, 0.1, 0.0];
        let aside = [0.0, 0.0, 2.0, 0.0];
        let of_one = products(&[best, like_it, aside, opposite]);
        // The opposite one cancels all but a hundredth; nothing is left for the one that resembles the best.
        let all = |_: &[usize], _: usize| true;
        assert_eq!(together(std::slice::from_ref(&of_one), 2, &all), [0, 3]);
        assert_eq!(together(std::slice::from_ref(&of_one), 1, &all), [0]);
        // Where there is no room for it, the next best.
        let small = |taken: &[usize], k: usize| k != 3 || taken.len() > 1;
        assert_eq!(together(std::slice::from_ref(&of_one), 3, &small), [0, 2, 3]);
        // In another output, where the best one is perfect, none can help.
        let perfect = products(&[[0.0; 4], best, best, best]);
        assert_eq!(together(&[of_one, perfect.clone()], 2, &all), [0, 3]);
        assert_eq!(together(&[perfect], 4, &all), [0]);
    }
}
