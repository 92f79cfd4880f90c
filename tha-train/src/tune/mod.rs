//! The search for settings of [`crate::fit`]: memory, degree, rank cap and the heads of an ensemble. What it gives is the
//! Pareto front of error against flash and against operations.
//!
//! Every candidate is what `fit` gives with its settings; candidates are compared by their error on the blocks that `fit` holds
//! out to choose on. Which settings come next depends on results only, never on time or threads: a search that was cut short
//! is the beginning of the longer one.

mod front;
mod next;
mod plot;
mod search;
mod settings;

pub use plot::svg;
pub use settings::{Figures, Heads, Settings};

use crate::checkpoint::{self, Checkpoint, Identity};
use crate::data::{DataError, Dataset, Split, listed};
use crate::fit::{FitError, Validation, setters};
use crate::progress::{Event, Progress};
use crate::solve::SolveError;
use search::Search;
use std::path::PathBuf;

/// Where the search may go, and how far.
///
/// | Name | Default | Range |
/// |---|---|---|
/// | `max_memory` | 32, or an eighth of the shortest record | 1 to 65535 samples |
/// | `max_degree` | 3 | 1 to 32 |
/// | `max_rank` | 4 | 1 to 1024 |
/// | `max_heads` | 128 | 0 for full models only |
/// | `trials` | none | at least 1 |
/// | `budget_flash`, `budget_macs` | none | bytes, multiply-accumulates per sample |
/// | `checkpoint` | none | a folder |
/// | `validation` | the last 0.2 of each record | as in [`FitParams`](crate::FitParams) |
/// | `seed` | 0 | |
///
/// ```
/// use tha_train::{Silent, SynthKind, SynthParams, TuneParams, generate};
///
/// let data = generate(&SynthParams { samples: 200, ..SynthParams::new(SynthKind::Volterra) })?.train;
/// let search = TuneParams::new().max_memory(2).max_degree(2).max_heads(0).trials(2);
/// let tuning = search.check(&data)?.tune(&data, &Silent)?;
/// assert_eq!(tuning.fits, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TuneParams<'a> {
    max_memory: Option<usize>,
    max_degree: usize,
    max_rank: usize,
    max_heads: usize,
    trials: Option<usize>,
    budget_flash: Option<usize>,
    budget_macs: Option<usize>,
    seed: u64,
    checkpoint: Option<PathBuf>,
    validation: Validation<'a>,
}

impl Default for TuneParams<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> TuneParams<'a> {
    /// Largest degree by default.
    pub const MAX_DEGREE: usize = 3;
    /// Largest rank cap by default.
    pub const MAX_RANK: usize = 4;
    /// Most heads by default.
    pub const MAX_HEADS: usize = 128;

    /// The defaults.
    pub fn new() -> Self {
        Self {
            max_memory: None,
            max_degree: Self::MAX_DEGREE,
            max_rank: Self::MAX_RANK,
            max_heads: Self::MAX_HEADS,
            trials: None,
            budget_flash: None,
            budget_macs: None,
            seed: 0,
            checkpoint: None,
            validation: Validation::default(),
        }
    }

    setters! {
        /// Largest memory; `None` for what the records allow.
        = max_memory: impl Into<Option<usize>>;
        /// Largest degree.
        = max_degree: usize;
        /// Largest rank cap.
        = max_rank: usize;
        /// Most heads of an ensemble; 0 for full models only.
        = max_heads: usize;
        /// Fits at most.
        = trials: impl Into<Option<usize>>;
        /// Largest model file, bytes.
        = budget_flash: impl Into<Option<usize>>;
        /// Most multiply-accumulates per sample.
        = budget_macs: impl Into<Option<usize>>;
        /// Seed of every fit.
        = seed: u64;
        /// Folder in which finished fits are kept.
        = checkpoint: impl Into<Option<PathBuf>>;
        /// What the models are validated on.
        = validation: Validation<'a>;
    }

    /// Refuses what cannot work with these data, before any work is done.
    pub fn check(self, data: &Dataset) -> Result<ValidTuneParams<'a>, FitError> {
        check(data, &self)?;
        Ok(ValidTuneParams(self))
    }
}

/// Parameters of a search that were checked.
#[derive(Clone, Debug)]
pub struct ValidTuneParams<'a>(TuneParams<'a>);

impl ValidTuneParams<'_> {
    /// Searches in the data that the parameters were checked with.
    pub fn tune(&self, data: &Dataset, progress: &dyn Progress) -> Result<Tuning, FitError> {
        let Self(options) = self;
        check(data, options)?;
        let checkpoint = match &options.checkpoint {
            Some(folder) => {
                let warn = |text| progress.report(&Event::Warning(text));
                Some(Checkpoint::open(folder, identity(data, options), warn)?)
            }
            None => None,
        };
        Search::new(data, options, progress, checkpoint).run()
    }
}

/// A model on or off the front.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its settings.
    pub settings: Settings,
    /// What `fit` gives with them.
    pub figures: Figures,
    /// No other model has less error for its flash.
    pub on_flash_front: bool,
    /// No other model has less error for its multiply-accumulates.
    pub on_macs_front: bool,
    /// The smallest model with nearly the least error.
    pub recommended: bool,
}

impl Candidate {
    /// On one of the fronts.
    pub fn on_front(&self) -> bool {
        self.on_flash_front || self.on_macs_front
    }
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// All models that keep the budgets, by rising flash.
    pub candidates: Vec<Candidate>,
    /// Fits that were made.
    pub fits: usize,
    /// Settings that would have come next, as far as one can tell; empty when the search came to its end.
    pub untried: Vec<Settings>,
    /// True when the search came to its end.
    pub complete: bool,
    /// Settings that could not be fitted, and why.
    pub failures: Vec<(Settings, String)>,
    /// What to widen when the best model lies at a limit of the search.
    pub hint: Option<String>,
}

/// Refuses what cannot work before any work is done.
fn check(data: &Dataset, options: &TuneParams) -> Result<(), FitError> {
    let (memory, judge) = (options.max_memory.unwrap_or(1), options.validation);
    let widest = Settings { memory, degree: options.max_degree, max_rank: options.max_rank, heads: None };
    widest.params(options.seed).validation(judge).check_values().map_err(of_the_search)?;
    data.check_memory(memory)?;
    let cheapest = Settings { memory: 1, degree: 1, max_rank: 1, heads: None };
    cheapest.params(options.seed).check(data)?;
    let all = data.scored_rows(1);
    let (held_out, validated) = match judge {
        Validation::End(fraction) => {
            let Split { train, validation } = Split::by_end(data, &all, fraction)?;
            (train, (data, validation))
        }
        Validation::Folds(count) => {
            Split::folds(data, &all, count)?;
            (all.clone(), (data, all))
        }
        Validation::Data(other) => {
            other.check_memory(memory)?;
            (all, (other, other.scored_rows(1)))
        }
    };
    // Settings are compared and validated by their NRMSE, which a constant does not have.
    for (name, (data, rows)) in
        [("validation samples", validated), ("samples held out to compare settings", (data, held_out))]
    {
        let constant = |column: &Vec<f64>| rows.iter().all(|&row| column[row] == column[rows[0]]);
        if data.y.iter().all(constant) {
            let finding = format!(
                "in the {name} {} constant, so no setting can be judged; hold out samples where they change (`val`, \
                 `val_fraction`, `folds`), or choose other `outputs`",
                match &data.outputs[..] {
                    [only] => format!("the output '{only}' is"),
                    all => format!("the outputs {} are", listed(all)),
                }
            );
            return Err(DataError::new(&data.origin, finding).into());
        }
    }
    if options.trials == Some(0) {
        return Err(FitError::Option { option: "trials", found: "0".into(), expected: "at least 1".into() });
    }
    Ok(())
}

/// A refused parameter of the widest fit under the name that the search has for it.
fn of_the_search(refusal: FitError) -> FitError {
    match refusal {
        FitError::Option { option: "memory", found, expected } => {
            FitError::Option { option: "max_memory", found, expected }
        }
        FitError::Solve(SolveError::Setting { name: "degree", found, expected }) => {
            FitError::Solve(SolveError::Setting { name: "max_degree", found, expected })
        }
        other => other,
    }
}

/// What a fit in the checkpoint depends on beside its settings. The limits of the search are not among it: a search may
/// be continued with wider ones.
fn identity(data: &Dataset, options: &TuneParams) -> Identity {
    let budget = |budget: Option<usize>| budget.map_or_else(|| "none".into(), |budget| budget.to_string());
    let settings = [
        ("command", "tune".to_owned()),
        ("seed", options.seed.to_string()),
        ("budget_flash", budget(options.budget_flash)),
        ("budget_macs", budget(options.budget_macs)),
    ];
    checkpoint::identity(data, options.validation, settings)
}
