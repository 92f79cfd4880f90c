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
    pub(super) fn new(
        ground: &'a Ground<'a>,
        trials: &[Trial],
        pool: &[usize],
        ridges: &[Vec<usize>],
        extend: bool,
        blocks: &[usize],
    ) -> Self {
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
