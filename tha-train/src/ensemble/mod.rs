//! Tensor Head Averaging, Algorithm 1 of the paper: an ensemble of small models over subsets of the inputs, and two more
//! ways of combining them.
//!
//! | combination | heads | weights |
//! |---|---|---|
//! | `average` (the paper) | each fitted to Y | w >= 0, sum w = 1, least validation error |
//! | `stack` | each fitted to Y | free, near the average's |
//! | `additive` | each fitted to what the others leave | 1 |
//!
//! Weights are chosen with heads that have not been fitted to the held-out samples; then the heads are refitted on all data.
//! The model file and the code on the device are the same for all three: a weighted sum. So they are for
//! [`Strategy::PerOutput`], whose heads serve one output each and are added up.

mod additive;
mod heads;
mod hint;
mod joint;
mod options;
mod per_output;
mod pool;
mod relevance;
mod select;
mod subsets;
mod weigh;
pub mod weights;

pub use heads::Failure;
pub use options::Combine;
pub(crate) use options::EnsembleParams;
pub use subsets::Strategy;

use crate::checkpoint::Checkpoint;
use crate::data::Dataset;
use crate::fit::judged::{self, Choice, ChosenHead, Procedure};
use crate::fit::{self, FitError};
use crate::metrics::Metrics;
use crate::network::Network;
use crate::progress::{Progress, Silent};
use crate::solve::Fit;
use heads::{Head, Material, Run, fit_all};
use nalgebra::DMatrix;
use options::Plan;
use select::Cost;
use serde::Serialize;

/// What there is to say about an ensemble beside its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Heads that failed and were left out.
    pub failed: Vec<Failure>,
    /// Heads before pruning and budgets.
    pub heads_before: usize,
    /// Bytes of the model before pruning and budgets.
    pub flash_bytes_before: usize,
    /// The fraction of all d-tuples of inputs inside some head of the model, where it can be counted.
    pub coverage: Option<f64>,
    /// What other choices would have given, in words.
    pub hint: Option<String>,
}

/// Names of some inputs.
fn subset_names(data: &Dataset, subset: &[usize]) -> Vec<String> {
    subset.iter().map(|&c| data.inputs[c].clone()).collect()
}

/// Fits an ensemble.
pub(crate) fn fit(
    data: &Dataset,
    options: &fit::ValidFitParams,
    ensemble: &EnsembleParams,
    checkpoint: Option<&Checkpoint<'_>>,
    progress: &dyn Progress,
) -> Result<fit::Outcome, FitError> {
    let run = Run { solve: &options.solve, checkpoint, progress };
    let procedure = Ensemble { data, options, ensemble, only: None, run };
    let (fit, chosen) = judged::fit(&procedure, data, options)?;
    let inputs = |head: &fit::HeadReport| {
        let index = |name: &String| data.inputs.iter().position(|other| other == name);
        head.inputs.iter().filter_map(index).collect()
    };
    let subsets: Vec<Vec<usize>> = fit.heads.iter().map(inputs).collect();
    let p = data.inputs.len();
    let Extra { failures, before: (heads_before, flash_bytes_before), hint, .. } = chosen;
    let coverage = subsets::coverage(p, options.solve.degree.min(p), &subsets);
    let summary = Summary { failed: failures, heads_before, flash_bytes_before, coverage, hint };
    Ok(fit::Outcome { ensemble: Some(summary), ..fit })
}

/// Heads that can be fitted apart from each other.
pub(crate) enum Apart {
    /// On subsets that are the same for every choice.
    Subsets(Vec<Vec<usize>>),
    /// So many, each of which finds its inputs in all of the data.
    Count(usize),
    /// None: they depend on each other.
    None,
}

/// Which heads can be fitted apart from each other.
pub(crate) fn apart(
    data: &Dataset,
    options: &fit::ValidFitParams,
    ensemble: &EnsembleParams,
    checkpoint: &Checkpoint<'_>,
) -> Result<Apart, FitError> {
    if ensemble.adds() {
        return Ok(Apart::None);
    }
    let rows = judged::first_rows(data, options)?;
    let run = Run { solve: &options.solve, checkpoint: Some(checkpoint), progress: &Silent };
    let material = Material::new(data, rows.clone(), options.stage(data, &rows)?, run);
    Ok(match ensemble.plan(&material)? {
        None => Apart::Count(data.outputs.len()),
        // Every fold has its own idea of what is relevant; and maps that no input has enough values for are refused.
        Some(Plan::Fixed(subsets))
            if options.maps.is_some()
                || ensemble.strategy == Strategy::Weighted
                    && matches!(options.validation, fit::Validation::Folds(_)) =>
        {
            Apart::Count(subsets.len())
        }
        Some(Plan::Fixed(subsets)) => Apart::Subsets(subsets),
        Some(Plan::Adaptive(_)) => Apart::None,
    })
}

/// Fits head `k` alone, for what is kept of it; the reason where it has to be left out of the ensemble. With data of its inputs alone
/// its subset is the only one.
pub(crate) fn fit_head(
    data: &Dataset,
    options: &fit::ValidFitParams,
    ensemble: &EnsembleParams,
    k: usize,
    checkpoint: &Checkpoint<'_>,
    progress: &dyn Progress,
) -> Result<Option<String>, FitError> {
    let run = Run { solve: &options.solve, checkpoint: Some(checkpoint), progress };
    let procedure = Ensemble { data, options, ensemble, only: Some(k), run };
    match judged::work(&procedure, data, options) {
        Ok(()) => Ok(None),
        Err(FitError::NoHead { reason }) => Ok(Some(reason)),
        Err(FitError::Solve(error)) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    }
}

/// How an ensemble is made.
struct Ensemble<'a> {
    data: &'a Dataset,
    options: &'a fit::ValidFitParams<'a>,
    ensemble: &'a EnsembleParams,
    /// The one head to fit, where it is one of many tasks.
    only: Option<usize>,
    run: Run<'a>,
}

/// What is known of chosen heads beside themselves.
#[derive(Default)]
struct Extra {
    /// Joint steps over additive heads.
    joint_steps: usize,
    failures: Vec<Failure>,
    /// Heads and bytes before pruning and budgets.
    before: (usize, usize),
    hint: Option<String>,
}

impl Procedure for Ensemble<'_> {
    type Extra = Extra;

    fn choose(&self, rows: Vec<usize>) -> Result<(Choice, Extra), FitError> {
        let Self { data, options, ensemble, run, .. } = *self;
        let stage = options.stage(data, &rows)?;
        let material = Material::new(data, rows, stage, run);
        let plan = ensemble.plan(&material)?;
        let (heads, held_out, extra) = match (plan, ensemble.combine) {
            (plan, _) if self.only.is_some() => self.lone(&material, plan.as_ref())?,
            (None, _) => per_output::choose(self, &material)?,
            (Some(plan), Combine::Additive) => additive::choose(self, &material, plan)?,
            (Some(plan), _) => weigh::choose(self, &material, plan)?,
        };
        run.go_on()?;
        let samples = material.samples;
        let stage = samples.stage().clone();
        let choice = Choice { stage, rows: Vec::new(), heads, held_out, joint: ensemble.adds() };
        let choice = self.refit(&choice, &extra, samples.rows, "fit")?;
        Ok((choice, extra))
    }

    /// Heads make up for each other: choosing all of them again would take as long as the first time and gain little.
    fn chooses_again(&self, _: &Choice) -> bool {
        false
    }

    fn refit(
        &self,
        choice: &Choice,
        extra: &Extra,
        rows: Vec<usize>,
        stage: &str,
    ) -> Result<Choice, FitError> {
        // An average gives few heads a weight: who merges them fits those to all rows (5 of 100 heads; the fits of the others would be
        // half of the work).
        if self.only.is_some() && self.ensemble.combine == Combine::Average {
            return Ok(choice.clone());
        }
        let (mut choice, samples) = choice.over(rows, self.data, self.options)?;
        let fits = if self.ensemble.adds() {
            additive::refit(&samples, &choice.heads, extra.joint_steps, stage, self.run)?
        } else {
            fit_all(&samples, &choice.heads, stage, self.run)?
        };
        self.run.go_on()?;
        for (head, fit) in choice.heads.iter_mut().zip(fits) {
            head.fit = fit;
        }
        Ok(choice)
    }

    fn note(&self, choice: &Choice, validation: &Metrics) -> String {
        let (combine, heads, samples) = (self.ensemble.combine, choice.heads.len(), choice.rows.len());
        note(heads, combine, samples, validation.nrmse)
    }
}

impl Ensemble<'_> {
    /// The one head, with all the weight.
    fn lone(&self, material: &Material<'_>, plan: Option<&Plan>) -> Result<Chosen, FitError> {
        let k = self.only.unwrap_or(0);
        let alone = self.ensemble.strategy.is_one();
        let head = match plan {
            None => per_output::head(self, material, k)?,
            Some(Plan::Fixed(subsets)) => {
                let Some(subset) = subsets.get(if alone { 0 } else { k }) else {
                    return Err(FitError::NoHead { reason: format!("there are {} subsets", subsets.len()) });
                };
                heads::train(material, k, subset)?.sound()?
            }
            Some(Plan::Adaptive(_)) => {
                return Err(FitError::NoHead { reason: "it depends on those before it".into() });
            }
        };
        let (heads, held_out) = chosen(material, &[head], &[1.0]);
        Ok((heads, held_out, Extra { before: (1, 0), ..Extra::default() }))
    }
}

/// Heads with their weights, not yet fitted to all samples; figures on held-out samples; and what is known beside them.
type Chosen = (Vec<ChosenHead>, Metrics, Extra);

/// Weighted heads at the last of their networks, and what they predict for samples they were not fitted to.
fn chosen(material: &Material<'_>, heads: &[Head], weights: &[f64]) -> (Vec<ChosenHead>, Metrics) {
    let mut sum = DMatrix::zeros(material.samples.y.nrows(), material.samples.y.ncols());
    for (head, weight) in heads.iter().zip(weights) {
        let prediction =
            fit::held_out(&head.choice.networks, &material.blocks, &material.samples.of_inputs(&head.inputs));
        let mut served = sum.columns_range_mut(head.outputs.clone());
        served += prediction * *weight;
    }
    (settled(heads, weights), fit::figures(material.data, &material.samples, sum))
}

/// Weighted heads at the last of their networks.
fn settled(heads: &[Head], weights: &[f64]) -> Vec<ChosenHead> {
    let heads = heads.iter().zip(weights).map(|(head, &weight)| ChosenHead {
        number: head.number,
        inputs: head.inputs.clone(),
        weight,
        fit: Fit {
            network: head.choice.networks.last().expect("there are blocks").clone(),
            settings: head.choice.settings.clone(),
            sweeps: 0,
            train_residual: f64::NAN,
        },
        seconds: head.seconds,
        outputs: head.outputs.clone(),
    });
    heads.collect()
}

/// The bytes and operations of a head in a model file.
fn cost(inputs: &[usize], network: &Network) -> Cost {
    let words = 3 + (network.degree() + 1) + inputs.len() + network.parameters();
    Cost { flash: 4 * words, macs: network.parameters() }
}

/// What the model says of itself.
fn note(heads: usize, combine: Combine, samples: usize, nrmse: f64) -> String {
    let name = fit::FitParams::COMBINATIONS.iter().find(|(_, other)| *other == combine);
    let combine = name.map_or("", |(name, _)| name);
    format!("{heads} heads, {combine}, {samples} samples, validation NRMSE {nrmse:.4}")
}

/// The model file of these heads as they are, with the longest note it can have.
fn file_bytes(
    material: &Material<'_>,
    heads: &[ChosenHead],
    options: &fit::ValidFitParams,
) -> Result<usize, FitError> {
    let choice = Choice {
        stage: material.samples.stage().clone(),
        rows: material.samples.rows.clone(),
        heads: heads.to_vec(),
        held_out: Metrics::new(&[], &DMatrix::zeros(0, 0), &DMatrix::zeros(0, 0)),
        joint: false,
    };
    let note = note(heads.len(), Combine::Additive, material.data.len(), 1e3);
    Ok(choice.model(material.data, options, &[], note).to_bytes()?.len())
}
