//! How to fit, and whether that makes sense for the data at hand.

use super::FitError;
use crate::data::Dataset;
use crate::host;
use crate::solve;
use tha_core::RangePolicy;

/// How to fit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory M: samples of each input that an output depends on.
    pub memory: usize,
    /// Degree, rank, solver and its settings; their memory is set to the one above.
    pub solve: solve::Options,
    /// Refit the chosen structure on all of the data.
    pub refit: bool,
    /// What the model does with inputs outside their training range.
    pub range: RangePolicy,
}

/// What the choice of rank, ridge and early stopping is judged on.
#[derive(Clone, Copy, Debug)]
pub enum Judge<'a> {
    /// The last part of each record.
    End(f64),
    /// Another data set with the same channels.
    Data(&'a Dataset),
    /// This many contiguous blocks over all records, each judged by a fit to the others.
    Folds(usize),
}

/// Most samples of memory a model file can say.
const MEMORY_LIMIT: usize = u16::MAX as usize;
/// Lag windows that are not too many are kept by the solver, and very few of them once more.
const COPIES: f64 = 2.0;
/// Numbers that a fit holds for every sample, and for every output of a sample: where it is, what it is in several units, what
/// is predicted.
const PER_SAMPLE: f64 = 2.0;
const PER_OUTPUT: f64 = 6.0;
/// Far beyond what pays; catches a slip of the finger.
const FOLD_LIMIT: usize = 1000;

impl Options {
    /// Refuses what cannot work before any work is done.
    pub fn check(&self, judge: Judge<'_>) -> Result<(), FitError> {
        let refuse =
            |option, found: String, expected: String| Err(FitError::Option { option, found, expected });
        if self.memory == 0 || self.memory > MEMORY_LIMIT {
            return refuse("--memory", self.memory.to_string(), format!("1 to {MEMORY_LIMIT}"));
        }
        self.solve.check()?;
        match judge {
            Judge::End(fraction) if !(fraction > 0.0 && fraction < 1.0) => {
                refuse("--val-fraction", fraction.to_string(), "a part between 0 and 1".into())
            }
            Judge::Folds(count) if !(2..=FOLD_LIMIT).contains(&count) => {
                refuse("--folds", count.to_string(), format!("2 to {FOLD_LIMIT}"))
            }
            _ => Ok(()),
        }
    }

    /// The same, the solver knowing of the lags.
    pub(crate) fn lagged(&self) -> Self {
        let solve = solve::Options { memory: self.memory, ..self.solve.clone() };
        Self { solve, ..self.clone() }
    }

    /// Refuses what this machine cannot hold.
    pub(super) fn check_size(&self, data: &Dataset) -> Result<(), FitError> {
        let Some(available) = host::available_bytes() else { return Ok(()) };
        let q = (data.inputs.len() * self.memory + 1) as f64;
        let l = data.outputs.len() as f64;
        let rank = |k: usize| match k {
            0 => l,
            k if k == self.solve.degree => 1.0,
            k => (self.solve.max_rank as f64)
                .min(l * q.powi(k as i32))
                .min(q.powi((self.solve.degree - k) as i32)),
        };
        let components: f64 = (1..=self.solve.degree).map(|k| rank(k - 1) * rank(k)).sum();
        let (samples, parameters) = (data.len() as f64, q * components);
        // A large train is fitted with all windows in memory, and what stands left and right of every core.
        let whole = if parameters > solve::EXPLICIT as f64 { samples * (q + l * components) } else { 0.0 };
        let kept = COPIES * (samples * q).min(solve::KEPT as f64);
        for (what, numbers, remedy) in [
            (
                "fitting this many samples",
                samples * (PER_SAMPLE + PER_OUTPUT * l) + kept + whole,
                "use fewer samples, fewer inputs or a smaller --memory",
            ),
            ("the model", parameters, "use a smaller --max-rank, --memory or --degree"),
        ] {
            let needed = 8.0 * numbers;
            if needed > available as f64 {
                let (needed, available) = (needed / 1e9, available as f64 / 1e9);
                return Err(FitError::TooBig { what, needed, available, remedy });
            }
        }
        Ok(())
    }
}
