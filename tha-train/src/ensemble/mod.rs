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
mod relevance;
mod select;
mod subsets;
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
use crate::progress::{Event, Progress};
use crate::solve::{Fit, Problem};
use crate::stage::Lagged;
use heads::{Head, Material, fit_all, products, train_all};
use nalgebra::{DMatrix, DVector};
use options::Plan;
use select::{Cost, select};
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
    progress: &dyn Progress,
) -> Result<fit::Outcome, FitError> {
    let checkpoint = match &ensemble.checkpoint {
        Some(folder) => {
            let identity = ensemble.identity(data, options);
            Some(Checkpoint::open(folder, identity, |text| progress.report(&Event::Warning(text)))?)
        }
        None => None,
    };
    let procedure = Ensemble { data, options, ensemble, checkpoint, progress };
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

/// How an ensemble is made.
struct Ensemble<'a> {
    data: &'a Dataset,
    options: &'a fit::ValidFitParams<'a>,
    ensemble: &'a EnsembleParams,
    checkpoint: Option<Checkpoint<'a>>,
    progress: &'a dyn Progress,
}

/// What is known of chosen heads beside themselves.
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
        let Self { data, options, ensemble, progress, .. } = *self;
        let material = Material::new(data, rows, options.memory)?;
        let checkpoint = self.checkpoint.as_ref();
        let (heads, held_out, extra) = match (ensemble.plan(&material, options)?, ensemble.combine) {
            (None, _) => per_output::choose(&material, options, ensemble, checkpoint, progress)?,
            (Some(plan), Combine::Additive) => add(&material, plan, options, ensemble, checkpoint, progress)?,
            (Some(plan), _) => weigh(&material, plan, options, ensemble, checkpoint, progress)?,
        };
        if progress.stop() {
            return Err(FitError::Stopped);
        }
        let Material { scaling, samples, .. } = material;
        let choice = Choice { scaling, rows: Vec::new(), heads, held_out, joint: ensemble.adds() };
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
        let (solve, checkpoint, progress) = (&self.options.solve, self.checkpoint.as_ref(), self.progress);
        let samples = self.data.lagged(self.options.memory, &choice.scaling, rows);
        let fits = if self.ensemble.strategy == Strategy::PerOutput {
            per_output::fit_all(&samples, &choice.heads, solve, progress)?
        } else if self.ensemble.adds() {
            additive::refit(&samples, &choice.heads, extra.joint_steps, solve, stage, checkpoint, progress)?
        } else {
            fit_all(&samples, &choice.heads, solve, stage, checkpoint, progress)?
        };
        if progress.stop() {
            return Err(FitError::Stopped);
        }
        let mut choice = choice.clone();
        for (head, fit) in choice.heads.iter_mut().zip(fits) {
            head.fit = fit;
        }
        choice.rows = samples.rows;
        Ok(choice)
    }

    fn note(&self, choice: &Choice, validation: &Metrics) -> String {
        let (combine, heads, samples) = (self.ensemble.combine, choice.heads.len(), choice.rows.len());
        note(heads, combine, samples, validation.nrmse)
    }
}

/// Heads with their weights, not yet fitted to all samples; figures on held-out samples; and what is known beside them.
type Chosen = (Vec<ChosenHead>, Metrics, Extra);

/// Weighted heads at the last of their networks, and what they predict for samples they were not fitted to.
fn chosen(material: &Material<'_>, heads: &[Head], weights: &[f64]) -> (Vec<ChosenHead>, Metrics) {
    let mut sum = DMatrix::zeros(material.samples.y.nrows(), material.samples.y.ncols());
    for (head, weight) in heads.iter().zip(weights) {
        let problem = Problem { x: &material.samples.of_inputs(&head.inputs), y: &material.samples.y };
        sum += fit::held_out(&head.choice.networks, &material.blocks, &problem) * *weight;
    }
    let metrics = metrics(material, &material.samples, sum);
    let heads = heads.iter().zip(weights).map(|(head, &weight)| ChosenHead {
        inputs: head.inputs.clone(),
        weight,
        fit: Fit {
            train: head.choice.networks.last().expect("there are blocks").clone(),
            settings: head.choice.settings.clone(),
            sweeps: 0,
            train_residual: f64::NAN,
        },
        seconds: head.seconds,
        outputs: head.outputs.clone(),
    });
    (heads.collect(), metrics)
}

/// Figures of standardised predictions for some samples.
fn metrics(material: &Material<'_>, samples: &Lagged<'_>, mut prediction: DMatrix<f64>) -> Metrics {
    material.scaling.restore(&mut prediction);
    Metrics::new(&material.data.outputs, &material.data.outputs_at(&samples.rows), &prediction)
}

/// The bytes and operations of a head in a model file.
fn cost(inputs: &[usize], train: &Network) -> Cost {
    let words = 3 + (train.degree() + 1) + inputs.len() + train.parameters();
    Cost { flash: 4 * words, macs: train.parameters() }
}

/// Heads that predict Y, weighted: `average` and `stack`.
fn weigh(
    material: &Material<'_>,
    plan: Plan,
    options: &fit::ValidFitParams,
    ensemble: &EnsembleParams,
    checkpoint: Option<&Checkpoint>,
    progress: &dyn Progress,
) -> Result<Chosen, FitError> {
    let solve = &options.solve;
    let (heads, failures) = match plan {
        Plan::Fixed(subsets) => train_all(material, &subsets, solve, checkpoint, progress)?,
        Plan::Adaptive(count) => {
            train_adaptively(material, count, ensemble.subset_size, solve, checkpoint, progress)?
        }
    };
    let (all, folds) = products(material, &heads);
    let costs: Vec<Cost> = heads.iter().map(|head| cost(&head.inputs, &head.choice.networks[0])).collect();
    let every = chosen(material, &heads, &vec![0.0; heads.len()]).0;
    let rest = file_bytes(material, &every, options)? - costs.iter().map(|cost| cost.flash).sum::<usize>();
    let before = (heads.len(), rest + costs.iter().map(|cost| cost.flash).sum::<usize>());
    let room = ensemble.room(rest);
    let selection = select(&all, &folds, ensemble.combine, &costs, &room);
    let smallest = costs.iter().copied().min_by_key(|cost| cost.flash).unwrap_or(Cost { flash: 0, macs: 0 });
    let selection = selection.ok_or_else(|| ensemble.too_tight(smallest, rest))?;
    let hint = hint::for_weights(material, &all, &folds, ensemble.combine, options, progress);
    let heads: Vec<Head> = selection.heads.iter().map(|&k| heads[k].clone()).collect();
    let weights: Vec<f64> = selection.weights.iter().copied().collect();
    let (heads, held_out) = chosen(material, &heads, &weights);
    Ok((heads, held_out, Extra { joint_steps: 0, failures, before, hint }))
}

/// Heads one after the other, each where the residual of those before it depends most.
fn train_adaptively(
    material: &Material<'_>,
    count: usize,
    size: usize,
    options: &crate::solve::SolveParams,
    checkpoint: Option<&Checkpoint>,
    progress: &dyn Progress,
) -> Result<(Vec<Head>, Vec<Failure>), FitError> {
    let samples = &material.samples;
    let truth = DVector::from_column_slice(samples.y.as_slice());
    let (mut subsets, mut results): (Vec<Vec<usize>>, Vec<Result<Head, FitError>>) = (Vec::new(), Vec::new());
    let mut columns: Vec<DVector<f64>> = Vec::new();
    let mut residual = samples.y.clone();
    let start = std::time::Instant::now();
    for k in 0..count {
        let table = relevance::dependence(samples, &residual, material.inputs());
        let Some(subset) = relevance::strongest(&table, size, &subsets) else { break };
        let result = heads::train(material, k, &subset, options, checkpoint, progress);
        if let Ok(head) = &result {
            let problem = Problem { x: &samples.of_inputs(&subset), y: &samples.y };
            let prediction = fit::held_out(&head.choice.networks, &material.blocks, &problem);
            columns.push(DVector::from_column_slice(prediction.as_slice()));
            let matrix = DMatrix::from_columns(&columns);
            let mut products = weights::Products::new(columns.len());
            products.add(&matrix, &truth);
            let left = &truth - matrix * weights::free(&products);
            residual = DMatrix::from_column_slice(residual.nrows(), residual.ncols(), left.as_slice());
            progress.report(&Event::head(k, k + 1, count, head.choice.error, start));
        }
        subsets.push(subset);
        results.push(result);
    }
    heads::sort_out(material, &subsets, results)
}

/// Additive heads.
fn add(
    material: &Material<'_>,
    plan: Plan,
    options: &fit::ValidFitParams,
    ensemble: &EnsembleParams,
    checkpoint: Option<&Checkpoint>,
    progress: &dyn Progress,
) -> Result<Chosen, FitError> {
    let solve = &options.solve;
    let p = material.inputs();
    let mut added = match plan {
        Plan::Fixed(subsets) => {
            let next = |k: usize, _: &Lagged<'_>, _: &DMatrix<f64>| subsets.get(k).cloned();
            additive::train(material, subsets.len(), next, solve, checkpoint, progress)?
        }
        Plan::Adaptive(count) => {
            let mut taken: Vec<Vec<usize>> = Vec::new();
            let next = |_: usize, samples: &Lagged<'_>, left: &DMatrix<f64>| {
                let table = relevance::dependence(samples, left, p);
                let subset = relevance::strongest(&table, ensemble.subset_size, &taken)?;
                taken.push(subset.clone());
                Some(subset)
            };
            additive::train(material, count, next, solve, checkpoint, progress)?
        }
    };
    let costs: Vec<Cost> = added.heads.iter().map(|head| cost(&head.inputs, &head.fit.train)).collect();
    let all_flash = costs.iter().map(|cost| cost.flash).sum::<usize>();
    let rest = file_bytes(material, &added.heads, options)? - all_flash;
    let before = (added.heads.len(), rest + all_flash);
    let room = ensemble.room(rest);
    let size =
        |head: &ChosenHead| head.fit.train.evaluate(&added.held_out.of_inputs(&head.inputs)).norm_squared();
    let sizes: Vec<f64> = added.heads.iter().map(size).collect();
    let square = added.held_out.y.norm_squared();
    let mut kept: Vec<usize> = (0..costs.len()).filter(|&k| sizes[k] > (1e-4_f64).powi(2) * square).collect();
    // The heads that say most for their cost.
    kept.sort_by(|&a, &b| {
        let value = |k: usize| sizes[k] / costs[k].flash as f64;
        value(b).total_cmp(&value(a)).then(a.cmp(&b))
    });
    while !room.holds(kept.iter().map(|&k| costs[k])) && kept.pop().is_some() {}
    if kept.is_empty() {
        let smallest =
            costs.iter().copied().min_by_key(|cost| cost.flash).unwrap_or(Cost { flash: 0, macs: 0 });
        return Err(ensemble.too_tight(smallest, rest));
    }
    kept.sort_unstable();
    if kept.len() < costs.len() {
        // The others take over what the dropped heads did.
        let subsets: Vec<Vec<usize>> = kept.iter().map(|&k| added.heads[k].inputs.clone()).collect();
        let next = |k: usize, _: &Lagged<'_>, _: &DMatrix<f64>| subsets.get(k).cloned();
        let failures = std::mem::take(&mut added.failures);
        added = additive::train(material, subsets.len(), next, solve, checkpoint, progress)?;
        added.failures.splice(0..0, failures);
    }
    let hint = hint::for_additive(material, added.residual, options, progress);
    let mut sum = DMatrix::zeros(added.held_out.y.nrows(), added.held_out.y.ncols());
    for head in &added.heads {
        sum += head.fit.train.evaluate(&added.held_out.of_inputs(&head.inputs));
    }
    let held_out = metrics(material, &added.held_out, sum);
    let additive::Added { heads, failures, joint_steps, .. } = added;
    Ok((heads, held_out, Extra { joint_steps, failures, before, hint }))
}

/// What the model says of itself.
fn note(heads: usize, combine: Combine, samples: usize, nrmse: f64) -> String {
    let combine = match combine {
        Combine::Average => "average",
        Combine::Stack => "stack",
        Combine::Additive => "additive",
    };
    format!("{heads} heads, {combine}, {samples} samples, validation NRMSE {nrmse:.4}")
}

/// The model file of these heads as they are, with the longest note it can have.
fn file_bytes(
    material: &Material<'_>,
    heads: &[ChosenHead],
    options: &fit::ValidFitParams,
) -> Result<usize, FitError> {
    let choice = Choice {
        scaling: material.scaling.clone(),
        rows: material.samples.rows.clone(),
        heads: heads.to_vec(),
        held_out: Metrics::new(&[], &DMatrix::zeros(0, 0), &DMatrix::zeros(0, 0)),
        joint: false,
    };
    let note = note(heads.len(), Combine::Additive, material.data.len(), 1e3);
    let model = choice.model(material.data, options, &[], note);
    model.to_bytes().map(|bytes| bytes.len()).map_err(|error| FitError::Model(error.to_string()))
}
