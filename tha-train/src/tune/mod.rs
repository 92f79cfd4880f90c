//! The search for settings of [`crate::fit`]: memory, degree, rank cap and the heads of an ensemble, by successive
//! halving on validation data; what it gives is the Pareto front of error against flash and against operations.
//!
//! Settings come in waves, cheap ones first. A wave is fitted on a part of the data, what is worth it on a larger part,
//! and what is still worth it as `fit` does it ([`rung`]). Worth it is what no other setting of its rung makes
//! superfluous, in error and in size at once, so that small models are not lost to good ones. Which settings come next
//! depends on results only, never on time or threads: a search that was cut short is the beginning of the longer one.

mod front;
mod plot;
mod pool;
mod rung;
mod setting;

pub use plot::svg;
pub use rung::Trial;
pub use setting::{Heads, Setting};

use crate::data::{Dataset, Split};
use crate::ensemble::checkpoint::{Checkpoint, Identity};
use crate::fit::{FitError, Judge};
use front::{Axis, Size};
use pool::Pool;
use rayon::prelude::*;
use rung::{LAST, RUNGS};
use std::path::PathBuf;

/// Settings that are compared with each other before anything else is tried.
const WAVE: usize = 12;
/// At least one of so many goes on to the next rung.
const ETA: usize = 3;
/// Relative differences of the error below this are chance on the first rungs.
const CHANCE: f64 = 0.01;
/// Every so many waves one of ensembles.
const ENSEMBLES_EVERY: usize = 3;

/// Where the search may go, and how far.
#[derive(Clone, Debug)]
pub struct Options {
    /// Largest memory; `None` for what the records allow.
    pub max_memory: Option<usize>,
    /// Largest degree.
    pub max_degree: usize,
    /// Largest rank cap.
    pub max_rank: usize,
    /// Most heads of an ensemble; 0 for full models only.
    pub max_heads: usize,
    /// Fits at most, on all rungs.
    pub trials: Option<usize>,
    /// Largest model file, bytes.
    pub budget_flash: Option<usize>,
    /// Most multiply-accumulates per sample.
    pub budget_macs: Option<usize>,
    /// Seed of every fit.
    pub seed: u64,
    /// Folder in which finished fits are kept.
    pub checkpoint: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_memory: None,
            max_degree: 3,
            max_rank: 4,
            max_heads: 64,
            trials: None,
            budget_flash: None,
            budget_macs: None,
            seed: 0,
            checkpoint: None,
        }
    }
}

/// Sees the fits come, and may end the search.
pub trait Watch: Sync {
    /// The `done`-th fit, of this setting on this rung (from 0) of how many, came to its end.
    fn trial(
        &self,
        _done: usize,
        _setting: &Setting,
        _rung: (usize, usize),
        _result: Result<&Trial, &FitError>,
    ) {
    }
    /// True to end the search with what there is.
    fn stop(&self) -> bool {
        false
    }
}

/// A model on or off the front.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its setting.
    pub setting: Setting,
    /// What `fit` gives with it.
    pub trial: Trial,
    /// No other model has less error for its flash.
    pub on_flash_front: bool,
    /// No other model has less error for its multiply-accumulates.
    pub on_macs_front: bool,
    /// The smallest model with nearly the least error.
    pub recommended: bool,
}

impl Point {
    /// On one of the fronts.
    pub fn on_front(&self) -> bool {
        self.on_flash_front || self.on_macs_front
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// All models that were fitted on all of the data and keep the budgets, by rising flash.
    pub points: Vec<Point>,
    /// Fits that were made, on all rungs.
    pub fits: usize,
    /// Settings that were not tried, cheap ones first; empty when the search came to its end.
    pub untried: Vec<Setting>,
    /// True when the search came to its end.
    pub complete: bool,
    /// Settings that could not be fitted, and why.
    pub failures: Vec<(Setting, String)>,
    /// What to widen when the best model lies at a limit of the search.
    pub hint: Option<String>,
}

/// Searches.
pub fn tune(
    data: &Dataset,
    judge: Judge<'_>,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Tuning, FitError> {
    check(data, judge, options)?;
    let checkpoint = match &options.checkpoint {
        Some(folder) => Some(Checkpoint::open(folder, &identity(data, judge, options))?),
        None => None,
    };
    let pool = Pool::new(data, judge, options);
    let mut search = Search {
        data,
        judge,
        options,
        watch,
        checkpoint,
        rungs: Default::default(),
        fits: 0,
        failures: Vec::new(),
    };
    let mut complete = true;
    for number in 1.. {
        let wave = search.wave(&pool, number);
        if wave.is_empty() {
            break;
        }
        if !search.climb(wave)? {
            complete = false;
            break;
        }
    }
    let untried = if complete { Vec::new() } else { search.rest(&pool) };
    if search.rungs[LAST].is_empty() && complete && !search.failures.is_empty() {
        // Nothing worked: the cheapest setting says why.
        return Err(search.failures.swap_remove(0).1);
    }
    Ok(search.result(&pool, complete, untried))
}

/// Refuses what cannot work before any work is done.
fn check(data: &Dataset, judge: Judge<'_>, options: &Options) -> Result<(), FitError> {
    let memory = options.max_memory.unwrap_or(1);
    let widest = Setting { memory, degree: options.max_degree, max_rank: options.max_rank, heads: None };
    widest.fit_options(options.seed, 1, true).check(judge)?;
    data.check_memory(memory)?;
    match judge {
        Judge::End(fraction) => drop(Split::by_end(data, 1, fraction)?),
        Judge::Folds(count) => drop(Split::folds(data, 1, count)?),
        Judge::Data(other) => other.check_memory(memory)?,
    }
    if options.trials == Some(0) {
        return Err(FitError::Option {
            option: "--trials",
            found: "0".into(),
            expected: "at least 1".into(),
        });
    }
    Ok(())
}

/// What a fit in the checkpoint depends on beside its setting. The limits of the search are not among it: a search may
/// be continued with wider ones.
fn identity(data: &Dataset, judge: Judge<'_>, options: &Options) -> Identity {
    let judge = match judge {
        Judge::End(fraction) => format!("the last {fraction} of each record"),
        Judge::Folds(count) => format!("{count} folds"),
        Judge::Data(other) => format!("data {:016x}", other.fingerprint()),
    };
    let budget = |budget: Option<usize>| budget.map_or_else(|| "none".into(), |budget| budget.to_string());
    [
        ("command", "tune".to_owned()),
        ("data", format!("{:016x}", data.fingerprint())),
        ("validation on", judge),
        ("--seed", options.seed.to_string()),
        ("--budget-flash", budget(options.budget_flash)),
        ("--budget-macs", budget(options.budget_macs)),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

struct Search<'a> {
    data: &'a Dataset,
    judge: Judge<'a>,
    options: &'a Options,
    watch: &'a dyn Watch,
    checkpoint: Option<Checkpoint>,
    /// What was tried on each rung, in order; `None` where the fit failed.
    rungs: [Vec<(Setting, Option<Trial>)>; RUNGS],
    fits: usize,
    failures: Vec<(Setting, FitError)>,
}

impl Search<'_> {
    /// The settings of the next wave; none when nothing is left.
    fn wave(&self, pool: &Pool<'_>, number: usize) -> Vec<Setting> {
        let full = pool.full(&self.rungs[0]);
        let ensembles = || pool.ensembles(&self.best(), &self.rungs[0]);
        let mut wave =
            if number % ENSEMBLES_EVERY == 0 || full.is_empty() { ensembles() } else { Vec::new() };
        if wave.is_empty() {
            wave = full;
        }
        wave.truncate(WAVE);
        wave
    }

    /// Settings that have not come to their end, cheap ones first.
    fn rest(&self, pool: &Pool<'_>) -> Vec<Setting> {
        let mut rest = pool.full(&self.rungs[0]);
        rest.extend(pool.ensembles(&self.best(), &self.rungs[0]));
        rest
    }

    /// What was fitted on all of the data, by rising error.
    fn best(&self) -> Vec<&Setting> {
        let mut done: Vec<(&Setting, f64)> =
            self.rungs[LAST].iter().filter_map(|(s, trial)| Some((s, trial.as_ref()?.nrmse))).collect();
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
        let counter = std::sync::atomic::AtomicUsize::new(self.fits);
        let one = |setting: &Setting| -> Option<Result<Trial, FitError>> {
            let stage = format!("{}-rung{rung}", setting.key());
            let stored = self.checkpoint.as_ref().and_then(|folder| folder.load_value(&stage));
            let result = match stored {
                Some(trial) => Ok(trial),
                None if self.watch.stop() => return None,
                None => match rung::run(self.data, self.judge, setting, rung, self.options, self.watch) {
                    Err(FitError::Stopped) => return None,
                    Ok(trial) => match &self.checkpoint {
                        Some(folder) => folder.store_value(&stage, &trial).map(|()| trial),
                        None => Ok(trial),
                    },
                    failure => failure,
                },
            };
            let done = 1 + counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.watch.trial(done, setting, (rung, RUNGS), result.as_ref());
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

    fn result(self, pool: &Pool<'_>, complete: bool, untried: Vec<Setting>) -> Tuning {
        let mut done: Vec<(Setting, Trial)> = self.rungs[LAST]
            .iter()
            .filter_map(|(setting, trial)| Some((setting.clone(), trial.clone()?)))
            .filter(|(_, trial)| self.keeps_budgets(&trial.size()))
            .collect();
        done.sort_by(|(_, a), (_, b)| a.flash_bytes.cmp(&b.flash_bytes).then(a.nrmse.total_cmp(&b.nrmse)));
        let sizes: Vec<Size> = done.iter().map(|(_, trial)| trial.size()).collect();
        let (flash, macs) = (front::front(&sizes, Axis::Flash, 0.0), front::front(&sizes, Axis::Macs, 0.0));
        let recommended = front::recommended(&sizes);
        let best = (0..done.len()).min_by(|&a, &b| done[a].1.nrmse.total_cmp(&done[b].1.nrmse));
        let hint = best.and_then(|best| hint(&done[best], pool));
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
        wider.push(format!("--max-memory {}", 2 * setting.memory));
    }
    if setting.degree == options.max_degree {
        wider.push(format!("--max-degree {}", setting.degree + 1));
    }
    if setting.degree > 1 && trial.rank() == options.max_rank {
        wider.push(format!("--max-rank {}", 2 * options.max_rank));
    }
    (!wider.is_empty())
        .then(|| format!("the least error lies at a limit of the search; try {}", wider.join(" ")))
}
