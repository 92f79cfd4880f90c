//! The settings that are sensible for the data, and in which order they are tried: cheap ones first.

use super::rung::Trial;
use super::{Heads, Setting, TuneParams};
use crate::data::Dataset;
use crate::ensemble::Combine;
use crate::fit::Validation;

/// Memories between which nothing is missed by much.
const LADDER: [usize; 20] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256];
/// Largest memory unless told: beyond it a model is large and slow to fit.
const USUAL_MEMORY: usize = 32;
/// The shortest record has at least so many times the memory, unless told.
const WINDOWS: usize = 8;
/// Fewer inputs than this need no ensemble.
const MANY_INPUTS: usize = 5;
/// Inputs of a head.
const SUBSET_SIZES: [usize; 3] = [2, 4, 8];
/// How often every input is to be seen by some head.
const COVERAGE: [usize; 2] = [2, 6];
/// Pairs of memory and degree for which ensembles are tried: those of the best full models.
const PAIRS: usize = 2;

/// Settings for a data set.
pub(super) struct Pool<'a> {
    pub inputs: usize,
    pub outputs: usize,
    pub memories: Vec<usize>,
    /// Additive heads are fitted to one split only.
    pub additive: bool,
    pub options: &'a TuneParams<'a>,
}

impl<'a> Pool<'a> {
    pub(super) fn new(data: &Dataset, judge: Validation<'_>, options: &'a TuneParams<'a>) -> Self {
        let shortest = data.records.iter().map(|record| record.rows.len()).min().unwrap_or(0);
        let limit = options.max_memory.unwrap_or_else(|| USUAL_MEMORY.min(shortest / WINDOWS).max(1));
        let mut memories: Vec<usize> = LADDER.into_iter().filter(|&memory| memory < limit).collect();
        while let Some(&last) = memories.last()
            && last >= 256
            && last + last / 2 < limit
        {
            memories.push(last + last / 2);
        }
        memories.push(limit);
        Self {
            inputs: data.inputs.len(),
            outputs: data.outputs.len(),
            memories,
            additive: !matches!(judge, Validation::Folds(_)),
            options,
        }
    }

    /// Full models that have not been tried and may be of use, cheap ones first.
    pub(super) fn full(&self, tried: &[(Setting, Option<Trial>)]) -> Vec<Setting> {
        let mut list = Vec::new();
        for &memory in &self.memories {
            for degree in 1..=self.options.max_degree {
                let ranks = if degree == 1 { 1 } else { self.options.max_rank };
                list.extend((1..=ranks).map(|max_rank| Setting { memory, degree, max_rank, heads: None }));
            }
        }
        // A fit that did not use the rank it had will not use more.
        let content = |setting: &Setting| {
            tried.iter().any(|(other, trial)| {
                let same = Setting { max_rank: other.max_rank, ..setting.clone() } == *other;
                same && other.max_rank < setting.max_rank
                    && trial.as_ref().is_some_and(|trial| trial.rank() < other.max_rank)
            })
        };
        list.retain(|setting| {
            !content(setting) && self.fits(setting.parameters(self.inputs, self.outputs, 1))
        });
        self.ordered(list, tried)
    }

    /// Ensembles for the memory and degree of the best full models, likewise. `best` are settings by rising error.
    pub(super) fn ensembles(&self, best: &[&Setting], tried: &[(Setting, Option<Trial>)]) -> Vec<Setting> {
        let mut bases: Vec<&Setting> = Vec::new();
        for setting in best.iter().filter(|setting| setting.heads.is_none() && setting.degree > 1) {
            if !bases.iter().any(|base| (base.memory, base.degree) == (setting.memory, setting.degree)) {
                bases.push(setting);
            }
        }
        let sizes: Vec<usize> = SUBSET_SIZES.into_iter().filter(|&size| size < self.inputs).collect();
        let mut list = Vec::new();
        if self.inputs < MANY_INPUTS {
            return list;
        }
        for base in bases.into_iter().take(PAIRS) {
            for &subset_size in &sizes {
                let counts = COVERAGE.map(|times| Some((times * self.inputs).div_ceil(subset_size)));
                let random = counts.into_iter().flat_map(|count| {
                    [Combine::Average, Combine::Stack, Combine::Additive].map(|combine| (count, combine))
                });
                for (count, combine) in random.chain([(None, Combine::Additive)]) {
                    let heads = Heads { count, subset_size, combine };
                    let few = heads.expected(self.inputs, base.degree) <= self.options.max_heads as f64;
                    if few && (self.additive || combine != Combine::Additive) {
                        list.push(Setting { heads: Some(heads), ..base.clone() });
                    }
                }
            }
        }
        list.retain(|setting| {
            let size = setting.heads.as_ref().map_or(0, |heads| heads.subset_size);
            self.fits(setting.parameters(size, self.outputs, 1))
        });
        self.ordered(list, tried)
    }

    /// Can a model with so many coefficients keep the budgets?
    fn fits(&self, parameters: usize) -> bool {
        self.options.budget_macs.is_none_or(|budget| parameters <= budget)
            && self.options.budget_flash.is_none_or(|budget| 4 * parameters <= budget)
    }

    fn ordered(&self, mut list: Vec<Setting>, tried: &[(Setting, Option<Trial>)]) -> Vec<Setting> {
        list.retain(|setting| !tried.iter().any(|(other, _)| other == setting));
        list.sort_by(|a, b| a.work(self.inputs, self.outputs).total_cmp(&b.work(self.inputs, self.outputs)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::counting;

    #[test]
    fn cheap_first_and_within_the_limits() {
        let options = TuneParams { max_degree: 2, max_rank: 3, ..TuneParams::default() };
        let pool = Pool::new(&counting(&[100, 40]), Validation::End(0.2), &options);
        assert_eq!(pool.memories, [1, 2, 3, 4, 5], "an eighth of the shortest record");
        let all = pool.full(&[]);
        assert_eq!(all.len(), 5 * (1 + 3));
        assert_eq!(all[0], Setting { memory: 1, degree: 1, max_rank: 1, heads: None });
        assert!(pool.ensembles(&[&all[3]], &[]).is_empty(), "two inputs need no ensemble");
        let trial = Trial {
            held_out: 0.1,
            nrmse: 0.1,
            relative_residual: 0.1,
            flash_bytes: 9,
            macs_per_sample: 9,
            heads: 1,
            ranks: vec![1],
        };
        let tried = Setting { memory: 4, degree: 2, max_rank: 2, heads: None };
        let left = pool.full(&[(tried.clone(), Some(trial))]);
        assert_eq!(left.len(), all.len() - 2, "neither the one that was tried nor a larger cap");
        assert!(!left.contains(&Setting { max_rank: 3, ..tried }));

        let options = TuneParams { budget_macs: Some(10), ..options };
        let pool = Pool::new(&counting(&[100, 40]), Validation::End(0.2), &options);
        assert!(pool.full(&[]).iter().all(|setting| setting.parameters(2, 1, 1) <= 10));
        let options = TuneParams { max_memory: Some(700), ..options };
        let pool = Pool::new(&counting(&[100]), Validation::End(0.2), &options);
        assert_eq!(pool.memories[18..], [192, 256, 384, 576, 700]);
    }

    #[test]
    fn ensembles_follow_the_best_full_models() {
        let mut data = counting(&[1000]);
        data.inputs = (0..6).map(|k| format!("u{k}")).collect();
        let options = TuneParams::default();
        let base = Setting { memory: 3, degree: 2, max_rank: 4, heads: None };
        let linear = Setting { memory: 9, degree: 1, max_rank: 1, heads: None };
        let list = Pool::new(&data, Validation::End(0.2), &options).ensembles(&[&linear, &base, &base], &[]);
        assert_eq!(list.len(), 2 * (2 * 3 + 1));
        assert!(list.iter().all(|setting| setting.memory == 3 && setting.max_rank == 4));
        let folded = Pool::new(&data, Validation::Folds(3), &options).ensembles(&[&base], &[]);
        assert_eq!(folded.len(), 2 * 4, "additive heads do not go with folds");
    }
}
