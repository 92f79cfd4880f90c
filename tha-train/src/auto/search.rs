//! A search under way: what was tried, what comes out best, and whether one more setting can be tried. `rounds` and `subsets` say which.

use super::divided::Wanted;
use super::ground::{Ground, Part};
use super::polynomial::{self, Polynomial, polynomial};
use super::setting::Setting;
use super::trial::{Predictions, RIDGES, Trial, WEAK};
use crate::checkpoint::{self, Checkpoint};
use crate::fit::FitError;
use crate::progress::{Event, Progress, Until};
use std::time::{Duration, Instant};

/// The weakest ridge is clearly the best if it is better than the one before by this factor.
const WEAKER: f64 = 0.99;
/// The search is over after this many settings in a row for which there was not enough time.
const SKIPPED: usize = 12;
/// What a setting predicts, or why it cannot be fitted.
type Tested = Result<Predictions, String>;
/// The name under which the checkpoint keeps it.
const TRIED: &str = "tried";

/// What a setting predicts for rows that it has not seen, found in the checkpoint or else computed.
pub(super) fn predictions(
    ground: &Ground<'_>,
    wanted: &Wanted,
    checkpoint: Option<&Checkpoint<'_>>,
    progress: &dyn Progress,
) -> Result<Tested, FitError> {
    checkpoint::keep(checkpoint, TRIED, wanted, || match Predictions::new(ground, wanted, progress) {
        Ok(predictions) => Ok(Ok(predictions)),
        Err(error @ (FitError::Stage(_) | FitError::Solve(_))) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
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
    pub(super) trials: Vec<Trial<'a>>,
    pub(super) effort: Effort<'a>,
    checkpoint: Option<&'a Checkpoint<'a>>,
    /// Settings that the checkpoint does not have are listed for others to try. The first is tried here, because the ridges of all
    /// depend on its result.
    lists: bool,
    pub(super) listed: Vec<Wanted>,
    pub(super) progress: &'a dyn Progress,
    /// Settings that could not be fitted, and why.
    pub(super) failures: Vec<(Setting, String)>,
    /// How many settings have come up, and the numbers of those for which there was not enough time.
    asked: usize,
    pub(super) skipped: Vec<(usize, Setting)>,
    /// How many had come up when the last one was tried, and when the last one on all inputs was.
    pub(super) reached: usize,
    pub(super) reached_whole: usize,
    /// The polynomial that was found behind the first settings.
    pub(super) polynomial: Option<Polynomial>,
    /// Whether nothing was left out.
    pub(super) complete: bool,
    /// Seconds for one unit of `Setting::work`: the mean of the last settings, the latest with half of the weight.
    pace: f64,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        ground: &'a Ground<'a>,
        effort: Effort<'a>,
        checkpoint: Option<&'a Checkpoint<'a>>,
        lists: bool,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            ground,
            trials: Vec::new(),
            effort,
            checkpoint,
            lists,
            listed: Vec::new(),
            progress,
            failures: Vec::new(),
            asked: 0,
            skipped: Vec::new(),
            reached: 0,
            reached_whole: 0,
            polynomial: None,
            complete: true,
            pace: 0.0,
        }
    }

    /// Tries settings until none is left, or until one ends the search as [`FitError::Stopped`]: what was tried so far counts.
    pub(super) fn run(&mut self, bases: &[Setting]) -> Result<(), FitError> {
        let is_complete = |part: Result<(), FitError>| match part {
            Err(FitError::Stopped) => Ok(false),
            part => part.map(|()| true),
        };
        self.complete = is_complete(self.rounds(bases))?;
        self.end_here();
        self.reached_whole = self.reached;
        if !self.is_settled() {
            self.complete &= is_complete(self.subsets())?;
            self.end_here();
        }
        self.complete &= self.skipped.is_empty();
        Ok(())
    }

    /// Forgets what came up in vain after the last setting that was tried, so that a search that is to end there has the same numbers.
    fn end_here(&mut self) {
        self.complete &= self.skipped.last().is_none_or(|(number, _)| *number < self.reached);
        self.skipped.retain(|(number, _)| *number < self.reached);
        self.asked = self.reached;
    }

    /// Tries a setting that is new and that no ablation leaves out, with the ridges that the best so far wants.
    pub(super) fn attempt(&mut self, mut setting: Setting) -> Result<(), FitError> {
        if self.ground.without == Some(Part::Gamma) {
            setting.gamma = 1.0;
        }
        let left_out = self.ground.without == Some(Part::Maps) && setting.maps.is_some();
        if left_out || self.tried(&setting) { Ok(()) } else { self.attempt_with(setting, self.ridges()) }
    }

    /// Tries a setting. One for which there is not enough time is skipped, since those after it may be smaller.
    pub(super) fn attempt_with(&mut self, setting: Setting, ridges: &[f64]) -> Result<(), FitError> {
        let number = self.asked;
        self.asked += 1;
        let work = self.work(&setting);
        // Settings on all inputs leave time for heads on subsets.
        let heads = if setting.inputs.is_none() { self.work_of_heads() } else { 0.0 };
        let enough = setting.inputs.is_none() && self.is_enough();
        if self.progress.stop() || enough || self.is_late(heads) || self.skipped_in_a_row(number) {
            return Err(FitError::Stopped);
        }
        if self.is_late(heads + work) || self.effort.skip.contains(&number) {
            self.skipped.push((number, setting));
            return Ok(());
        }
        let start = Instant::now();
        let wanted = Wanted { setting, ridges: ridges.to_vec() };
        if self.lists && !self.trials.is_empty() && !self.is_kept(&wanted)? {
            self.listed.push(wanted);
            return Ok(());
        }
        match predictions(self.ground, &wanted, self.checkpoint, self.progress)? {
            Ok(predictions) => {
                let trial = Trial::new(self.ground, wanted, predictions);
                let (done, error) = (self.trials.len() + 1, self.error(&trial));
                self.progress.report(&Event::Tried { done, setting: &trial.setting, error });
                self.trials.push(trial);
            }
            Err(reason) => self.failures.push((wanted.setting, reason)),
        }
        self.reached = self.asked;
        let pace = start.elapsed().as_secs_f64() / work;
        self.pace = if self.pace > 0.0 { 0.5 * (self.pace + pace) } else { pace };
        Ok(())
    }

    /// Tries settings that do not depend on each other's results; what follows does.
    pub(super) fn attempt_all(&mut self, settings: Vec<Setting>) -> Result<(), FitError> {
        settings.into_iter().try_for_each(|setting| self.attempt(setting))?;
        self.decided()
    }

    /// Ends the search where settings are listed: what follows depends on their results.
    pub(super) fn decided(&self) -> Result<(), FitError> {
        if self.listed.is_empty() { Ok(()) } else { Err(FitError::Stopped) }
    }

    /// Looks for the polynomial behind the best of what was tried, for a part of the time: with noise, or many inputs, that takes long.
    pub(super) fn find_polynomial(&mut self) {
        let number = self.asked;
        self.asked += 1;
        self.reached = self.asked;
        let start = Instant::now();
        let until = Until(self.progress, self.effort.longest.map(|longest| start + longest));
        if !self.effort.skip.contains(&number) {
            self.polynomial = polynomial(self, &until);
            // The plain fit of it takes about as long.
            if let (Some(_), Some(end)) = (&self.polynomial, &mut self.effort.end) {
                *end -= start.elapsed();
            }
            if self.polynomial.is_some() || !until.stop() {
                return;
            }
        }
        let best = self.best(|setting| polynomial::is_one(setting, self.inputs()));
        if let Some(best) = best.map(|(_, best)| best.clone()) {
            self.skipped.push((number, best));
        }
    }

    /// Whether a polynomial leaves hardly anything, so that nothing else needs to be tried.
    pub(super) fn is_settled(&self) -> bool {
        self.polynomial.as_ref().is_some_and(Polynomial::leaves_nothing)
    }

    /// Whether as many settings on all inputs were tried or listed as may be.
    fn is_enough(&self) -> bool {
        let whole = self.trials.iter().filter(|trial| trial.setting.inputs.is_none()).count();
        whole + self.listed.len() >= self.effort.trials
    }

    /// Whether there is not enough time for this work. The first two trials are made in any case: there must be something to deliver.
    fn is_late(&self, work: f64) -> bool {
        let expected = Duration::from_secs_f64(work * self.pace);
        self.trials.len() > 1 && self.effort.end.is_some_and(|end| Instant::now() + expected > end)
    }

    /// Whether none of the last settings before this one could be tried.
    fn skipped_in_a_row(&self, number: usize) -> bool {
        let last = self.skipped.len().checked_sub(SKIPPED).map(|first| self.skipped[first].0);
        self.effort.end.is_some() && last.is_some_and(|first| first + SKIPPED == number)
    }

    fn is_kept(&self, wanted: &Wanted) -> Result<bool, FitError> {
        let Some(checkpoint) = self.checkpoint else { return Ok(false) };
        Ok(checkpoint.get::<Tested>(&checkpoint.place(TRIED, wanted)?)?.is_some())
    }

    /// Whether a setting has come up before, with whatever ridges and success.
    pub(super) fn tried(&self, setting: &Setting) -> bool {
        self.trials.iter().any(|trial| trial.setting == *setting)
            || self.failures.iter().any(|(failed, _)| failed == setting)
            || self.listed.iter().any(|listed| listed.setting == *setting)
            || self.skipped.iter().any(|(_, skipped)| skipped == setting)
    }

    /// The ridges for the next setting: weaker ones where the best so far wants them.
    fn ridges(&self) -> &'static [f64] {
        let best = self.ranked(|_| true).first().copied();
        if best.is_some_and(|best| self.wants_weaker(&self.trials[best])) { &WEAK } else { &RIDGES }
    }

    /// Whether the weakest ridge is clearly the best for an output, as it is for a system with little noise.
    pub(super) fn wants_weaker(&self, trial: &Trial<'_>) -> bool {
        let extend = trial.extends(&self.ground.all);
        let root = |ridge: usize, output: usize| trial.root(ridge, extend, &self.ground.all, output);
        let last = trial.ridges.len() - 1;
        (0..self.outputs()).any(|output| root(last, output) < WEAKER * root(last - 1, output))
    }

    pub(super) fn inputs(&self) -> usize {
        self.ground.data.inputs.len()
    }

    pub(super) fn outputs(&self) -> usize {
        self.ground.y.ncols()
    }

    pub(super) fn work(&self, setting: &Setting) -> f64 {
        setting.work(self.inputs(), self.outputs())
    }

    pub(super) fn error(&self, trial: &Trial<'_>) -> f64 {
        self.error_on(trial, &self.ground.all)
    }

    /// The error on some blocks. Whether the linear part goes on beyond the range of the fitted rows is decided on all of them.
    pub(super) fn error_on(&self, trial: &Trial<'_>, blocks: &[usize]) -> f64 {
        trial.error(trial.extends(&self.ground.all), blocks)
    }

    /// The least error of some settings and the one that has it.
    pub(super) fn best(&self, keep: impl Fn(&Setting) -> bool) -> Option<(f64, &Setting)> {
        let trial = &self.trials[*self.ranked(keep).first()?];
        Some((self.error(trial), &trial.setting))
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
}
