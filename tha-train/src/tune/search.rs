//! The search: batch after batch of settings, until nothing is left or the search is to end; and what it found.

use super::front::{front, recommended};
use super::{Candidate, Figures, Settings, TuneParams, Tuning};
use crate::checkpoint::{self, Checkpoint};
use crate::data::Dataset;
use crate::fit::FitError;
use crate::progress::{Event, Progress};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memories between which nothing is missed by much; beyond the last they grow by half.
const MEMORIES: [usize; 20] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256];
/// Largest memory unless told: beyond it a model is large and slow to fit.
const USUAL_MEMORY: usize = 32;
/// The shortest record has at least so many times the memory, unless told.
const WINDOWS: usize = 8;
/// Fits between two looks at the results; not the number of threads, so that it decides nothing.
const BATCH: usize = 8;

/// A search under way.
pub(super) struct Search<'a> {
    pub(super) data: &'a Dataset,
    pub(super) options: &'a TuneParams<'a>,
    progress: &'a dyn Progress,
    checkpoint: Option<Checkpoint<'a>>,
    pub(super) memories: Vec<usize>,
    /// What was fitted, in order; `None` where that failed.
    pub(super) tried: Vec<(Settings, Option<Figures>)>,
    failures: Vec<(Settings, FitError)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        data: &'a Dataset,
        options: &'a TuneParams<'a>,
        progress: &'a dyn Progress,
        checkpoint: Option<Checkpoint<'a>>,
    ) -> Self {
        let shortest = data.records.iter().map(|record| record.rows.len()).min().unwrap_or(0);
        let limit = options.max_memory.unwrap_or_else(|| USUAL_MEMORY.min(shortest / WINDOWS).max(1));
        let longer = std::iter::successors(Some(384), |memory| Some(memory + memory / 2));
        let memories = MEMORIES.into_iter().chain(longer).take_while(|&memory| memory < limit);
        let memories = memories.chain([limit]).collect();
        let (tried, failures) = (Vec::new(), Vec::new());
        Self { data, options, progress, checkpoint, memories, tried, failures }
    }

    /// Batch after batch, until nothing is left or the search is to end.
    pub(super) fn run(mut self) -> Result<Tuning, FitError> {
        let mut complete = true;
        while complete {
            let stage = self.stages().into_iter().find(|stage| !stage.is_empty());
            let Some(mut next) = stage else { break };
            next.truncate(BATCH);
            complete = self.fit(&next)?;
        }
        if self.tried.iter().all(|(_, figures)| figures.is_none()) && !self.failures.is_empty() {
            // Nothing worked: the cheapest settings say why.
            return Err(self.failures.swap_remove(0).1);
        }
        Ok(self.result(complete))
    }

    /// Fits settings; false when the search is to end.
    fn fit(&mut self, next: &[Settings]) -> Result<bool, FitError> {
        let left = self.options.trials.map_or(usize::MAX, |trials| trials - self.tried.len());
        let taken = &next[..next.len().min(left)];
        let counter = AtomicUsize::new(self.tried.len());
        let one = |settings: &Settings| -> Option<Result<Figures, FitError>> {
            let result = checkpoint::keep(self.checkpoint.as_ref(), &settings.key(), &(), || {
                if self.progress.stop() {
                    return Err(FitError::Stopped);
                }
                settings.fit(self.data, self.options, self.progress)
            });
            if matches!(result, Err(FitError::Stopped)) {
                return None;
            }
            let done = 1 + counter.fetch_add(1, Ordering::Relaxed);
            self.progress.report(&Event::Trial { done, settings, result: result.as_ref() });
            Some(result)
        };
        let results: Vec<_> = taken.par_iter().with_max_len(1).map(one).collect();
        let mut all = taken.len() == next.len();
        for (settings, result) in taken.iter().zip(results) {
            let figures = match result {
                None => {
                    all = false;
                    continue;
                }
                Some(Err(error @ FitError::Checkpoint { .. })) => return Err(error),
                Some(Err(error)) => {
                    self.failures.push((settings.clone(), error));
                    None
                }
                Some(Ok(figures)) => Some(figures),
            };
            self.tried.push((settings.clone(), figures));
        }
        Ok(all)
    }

    fn result(self, complete: bool) -> Tuning {
        let untried = if complete { Vec::new() } else { self.stages().concat() };
        let keeps = |figures: &Figures| {
            self.options.budget_flash.is_none_or(|budget| figures.flash_bytes <= budget)
                && self.options.budget_macs.is_none_or(|budget| figures.macs_per_sample <= budget)
        };
        let mut done: Vec<(&Settings, &Figures)> =
            self.fitted().filter(|(_, figures)| keeps(figures)).collect();
        done.sort_by(|(_, a), (_, b)| {
            a.flash_bytes.cmp(&b.flash_bytes).then(a.held_out.total_cmp(&b.held_out))
        });
        let flash: Vec<_> = done.iter().map(|(_, f)| (f.held_out, f.flash_bytes)).collect();
        let macs: Vec<_> = done.iter().map(|(_, f)| (f.held_out, f.macs_per_sample)).collect();
        let (on_flash, on_macs, recommended) = (front(&flash), front(&macs), recommended(&flash));
        let candidate = |(k, &(settings, figures)): (usize, &(&Settings, &Figures))| Candidate {
            settings: settings.clone(),
            figures: figures.clone(),
            on_flash_front: on_flash[k],
            on_macs_front: on_macs[k],
            recommended: recommended == Some(k),
        };
        let candidates = done.iter().enumerate().map(candidate).collect();
        let best = done.iter().min_by(|a, b| a.1.held_out.total_cmp(&b.1.held_out));
        let hint = best.and_then(|(settings, figures)| self.hint(settings, figures));
        let fits = self.tried.len();
        let failures = self.failures.iter().map(|(settings, error)| (settings.clone(), error.to_string()));
        Tuning { candidates, fits, untried, complete, failures: failures.collect(), hint }
    }

    /// What to widen when the best model lies at a limit.
    fn hint(&self, settings: &Settings, figures: &Figures) -> Option<String> {
        let mut wider = Vec::new();
        if self.memories.last() == Some(&settings.memory) {
            wider.push(format!("`max_memory` {}", 2 * settings.memory));
        }
        if settings.degree == self.options.max_degree {
            wider.push(format!("`max_degree` {}", settings.degree + 1));
        }
        if settings.degree > 1 && figures.rank() == self.options.max_rank {
            wider.push(format!("`max_rank` {}", 2 * self.options.max_rank));
        }
        (!wider.is_empty())
            .then(|| format!("the least error lies at a limit of the search; try {}", wider.join(" ")))
    }
}
