//! Which settings are tried, in which order. Every next one depends on the results before it alone, never on time or threads:
//! a search that was cut short is the beginning of the longer one.

use super::bases::longest;
use super::blend::{Member, Way, blend};
use super::deliver::size_alone;
use super::divided::Wanted;
use super::ground::{Ground, Part};
use super::polynomial::{self, Polynomial, polynomial};
use super::setting::{MANY, PIECES, Setting};
use super::trial::{Predictions, RIDGES, Trial, WEAK};
use crate::checkpoint::{self, Checkpoint};
use crate::fit::FitError;
use crate::progress::{Event, Progress, Until};
use crate::solve::mean_and_error;
use crate::stage::Basis;
use std::time::{Duration, Instant};

/// Rank at which settings are compared first.
const RANK: usize = 4;
/// Weights of products against linear terms that are tried.
const GAMMAS: [f64; 2] = [0.3, 3.0];
/// The weakest ridge is clearly the best if it is better than the one before by this factor.
const WEAKER: f64 = 0.99;
/// Most columns of x of a linear model, and few.
pub(super) const LINEAR: usize = 800;
const FEW: usize = 250;
/// Steps go on while they help by this factor.
pub(super) const HELPS: f64 = 0.99;
/// Bases and settings that are looked at more closely.
pub(super) const CLOSER: usize = 3;
/// Bases that are looked at with products first.
const QUADRATIC: usize = 8;
/// The heaviest heads that have smaller settings beside them where there is no room, and how many of these each has. Three and three in the place
/// of eight: cascaded_tanks 0.262 for 0.250, bosch_engine2 0.252 for 0.238, gas_turbine 0.595 for 0.591 on blocks within 16 KiB.
const HEAVIEST: usize = 8;
const SMALLER: usize = 8;
/// With half of the inputs a setting may be worse by this factor before a quarter of them is tried.
const FEWER: f64 = 1.05;
/// After so many settings in a row for which there is not enough time the search is over.
const SKIPPED: usize = 12;
/// What a setting predicts, or why it cannot be fitted.
type Tested = Result<Predictions, String>;
/// The name of what is kept of it.
const TRIED: &str = "tried";

/// What a setting predicts for rows that it has not seen, found in the checkpoint or else computed.
pub(super) fn predictions(
    ground: &Ground<'_>,
    setting: &Setting,
    ridges: &[f64],
    checkpoint: Option<&Checkpoint<'_>>,
    progress: &dyn Progress,
) -> Result<Tested, FitError> {
    checkpoint::keep(checkpoint, TRIED, &(setting, ridges), || {
        match Predictions::new(ground, setting, ridges, progress) {
            Ok(predictions) => Ok(Ok(predictions)),
            Err(error @ (FitError::Stage(_) | FitError::Solve(_))) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    })
}

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort<'a> {
    /// Settings on all inputs at most.
    pub(super) trials: usize,
    /// Heads on subsets of the inputs; none for as many as usual.
    pub(super) heads: Option<usize>,
    /// When the search must end, and how long it may look for one polynomial.
    pub(super) end: Option<Instant>,
    pub(super) longest: Option<Duration>,
    /// Numbers of settings, in the order in which they come up, that are left out.
    pub(super) skip: &'a [usize],
    /// Bytes of flash and multiply-accumulates per sample that a model may take.
    pub(super) budgets: (usize, usize),
}

/// A search under way.
pub(super) struct Search<'a> {
    pub(super) ground: &'a Ground<'a>,
    pub(super) trials: Vec<Trial>,
    pub(super) effort: Effort<'a>,
    checkpoint: Option<&'a Checkpoint<'a>>,
    /// What is not kept is listed, not tried, but for the first setting, whose result the ridges of all depend on.
    lists: bool,
    pub(super) listed: Vec<Wanted>,
    progress: &'a dyn Progress,
    /// Settings that could not be fitted, and why.
    pub(super) failures: Vec<(Setting, String)>,
    /// How many settings have come up, and those for which there was not enough time: their numbers among them.
    asked: usize,
    pub(super) skipped: Vec<(usize, Setting)>,
    /// The polynomial that was found behind the first settings.
    pub(super) polynomial: Option<Polynomial>,
    /// Whether it came to its end.
    pub(super) complete: bool,
    /// Seconds for the work of a setting, of late.
    pace: f64,
}

/// The search is over.
pub(super) struct Over;

impl<'a> Search<'a> {
    pub(super) fn new(
        ground: &'a Ground<'a>,
        effort: Effort<'a>,
        checkpoint: Option<&'a Checkpoint<'a>>,
        lists: bool,
        progress: &'a dyn Progress,
    ) -> Self {
        let (trials, failures) = (Vec::new(), Vec::new());
        Self {
            ground,
            trials,
            effort,
            checkpoint,
            lists,
            listed: Vec::new(),
            progress,
            failures,
            asked: 0,
            skipped: Vec::new(),
            polynomial: None,
            complete: true,
            pace: 0.0,
        }
    }

    /// Tries settings until none is left or time is over.
    pub(super) fn run(&mut self, bases: &[Setting]) -> Result<(), FitError> {
        if self.settings(bases)?.is_err() {
            self.complete = false;
        }
        if self.polynomial.is_none() && self.subsets()?.is_err() {
            self.complete = false;
        }
        self.complete &= self.skipped.is_empty();
        Ok(())
    }

    /// The ridges for the next setting: weaker ones where the best so far wants them.
    fn ridges(&self) -> &'static [f64] {
        let best = self.ranked(|_| true).first().copied();
        if best.is_some_and(|best| self.wants_weaker(&self.trials[best])) { &WEAK } else { &RIDGES }
    }

    /// The weakest ridge is clearly the best for an output: a system with little noise.
    fn wants_weaker(&self, trial: &Trial) -> bool {
        let extend = trial.extends(self.ground, &self.all());
        let root = |ridge: usize, output: usize| trial.root(self.ground, ridge, extend, &self.all(), output);
        let last = trial.ridges.len() - 1;
        (0..self.ground.y.ncols()).any(|output| root(last, output) < WEAKER * root(last - 1, output))
    }

    /// The part of the budgets that a setting takes by itself.
    fn part(&self, setting: &Setting) -> f64 {
        let (bytes, operations) = size_alone(setting, self.ground.data);
        let (flash, macs) = self.effort.budgets;
        (bytes as f64 / flash as f64).max(operations as f64 / macs as f64)
    }

    /// The heads that would be delivered if there were room for all, the heaviest first.
    fn wanted(&self) -> Vec<Setting> {
        let all = self.all();
        let Some(made) = blend(self.ground, &self.trials, &all, Way::Best, &|_| 0.0) else {
            return Vec::new();
        };
        let mut members = made.members;
        let weight = |member: &Member| member.weights.iter().sum::<f64>();
        members.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        members.iter().map(|member| self.trials[member.trial].setting.clone()).collect()
    }

    /// Whether a setting was tried, with whatever ridges and success.
    fn tried(&self, setting: &Setting) -> bool {
        self.trials.iter().any(|trial| trial.setting == *setting)
            || self.failures.iter().any(|(failed, _)| failed == setting)
            || self.listed.iter().any(|listed| listed.setting == *setting)
            || self.skipped.iter().any(|(_, skipped)| skipped == setting)
    }

    /// Tries a setting. One for which there is not enough time is skipped: those after it may be smaller.
    pub(super) fn attempt(&mut self, setting: Setting, ridges: &[f64]) -> Result<Result<(), Over>, FitError> {
        let number = self.asked;
        self.asked += 1;
        let work = self.work(&setting);
        let whole = self.trials.iter().filter(|trial| trial.setting.inputs.is_none()).count();
        let whole = whole + self.listed.len();
        let enough = setting.inputs.is_none() && whole >= self.effort.trials;
        // Settings leave time for heads on subsets. The first trials are made in any case: there must be something to deliver.
        let heads = if setting.inputs.is_none() { self.work_of_heads() } else { 0.0 };
        let late = |work: f64| {
            let expected = Duration::from_secs_f64(work * self.pace);
            self.trials.len() > 1 && self.effort.end.is_some_and(|end| Instant::now() + expected > end)
        };
        if self.progress.stop() || enough || late(heads) || self.skipped_in_a_row(number) {
            return Ok(Err(Over));
        }
        if late(heads + work) || self.effort.skip.contains(&number) {
            self.skipped.push((number, setting));
            return Ok(Ok(()));
        }
        let start = Instant::now();
        if self.lists && !self.trials.is_empty() && !self.is_kept(&setting, ridges)? {
            self.listed.push(Wanted { setting, ridges: ridges.to_vec() });
            return Ok(Ok(()));
        }
        match predictions(self.ground, &setting, ridges, self.checkpoint, self.progress) {
            Ok(Ok(predictions)) => {
                let trial = Trial::new(self.ground, setting.clone(), ridges, predictions);
                let error = self.error(&trial);
                self.trials.push(trial);
                self.progress.report(&Event::Tried { done: self.trials.len(), setting: &setting, error });
            }
            Ok(Err(reason)) => self.failures.push((setting, reason)),
            Err(FitError::Stopped) => return Ok(Err(Over)),
            Err(error) => return Err(error),
        }
        let pace = start.elapsed().as_secs_f64() / work;
        self.pace = if self.pace > 0.0 { 0.5 * (self.pace + pace) } else { pace };
        Ok(Ok(()))
    }

    /// Looks for the polynomial behind the best of what was tried, for a part of the time: with noise, or many inputs, that takes long.
    fn find_polynomial(&mut self) {
        let number = self.asked;
        self.asked += 1;
        let end = self.effort.longest.map(|longest| Instant::now() + longest);
        let until = Until(self.progress, end);
        if !self.effort.skip.contains(&number) {
            self.polynomial = polynomial(self, &until);
            if self.polynomial.is_some() || !until.stop() {
                return;
            }
        }
        let best = self.best(|setting| polynomial::is_one(setting, self.ground.data.inputs.len()));
        if let Some((_, best)) = best {
            let best = best.clone();
            self.skipped.push((number, best));
        }
    }

    /// Whether none of the last settings before this one could be tried.
    fn skipped_in_a_row(&self, number: usize) -> bool {
        let last = self.skipped.len().checked_sub(SKIPPED).map(|first| self.skipped[first].0);
        self.effort.end.is_some() && last.is_some_and(|first| first + SKIPPED == number)
    }

    pub(super) fn work(&self, setting: &Setting) -> f64 {
        setting.work(self.ground.data.inputs.len(), self.ground.y.ncols())
    }

    fn is_kept(&self, setting: &Setting, ridges: &[f64]) -> Result<bool, FitError> {
        let Some(checkpoint) = self.checkpoint else { return Ok(false) };
        Ok(checkpoint.get::<Tested>(&checkpoint.place(TRIED, &(setting, ridges))?)?.is_some())
    }

    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.ground.count).collect()
    }

    pub(super) fn error(&self, trial: &Trial) -> f64 {
        trial.error(self.ground, trial.extends(self.ground, &self.all()), &self.all())
    }

    /// The least error of some settings and the one that has it.
    pub(super) fn best(&self, keep: impl Fn(&Setting) -> bool) -> Option<(f64, &Setting)> {
        let trial = &self.trials[*self.ranked(keep).first()?];
        Some((self.error(trial), &trial.setting))
    }

    /// Whether a setting is better than another by more than a standard error of their difference over the blocks.
    fn is_clearly_better(&self, one: &Setting, other: &Setting) -> bool {
        let find = |setting: &Setting| self.trials.iter().find(|trial| trial.setting == *setting);
        let (Some(one), Some(other)) = (find(one), find(other)) else { return false };
        let error = |trial: &Trial, block: usize| {
            trial.error(self.ground, trial.extends(self.ground, &self.all()), &[block])
        };
        let gains: Vec<f64> =
            (0..self.ground.count).map(|block| error(other, block) - error(one, block)).collect();
        let (gain, deviation) = mean_and_error(&gains);
        gain > deviation && self.error(one) < HELPS * self.error(other)
    }

    /// Trials on all inputs from the best on.
    pub(super) fn ranked(&self, keep: impl Fn(&Setting) -> bool) -> Vec<usize> {
        let mut ranked: Vec<(f64, usize)> = (0..self.trials.len())
            .filter(|&k| self.trials[k].setting.inputs.is_none() && keep(&self.trials[k].setting))
            .map(|k| (self.error(&self.trials[k]), k))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.into_iter().map(|(_, k)| k).collect()
    }

    /// The bases of the best trials, each once. Of those that are level with the best the ones with the fewest features come first: with
    /// maps and higher degrees they are tried in a fraction of the time.
    fn best_bases(&self, count: usize) -> Vec<Basis> {
        let ranked = self
            .ranked(|setting| setting.degree <= 2 && setting.maps.is_none() && setting.gamma != GAMMAS[1]);
        let mut bases: Vec<(f64, Basis)> = Vec::new();
        for k in ranked {
            let basis = self.trials[k].setting.basis;
            if bases.iter().all(|(_, other)| *other != basis) {
                bases.push((self.error(&self.trials[k]), basis));
            }
        }
        let least = bases.first().map_or(0.0, |(error, _)| *error);
        let level = bases.iter().take_while(|(error, _)| HELPS * error <= least).count();
        bases[..level].sort_by_key(|(_, basis)| basis.features());
        bases.into_iter().map(|(_, basis)| basis).take(count).collect()
    }

    fn settings(&mut self, bases: &[Setting]) -> Result<Result<(), Over>, FitError> {
        macro_rules! attempt {
            ($setting:expr) => {
                let mut setting = $setting;
                if self.ground.without == Some(Part::Gamma) {
                    setting.gamma = 1.0;
                }
                if self.ground.without == Some(Part::Maps) && setting.maps.is_some() {
                    continue;
                }
                if !self.tried(&setting) && self.attempt(setting, self.ridges())?.is_err() {
                    return Ok(Err(Over));
                }
            };
        }
        // What follows looks at results.
        macro_rules! decided {
            () => {
                if !self.listed.is_empty() {
                    return Ok(Err(Over));
                }
            };
        }
        let p = self.ground.data.inputs.len();
        // The best bases closely, then the next ones: their settings with maps, other weights of products and one degree more; the
        // best of all settings with more rank, and with one network for all outputs. With many inputs bases of many features take
        // long: they come when something has been made of the others.
        for (most, round) in [(FEW, 1), (LINEAR, 1), (LINEAR, 2), (LINEAR, 3)] {
            for setting in bases.iter().filter(|setting| setting.columns(p) <= most) {
                attempt!(setting.clone());
                let memory = setting.memory();
                if memory >= 20 {
                    for tau in [memory as f64 / 10.0, memory as f64 / 4.0] {
                        attempt!(Setting { decay: Some(tau), ..setting.clone() });
                    }
                }
            }
            decided!();
            // Quadratic ones of the best, and then of all of them.
            for basis in self.best_bases(if round == 1 { QUADRATIC } else { usize::MAX }) {
                let setting = Setting::polynomial(basis, None, GAMMAS[0], 2, RANK);
                if setting.is_small(p) {
                    attempt!(setting);
                }
            }
            decided!();
            if round == 1 {
                // Longer averages than all settings have history for, as long as they are clearly better: where they only look level, they
                // follow the drift of the blocks beside the one that is left out.
                while let Some((_, best)) = self.best(|_| true)
                    && let Some(next) = best.longer()
                    && next.is_small(p)
                    && next.basis.bank(1).is_ok_and(|bank| bank.history() <= longest(self.ground.data))
                    && !self.tried(&next)
                {
                    let best = best.clone();
                    attempt!(next.clone());
                    decided!();
                    if !self.trials.iter().any(|trial| trial.setting == next) {
                        break;
                    }
                    if !self.is_clearly_better(&next, &best) {
                        self.trials.retain(|trial| trial.setting != next);
                        let reason = "averages over half as many samples are about as good";
                        self.failures.push((next, reason.into()));
                        break;
                    }
                }
            }
            // With fewer inputs as long as that does not hurt; where it helps, they stand for all where these are too many.
            let mut keep = if round == 1 && p >= MANY { p } else { 1 };
            while let Some((least, best)) = self.best(|_| true)
                && keep > 2
            {
                keep = keep.div_ceil(2);
                let next = Setting { keep: Some(keep), decay: None, ..best.clone() };
                if !next.is_small(p) {
                    break;
                }
                attempt!(next);
                decided!();
                let found = self.best(|setting| setting.keep == Some(keep));
                if found.is_none_or(|(found, _)| found > FEWER * least) {
                    break;
                }
            }
            // Of those that are level the most: maps and other filters may see more in them.
            let keep = self.best(|_| true).filter(|(_, best)| best.keep.is_some()).and_then(|(least, _)| {
                let level = |k: &usize| HELPS * self.error(&self.trials[*k]) <= least;
                let some = self.ranked(|setting| setting.keep.is_some()).into_iter().filter(level);
                some.filter_map(|k| self.trials[k].setting.keep).max()
            });
            for basis in self.best_bases(round * CLOSER).into_iter().skip((round - 1) * CLOSER) {
                for (maps, gamma, degree) in [
                    (Some(PIECES), GAMMAS[0], 2),
                    (None, GAMMAS[1], 2),
                    (Some(PIECES), 1.0, 1),
                    (None, GAMMAS[0], 3),
                    (Some(PIECES), GAMMAS[1], 2),
                ] {
                    let all = Setting::polynomial(basis, maps, gamma, degree, RANK);
                    let setting = if all.is_small(p) { all } else { Setting { keep, ..all } };
                    if setting.is_small(p) {
                        attempt!(setting);
                    }
                }
            }
            decided!();
            for k in self.ranked(|setting| setting.degree > 1).into_iter().take(CLOSER) {
                let setting = self.trials[k].setting.clone();
                attempt!(Setting { rank: 2 * RANK, ..setting.clone() });
                if self.ground.y.ncols() > 1 {
                    attempt!(Setting { rank: 2 * RANK, separate: false, ..setting.clone() });
                }
            }
            decided!();
            if most == FEW {
                // Where a polynomial of few lags is the truth, all other bases only come near it.
                let lags =
                    |setting: &Setting| setting.is_plain() && setting.columns(p) <= polynomial::COLUMNS;
                for setting in bases.iter().filter(|setting| lags(setting)) {
                    attempt!(Setting::polynomial(setting.basis, None, GAMMAS[0], 2, RANK));
                }
                decided!();
                let best = self.best(|setting| setting.degree == 2 && polynomial::is_one(setting, p));
                if let Some(basis) = best.map(|(_, best)| best.basis) {
                    attempt!(Setting::polynomial(basis, None, GAMMAS[0], 3, 2 * RANK));
                    decided!();
                    self.find_polynomial();
                    if self.polynomial.is_some() {
                        return Ok(Ok(()));
                    }
                }
            }
            if round == 1 {
                // From the best one step in every direction, as long as that helps.
                while let Some((error, best)) = self.best(|_| true) {
                    let best = best.clone();
                    if self.ground.without == Some(Part::Steps) {
                        break;
                    }
                    for next in best.neighbours(p, self.ground.y.ncols()) {
                        attempt!(next);
                    }
                    decided!();
                    let found = self.best(|_| true).map_or(error, |(found, _)| found);
                    if found > HELPS * error {
                        break;
                    }
                }
            }
            // Where the best leave no room for others, smaller ones beside them.
            let wanted = self.wanted();
            for setting in wanted.iter().take(HEAVIEST) {
                for share in [1.0, 1.0 / wanted.len() as f64] {
                    if self.part(setting) <= share {
                        continue;
                    }
                    let mut smaller = setting.smaller(p, self.ground.y.ncols());
                    smaller.retain(|setting| setting.is_small(p) && self.part(setting) <= share);
                    smaller.sort_by(|a, b| self.part(b).total_cmp(&self.part(a)));
                    for setting in smaller.into_iter().take(SMALLER) {
                        attempt!(setting);
                    }
                }
            }
        }
        decided!();
        // Weaker ridges for what was tried before they were wanted.
        for k in self.ranked(|_| true).into_iter().take(CLOSER) {
            let trial = &self.trials[k];
            if trial.ridges == RIDGES && self.wants_weaker(trial) {
                let setting = trial.setting.clone();
                if self.attempt(setting, &WEAK)?.is_err() {
                    return Ok(Err(Over));
                }
            }
        }
        Ok(Ok(()))
    }
}
