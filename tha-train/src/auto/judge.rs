//! Ways to weigh the heads of a pool, and what they give for blocks that the weights do not come from.

use super::ground::Ground;
use super::trial::Trial;
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

/// Inner products of the predictions of a pool, for every block and output.
pub(super) struct Judge<'a> {
    ground: &'a Ground<'a>,
    blocks: &'a [usize],
    /// By block of the ground, then by output.
    products: Vec<Vec<Products>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(
        ground: &'a Ground<'a>,
        trials: &[Trial],
        pool: &[usize],
        ridges: &[Vec<usize>],
        extend: bool,
        blocks: &'a [usize],
    ) -> Self {
        let outputs = ground.y.ncols();
        let of_block = |block: usize| {
            let rows: Vec<usize> = (0..ground.rows.len()).filter(|&t| ground.blocks[t] == block).collect();
            let of_output = |j: usize| {
                let mut products = Products::new(pool.len());
                if blocks.contains(&block) {
                    let predictions = DMatrix::from_fn(rows.len(), pool.len(), |i, k| {
                        trials[pool[k]].value(ridges[k][j], extend, rows[i], j)
                    });
                    products.add(&predictions, &DVector::from_fn(rows.len(), |i, _| ground.y[(rows[i], j)]));
                }
                products
            };
            (0..outputs).map(of_output).collect()
        };
        Self { ground, blocks, products: (0..ground.count).map(of_block).collect() }
    }

    /// The weights of one kind.
    fn by(&self, kind: Kind, heads: &[usize], blocks: &[usize]) -> Vec<DVector<f64>> {
        let outputs = self.ground.y.ncols();
        let sum = |outputs: &[usize]| {
            let mut sum = Products::new(heads.len());
            for (&block, &j) in blocks.iter().flat_map(|block| outputs.iter().map(move |j| (block, j))) {
                sum.add_products(&self.products[block][j].select(heads));
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

    /// Convex weights of some heads for each output, from some blocks: the mean over the given ways.
    pub(super) fn weights(&self, heads: &[usize], ways: &[Weighing], blocks: &[usize]) -> Vec<DVector<f64>> {
        let mut sum = vec![DVector::zeros(heads.len()); self.ground.y.ncols()];
        for way in ways {
            let places: Vec<usize> = (0..heads.len()).filter(|&at| heads[at] < way.heads).collect();
            let used: Vec<usize> = places.iter().map(|&at| heads[at]).collect();
            if used.is_empty() {
                continue;
            }
            for (sum, weights) in sum.iter_mut().zip(self.by(way.kind, &used, blocks)) {
                places.iter().zip(weights.iter()).for_each(|(&at, weight)| sum[at] += weight);
            }
        }
        // Equal weights of many heads are small and stay, unless the other ways want none of a head.
        let least = LEAST.min(0.5 / heads.len() as f64);
        sum.into_iter().map(|weights| relevant(weights, least)).collect()
    }

    /// The error of some heads on all blocks and on each, with weights from the others.
    pub(super) fn nested(&self, heads: &[usize], ways: &[Weighing]) -> (f64, Vec<f64>) {
        let relative = |squares: &[f64], rows: usize| {
            let root = |(square, spread): (&f64, &f64)| (square / rows.max(1) as f64).sqrt() / spread;
            squares.iter().zip(&self.ground.spread).map(root).sum::<f64>() / squares.len().max(1) as f64
        };
        let mut by_block = Vec::with_capacity(self.blocks.len());
        let outputs = self.ground.y.ncols();
        let (mut squares, mut rows) = (vec![0.0; outputs], 0);
        for &block in self.blocks {
            let others: Vec<usize> =
                self.blocks.iter().copied().filter(|&b| b != block || self.blocks.len() == 1).collect();
            let weights = self.weights(heads, ways, &others);
            let count = self.ground.sizes[block];
            let losses: Vec<f64> =
                (0..outputs).map(|j| self.products[block][j].select(heads).loss(&weights[j])).collect();
            squares.iter_mut().zip(&losses).for_each(|(square, loss)| *square += loss);
            by_block.push(relative(&losses, count));
            rows += count;
        }
        (relative(&squares, rows), by_block)
    }
}
