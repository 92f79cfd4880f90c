//! What to expect on other data: errors on blocks that took no part in the choice that they judge.

use super::blend::{Blend, Case, Way, mean_and_error};
use super::ground::Ground;
use super::trial::Trial;
use crate::metrics::Metrics;
use nalgebra::DMatrix;
use tha_core::build::Interval;

/// Contiguous parts of all rows, for the standard error.
const PARTS: usize = 10;

/// An error on blocks of which none took part in the choice that it judges.
#[derive(Clone, Debug)]
pub struct Honest {
    /// Figures over all rows on which settings were compared.
    pub metrics: Metrics,
    /// Mean over the outputs of the error relative to their spread, and its standard error: the jackknife over the blocks.
    pub error: f64,
    /// See `error`.
    pub standard_error: f64,
    /// The same by block.
    pub blocks: Vec<f64>,
    /// Measured less predicted, for each output.
    pub(super) errors: Vec<Vec<f64>>,
}

impl Honest {
    /// For every block, what would be chosen without it, judged on it.
    pub(super) fn new(case: &Case<'_>, way: Way) -> Option<Self> {
        Self::judge(case.ground, case.trials, |block| {
            let others: Vec<usize> = case.blocks.iter().copied().filter(|&k| k != block).collect();
            Case { blocks: &others, ..*case }.blend(way)
        })
    }

    /// What is given for every block, judged on it.
    pub(super) fn judge(
        ground: &Ground<'_>,
        trials: &[Trial<'_>],
        given: impl Fn(usize) -> Option<Blend>,
    ) -> Option<Self> {
        let (n, l) = ground.y.shape();
        let mut prediction: DMatrix<f64> = DMatrix::zeros(n, l);
        for &block in &ground.all {
            let Blend { extend, members } = given(block)?;
            for t in (0..n).filter(|&t| ground.blocks[t] == block) {
                for (member, j) in members.iter().flat_map(|member| (0..l).map(move |j| (member, j))) {
                    let value = trials[member.trial].value(member.ridges[j], extend, t, j);
                    prediction[(t, j)] += member.weights[j] * value;
                }
            }
        }
        // A constant has no relative error.
        let moving: Vec<usize> =
            (0..l).filter(|&j| ground.y.column(j).iter().any(|y| *y != ground.y[(0, j)])).collect();
        let error = |rows: &[usize]| {
            let of_output = |&j: &usize| {
                let sum: f64 = rows.iter().map(|&t| (prediction[(t, j)] - ground.y[(t, j)]).powi(2)).sum();
                (sum / rows.len().max(1) as f64).sqrt() / ground.spread[j]
            };
            moving.iter().map(of_output).sum::<f64>() / moving.len().max(1) as f64
        };
        let blocks: Vec<f64> = ground.all.iter().map(|&k| error(&ground.of_block(k, true))).collect();
        let total = error(&(0..n).collect::<Vec<_>>());
        let without = |count: usize, of: &dyn Fn(usize) -> usize| {
            let without = |k: usize| error(&(0..n).filter(|&t| of(t) != k).collect::<Vec<_>>());
            jackknife(&(0..count).map(without).collect::<Vec<_>>())
        };
        // Two or three blocks are level by chance now and then: parts of the recording say what that may hide.
        let by_part = without(PARTS, &|t| t * PARTS / n);
        let standard_error = without(ground.all.len(), &|t| ground.blocks[t]).max(by_part);
        ground.scaling.restore(&mut prediction);
        let measured = ground.data.outputs_at(&ground.rows);
        let metrics = Metrics::new(&ground.data.outputs, &measured, &prediction);
        let errors = (measured - prediction).column_iter().map(|of| of.iter().copied().collect()).collect();
        Some(Self { metrics, error: total, standard_error, blocks, errors })
    }

    /// Intervals that hold so many of the outputs that were not seen.
    pub(super) fn interval(&self, coverage: f64) -> Option<Interval> {
        Interval::from_residuals(coverage, self.errors.iter().map(|of_output| of_output.iter().copied()))
    }
}

/// The standard error of a figure, from its values without each block. The root of a mean over all rows is governed by the worst
/// blocks, which the spread of the blocks' own roots understates.
fn jackknife(without: &[f64]) -> f64 {
    (without.len() as f64 - 1.0).max(0.0) * mean_and_error(without).1
}
