//! The search in pieces that others work on: which settings it wants next, and one setting alone. What is kept of them is what an
//! automatic fit keeps of them.

use super::search::predictions;
use super::setting::Setting;
use super::{AutoParams, Part};
use crate::checkpoint::{self, Checkpoint, Identity};
use crate::data::Dataset;
use crate::fit::{FitError, Validation};
use crate::progress::{Event, Progress};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A setting that a search wants to try with these ridges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(super) setting: Setting,
    pub(super) ridges: Vec<f64>,
}

impl AutoParams {
    /// What is kept of a search is known by this.
    pub(crate) fn identity(&self, data: &Dataset) -> Result<Identity, FitError> {
        let other = self.without.filter(|part| matches!(part, Part::Records | Part::ShortFits));
        let settings = [
            ("command", "fit --auto".to_owned()),
            ("seed", self.seed.to_string()),
            ("without", format!("{other:?}")),
        ];
        Ok(checkpoint::identity(data, Validation::Folds(self.ground(data)?.all.len()), settings))
    }

    /// The folder in which what was tried is kept, if there is one.
    pub(super) fn kept<'a>(
        &self,
        data: &Dataset,
        progress: &'a dyn Progress,
    ) -> Result<Option<Checkpoint<'a>>, FitError> {
        let warn = |text| progress.report(&Event::Warning(text));
        let open = |folder| Checkpoint::open(folder, self.identity(data)?, warn);
        self.checkpoint.as_deref().map(open).transpose()
    }

    /// The settings that a search that finds what is kept wants next, as far as they do not depend on each other.
    pub(crate) fn wanted(
        &self,
        data: &Dataset,
        checkpoint: &Checkpoint<'_>,
        progress: &dyn Progress,
    ) -> Result<Vec<Wanted>, FitError> {
        let ground = self.ground(data)?;
        Ok(self.searched(&ground, Instant::now(), Some(checkpoint), true, progress)?.listed)
    }

    /// Tries a setting, for what is kept of it; the reason where it cannot be fitted.
    pub(crate) fn try_one(
        &self,
        data: &Dataset,
        wanted: &Wanted,
        checkpoint: &Checkpoint<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<String>, FitError> {
        Ok(predictions(&self.ground(data)?, wanted, Some(checkpoint), progress)?.err())
    }
}
