//! Which settings are fitted next, decided by results alone, in three stages:
//!
//! 1. Full models at the largest rank. For every degree memories by doubling: all of them for linear models, which are cheap, for
//!    others until a doubling beyond what linear models want gains nothing. Then those between the last memory that is
//!    clearly worse and the first that is level with the best.
//! 2. Smaller ranks for what is on a front.
//! 3. Ensembles for the memory and degree of the best.

use super::front::front;
use super::search::Search;
use super::{Figures, Heads, Settings};
use crate::ensemble::Combine;

/// Relative differences of the error below this are chance.
const CHANCE: f64 = 0.01;
/// Above this error nothing is explained yet, and a longer memory may be what is missing, whatever the last doubling gained.
const UNEXPLAINED: f64 = 0.9;
/// Fewer inputs than this need no ensemble.
const MANY_INPUTS: usize = 5;
/// Inputs of a head.
const SUBSET_SIZES: [usize; 3] = [2, 4, 8];
/// How often every input is to be seen by some head.
const COVERAGE: [usize; 2] = [2, 6];
/// Pairs of memory and degree for which ensembles are tried.
const PAIRS: usize = 2;

impl Search<'_> {
    /// What each stage would fit next after what is known, cheap settings first.
    pub(super) fn stages(&self) -> [Vec<Settings>; 3] {
        let (inputs, outputs) = (self.data.inputs.len(), self.data.outputs.len());
        [self.memories(), self.smaller_ranks(), self.ensembles()].map(|mut stage| {
            stage.retain(|settings| !self.tried.iter().any(|(other, _)| other == settings));
            stage.sort_by(|a, b| a.work(inputs, outputs).total_cmp(&b.work(inputs, outputs)));
            stage
        })
    }

    fn memories(&self) -> Vec<Settings> {
        let mut next = Vec::new();
        // The memory that linear models want.
        let mut linear = 0;
        for degree in 1..=self.options.max_degree {
            let full = |&memory: &usize| {
                let max_rank = self.largest_rank(memory, degree)?;
                Some(Settings { memory, degree, max_rank, heads: None })
            };
            let all: Vec<Settings> = self.memories.iter().filter_map(full).collect();
            let error = |settings: &Settings| {
                let tried = self.tried.iter().find(|(other, _)| other == settings);
                tried.map(|(_, figures)| figures.as_ref().map_or(f64::INFINITY, |figures| figures.held_out))
            };
            let known: Vec<(usize, f64)> =
                all.iter().enumerate().filter_map(|(k, settings)| Some((k, error(settings)?))).collect();
            let least = known.iter().map(|known| known.1).fold(f64::INFINITY, f64::min);
            let level = known.iter().position(|known| known.1 <= (1.0 + CHANCE) * least);
            let level_memory = level.map_or(0, |level| all[known[level].0].memory);
            if degree == 1 {
                linear = level_memory;
            }
            let enough = (degree > 1 && least < UNEXPLAINED).then_some(linear.max(2 * level_memory));
            let last = all.last().map_or(0, |settings| settings.memory);
            let doubling = all.iter().filter(|s| s.memory.is_power_of_two() || s.memory == last);
            let wanted = doubling.filter(|s| enough.is_none_or(|enough| s.memory <= enough));
            let open: Vec<Settings> = wanted.filter(|s| error(s).is_none()).take(2).cloned().collect();
            if let (true, Some(level)) = (open.is_empty(), level) {
                // Between the memory before and this one.
                let from = if level == 0 { 0 } else { known[level - 1].0 + 1 };
                next.extend(all[from..known[level].0].get((known[level].0 - from) / 2).cloned());
            }
            next.extend(open);
        }
        next
    }

    fn smaller_ranks(&self) -> Vec<Settings> {
        let full: Vec<(&Settings, &Figures)> =
            self.fitted().filter(|(settings, _)| settings.heads.is_none()).collect();
        let on = |size: &dyn Fn(&Figures) -> usize| {
            front(&full.iter().map(|(_, figures)| (figures.held_out, size(figures))).collect::<Vec<_>>())
        };
        let fronts = [on(&|figures| figures.flash_bytes), on(&|figures| figures.macs_per_sample)];
        let chosen = full.iter().enumerate().filter(|(k, _)| fronts[0][*k] || fronts[1][*k]);
        chosen
            .flat_map(|(_, &(settings, figures))| {
                // A fit may not use the rank it has; a linear model has none.
                let ranks = if settings.degree > 1 { 1..figures.rank() } else { 1..1 };
                ranks.map(|max_rank| Settings { max_rank, ..settings.clone() })
            })
            .collect()
    }

    fn ensembles(&self) -> Vec<Settings> {
        let inputs = self.data.inputs.len();
        let mut bases: Vec<(&Settings, &Figures)> =
            self.fitted().filter(|(settings, _)| settings.heads.is_none() && settings.degree > 1).collect();
        bases.sort_by(|a, b| a.1.held_out.total_cmp(&b.1.held_out));
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (base, _) in bases.into_iter().filter(|_| inputs >= MANY_INPUTS) {
            if !pairs.contains(&(base.memory, base.degree)) && pairs.len() < PAIRS {
                pairs.push((base.memory, base.degree));
            }
        }
        let mut list = Vec::new();
        for ((memory, degree), &subset_size) in
            pairs.iter().flat_map(|&pair| SUBSET_SIZES.iter().map(move |size| (pair, size)))
        {
            let counts = COVERAGE.map(|times| Some((times * inputs).div_ceil(subset_size)));
            let random = counts.into_iter().flat_map(|count| {
                [Combine::Average, Combine::Stack, Combine::Additive].map(|combine| (count, combine))
            });
            for (count, combine) in random.chain([(None, Combine::Additive)]) {
                let heads = Heads { count, subset_size, combine };
                let few =
                    subset_size < inputs && heads.expected(inputs, degree) <= self.options.max_heads as f64;
                let heads = Some(heads);
                let settings = Settings { memory, degree, max_rank: self.options.max_rank, heads };
                if few && self.fits(settings.parameters(subset_size, self.data.outputs.len(), 1)) {
                    list.push(settings);
                }
            }
        }
        list
    }

    /// The largest rank at which a full model keeps the budgets, if there is one.
    fn largest_rank(&self, memory: usize, degree: usize) -> Option<usize> {
        let settings = Settings { memory, degree, max_rank: 1, heads: None };
        let size = |rank: usize| settings.parameters(self.data.inputs.len(), self.data.outputs.len(), rank);
        (1..=if degree == 1 { 1 } else { self.options.max_rank }).rfind(|&rank| self.fits(size(rank)))
    }

    /// Can a model with so many coefficients keep the budgets?
    fn fits(&self, parameters: usize) -> bool {
        self.options.budget_macs.is_none_or(|budget| parameters <= budget)
            && self.options.budget_flash.is_none_or(|budget| 4 * parameters <= budget)
    }

    /// What was fitted without failing.
    pub(super) fn fitted(&self) -> impl Iterator<Item = (&Settings, &Figures)> {
        self.tried.iter().filter_map(|(settings, figures)| Some((settings, figures.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::TuneParams;
    use super::*;
    use crate::data::Dataset;
    use crate::data::tests::counting;
    use crate::progress::Silent;

    /// Settings with the error and the rank of a made-up fit.
    fn tried(settings: &Settings, held_out: f64, rank: usize) -> (Settings, Option<Figures>) {
        let size = settings.parameters(2, 1, rank);
        let (flash_bytes, macs_per_sample) = (4 * size, size);
        let ranks = vec![rank; settings.degree - 1];
        let (nrmse, relative_residual, heads) = (held_out, held_out, 1);
        let figures =
            Figures { held_out, nrmse, relative_residual, flash_bytes, macs_per_sample, heads, ranks };
        (settings.clone(), Some(figures))
    }

    #[test]
    fn memories_double_and_are_halved() {
        let options = TuneParams { max_degree: 2, max_memory: Some(40), ..TuneParams::default() };
        let data = counting(&[1000]);
        // Linear models explain nothing below a memory of 12, quadratic ones all from 5 on.
        let error = |settings: &Settings| match (settings.degree, settings.memory) {
            (1, 12..) | (2, 5..) => 0.1,
            (2, 3..5) => 0.4,
            _ => 0.95,
        };
        let mut search = Search::new(&data, &options, &Silent, None);
        loop {
            let next = search.stages()[0].clone();
            if next.is_empty() {
                break;
            }
            search.tried.extend(next.iter().map(|settings| tried(settings, error(settings), 1)));
        }
        let memories = |degree: usize| -> Vec<usize> {
            search.tried.iter().filter(|(s, _)| s.degree == degree).map(|(s, _)| s.memory).collect()
        };
        assert_eq!(memories(1), [1, 2, 4, 8, 16, 32, 40, 12, 10]);
        assert_eq!(memories(2), [1, 2, 4, 8, 16, 6, 5]);
        let longest = TuneParams { max_memory: Some(700), ..TuneParams::default() };
        let search = Search::new(&data, &longest, &Silent, None);
        assert_eq!(search.memories[18..], [192, 256, 384, 576, 700]);
        let usual = TuneParams::default();
        let data = counting(&[100, 40]);
        let search = Search::new(&data, &usual, &Silent, None);
        assert_eq!(search.memories, [1, 2, 3, 4, 5], "an eighth of the shortest record");
    }

    #[test]
    fn smaller_ranks_and_ensembles_follow_the_best() {
        let data = counting(&[1000]);
        let options = TuneParams { budget_macs: Some(60), ..TuneParams::default() };
        let mut search = Search::new(&data, &options, &Silent, None);
        // q = 7 of two inputs and one output: 14 per rank of degree 2.
        assert_eq!(search.largest_rank(3, 2), Some(4));
        assert_eq!(search.largest_rank(5, 2), Some(2));
        let base = Settings { memory: 3, degree: 2, max_rank: 4, heads: None };
        let worse = Settings { memory: 4, degree: 2, max_rank: 3, heads: None };
        let linear = Settings { memory: 9, degree: 1, max_rank: 1, heads: None };
        search.tried = vec![tried(&base, 0.1, 3), tried(&worse, 0.2, 3), tried(&linear, 0.3, 1)];
        let ranks: Vec<_> = search.stages()[1].iter().map(|s| (s.memory, s.max_rank)).collect();
        assert_eq!(ranks, [(3, 1), (3, 2)], "of what is on the front, below the rank it uses");
        assert!(search.stages()[2].is_empty(), "two inputs need no ensemble");

        let tried = search.tried.clone();
        let inputs = (0..6).map(|k| format!("u{k}")).collect();
        let (data, options) = (Dataset { inputs, ..data.clone() }, TuneParams::default());
        let mut search = Search::new(&data, &options, &Silent, None);
        search.tried = tried;
        let ensembles = &search.stages()[2];
        assert_eq!(ensembles.len(), 2 * 2 * (2 * 3 + 1), "two pairs, two sizes");
        assert!(ensembles.iter().all(|settings| settings.degree == 2 && settings.max_rank == 4));
    }
}
