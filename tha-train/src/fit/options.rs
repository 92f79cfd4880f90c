//! How to fit, and whether that makes sense for the data at hand.

use super::FitError;
use crate::data::Dataset;
use crate::host;
use crate::solve::{self, Solver};
use tha_core::RangePolicy;

/// How to fit.
#[derive(Clone, Debug)]
pub struct FitParams {
    /// Memory M: samples of each input that an output depends on.
    pub memory: usize,
    /// Degree, rank, solver and its settings; their memory is set to the one above.
    pub solve: solve::SolveParams,
    /// Refit the chosen structure on all of the data.
    pub refit: bool,
    /// What the model does with inputs outside their training range.
    pub range: RangePolicy,
}

/// What the choice of rank, ridge and early stopping is judged on.
#[derive(Clone, Copy, Debug)]
pub enum Validation<'a> {
    /// The last part of each record.
    End(f64),
    /// Another data set with the same channels.
    Data(&'a Dataset),
    /// This many contiguous blocks over all records, each judged by a fit to the others.
    Folds(usize),
}

/// Most samples of memory a model file can say.
const MEMORY_LIMIT: usize = u16::MAX as usize;
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
/// Far beyond what pays; catches a slip of the finger.
const FOLD_LIMIT: usize = 1000;

impl FitParams {
    /// Refuses what cannot work before any work is done.
    pub fn check(&self, judge: Validation<'_>) -> Result<(), FitError> {
        let refuse =
            |option, found: String, expected: String| Err(FitError::Option { option, found, expected });
        if self.memory == 0 || self.memory > MEMORY_LIMIT {
            return refuse("memory", self.memory.to_string(), format!("1 to {MEMORY_LIMIT}"));
        }
        self.solve.check()?;
        match judge {
            Validation::End(fraction) if !(fraction > 0.0 && fraction < 1.0) => {
                refuse("val_fraction", fraction.to_string(), "a part between 0 and 1".into())
            }
            Validation::Folds(count) if !(2..=FOLD_LIMIT).contains(&count) => {
                refuse("folds", count.to_string(), format!("2 to {FOLD_LIMIT}"))
            }
            _ => Ok(()),
        }
    }

    /// The same, the solver knowing of the lags.
    pub(crate) fn lagged(&self) -> Self {
        let solve = solve::SolveParams { memory: self.memory, ..self.solve.clone() };
        Self { solve, ..self.clone() }
    }

    /// Refuses what this machine cannot hold: `at_once` heads of `inputs` inputs each, fitted at the same time.
    pub(crate) fn check_size(&self, data: &Dataset, inputs: usize, at_once: usize) -> Result<(), FitError> {
        let q = (inputs as f64) * (self.memory as f64) + 1.0;
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
