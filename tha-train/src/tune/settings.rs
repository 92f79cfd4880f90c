//! Settingss of `fit`: how they are named, what they cost, and what they give.

use super::TuneParams;
use crate::data::Dataset;
use crate::ensemble::{Combine, Strategy};
use crate::fit::{FitError, FitParams};
use crate::progress::{OnlyStop, Progress};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Memory, degree and rank cap, and the heads of an ensemble. Everything else is as `fit` has it by default; the ridge
/// and the rank below the cap are chosen inside every fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Memory M.
    pub memory: usize,
    /// Degree d.
    pub degree: usize,
    /// Largest rank.
    pub max_rank: usize,
    /// The heads; `None` for the full model.
    pub heads: Option<Heads>,
}

/// The heads of an ensemble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heads {
    /// K random subsets; `None` for a covering design, which finds K.
    pub count: Option<usize>,
    /// Inputs of each head.
    pub subset_size: usize,
    /// How the heads are combined.
    pub combine: Combine,
}

impl Settings {
    /// A short name, good for a file.
    pub(super) fn key(&self) -> String {
        let mut key = format!("m{}-d{}-r{}", self.memory, self.degree, self.max_rank);
        if let Some(heads) = &self.heads {
            let count = heads.count.map_or_else(|| "cover".into(), |count| format!("k{count}"));
            key += &format!("-{count}-s{}-{}", heads.subset_size, heads.combine_name());
        }
        key
    }

    /// Coefficients of one head on `inputs` inputs at inner ranks of `rank`.
    pub(super) fn parameters(&self, inputs: usize, outputs: usize, rank: usize) -> usize {
        let q = inputs * self.memory + 1;
        match self.degree {
            1 => outputs * q,
            d => q * rank * (outputs + 1) + (d - 2) * q * rank * rank,
        }
    }

    /// Work of a fit, to an unknown factor: the square of the coefficients of every head.
    pub(super) fn work(&self, inputs: usize, outputs: usize) -> f64 {
        let head = |size: usize| (self.parameters(size, outputs, self.max_rank) as f64).powi(2);
        match &self.heads {
            None => head(inputs),
            Some(heads) => {
                heads.expected(inputs, self.degree)
                    * head(heads.subset_size)
                    * if heads.combine == Combine::Additive { 3.0 } else { 1.0 }
            }
        }
    }

    /// The parameters of a fit.
    pub(super) fn params<'a>(&self, seed: u64) -> FitParams<'a> {
        let params =
            FitParams::new().memory(self.memory).degree(self.degree).max_rank(self.max_rank).seed(seed);
        let Some(Heads { count, subset_size, combine }) = self.heads else { return params };
        let subsets = if count.is_some() { Strategy::Random } else { Strategy::Covering };
        params.heads(count).subsets(subsets).subset_size(subset_size).combine(combine)
    }

    /// What `fit` gives with these settings.
    pub(super) fn fit(
        &self,
        data: &Dataset,
        options: &TuneParams<'_>,
        progress: &dyn Progress,
    ) -> Result<Figures, FitError> {
        let mut params = self.params(options.seed).validation(options.validation);
        if self.heads.is_some() {
            params = params.budget_flash(options.budget_flash).budget_macs(options.budget_macs);
        }
        let outcome = params.check(data)?.fit(data, &OnlyStop(progress))?;
        let bytes = outcome.model.to_bytes().map_err(|error| FitError::Model(error.to_string()))?;
        let largest = |bond: usize| outcome.heads.iter().map(|head| head.ranks[bond]).max().unwrap_or(0);
        Ok(Figures {
            held_out: outcome.held_out.nrmse,
            nrmse: outcome.validation.nrmse,
            relative_residual: outcome.validation.relative_residual,
            flash_bytes: bytes.len(),
            macs_per_sample: outcome.model.macs(),
            heads: outcome.heads.len(),
            ranks: (0..self.degree - 1).map(largest).collect(),
        })
    }
}

impl Heads {
    /// The word for the combination.
    pub fn combine_name(&self) -> &'static str {
        match self.combine {
            Combine::Average => "average",
            Combine::Stack => "stack",
            Combine::Additive => "additive",
        }
    }

    /// K, or about what a covering design of all sets of `degree` inputs will need.
    pub(super) fn expected(&self, inputs: usize, degree: usize) -> f64 {
        let choose = |n: usize, k: usize| (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product::<f64>();
        let tuple = degree.min(self.subset_size);
        self.count.map_or_else(
            || 1.5 * choose(inputs, tuple) / choose(self.subset_size, tuple),
            |count| count as f64,
        )
    }
}

/// What a fit gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Mean NRMSE of the outputs on the samples that were held out to choose on: what settings are compared by.
    pub held_out: f64,
    /// The same on the validation samples, which choose nothing.
    pub nrmse: f64,
    /// Relative residual on the validation samples.
    pub relative_residual: f64,
    /// Bytes of the model file.
    pub flash_bytes: usize,
    /// Multiply-accumulates per sample.
    pub macs_per_sample: usize,
    /// Heads of the model.
    pub heads: usize,
    /// Largest inner ranks over the heads.
    pub ranks: Vec<usize>,
}

impl Figures {
    /// The largest rank; 1 for a linear model.
    pub(super) fn rank(&self) -> usize {
        self.ranks.iter().copied().max().unwrap_or(1)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory {}, degree {}", self.memory, self.degree)?;
        if self.degree > 1 {
            write!(f, ", rank {}", self.max_rank)?;
        }
        if let Some(heads) = &self.heads {
            match heads.count {
                Some(count) => write!(f, ", {count} heads")?,
                None => write!(f, ", covering heads")?,
            }
            write!(f, " of {} inputs, {}", heads.subset_size, heads.combine_name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_options_and_work() {
        let full = Settings { memory: 4, degree: 3, max_rank: 2, heads: None };
        assert_eq!(full.key(), "m4-d3-r2");
        // q = 9: 1 x 9 x 2 + 2 x 9 x 2 + 2 x 9 x 1.
        assert_eq!(full.parameters(2, 1, 2), 72);
        let heads = Heads { count: None, subset_size: 4, combine: Combine::Additive };
        assert_eq!(heads.expected(12, 2), 1.5 * 66.0 / 6.0);
        let covering = Settings { heads: Some(heads), ..full.clone() };
        assert_eq!(covering.key(), "m4-d3-r2-cover-s4-additive");
        assert_eq!(covering.to_string(), "memory 4, degree 3, rank 2, covering heads of 4 inputs, additive");
    }
}
