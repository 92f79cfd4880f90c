//! A fit as pieces of work: the heads of an ensemble, or one piece where they depend on each other.

use super::refuse;
use crate::checkpoint::{Checkpoint, Identity};
use crate::data::Dataset;
use crate::ensemble::{self, Apart, Strategy};
use crate::fit::{FitError, FitParams, Outcome, ValidFitParams, Validation};
use crate::progress::Progress;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Heads {
    pub(super) params: FitParams<'static>,
    judge: Judge,
    pub(super) count: usize,
    pub(super) divided: bool,
    /// The inputs of each head, where they are known: a head then looks at their columns alone.
    pub(super) subsets: Option<Vec<Vec<usize>>>,
}

/// The data, and the validation data where there are some.
type Sets<'a> = (&'a Dataset, Option<&'a Dataset>);

/// [`Validation`] without the data it is about.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Judge {
    End(f64),
    Folds(usize),
    Data,
}

impl Heads {
    /// In one piece, and what the plan is known by.
    pub(super) fn new(
        params: &FitParams<'_>,
        data: &Dataset,
        folder: &Path,
    ) -> Result<(Self, Identity), FitError> {
        let judge = match params.validation {
            Validation::End(fraction) => Judge::End(fraction),
            Validation::Folds(count) => Judge::Folds(count),
            Validation::Data(_) => Judge::Data,
        };
        let unstorable =
            |error: postcard::Error| refuse(folder, format!("the plan cannot be stored: {error}"));
        // The way through bytes leaves the borrowed validation data behind.
        let stored = postcard::to_allocvec(params).map_err(unstorable)?;
        let stored = postcard::from_bytes(&stored).map_err(unstorable)?;
        let heads = Self { params: stored, judge, count: 1, divided: false, subsets: None };
        let valid = params.clone().check(data)?;
        let mut identity = valid.identity(data);
        // What is kept does not depend on these, but a folder holds one plan.
        identity.insert("range".into(), format!("{:?}", valid.range));
        identity.insert("refit".into(), valid.refit.to_string());
        identity.insert("coverage".into(), valid.coverage.to_string());
        if let Some(ensemble) = &valid.ensemble {
            let budgets = format!("{:?} {:?}", ensemble.budget_flash, ensemble.budget_macs);
            identity.insert("budgets".into(), budgets);
        }
        Ok((heads, identity))
    }

    /// In as many pieces as there are heads that can be fitted apart from each other.
    pub(super) fn divide(mut self, sets: Sets<'_>, checkpoint: &Checkpoint<'_>) -> Result<Self, FitError> {
        let (data, _) = sets;
        let valid = self.valid(&self.params, sets)?;
        let apart = match &valid.ensemble {
            None => Apart::None,
            Some(ensemble) => ensemble::apart(data, &valid, ensemble, checkpoint)?,
        };
        (self.count, self.divided, self.subsets) = match apart {
            Apart::None => (1, false, None),
            Apart::Count(count) => (count, true, None),
            Apart::Subsets(subsets) => (subsets.len(), true, Some(subsets)),
        };
        Ok(self)
    }

    fn valid<'a>(
        &self,
        params: &FitParams<'a>,
        (data, other): Sets<'a>,
    ) -> Result<ValidFitParams<'a>, FitError> {
        let validation = match self.judge {
            Judge::End(fraction) => Validation::End(fraction),
            Judge::Folds(count) => Validation::Folds(count),
            Judge::Data => Validation::Data(other.unwrap_or(data)),
        };
        params.clone().validation(validation).check(data)
    }

    /// Fits head `k`; the reason where it has to be left out of the ensemble.
    pub(super) fn fit(
        &self,
        k: usize,
        (data, other): Sets<'_>,
        checkpoint: &mut Checkpoint<'_>,
        progress: &dyn Progress,
    ) -> Result<Option<String>, FitError> {
        let (mut params, mut data) = (self.params.clone(), Cow::Borrowed(data));
        if let Some(subset) = self.subsets.as_ref().map(|subsets| &subsets[k]) {
            // Scaling and filtering the inputs of others would take longer than many a head.
            params = params.subsets(Strategy::Given(vec![(0..subset.len()).collect()]));
            data = Cow::Owned(data.with_inputs(subset));
            checkpoint.of_columns(subset.clone());
        }
        let valid = self.valid(&params, (&data, other))?;
        match &valid.ensemble {
            Some(ensemble) if self.divided => {
                ensemble::fit_head(&data, &valid, ensemble, k, checkpoint, progress)
            }
            _ => valid.fit_with(&data, Some(checkpoint), progress).map(|_| None),
        }
    }

    /// The fit, which finds its heads in the checkpoint.
    pub(super) fn merge(
        &self,
        sets: Sets<'_>,
        checkpoint: &Checkpoint<'_>,
        progress: &dyn Progress,
    ) -> Result<Outcome, FitError> {
        self.valid(&self.params, sets)?.fit_with(sets.0, Some(checkpoint), progress)
    }
}
