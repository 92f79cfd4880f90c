//! An automatic fit as pieces of work: each tries one setting of those that the search is known to want. What they leave are the
//! checkpoints of `fit --auto`, so that the search itself merges them, and tries what is not there.

use crate::auto::{AutoParams, Wanted};
use crate::checkpoint::{Checkpoint, Identity};
use crate::data::Dataset;
use crate::fit::FitError;
use crate::progress::Progress;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) params: AutoParams,
    pub(super) wanted: Vec<Wanted>,
}

impl Settings {
    /// What the plan is known by: as the checkpoints of an automatic fit, whatever its budgets and trials are.
    pub(super) fn identity(params: &AutoParams, data: &Dataset) -> Result<Identity, FitError> {
        if !params.repeats() {
            let expected = "a number: what a search of some `minutes` tries depends on the machine".into();
            return Err(FitError::Option { option: "trials", found: "none".into(), expected });
        }
        params.identity(data)
    }

    /// The settings of an earlier plan, and those that the search wants beside what is there of them.
    pub(super) fn new(
        params: AutoParams,
        mut wanted: Vec<Wanted>,
        data: &Dataset,
        checkpoint: &Checkpoint<'_>,
        progress: &dyn Progress,
    ) -> Result<Self, FitError> {
        let next = params.wanted(data, checkpoint, progress)?;
        let fresh: Vec<Wanted> = next.into_iter().filter(|next| !wanted.contains(next)).collect();
        wanted.extend(fresh);
        Ok(Self { params, wanted })
    }

    /// Tries setting `k`; the reason where it cannot be fitted.
    pub(super) fn try_one(
        &self,
        k: usize,
        data: &Dataset,
        checkpoint: &Checkpoint<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<String>, FitError> {
        self.params.try_one(data, &self.wanted[k], checkpoint, progress)
    }
}
