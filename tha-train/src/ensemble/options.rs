//! What an ensemble is to be, whether that is possible, and SelectSubsets of Algorithm 1 by the strategy asked for.

use super::heads::Material;
use super::relevance;
use super::select::{Cost, Room};
use super::subsets::{self, Strategy};
use crate::checkpoint;
use crate::data::Dataset;
use crate::fit::{self, FitError};
use crate::host;
use crate::network::choose;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How the heads are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Combine {
    /// Convex weights, as in the paper.
    #[default]
    Average,
    /// Free weights.
    Stack,
    /// Heads fitted to what the others leave; weights 1.
    Additive,
}

/// What an ensemble is to be.
#[derive(Clone, Debug)]
pub(crate) struct EnsembleParams {
    /// K; `None` lets a covering design or a given list say.
    pub heads: Option<usize>,
    /// Inputs of each head.
    pub subset_size: usize,
    /// How the subsets are chosen.
    pub strategy: Strategy,
    /// How the heads are combined.
    pub combine: Combine,
    /// Folder in which finished heads are kept.
    pub checkpoint: Option<PathBuf>,
    /// Largest model file, bytes.
    pub budget_flash: Option<usize>,
    /// Most multiply-accumulates per sample.
    pub budget_macs: Option<usize>,
}

/// Subsets known in advance, or found one by one.
pub(super) enum Plan {
    Fixed(Vec<Vec<usize>>),
    Adaptive(usize),
}

impl EnsembleParams {
    /// Refuses what cannot work with these data.
    pub(crate) fn check(&self, data: &Dataset, options: &fit::ValidFitParams) -> Result<(), FitError> {
        self.check_subsets(data)?;
        self.check_size(data, options)
    }

    fn check_subsets(&self, data: &Dataset) -> Result<(), FitError> {
        let p = data.inputs.len();
        let refuse =
            |option, found: String, expected: String| Err(FitError::Option { option, found, expected });
        if let Strategy::Given(subsets) = &self.strategy {
            let good = |s: &Vec<usize>| {
                !s.is_empty() && s.windows(2).all(|w| w[0] < w[1]) && s.iter().all(|&c| c < p)
            };
            return match subsets.iter().position(|subset| !good(subset)) {
                Some(k) => {
                    refuse("subsets", format!("list {}", k + 1), format!("distinct inputs of the {p}"))
                }
                None if subsets.is_empty() => refuse("subsets", "no list".into(), "at least one".into()),
                None => Ok(()),
            };
        }
        if !(1..=p).contains(&self.subset_size) {
            return refuse("subset_size", self.subset_size.to_string(), format!("1 to the {p} inputs"));
        }
        if self.strategy == Strategy::PerOutput && self.combine != Combine::Additive {
            let reason = "`subsets` per-output adds its heads up; use `combine` additive, or leave it out";
            return Err(FitError::Combination(reason.into()));
        }
        match self.heads {
            Some(count) if self.strategy == Strategy::PerOutput => {
                refuse("heads", count.to_string(), "none: `subsets` per-output makes one per output".into())
            }
            None if self.strategy == Strategy::PerOutput => Ok(()),
            Some(0) => refuse("heads", "0".into(), "at least 1".into()),
            Some(count) if count > usize::from(u16::MAX) => {
                refuse("heads", count.to_string(), format!("at most {}", u16::MAX))
            }
            None if self.strategy != Strategy::Covering => {
                refuse("heads", "nothing".into(), "a number, or `subsets` covering, which finds it".into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses what this machine cannot hold: the heads that are fitted at the same time, and the look at all inputs together
    /// that some strategies take first.
    fn check_size(&self, data: &Dataset, options: &fit::ValidFitParams) -> Result<(), FitError> {
        let (size, count) = match &self.strategy {
            Strategy::Given(subsets) => (subsets.iter().map(Vec::len).max().unwrap_or(1), subsets.len()),
            Strategy::PerOutput => (self.subset_size, data.outputs.len()),
            _ => (self.subset_size, self.heads.unwrap_or(usize::MAX)),
        };
        if matches!(self.strategy, Strategy::Weighted | Strategy::Adaptive) {
            let q = options.columns(data.inputs.len()) as f64;
            let bytes = 8.0 * relevance::NUMBERS * q * (q + data.len().min(relevance::ROWS) as f64);
            let remedy = "use `subsets` random, fewer inputs or a smaller `memory`";
            host::check_room("the relevance of all inputs", bytes, remedy)?;
        }
        options.check_size(data, size, count.min(rayon::current_num_threads()))
    }

    /// Whether every head is fitted to what the others leave.
    pub(super) fn adds(&self) -> bool {
        self.combine == Combine::Additive && self.strategy != Strategy::PerOutput
    }

    /// The settings that stored heads depend on, beside those of their fits, by the names their user knows. Budgets, the refit and
    /// the range policy are not among them: what depends on those says so in what its stage started from.
    pub(crate) fn settings(&self) -> [(&'static str, String); 4] {
        [
            ("heads", format!("{:?}", self.heads)),
            ("subset_size", self.subset_size.to_string()),
            ("subsets", format!("{:?}", self.strategy)),
            ("combine", format!("{:?}", self.combine)),
        ]
    }

    /// SelectSubsets; `None` where every output finds its own inputs.
    pub(super) fn plan(&self, material: &Material<'_>) -> Result<Option<Plan>, FitError> {
        let run = material.run;
        let (p, size) = (material.inputs(), self.subset_size);
        let mut rng = ChaCha8Rng::seed_from_u64(run.solve.seed);
        let count = self.heads.unwrap_or(usize::from(u16::MAX));
        Ok(Some(Plan::Fixed(match &self.strategy {
            Strategy::Given(subsets) => subsets.clone(),
            Strategy::Random => subsets::random(p, size, count, &mut rng),
            Strategy::Weighted => {
                let samples = &material.samples;
                checkpoint::keep(run.checkpoint, "subsets", &material.scope, || {
                    let relevance = relevance::relevance(samples, &samples.y, p);
                    Ok(subsets::weighted(&relevance, size, count, &mut rng))
                })?
            }
            Strategy::Adaptive => return Ok(Some(Plan::Adaptive(count.min(choose(p, size))))),
            Strategy::PerOutput => return Ok(None),
            Strategy::Covering => {
                let tuple = run.solve.degree.min(size);
                if choose(p, tuple) > subsets::TUPLE_LIMIT {
                    return Err(FitError::Option {
                        option: "subsets",
                        found: format!("covering {} sets of {tuple} inputs", choose(p, tuple)),
                        expected: format!(
                            "at most {}; use random, weighted or adaptive",
                            subsets::TUPLE_LIMIT
                        ),
                    });
                }
                let (found, fraction) = subsets::covering(p, size, tuple, count, &mut rng);
                if self.heads.is_none() && fraction < 1.0 {
                    return Err(FitError::Option {
                        option: "subsets",
                        found: format!("covering by more than {} heads", found.len()),
                        expected: "`heads` for a partial covering, or a larger `subset_size`".into(),
                    });
                }
                found
            }
        })))
    }

    /// What the budgets leave for heads, `rest` bytes going to everything else in the file.
    pub(super) fn room(&self, rest: usize) -> Room {
        Room { flash: self.budget_flash.map(|budget| budget.saturating_sub(rest)), macs: self.budget_macs }
    }

    /// Not even the smallest of the heads has room.
    pub(super) fn too_tight(&self, costs: &[Cost], rest: usize) -> FitError {
        let smallest = costs.iter().min_by_key(|cost| cost.flash);
        let (flash, macs) = smallest.map_or((0, 0), |cost| (cost.flash, cost.macs));
        FitError::Budget { flash: flash + rest, macs }
    }
}
