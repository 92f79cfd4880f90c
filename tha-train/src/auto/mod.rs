//! The automatic fit: filters, maps, network and heads by themselves.
//!
//! ```text
//! settings -> short fits without each block -> predictions for rows not seen -> weights -> fits to all rows -> model
//!  search      trial                                                             blend      deliver
//! ```
//!
//! Everything is decided on blocks: whole records where there are several, else five contiguous parts. What is reported comes
//! from the same decisions made without a block, judged on it.
//!
//! `tuning` asks the same decisions what they would deliver within other budgets: the front of error against size.

mod bases;
mod blend;
mod deliver;
mod divided;
mod front;
mod ground;
mod honest;
mod judge;
mod matter;
mod odd;
mod outcome;
mod params;
mod polynomial;
mod rounds;
mod search;
mod setting;
mod subsets;
mod surrogate;
#[cfg(test)]
mod tests;
mod trial;
mod tuning;

pub use deliver::Delivered;
pub(crate) use divided::Wanted;
pub(crate) use front::front;
pub use honest::Honest;
pub use outcome::{AutoOutcome, Recipe, Tried};
pub use params::AutoParams;
pub use setting::Setting;
pub use tuning::{Candidate, Tuning};

use crate::checkpoint::Checkpoint;
use crate::data::{DataError, Dataset};
use crate::fit::{FitError, FitParams};
use crate::linalg::portably;
use crate::model::Model;
use crate::progress::{Event, Progress, Silent};
use crate::quantize::{Quantized, quantize};
use crate::stage::Basis;
use blend::{Blend, Case, Way, mean_and_error};
use ground::Ground;
#[doc(hidden)]
pub use ground::Part;
use polynomial::Polynomial;
use search::{Effort, Search};
use std::time::{Duration, Instant};
use trial::Trial;

/// Rows on which settings are compared, at least; of twice as many or more every n-th is taken.
const ROWS: usize = 6000;
/// The part of the time after which the search ends, and what is taken off it for fits to so many rows or more.
const SEARCH_UNTIL: f64 = 0.9;
const FITS: (f64, usize) = (0.15, 60_000);
/// The part of the time in which one polynomial may be looked for: a third of it goes to air_quality (8 inputs, 5 lags) without it, for nothing.
const POLYNOMIAL: f64 = 1.0 / 6.0;
/// Sizes of which the error is told.
const BUDGETS: [usize; 3] = [64 << 10, 16 << 10, 4 << 10];
/// Bytes of a file of integers for each of the same model in f32: 0.50 to 0.60 on the development recordings.
const INTEGERS: f64 = 0.55;
/// A linear model is delivered unless the best is better by this factor.
const BETTER: f64 = 0.995;

impl AutoParams {
    /// Searches, combines and fits.
    ///
    /// ```
    /// use tha_train::{AutoParams, Silent, SynthKind, SynthParams, generate};
    ///
    /// let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?.train;
    /// let outcome = AutoParams::new().trials(3).fit(&data, &Silent)?;
    /// println!("{} +- {}", outcome.nested.error, outcome.nested.standard_error);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fit(&self, data: &Dataset, progress: &dyn Progress) -> Result<AutoOutcome, FitError> {
        portably(self.portable, || self.fit_with(data, self.kept(data, progress)?.as_ref(), progress))
    }

    /// The same with a folder that is open already.
    pub(crate) fn fit_with(
        &self,
        data: &Dataset,
        checkpoint: Option<&Checkpoint<'_>>,
        progress: &dyn Progress,
    ) -> Result<AutoOutcome, FitError> {
        let start = Instant::now();
        let ground = self.ground(data)?;
        let wanted = self.clone().budget_flash((self.budget_flash as f64 / self.share()) as usize);
        let search = wanted.searched(&ground, start, checkpoint, false, progress)?;
        if let Some(found) = wanted.polynomial(&ground, &search).filter(|_| !progress.stop()) {
            return self.plain(data, &ground, search, &found, &Silent);
        }
        let recipe = self.recipe(&search);
        let (trials, complete, failures) = (search.trials, search.complete, search.failures);
        // What is asked to stop still delivers the best so far.
        let mut asked = wanted.clone();
        let (decision, model, quantized, heads, rows) = loop {
            let decision = asked.decide(&ground, &trials).ok_or_else(|| self.too_small(&trials, data))?;
            let (model, heads, rows) = self.delivered(&ground, &trials, &decision)?;
            // Sizes are known for certain only now.
            let quantized = self.quantized(&model, data)?;
            let bytes = match &quantized {
                Some(made) => made.flash_after,
                None => model.to_bytes().map_or(0, |bytes| bytes.len()),
            };
            if bytes <= self.budget_flash {
                break (decision, model, quantized, heads, rows);
            }
            asked.budget_flash = asked.budget_flash * self.budget_flash / bytes;
        };
        let Decision { chosen, nested, linear, nothing_better } = decision;
        let train = model.evaluate_at(data, &rows);
        let tried = trials.iter().map(|trial| Tried::new(&ground, trial, chosen.extend)).collect();
        let within = |bytes: usize, share: f64| {
            let room = |made: &Blend| share * deliver::size(made, &trials, data).0 as f64 / bytes as f64;
            let case = Case { ground: &ground, trials: &trials, blocks: &ground.all, room: &room };
            Honest::new(&case, self.way()).map(|honest| honest.error)
        };
        let budgets = BUDGETS.map(|bytes| (bytes, within(bytes, self.share())));
        let asked_for = self.budget_flash != Self::BUDGET_FLASH && self.integers.is_none();
        let in_integers = if asked_for { within(self.budget_flash, INTEGERS) } else { None };
        Ok(AutoOutcome {
            model,
            quantized,
            budgets,
            in_integers,
            train,
            nested,
            linear,
            nothing_better,
            heads,
            tried,
            complete,
            failures,
            recipe,
        })
    }

    /// The model of a decision, its heads and the rows they were fitted to.
    fn delivered(
        &self,
        ground: &Ground<'_>,
        trials: &[Trial<'_>],
        Decision { chosen, nested, .. }: &Decision,
    ) -> Result<(Model, Vec<Delivered>, Vec<usize>), FitError> {
        let residual: Vec<f64> = nested.metrics.outputs.iter().map(|output| output.rmse).collect();
        let note = format!(
            "{} settings tried, NRMSE {:.4} +- {:.4} on blocks that chose nothing",
            trials.len(),
            nested.metrics.nrmse,
            nested.standard_error
        );
        let (mut model, heads, rows) = deliver::deliver(ground, trials, chosen, (&residual, note))?;
        model.set_interval(nested.interval(self.coverage));
        Ok((model, heads, rows))
    }

    /// The rows on which settings are compared.
    fn ground<'a>(&self, data: &'a Dataset) -> Result<Ground<'a>, FitError> {
        self.check(data)?;
        Ground::new(data, bases::history(data) + 1, ROWS, self.seed, self.without)
    }

    /// The search, with at least one setting that could be fitted. One that `lists` tries its first setting alone.
    fn searched<'a>(
        &'a self,
        ground: &'a Ground<'a>,
        start: Instant,
        checkpoint: Option<&'a Checkpoint<'a>>,
        lists: bool,
        progress: &'a dyn Progress,
    ) -> Result<Search<'a>, FitError> {
        let data = ground.data;
        let history = bases::history(data);
        odd::odd(data, history).into_iter().for_each(|text| progress.report(&Event::Warning(text)));
        let after =
            |part: f64| self.minutes.map(|minutes| start + Duration::from_secs_f64(60.0 * minutes * part));
        let effort = Effort {
            trials: self.trials.unwrap_or(usize::MAX),
            heads: self.heads,
            end: after(SEARCH_UNTIL - FITS.0 * (data.len() as f64 / FITS.1 as f64).min(1.0)),
            longest: self.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes * POLYNOMIAL)),
            skip: &self.skip,
            budgets: (self.budget_flash, self.budget_macs.unwrap_or(usize::MAX)),
        };
        let mut search = Search::new(ground, effort, checkpoint, lists, progress);
        let mut bases = bases::bases(data, history);
        if self.without == Some(Part::Filters) {
            bases.retain(|setting| matches!(setting.basis, Basis::Lags(_)));
        }
        search.run(&bases)?;
        if !search.trials.is_empty() || lists {
            return Ok(search);
        }
        let reason = match search.failures.into_iter().next() {
            Some((_, reason)) => reason,
            None => return Err(FitError::Stopped),
        };
        Err(DataError::new(&data.origin, reason).into())
    }

    /// Bytes of the file for each of the model in f32, about.
    fn share(&self) -> f64 {
        if self.integers.is_some() { INTEGERS } else { 1.0 }
    }

    /// What is delivered of what was tried; nothing where the budgets are too small for it.
    fn decide(&self, ground: &Ground<'_>, trials: &[Trial<'_>]) -> Option<Decision> {
        let room = |made: &Blend| self.part(deliver::size(made, trials, ground.data));
        let case = Case { ground, trials, blocks: &ground.all, room: &room };
        let linear = Honest::new(&case, Way::Linear);
        let mut nested = Honest::new(&case, self.way())?;
        let mut chosen = case.blend(self.way())?;
        let mut nothing_better = false;
        if let Some(linear) = linear.as_ref().filter(|linear| nested.error > BETTER * linear.error)
            && let Some(made) = case.blend(Way::Linear)
        {
            (chosen, nested, nothing_better) = (made, linear.clone(), true);
        }
        Some(Decision { chosen, nested, linear, nothing_better })
    }

    /// The polynomial that was found, where it predicts better than what would be delivered otherwise: heads that are level with it by
    /// themselves are often better together.
    fn polynomial(&self, ground: &Ground<'_>, search: &Search<'_>) -> Option<Polynomial> {
        let found = search.polynomial.clone()?;
        let other = if found.leaves_nothing() { None } else { self.decide(ground, &search.trials) };
        other.is_none_or(|other| found.error < other.nested.error).then_some(found)
    }

    fn way(&self) -> Way {
        if self.single { Way::Single } else { Way::Best }
    }

    /// The part of the budgets that so many bytes and multiply-accumulates take.
    fn part(&self, (bytes, macs): (usize, usize)) -> f64 {
        let of = |size: usize, budget: usize| size as f64 / budget as f64;
        of(bytes, self.budget_flash).max(self.budget_macs.map_or(0.0, |most| of(macs, most)))
    }

    /// How to come by the same model again.
    fn recipe(&self, search: &Search<'_>) -> Recipe {
        let whole = search.trials.iter().filter(|trial| trial.setting.inputs.is_none()).count();
        Recipe {
            trials: whole,
            heads: search.reached - search.reached_whole,
            skip: search.skipped.iter().map(|(number, _)| *number).collect(),
            single: self.single,
            budget_flash: Some(self.budget_flash).filter(|&bytes| bytes != Self::BUDGET_FLASH),
            budget_macs: self.budget_macs,
            coverage: Some(self.coverage).filter(|&coverage| coverage != FitParams::COVERAGE),
            plain: None,
        }
    }

    /// The outcome of a plain fit.
    fn plain(
        &self,
        data: &Dataset,
        ground: &Ground<'_>,
        search: Search<'_>,
        found: &Polynomial,
        progress: &dyn Progress,
    ) -> Result<AutoOutcome, FitError> {
        let params = found.params(self.seed).coverage(self.coverage);
        let fit = params.check(data)?.fit(data, progress)?;
        let recipe = Recipe { plain: Some((found.memory, found.degree)), ..self.recipe(&search) };
        let (trials, complete, failures) = (search.trials, search.complete, search.failures);
        let bytes = fit.model.to_bytes().map_or(usize::MAX, |bytes| bytes.len());
        let budgets = BUDGETS.map(|budget| (budget, (bytes <= budget).then_some(found.error)));
        let tried = trials.iter().map(|trial| Tried::new(ground, trial, true)).collect();
        let case = Case { ground, trials: &trials, blocks: &ground.all, room: &|_| 0.0 };
        let linear = Honest::new(&case, Way::Linear);
        let standard_error = mean_and_error(&found.blocks).1;
        let (error, blocks) = (found.error, found.blocks.clone());
        let head = &fit.heads[0];
        let (basis, rank) = (Basis::Lags(found.memory), FitParams::MAX_RANK);
        let setting = Setting::polynomial(basis, None, head.gamma, found.degree, rank);
        let setting = Setting { decay: head.decay, separate: false, ..setting };
        let heads = vec![Delivered {
            setting,
            outputs: 0..data.outputs.len(),
            weights: vec![1.0; data.outputs.len()],
            ridge: head.ridge,
            ranks: head.ranks.clone(),
            train_residual: head.train_residual,
        }];
        let nested = Honest { metrics: fit.validation, error, standard_error, blocks, errors: Vec::new() };
        let (model, train, nothing_better) = (fit.model, fit.train, false);
        let quantized = self.quantized(&model, data)?;
        Ok(AutoOutcome {
            model,
            quantized,
            budgets,
            in_integers: None,
            train,
            nested,
            linear,
            nothing_better,
            heads,
            tried,
            complete,
            failures,
            recipe,
        })
    }

    /// The model in integers, where they are asked for.
    fn quantized(&self, model: &Model, data: &Dataset) -> Result<Option<Quantized>, FitError> {
        Ok(self.integers.as_ref().map(|params| quantize(model, data, params)).transpose()?)
    }

    fn too_small(&self, trials: &[Trial<'_>], data: &Dataset) -> FitError {
        let least = |macs: bool| {
            let of = |trial: &Trial<'_>| {
                let (bytes, count) = deliver::size_alone(&trial.setting, true, data);
                if macs { count } else { (self.share() * bytes as f64) as usize }
            };
            trials.iter().map(of).min().unwrap_or(0)
        };
        let (option, found, least) = match self.budget_macs {
            Some(most) if least(true) > most => ("budget_macs", most, least(true)),
            _ => ("budget_flash", self.budget_flash, least(false)),
        };
        FitError::Option {
            option,
            found: found.to_string(),
            expected: format!("about {least} at least for these data"),
        }
    }
}

/// What is delivered, and what to expect of it and of the best linear model.
struct Decision {
    chosen: Blend,
    nested: Honest,
    linear: Option<Honest>,
    nothing_better: bool,
}
