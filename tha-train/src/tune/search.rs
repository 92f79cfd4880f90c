//! Successive halving: waves of settings up the rungs, decided by results alone.

use super::front::{self, Axis, Size};
use super::pool::Pool;
use super::rung::{self, LAST, RUNGS};
use super::{Point, Setting, Trial, TuneParams, Tuning};
use crate::checkpoint::{self, Checkpoint};
use crate::data::Dataset;
use crate::fit::{FitError, Validation};
use crate::progress::{Event, Progress};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Settings that are compared with each other before anything else is tried.
const WAVE: usize = 12;
/// At least one of so many goes on to the next rung.
const ETA: usize = 3;
/// Relative differences of the error below this are chance on the first rungs.
const CHANCE: f64 = 0.01;
/// Every so many waves one of ensembles.
const ENSEMBLES_EVERY: usize = 3;

/// A search under way.
pub(super) struct Search<'a> {
    data: &'a Dataset,
    judge: Validation<'a>,
    options: &'a TuneParams<'a>,
    progress: &'a dyn Progress,
    checkpoint: Option<Checkpoint<'a>>,
    pool: Pool<'a>,
    /// What was tried on each rung, in order; `None` where the fit failed.
    rungs: [Vec<(Setting, Option<Trial>)>; RUNGS],
    fits: usize,
    failures: Vec<(Setting, FitError)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        data: &'a Dataset,
        judge: Validation<'a>,
        options: &'a TuneParams<'a>,
        progress: &'a dyn Progress,
        checkpoint: Option<Checkpoint<'a>>,
    ) -> Self {
        let pool = Pool::new(data, judge, options);
        Self {
            data,
            judge,
            options,
            progress,
            checkpoint,
            pool,
            rungs: Default::default(),
            fits: 0,
            failures: Vec::new(),
        }
    }

    /// Wave after wave, until nothing is left or the search is to end.
    pub(super) fn run(mut self) -> Result<Tuning, FitError> {
        let mut complete = true;
        for number in 1.. {
            let wave = self.wave(number);
            if wave.is_empty() {
                break;
            }
            if !self.climb(wave)? {
                complete = false;
                break;
            }
        }
        if self.rungs.iter().flatten().all(|(_, trial)| trial.is_none()) && !self.failures.is_empty() {
            // Nothing worked: the cheapest setting says why.
            return Err(self.failures.swap_remove(0).1);
        }
        Ok(self.result(complete))
    }

    /// The settings of the next wave; none when nothing is left.
    fn wave(&self, number: usize) -> Vec<Setting> {
        let full = self.pool.full(&self.rungs[0]);
        let ensembles = || self.pool.ensembles(&self.best(), &self.rungs[0]);
        let mut wave =
            if number.is_multiple_of(ENSEMBLES_EVERY) || full.is_empty() { ensembles() } else { Vec::new() };
        if wave.is_empty() {
            wave = full;
        }
        wave.truncate(WAVE);
        wave
    }

    /// Settings that have not come to their end, cheap ones first.
    fn rest(&self) -> Vec<Setting> {
        let mut rest = self.pool.full(&self.rungs[0]);
        rest.extend(self.pool.ensembles(&self.best(), &self.rungs[0]));
        rest
    }

    /// What was fitted on all of the data, by rising error.
    fn best(&self) -> Vec<&Setting> {
        let mut done: Vec<(&Setting, f64)> =
            self.rungs[LAST].iter().filter_map(|(s, trial)| Some((s, trial.as_ref()?.held_out))).collect();
        done.sort_by(|a, b| a.1.total_cmp(&b.1));
        done.into_iter().map(|(setting, _)| setting).collect()
    }

    /// Takes a wave up the rungs; false when the search is to end.
    fn climb(&mut self, mut wave: Vec<Setting>) -> Result<bool, FitError> {
        for rung in 0..RUNGS {
            if !self.fit(&wave, rung)? {
                return Ok(false);
            }
            wave = self.promoted(&wave, rung);
        }
        Ok(true)
    }

    /// Fits settings on a rung; false when the search is to end before all are done.
    fn fit(&mut self, wave: &[Setting], rung: usize) -> Result<bool, FitError> {
        let left = self.options.trials.map_or(usize::MAX, |trials| trials - self.fits);
        let taken = &wave[..wave.len().min(left)];
        let counter = AtomicUsize::new(self.fits);
        let one = |setting: &Setting| -> Option<Result<Trial, FitError>> {
            let stage = format!("{}-rung{rung}", setting.key());
            let result = checkpoint::keep(self.checkpoint.as_ref(), &stage, &(), || {
                if self.progress.stop() {
                    return Err(FitError::Stopped);
                }
                rung::run(self.data, self.judge, setting, rung, self.options, self.progress)
            });
            if matches!(result, Err(FitError::Stopped)) {
                return None;
            }
            let done = 1 + counter.fetch_add(1, Ordering::Relaxed);
            self.progress.report(&Event::Trial { done, setting, rung, of: RUNGS, result: result.as_ref() });
            Some(result)
        };
        let results: Vec<_> = taken.par_iter().with_max_len(1).map(one).collect();
        let mut all = taken.len() == wave.len();
        for (setting, result) in taken.iter().zip(results) {
            let trial = match result {
                None => {
                    all = false;
                    continue;
                }
                Some(Err(error @ FitError::Checkpoint { .. })) => return Err(error),
                Some(Err(error)) => {
                    self.failures.push((setting.clone(), error));
                    None
                }
                Some(Ok(trial)) => Some(trial),
            };
            self.fits += 1;
            self.rungs[rung].push((setting.clone(), trial));
        }
        Ok(all)
    }

    /// Of a wave, what goes on from a rung: the front of all that was tried there, and what is next to it where that is
    /// less than one of [`ETA`].
    fn promoted(&self, wave: &[Setting], rung: usize) -> Vec<Setting> {
        let mut left: Vec<(&Setting, Size)> = self.rungs[rung]
            .iter()
            .filter_map(|(setting, trial)| Some((setting, trial.as_ref()?.size())))
            .filter(|(_, size)| self.keeps_budgets(size))
            .collect();
        let mut promoted = Vec::new();
        for layer in 0..2 {
            let sizes: Vec<Size> = left.iter().map(|(_, size)| *size).collect();
            let front = front::front(&sizes, Axis::Both, CHANCE);
            let mut next: Vec<(&Setting, Size)> =
                front.iter().map(|&k| left[k]).filter(|(setting, _)| wave.contains(setting)).collect();
            if layer > 0 {
                next.sort_by(|a, b| a.1.error.total_cmp(&b.1.error));
                next.truncate(wave.len().div_ceil(ETA).saturating_sub(promoted.len()));
            }
            promoted.extend(next.into_iter().map(|(setting, _)| setting.clone()));
            left = left.into_iter().enumerate().filter(|(k, _)| !front.contains(k)).map(|(_, s)| s).collect();
        }
        promoted
    }

    fn keeps_budgets(&self, size: &Size) -> bool {
        self.options.budget_flash.is_none_or(|budget| size.flash <= budget)
            && self.options.budget_macs.is_none_or(|budget| size.macs <= budget)
    }

    fn result(self, complete: bool) -> Tuning {
        let untried = if complete { Vec::new() } else { self.rest() };
        let mut done: Vec<(Setting, Trial)> = self.rungs[LAST]
            .iter()
            .filter_map(|(setting, trial)| Some((setting.clone(), trial.clone()?)))
            .filter(|(_, trial)| self.keeps_budgets(&trial.size()))
            .collect();
        done.sort_by(|(_, a), (_, b)| {
            a.flash_bytes.cmp(&b.flash_bytes).then(a.held_out.total_cmp(&b.held_out))
        });
        let sizes: Vec<Size> = done.iter().map(|(_, trial)| trial.size()).collect();
        let (flash, macs) = (front::front(&sizes, Axis::Flash, 0.0), front::front(&sizes, Axis::Macs, 0.0));
        let recommended = front::recommended(&sizes);
        let best = (0..done.len()).min_by(|&a, &b| done[a].1.held_out.total_cmp(&done[b].1.held_out));
        let hint = best.and_then(|best| hint(&done[best], &self.pool));
        let point = |(k, (setting, trial))| Point {
            setting,
            trial,
            on_flash_front: flash.contains(&k),
            on_macs_front: macs.contains(&k),
            recommended: recommended == Some(k),
        };
        let points = done.into_iter().enumerate().map(point).collect();
        let failures =
            self.failures.into_iter().map(|(setting, error)| (setting, error.to_string())).collect();
        Tuning { points, fits: self.fits, untried, complete, failures, hint }
    }
}

/// What to widen when the best model lies at a limit.
fn hint((setting, trial): &(Setting, Trial), pool: &Pool<'_>) -> Option<String> {
    let options = pool.options;
    let mut wider = Vec::new();
    if pool.memories.last() == Some(&setting.memory) {
        wider.push(format!("`max_memory` {}", 2 * setting.memory));
    }
    if setting.degree == options.max_degree {
        wider.push(format!("`max_degree` {}", setting.degree + 1));
    }
    if setting.degree > 1 && trial.rank() == options.max_rank {
        wider.push(format!("`max_rank` {}", 2 * options.max_rank));
    }
    (!wider.is_empty())
        .then(|| format!("the least error lies at a limit of the search; try {}", wider.join(" ")))
}
