//! The search for settings of [`crate::fit`]: memory, degree, rank cap and the heads of an ensemble, by successive
//! halving on held-out samples; what it gives is the Pareto front of error against flash and against operations.
//!
//! Settings come in waves, cheap ones first. A wave is fitted on a part of the data, what is worth it on a larger part,
//! and what is still worth it as `fit` does it. Worth it is what no other setting of its rung makes
//! superfluous, in error and in size at once, so that small models are not lost to good ones. Which settings come next
//! depends on results only, never on time or threads: a search that was cut short is the beginning of the longer one.

mod front;
mod plot;
mod pool;
mod rung;
mod search;
mod setting;

pub use plot::svg;
pub use rung::Trial;
pub use setting::{Heads, Setting};

use crate::checkpoint::{self, Checkpoint, Identity};
use crate::data::{DataError, Dataset, Split, listed};
use crate::fit::{FitError, Validation};
use crate::progress::{Event, Progress};
use search::Search;
use std::path::PathBuf;

/// Where the search may go, and how far.
#[derive(Clone, Debug)]
pub struct TuneParams {
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

impl Default for TuneParams {
    fn default() -> Self {
        Self {
            max_memory: None,
            max_degree: 3,
            max_rank: 4,
            max_heads: 128,
            trials: None,
            budget_flash: None,
            budget_macs: None,
            seed: 0,
            checkpoint: None,
        }
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
    judge: Validation<'_>,
    options: &TuneParams,
    progress: &dyn Progress,
) -> Result<Tuning, FitError> {
    check(data, judge, options)?;
    let checkpoint = match &options.checkpoint {
        Some(folder) => {
            let identity = identity(data, judge, options);
            Some(Checkpoint::open(folder, identity, |text| progress.report(&Event::Warning(text)))?)
        }
        None => None,
    };
    Search::new(data, judge, options, progress, checkpoint).run()
}

/// Refuses what cannot work before any work is done.
fn check(data: &Dataset, judge: Validation<'_>, options: &TuneParams) -> Result<(), FitError> {
    let memory = options.max_memory.unwrap_or(1);
    let widest = Setting { memory, degree: options.max_degree, max_rank: options.max_rank, heads: None };
    widest.fit_options(options.seed, 1, true).check(judge)?;
    data.check_memory(memory)?;
    let cheapest = Setting { memory: 1, degree: 1, max_rank: 1, heads: None };
    cheapest.fit_options(options.seed, 1, true).check_size(data, data.inputs.len(), 1)?;
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
            return Err(DataError::Split { origin: data.origin.clone(), finding }.into());
        }
    }
    if options.trials == Some(0) {
        return Err(FitError::Option { option: "trials", found: "0".into(), expected: "at least 1".into() });
    }
    Ok(())
}

/// What a fit in the checkpoint depends on beside its setting. The limits of the search are not among it: a search may
/// be continued with wider ones.
fn identity(data: &Dataset, judge: Validation<'_>, options: &TuneParams) -> Identity {
    let budget = |budget: Option<usize>| budget.map_or_else(|| "none".into(), |budget| budget.to_string());
    let settings = [
        ("command", "tune".to_owned()),
        ("seed", options.seed.to_string()),
        ("budget_flash", budget(options.budget_flash)),
        ("budget_macs", budget(options.budget_macs)),
    ];
    checkpoint::identity(data, judge, settings)
}
