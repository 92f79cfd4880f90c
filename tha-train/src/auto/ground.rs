//! The rows on which settings are compared, their blocks, and what all settings share of them.

use super::setting::Setting;
use crate::data::{BLOCKS, Dataset, Split};
use crate::fit::FitError;
use crate::solve::{Course, Settings};
use crate::stage::{Basis, OutputMap, Outputs, Scaling, Stage, Staged, mean_and_std};
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use tha_core::RangePolicy;

/// Bases of which the outputs of the filters are kept: a few megabytes each.
const FILTERS: usize = 12;
/// Rows below which a recording is short: there are twice as many blocks then.
pub(super) const SHORT: usize = 3000;

/// The rows on which settings are compared.
pub(super) struct Ground<'a> {
    pub(super) data: &'a Dataset,
    pub(super) scaling: Scaling,
    pub(super) rows: Vec<usize>,
    /// The block of each row, from 0, and the numbers of all blocks.
    pub(super) blocks: Vec<usize>,
    pub(super) all: Vec<usize>,
    /// Rows of each block.
    pub(super) sizes: Vec<usize>,
    /// Outputs of the rows in standardised units.
    pub(super) y: DMatrix<f64>,
    /// Their standard deviations; one for a constant.
    pub(super) spread: Vec<f64>,
    pub(super) seed: u64,
    pub(super) without: Option<Part>,
    /// What filters gave at the rows, the last ones first.
    filters: Mutex<Vec<(Basis, Arc<Outputs>)>>,
}

/// What an ablation leaves out.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Part {
    /// Piecewise-linear maps.
    Maps,
    /// All filters but lags.
    Filters,
    /// The weight of products: it is one.
    Gamma,
    /// Whole records as blocks: contiguous parts in their place.
    Records,
    /// Steps from the best setting.
    Steps,
    /// Short fits of networks: a kernel in their place.
    ShortFits,
    /// All ways to combine heads but one: settings on all inputs with equal, shared and own weights, then these and subsets.
    Ways(usize),
}

impl<'a> Ground<'a> {
    /// Rows with so much history, every n-th of them where they are more than enough.
    pub(super) fn new(
        data: &'a Dataset,
        settled: usize,
        most: usize,
        seed: u64,
        without: Option<Part>,
    ) -> Result<Self, FitError> {
        let all = data.scored_rows(settled);
        let mut scaling = Scaling::from_rows(data, &all)?;
        for (map, column) in scaling.outputs.iter_mut().zip(&data.y) {
            let (mean, _) = mean_and_std(all.iter().map(|&row| column[row]));
            *map = OutputMap { offset: mean as f32, ..*map };
        }
        let rows: Vec<usize> = all.iter().copied().step_by((all.len() / most).max(1)).collect();
        // A short recording must not lose a fifth of its rows to every judgement.
        let most = if rows.len() < SHORT { 2 * BLOCKS } else { BLOCKS };
        let blocks = match without {
            Some(Part::Records) => (0..rows.len()).map(|t| t * most / rows.len()).collect(),
            _ => Split::so_many_blocks(data, &rows, most),
        };
        let y = DMatrix::from_fn(rows.len(), data.y.len(), |t, j| {
            scaling.outputs[j].standardise(data.y[j][rows[t]])
        });
        let spread = y.column_iter().map(|y| mean_and_std(y.iter().copied()).1);
        let spread = spread.map(|spread| if spread > 0.0 { spread } else { 1.0 }).collect();
        let count = blocks.iter().max().map_or(0, |last| last + 1);
        let (all, mut sizes) = ((0..count).collect(), vec![0; count]);
        blocks.iter().for_each(|&block| sizes[block] += 1);
        Ok(Self {
            data,
            scaling,
            rows,
            blocks,
            all,
            sizes,
            y,
            spread,
            seed,
            without,
            filters: Mutex::default(),
        })
    }

    /// Numbers of the rows inside or outside of a block.
    pub(super) fn of_block(&self, block: usize, inside: bool) -> Vec<usize> {
        (0..self.rows.len()).filter(|&t| (self.blocks[t] == block) == inside).collect()
    }

    pub(super) fn at(&self, numbers: &[usize]) -> Vec<usize> {
        numbers.iter().map(|&t| self.rows[t]).collect()
    }

    /// Rows of the data behind a stage fitted to them.
    pub(super) fn staged(&self, setting: &Setting, rows: Vec<usize>) -> Result<Staged<'a>, FitError> {
        let policy = RangePolicy::Clamp;
        let Setting { basis, maps, .. } = setting;
        Ok(Stage::fit_rows(self.data, rows, &self.scaling, basis, *maps, policy, None)?)
    }

    /// The same for rows on which settings are compared: the filters of a basis run once for all of them.
    pub(super) fn compared(&self, setting: &Setting, rows: Vec<usize>) -> Result<Staged<'a>, FitError> {
        let policy = RangePolicy::Clamp;
        let Setting { basis, maps, .. } = setting;
        let filters = {
            let mut known = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
            let found = known.iter().find(|(other, _)| other == basis).map(|(_, filters)| filters.clone());
            match found {
                Some(filters) => filters,
                None => {
                    let filters = Stage::filters(self.data, &self.rows, &self.scaling, basis)?;
                    known.truncate(FILTERS - 1);
                    known.insert(0, (*basis, filters.clone()));
                    filters
                }
            }
        };
        Ok(Stage::fit_rows(self.data, rows, &self.scaling, basis, *maps, policy, Some(filters))?)
    }

    /// The course of a setting along ridges.
    pub(super) fn course<'r>(&self, setting: &Setting, ridges: &'r [f64]) -> Course<'r> {
        let (gamma, decay) = (setting.gamma, setting.decay);
        Course {
            settings: Settings { ranks: Vec::new(), gamma, ridge: 0.0, decay, exact: false },
            degree: setting.degree,
            rank: setting.rank,
            memory: setting.memory(),
            seed: self.seed,
            ridges,
            separate: setting.separate,
        }
    }
}
