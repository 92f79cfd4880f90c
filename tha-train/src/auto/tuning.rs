//! The search with the front as its result: every model that an automatic fit delivers within some budget, and what it costs.
//!
//! Asked for are the combination within the given budget and within [`BUDGETS`], and one head alone within the flash, and within
//! the multiply-accumulates, of every setting on all inputs that was tried. What is not delivered within its own size has a
//! simpler setting that is level with it.

use super::front::front;
use super::{
    AutoOutcome, AutoParams, BUDGETS, Decision, Honest, Recipe, SEARCH_UNTIL, Setting, Tried, deliver,
};
use crate::data::Dataset;
use crate::fit::FitError;
use crate::linalg::portably;
use crate::progress::Progress;
use rayon::prelude::*;
use std::fmt;
use std::time::Instant;

/// A model that an automatic fit delivers.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What its heads are.
    pub settings: Vec<Setting>,
    /// Its error on the blocks that chose it, by which models are compared.
    pub held_out: f64,
    /// The standard error of that over the blocks.
    pub standard_error: f64,
    /// What to expect on other data: from blocks that chose nothing.
    pub nested: Honest,
    /// Bytes of flash, at most.
    pub flash_bytes: usize,
    /// Multiply-accumulates per sample, at most.
    pub macs_per_sample: usize,
    /// No other model has less error for its flash.
    pub on_flash_front: bool,
    /// No other model has less error for its multiply-accumulates.
    pub on_macs_front: bool,
    /// What an automatic fit delivers if it is asked for nothing else.
    pub recommended: bool,
    /// The options that deliver it.
    pub recipe: Recipe,
}

impl Candidate {
    /// On one of the fronts.
    pub fn on_front(&self) -> bool {
        self.on_flash_front || self.on_macs_front
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.settings[..] {
            [alone] => write!(f, "{alone}"),
            several => write!(f, "{} settings", several.len()),
        }
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// All models that can be delivered within the budgets, by rising flash.
    pub candidates: Vec<Candidate>,
    /// Everything that was tried, in order.
    pub tried: Vec<Tried>,
    /// What to expect of the best linear model of lags.
    pub linear: Option<Honest>,
    /// Nothing was better than linear: that is what is recommended.
    pub nothing_better: bool,
    /// Whether the search came to its end.
    pub complete: bool,
    /// Settings that could not be fitted, and why.
    pub failures: Vec<(Setting, String)>,
}

impl AutoParams {
    /// Searches as [`AutoParams::fit`] does, for all of `minutes`, and tells what can be delivered, without a model.
    ///
    /// ```
    /// use tha_train::{AutoParams, Silent, SynthKind, SynthParams, generate};
    ///
    /// let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?.train;
    /// let tuning = AutoParams::new().trials(3).search(&data, &Silent)?;
    /// assert_eq!(tuning.candidates.iter().filter(|candidate| candidate.recommended).count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search(&self, data: &Dataset, progress: &dyn Progress) -> Result<Tuning, FitError> {
        portably(self.portable, || self.tuned(data, progress))
    }

    fn tuned(&self, data: &Dataset, progress: &dyn Progress) -> Result<Tuning, FitError> {
        let start = Instant::now();
        let ground = self.ground(data)?;
        let whole = Self { minutes: self.minutes.map(|minutes| minutes / SEARCH_UNTIL), ..self.clone() };
        let checkpoint = self.kept(data, progress)?;
        let search = whole.searched(&ground, start, checkpoint.as_ref(), false, progress)?;
        if let Some(found) = self.polynomial(&ground, &search) {
            return self.only(self.plain(data, &ground, search, &found, progress)?);
        }
        let trials = &search.trials;
        let best = self.decide(&ground, trials).ok_or_else(|| self.too_small(trials, data))?;
        let tried: Vec<Tried> = trials.iter().map(|trial| Tried::new(&ground, trial, true)).collect();
        let mut asked = vec![self.clone()];
        let smaller = BUDGETS.into_iter().filter(|&bytes| bytes < self.budget_flash);
        asked.extend(smaller.map(|bytes| self.clone().budget_flash(bytes)));
        for one in tried.iter().filter(|one| one.setting.inputs.is_none()) {
            if self.part((one.flash_bytes, one.macs_per_sample)) <= 1.0 {
                let single = self.clone().single(true);
                asked.push(single.clone().budget_flash(one.flash_bytes));
                asked.push(single.budget_macs(one.macs_per_sample));
            }
        }
        let answers: Vec<Option<Decision>> =
            asked.par_iter().map(|params| params.decide(&ground, trials)).collect();
        let (mut candidates, mut known) = (Vec::new(), Vec::new());
        for (params, answer) in asked.iter().zip(answers) {
            let Some(Decision { chosen, nested, .. }) = answer else { continue };
            let judged = Honest::judge(&ground, trials, |_| Some(chosen.clone()));
            let Some(judged) = judged.filter(|_| !known.contains(&chosen)) else { continue };
            let (flash_bytes, macs_per_sample) = deliver::size(&chosen, trials, data);
            let settings = chosen.members.iter().map(|member| trials[member.trial].setting.clone());
            candidates.push(Candidate {
                settings: settings.collect(),
                held_out: judged.error,
                standard_error: judged.standard_error,
                nested,
                flash_bytes,
                macs_per_sample,
                on_flash_front: false,
                on_macs_front: false,
                recommended: known.is_empty(),
                recipe: params.recipe(&search),
            });
            known.push(chosen);
        }
        candidates.sort_by(|a, b| a.flash_bytes.cmp(&b.flash_bytes).then(a.held_out.total_cmp(&b.held_out)));
        let on_front = |size: &dyn Fn(&Candidate) -> usize| {
            front(&candidates.iter().map(|one| (one.held_out, size(one))).collect::<Vec<_>>())
        };
        let (flash, macs) = (on_front(&|one| one.flash_bytes), on_front(&|one| one.macs_per_sample));
        for (k, candidate) in candidates.iter_mut().enumerate() {
            (candidate.on_flash_front, candidate.on_macs_front) = (flash[k], macs[k]);
        }
        let Decision { linear, nothing_better, .. } = best;
        let (complete, failures) = (search.complete, search.failures);
        Ok(Tuning { candidates, tried, linear, nothing_better, complete, failures })
    }

    /// The polynomial that a plain fit delivers is the only candidate: an automatic fit would deliver nothing else.
    fn only(&self, made: AutoOutcome) -> Result<Tuning, FitError> {
        let bytes = made.model.to_bytes()?;
        let (flash_bytes, macs_per_sample) = (bytes.len(), made.model.macs());
        if self.part((flash_bytes, macs_per_sample)) > 1.0 {
            let (option, found, least) = match self.budget_macs {
                Some(most) if macs_per_sample > most => ("budget_macs", most, macs_per_sample),
                _ => ("budget_flash", self.budget_flash, flash_bytes),
            };
            let expected = format!("{least} at least for the polynomial of lags that was found");
            return Err(FitError::Option { option, found: found.to_string(), expected });
        }
        let AutoOutcome { heads, nested, tried, linear, nothing_better, complete, failures, recipe, .. } =
            made;
        let only = Candidate {
            settings: heads.into_iter().map(|head| head.setting).collect(),
            held_out: nested.error,
            standard_error: nested.standard_error,
            nested,
            flash_bytes,
            macs_per_sample,
            on_flash_front: true,
            on_macs_front: true,
            recommended: true,
            recipe,
        };
        Ok(Tuning { candidates: vec![only], tried, linear, nothing_better, complete, failures })
    }
}
