//! A setting tried on blocks: for every block and ridge, what short fits to the other blocks predict there.

use super::divided::Wanted;
use super::ground::{Ground, Part};
use super::setting::Setting;
use super::{matter, surrogate};
use crate::fit::FitError;
use crate::network::{Design, Features, Network};
use crate::progress::{OnlyStop, Progress};
use crate::solve::{Problem, along};
use nalgebra::DMatrix;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Ridges from strong to weak, and further ones for systems with little noise.
pub(super) const RIDGES: [f64; 5] = [100.0, 10.0, 1.0, 0.1, 0.01];
pub(super) const WEAK: [f64; 6] = [1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6];

/// What short fits of a setting predict for rows they have not seen; f32 is enough. Output by output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Predictions {
    rows: usize,
    /// For each ridge.
    held: Vec<Vec<f32>>,
    /// What the linear part adds outside of the range of the rows that were fitted.
    beyond: Vec<f32>,
}

impl Predictions {
    /// Fits the setting without each block.
    pub(super) fn new(
        ground: &Ground<'_>,
        wanted: &Wanted,
        progress: &dyn Progress,
    ) -> Result<Self, FitError> {
        let ridges = &wanted.ridges;
        let blocks = ground.all.par_iter().map(|&k| held(ground, wanted, k, progress));
        let blocks: Vec<Held> = blocks.collect::<Result<_, _>>()?;
        let (n, l) = ground.y.shape();
        let mut all = Self { rows: n, held: vec![vec![0.0; n * l]; ridges.len()], beyond: vec![0.0; n * l] };
        for Held { rows, values, beyond } in blocks {
            for (j, (i, &t)) in (0..l).flat_map(|j| rows.iter().enumerate().map(move |row| (j, row))) {
                all.beyond[j * n + t] = beyond[(i, j)] as f32;
                for (held, values) in all.held.iter_mut().zip(&values) {
                    held[j * n + t] = values[(i, j)] as f32;
                }
            }
        }
        Ok(all)
    }
}

/// A setting and how good it is on blocks.
pub(super) struct Trial<'a> {
    ground: &'a Ground<'a>,
    pub(super) setting: Setting,
    pub(super) ridges: Vec<f64>,
    predictions: Predictions,
    /// For each policy (clamp, extend) and ridge, sums of squared errors: blocks x outputs.
    squares: [Vec<DMatrix<f64>>; 2],
}

/// The predictions for one block.
struct Held {
    rows: Vec<usize>,
    values: Vec<DMatrix<f64>>,
    beyond: DMatrix<f64>,
}

impl<'a> Trial<'a> {
    /// Judges the predictions.
    pub(super) fn new(ground: &'a Ground<'a>, wanted: Wanted, predictions: Predictions) -> Self {
        let (Wanted { setting, ridges }, squares) = (wanted, [const { Vec::new() }; 2]);
        let mut trial = Self { ground, setting, ridges, predictions, squares };
        trial.squares = [false, true].map(|extend| {
            let of_ridge = |ridge: usize| {
                let mut sums = DMatrix::zeros(ground.all.len(), ground.y.ncols());
                for (t, &block) in ground.blocks.iter().enumerate() {
                    for j in 0..ground.y.ncols() {
                        sums[(block, j)] += (trial.value(ridge, extend, t, j) - ground.y[(t, j)]).powi(2);
                    }
                }
                sums
            };
            (0..trial.ridges.len()).map(of_ridge).collect()
        });
        trial
    }

    /// The prediction for a row.
    pub(super) fn value(&self, ridge: usize, extend: bool, t: usize, j: usize) -> f64 {
        let Predictions { rows, held, beyond } = &self.predictions;
        let at = j * rows + t;
        f64::from(held[ridge][at] + if extend { beyond[at] } else { 0.0 })
    }

    /// Whether the linear part goes on outside of the training range where that is better on some blocks.
    pub(super) fn extends(&self, blocks: &[usize]) -> bool {
        self.error(true, blocks) <= self.error(false, blocks)
    }

    /// For each output the ridge with the least error on some blocks; the same for all where they share a network.
    pub(super) fn best_ridges(&self, extend: bool, blocks: &[usize]) -> Vec<usize> {
        let outputs = 0..self.ground.y.ncols();
        let least = |outputs: Range<usize>| {
            let error = |ridge: &usize| -> f64 {
                outputs.clone().map(|j| self.root(*ridge, extend, blocks, j)).sum()
            };
            // Of equal ones the strongest.
            (0..self.ridges.len()).min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or(0)
        };
        if self.setting.separate || self.setting.degree == 1 {
            outputs.map(|j| least(j..j + 1)).collect()
        } else {
            vec![least(outputs.clone()); outputs.len()]
        }
    }

    /// Root mean square error of an output on some blocks, relative to its spread.
    pub(super) fn root(&self, ridge: usize, extend: bool, blocks: &[usize], output: usize) -> f64 {
        let count: usize = blocks.iter().map(|&block| self.ground.sizes[block]).sum();
        let sum: f64 = blocks.iter().map(|&k| self.squares[usize::from(extend)][ridge][(k, output)]).sum();
        (sum / count.max(1) as f64).sqrt() / self.ground.spread[output]
    }

    /// The mean of that over the outputs, each with its best ridge.
    pub(super) fn error(&self, extend: bool, blocks: &[usize]) -> f64 {
        self.error_with(extend, blocks, &self.best_ridges(extend, blocks))
    }

    /// The same with given ridges.
    pub(super) fn error_with(&self, extend: bool, blocks: &[usize], ridges: &[usize]) -> f64 {
        let roots = ridges.iter().enumerate().map(|(j, &ridge)| self.root(ridge, extend, blocks, j));
        roots.sum::<f64>() / ridges.len().max(1) as f64
    }

    /// The error on each of some blocks, with the ridges that are best on all of them.
    pub(super) fn by_block(&self, extend: bool, blocks: &[usize]) -> Vec<f64> {
        let ridges = self.best_ridges(extend, blocks);
        blocks.iter().map(|&block| self.error_with(extend, &[block], &ridges)).collect()
    }
}

fn held(
    ground: &Ground<'_>,
    wanted: &Wanted,
    block: usize,
    progress: &dyn Progress,
) -> Result<Held, FitError> {
    let Wanted { setting, ridges } = wanted;
    let rows = ground.of_block(block, true);
    let others = ground.compared(setting, ground.at(&ground.of_block(block, false)))?;
    let inputs = matter::inputs(ground, setting, &others.rows, ridges, progress)?;
    let mine = others.at(ground.at(&rows));
    let x = others.of_inputs(&inputs);
    let problem = Problem { x: &x, y: &others.y };
    let seen = mine.of_inputs(&inputs);
    // Made once for the networks of all ridges and outputs.
    let hats = seen.hats();
    let whole = hats.is_empty().then(|| seen.rows(0, seen.nrows()));
    let parts: Vec<&dyn Design> =
        whole.iter().map(|x| x as &dyn Design).chain(hats.iter().map(|x| x as &dyn Design)).collect();
    let mut values = vec![DMatrix::zeros(rows.len(), ground.y.ncols()); ridges.len()];
    let visit = |ridge: usize, outputs: Range<usize>, network: Network| {
        let mut start = 0;
        for part in &parts {
            let to = (start, outputs.start);
            values[ridge].view_mut(to, (part.nrows(), outputs.len())).copy_from(&network.values(*part));
            start += part.nrows();
        }
    };
    if ground.without == Some(Part::ShortFits) && setting.degree > 1 {
        values = surrogate::predictions(&x, &others.y, &seen, setting, ridges);
    } else {
        along(&problem, &ground.course(setting, ridges), None, &OnlyStop(progress), visit)?;
    }
    let beyond = mine.extension(&others.linear_part(&inputs));
    Ok(Held { rows, values, beyond })
}
