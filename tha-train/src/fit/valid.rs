//! A fit with parameters that make sense for the data at hand.

use super::full::Full;
use super::{FitError, Outcome, judged};
use crate::checkpoint::{self, Checkpoint, Identity};
use crate::data::Dataset;
use crate::ensemble::{self, EnsembleParams};
use crate::host;
use crate::linalg::portably;
use crate::progress::{Event, Progress};
use crate::solve::{self, SolveParams, Solver};
use crate::stage::{Basis, Scaling, Stage};
use tha_core::RangePolicy;

/// Parameters that were checked.
#[derive(Clone, Debug)]
pub struct ValidFitParams<'a> {
    pub(crate) basis: Basis,
    /// Pieces of the maps.
    pub(crate) maps: Option<usize>,
    pub(crate) solve: SolveParams,
    pub(crate) validation: Validation<'a>,
    pub(crate) refit: bool,
    pub(crate) range: RangePolicy,
    /// Of the intervals around the outputs.
    pub(crate) coverage: f64,
    /// `None` for the full model.
    pub(crate) ensemble: Option<EnsembleParams>,
    /// Whether the kernels are those that give the same bits on every processor.
    pub(crate) portable: bool,
}

/// What the result is validated on, in rows that choose nothing.
#[derive(Clone, Copy, Debug)]
pub enum Validation<'a> {
    /// The last part of each record, 0.2 of it by default.
    End(f64),
    /// Another data set with the same channels.
    Data(&'a Dataset),
    /// This many contiguous blocks over all records, each judged by a fit to the others.
    Folds(usize),
}

impl Default for Validation<'_> {
    fn default() -> Self {
        Self::End(0.2)
    }
}

/// One row in so many may be left out at the start of a single record behind averages. cascaded_tanks, differences:64, maps: 0.237
/// without, 0.196 with. For all of 31 records of air_quality it would cost 0.346 to 0.371 (levels:8).
const SPARED: usize = 8;
/// Lag windows that are not too many are kept for every block: without each of five, four fifths of them.
const COPIES: f64 = 4.0;
/// Numbers that a fit holds for every sample, and for every output of a sample: where it is, what it is in several units, what
/// is predicted.
const PER_SAMPLE: f64 = 2.0;
const PER_OUTPUT: f64 = 6.0;
/// Matrices of all inputs and lags squared that a fit holds at a time (2000 inputs, memory 1: 24 of them at the peak, most of
/// them for the five blocks), and one more for every task over this many samples.
const SQUARES: f64 = 25.0;
const SQUARE_PER: f64 = 4096.0;
impl ValidFitParams<'_> {
    /// Fits the full model, or an ensemble, to the data that the parameters were checked with.
    pub fn fit(&self, data: &Dataset, progress: &dyn Progress) -> Result<Outcome, FitError> {
        self.check(data)?;
        portably(self.portable, || {
            let folder = self.ensemble.as_ref().and_then(|ensemble| ensemble.checkpoint.as_ref());
            let warn = |text| progress.report(&Event::Warning(text));
            let checkpoint =
                folder.map(|folder| Checkpoint::open(folder, self.identity(data), warn)).transpose()?;
            self.fit_with(data, checkpoint.as_ref(), progress)
        })
    }

    /// The same with a folder that is open already.
    pub(crate) fn fit_with(
        &self,
        data: &Dataset,
        checkpoint: Option<&Checkpoint<'_>>,
        progress: &dyn Progress,
    ) -> Result<Outcome, FitError> {
        match &self.ensemble {
            None => Ok(judged::fit(&Full { data, options: self, checkpoint, progress }, data, self)?.0),
            Some(ensemble) => ensemble::fit(data, self, ensemble, checkpoint, progress),
        }
    }

    /// What a run with these parameters is known by: all settings that what it keeps depends on, by the names their user knows.
    pub(crate) fn identity(&self, data: &Dataset) -> Identity {
        // Every setting of the solver counts, also one that is added later.
        let SolveParams {
            degree,
            max_rank,
            tolerance,
            solver,
            ridge,
            decay,
            memory,
            restarts,
            sweeps,
            seed,
            ranks,
            gamma,
            without: _,
        } = &self.solve;
        let settings = [
            ("memory", memory.to_string()),
            ("basis", self.basis.to_string()),
            ("maps", format!("{:?}", self.maps)),
            ("degree", degree.to_string()),
            ("max_rank", max_rank.to_string()),
            ("tolerance", tolerance.to_string()),
            ("solver", format!("{solver:?}")),
            ("ridge", format!("{ridge:?}")),
            ("decay", format!("{decay:?}")),
            ("restarts", restarts.to_string()),
            ("seed", seed.to_string()),
            ("sweeps", sweeps.to_string()),
            ("ranks", format!("{ranks:?}")),
            ("gamma", gamma.map_or_else(|| "auto".into(), |gamma| gamma.to_string())),
        ];
        let ensemble = self.ensemble.iter().flat_map(EnsembleParams::settings);
        checkpoint::identity(data, self.validation, settings.into_iter().chain(ensemble))
    }

    /// Refuses what cannot work with these data.
    pub(super) fn check(&self, data: &Dataset) -> Result<(), FitError> {
        match self.basis {
            Basis::Lags(memory) => data.check_memory(memory)?,
            basis => basis.check_records(data)?,
        }
        match &self.ensemble {
            None => self.check_size(data, data.inputs.len(), 1),
            Some(ensemble) => ensemble.check(data, self),
        }
    }

    /// The input stage as some rows of the data suggest it.
    pub(crate) fn stage(&self, data: &Dataset, rows: &[usize]) -> Result<Stage, FitError> {
        let scaling = Scaling::from_rows(data, rows)?;
        Ok(Stage::fit(data, rows, &scaling, &self.basis, self.maps, self.range)?)
    }

    /// The number of the first sample of a record that can be predicted, from 1.
    pub(crate) fn settled(&self) -> usize {
        self.basis.bank(1).map_or(1, |bank| bank.history() + 1)
    }

    /// Rows that take part in a fit. Averages that have run for their time constant know what the inputs were, but the outputs still
    /// remember what was before the record. Of several records a model learns how records begin; one beginning is left out, as
    /// many rows again, if that is one in [`SPARED`] at most.
    pub(crate) fn training_rows(&self, data: &Dataset) -> Vec<usize> {
        let history = self.settled() - 1;
        let more = match (self.basis, data.records.as_slice()) {
            (Basis::Levels(_) | Basis::Differences(_), [only]) => history.min(only.rows.len() / SPARED),
            _ => 0,
        };
        data.scored_rows(history + more + 1)
    }

    /// q for heads of so many inputs.
    pub(crate) fn columns(&self, inputs: usize) -> usize {
        inputs * self.basis.features() * (1 + self.maps.unwrap_or(0)) + 1
    }

    /// Refuses what this machine cannot hold: `at_once` heads of `inputs` inputs each, fitted at the same time.
    pub(crate) fn check_size(&self, data: &Dataset, inputs: usize, at_once: usize) -> Result<(), FitError> {
        let q = self.columns(inputs) as f64;
        let l = data.outputs.len() as f64;
        let rank = |k: usize| match k {
            0 => l,
            k if k == self.solve.degree => 1.0,
            k => (self.solve.max_rank as f64)
                .min(l * q.powi(k as i32))
                .min(q.powi((self.solve.degree - k) as i32)),
        };
        let components = || (1..=self.solve.degree).map(|k| rank(k - 1) * rank(k));
        let largest = components().fold(1.0, f64::max);
        let components: f64 = components().sum();
        let (samples, parameters) = (data.len() as f64, q * components);
        // A large train is fitted with all windows in memory, and what stands left and right of every core.
        let whole = if parameters > solve::EXPLICIT as f64 { samples * (q + l * components) } else { 0.0 };
        let kept = (COPIES * samples * q).min(2.0 * solve::KEPT as f64);
        let tasks = (samples / SQUARE_PER).ceil().min(rayon::current_num_threads() as f64);
        let squares = q
            * q
            * match self.solve.solver {
                Solver::Ladder | Solver::Direct => SQUARES + tasks,
                Solver::Als => SQUARES + 3.0 * largest * largest,
                Solver::Mvmals => 2.0 * SQUARES * largest,
            };
        let at_once = at_once as f64;
        for (what, numbers, remedy) in [
            (
                "fitting this many samples",
                samples * (PER_SAMPLE + PER_OUTPUT * l) + at_once * (kept + whole),
                "use fewer samples, inputs or `threads`, or a smaller `memory`",
            ),
            (
                "the covariance of all inputs and lags",
                at_once * squares,
                "use fewer inputs, a smaller `memory`, or heads of few inputs (`heads`, `subset_size`)",
            ),
            ("the model", parameters, "use a smaller `max_rank`, `memory` or `degree`"),
        ] {
            host::check_room(what, 8.0 * numbers, remedy)?;
        }
        Ok(())
    }
}
