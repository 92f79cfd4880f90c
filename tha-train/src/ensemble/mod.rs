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
pub use options::{Combine, Options};
pub use subsets::Strategy;

use crate::checkpoint::Checkpoint;
use crate::data::Dataset;
use crate::fit::judged::{self, Choice, ChosenHead, HeldOut, Procedure};
use crate::fit::{self, FitError, Judge, stack};
use crate::metrics::Metrics;
use heads::{Head, Material, products, refit_all, train_all};
use nalgebra::{DMatrix, DVector};
use options::Plan;
use rayon::prelude::*;
use select::{Cost, select};
use serde::Serialize;

/// Sees the heads come, and may end the fit.
pub trait Watch: Sync {
    /// Head `k` is done, the `done`-th of `of`; `seconds` are left, as far as one can tell.
    fn head(&self, _k: usize, _done: usize, _of: usize, _validation: f64, _seconds: f64) {}
    /// A cycle over additive heads is done.
    fn cycle(&self, _cycle: usize, _validation: f64) {}
    /// A joint step over additive heads is done.
    fn joint(&self, _step: usize, _validation: f64) {}
    /// Something that the user should know, in one line.
    fn warn(&self, _text: String) {}
    /// True to end the fit with [`FitError::Stopped`].
    fn stop(&self) -> bool {
        false
    }
}

/// A finished ensemble.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Model and figures, as of any fit.
    pub fit: fit::Outcome,
    /// What there is to say beside them.
    pub summary: Summary,
}

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
pub fn fit(
    data: &Dataset,
    judge: Judge<'_>,
    options: &fit::Options,
    ensemble: &Options,
    watch: &dyn Watch,
) -> Result<Outcome, FitError> {
    options.check(judge)?;
    let options = &options.lagged();
    data.check_memory(options.memory)?;
    ensemble.check(data)?;
    if matches!(judge, Judge::Folds(_)) && ensemble.adds() {
        let reason = "additive heads are chosen on one validation part; leave out --folds";
        return Err(FitError::Combination { reason });
    }
    ensemble.check_size(data, options)?;
    let checkpoint = match &ensemble.checkpoint {
        Some(folder) => {
            let identity = ensemble.identity(data, judge, options);
            Some(Checkpoint::open(folder, identity, |text| watch.warn(text))?)
        }
        None => None,
    };
    let procedure = Ensemble { data, options, ensemble, checkpoint, watch };
    let (fit, chosen) = judged::fit(&procedure, data, judge, options)?;
    let inputs = |head: &fit::HeadReport| {
        let index = |name: &String| data.inputs.iter().position(|other| other == name);
        head.inputs.iter().filter_map(index).collect()
    };
    let subsets: Vec<Vec<usize>> = fit.heads.iter().map(inputs).collect();
    let p = data.inputs.len();
    let Extra { failures, before: (heads_before, flash_bytes_before), hint, .. } = chosen;
    let coverage = subsets::coverage(p, options.solve.degree.min(p), &subsets);
    let summary = Summary { failed: failures, heads_before, flash_bytes_before, coverage, hint };
    Ok(Outcome { fit, summary })
}

/// How an ensemble is made.
struct Ensemble<'a> {
    data: &'a Dataset,
    options: &'a fit::Options,
    ensemble: &'a Options,
    checkpoint: Option<Checkpoint<'a>>,
    watch: &'a dyn Watch,
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

    fn choose(&self, rows: &[usize], held_out: HeldOut) -> Result<(Choice, Extra), FitError> {
        let Self { data, options, ensemble, watch, .. } = *self;
        let material = Material::new(data, rows, held_out, options.memory)?;
        let checkpoint = self.checkpoint.as_ref();
        let (heads, weights, extra) = match (ensemble.plan(&material, options)?, ensemble.combine) {
            (None, _) => per_output::choose(&material, options, ensemble, checkpoint, watch)?,
            (Some(plan), Combine::Additive) => add(&material, plan, options, ensemble, checkpoint, watch)?,
            (Some(plan), _) => weigh(&material, plan, options, ensemble, checkpoint, watch)?,
        };
        if watch.stop() {
            return Err(FitError::Stopped);
        }
        let parts = 0..material.parts.len();
        let truth: Vec<_> = material.parts.iter().map(|part| data.outputs_at(&part.judge.rows)).collect();
        let prediction: Vec<_> = parts.map(|k| predict(&material, k, &heads, &weights)).collect();
        let held_out = Metrics::new(&data.outputs, &stack(&truth), &stack(&prediction));
        let chosen = |(head, &weight): (&Head, &f64)| ChosenHead {
            inputs: head.inputs.clone(),
            weight,
            fit: head.typical().clone(),
            seconds: head.seconds,
            outputs: head.outputs.clone(),
        };
        let choice = Choice {
            heads: heads.iter().zip(&weights).map(chosen).collect(),
            held_out,
            joint: ensemble.adds(),
            rows: material.parts[0].fit.rows.clone(),
            scaling: material.scaling,
        };
        Ok((choice, extra))
    }

    fn refit(
        &self,
        choice: &Choice,
        extra: &Extra,
        rows: Vec<usize>,
        stage: &str,
    ) -> Result<Choice, FitError> {
        let (solve, checkpoint, watch) = (&self.options.solve, self.checkpoint.as_ref(), self.watch);
        let samples = self.data.lagged(self.options.memory, &choice.scaling, rows);
        let fits = if self.ensemble.strategy == Strategy::PerOutput {
            per_output::refit(&samples, &choice.heads, solve, watch)?
        } else if self.ensemble.adds() {
            additive::refit(&samples, &choice.heads, extra.joint_steps, solve, stage, checkpoint, watch)?
        } else {
            refit_all(&samples, &choice.heads, solve, stage, checkpoint, watch)?
        };
        if watch.stop() {
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

/// Heads with their weights, and what is known about them.
type Chosen = (Vec<Head>, Vec<f64>, Extra);

/// The bytes and operations of a head in a model file.
fn cost(head: &Head) -> Cost {
    let train = &head.typical().train;
    let words = 3 + (train.degree() + 1) + head.inputs.len() + train.parameters();
    Cost { flash: 4 * words, macs: train.parameters() }
}

/// Heads that predict Y, weighted: `average` and `stack`.
fn weigh(
    material: &Material<'_>,
    plan: Plan,
    options: &fit::Options,
    ensemble: &Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Chosen, FitError> {
    let solve = &options.solve;
    let (heads, failures) = match plan {
        Plan::Fixed(subsets) => train_all(material, &subsets, solve, checkpoint, watch)?,
        Plan::Adaptive(count) => {
            train_adaptively(material, count, ensemble.subset_size, solve, checkpoint, watch)?
        }
    };
    let (all, folds) = products(material, &heads);
    let costs: Vec<Cost> = heads.iter().map(cost).collect();
    let rest = file_bytes(material, &heads, options)? - costs.iter().map(|cost| cost.flash).sum::<usize>();
    let before = (heads.len(), rest + costs.iter().map(|cost| cost.flash).sum::<usize>());
    let room = ensemble.room(rest);
    let selection = select(&all, &folds, ensemble.combine, &costs, &room);
    let smallest = costs.iter().copied().min_by_key(|cost| cost.flash).unwrap_or(Cost { flash: 0, macs: 0 });
    let selection = selection.ok_or_else(|| ensemble.too_tight(smallest, rest))?;
    let hint = hint::for_weights(material, &all, &folds, ensemble.combine, options, watch);
    let heads: Vec<Head> = selection.heads.iter().map(|&k| heads[k].clone()).collect();
    let weights = selection.weights.iter().copied().collect();
    Ok((heads, weights, Extra { joint_steps: 0, failures, before, hint }))
}

/// Heads one after the other, each where the residual of those before it depends most.
fn train_adaptively(
    material: &Material<'_>,
    count: usize,
    size: usize,
    options: &crate::solve::Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<(Vec<Head>, Vec<Failure>), FitError> {
    let part = &material.parts[0];
    let truth = DVector::from_column_slice(part.fit.y.as_slice());
    let (mut subsets, mut results): (Vec<Vec<usize>>, Vec<Result<Head, FitError>>) = (Vec::new(), Vec::new());
    let mut columns: Vec<DVector<f64>> = Vec::new();
    let mut residual = part.fit.y.clone();
    let start = std::time::Instant::now();
    for k in 0..count {
        let table = relevance::dependence(&part.fit, &residual, material.inputs());
        let Some(subset) = relevance::strongest(&table, size, &subsets) else { break };
        let result = heads::train(material, k, &subset, options, checkpoint, watch);
        if let Ok(head) = &result {
            let prediction = head.fits[0].train.evaluate(&part.fit.of_inputs(&subset));
            columns.push(DVector::from_column_slice(prediction.as_slice()));
            let matrix = DMatrix::from_columns(&columns);
            let mut products = weights::Products::new(columns.len());
            products.add(&matrix, &truth);
            let left = &truth - matrix * weights::free(&products);
            residual = DMatrix::from_column_slice(residual.nrows(), residual.ncols(), left.as_slice());
            let rest = start.elapsed().as_secs_f64() / (k + 1) as f64 * (count - k - 1) as f64;
            watch.head(k, k + 1, count, head.validation(), rest);
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
    options: &fit::Options,
    ensemble: &Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Chosen, FitError> {
    let solve = &options.solve;
    let p = material.inputs();
    let mut added = match plan {
        Plan::Fixed(subsets) => {
            let next = |k: usize, _: &DMatrix<f64>| subsets.get(k).cloned();
            additive::train(material, subsets.len(), next, solve, checkpoint, watch)?
        }
        Plan::Adaptive(count) => {
            let mut taken: Vec<Vec<usize>> = Vec::new();
            let next = |_: usize, left: &DMatrix<f64>| {
                let table = relevance::dependence(&material.parts[0].fit, left, p);
                let subset = relevance::strongest(&table, ensemble.subset_size, &taken)?;
                taken.push(subset.clone());
                Some(subset)
            };
            additive::train(material, count, next, solve, checkpoint, watch)?
        }
    };
    let costs: Vec<Cost> = added.heads.iter().map(cost).collect();
    let all_flash = costs.iter().map(|cost| cost.flash).sum::<usize>();
    let rest = file_bytes(material, &added.heads, options)? - all_flash;
    let before = (added.heads.len(), rest + all_flash);
    let room = ensemble.room(rest);
    let (all, _) = products(material, &added.heads);
    let mut kept: Vec<usize> =
        (0..costs.len()).filter(|&k| all.gram[(k, k)] > (1e-4_f64).powi(2) * all.square).collect();
    // The heads that say most for their cost.
    kept.sort_by(|&a, &b| {
        let value = |k: usize| all.gram[(k, k)] / costs[k].flash as f64;
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
        let next = |k: usize, _: &DMatrix<f64>| subsets.get(k).cloned();
        let failures = std::mem::take(&mut added.failures);
        added = additive::train(material, subsets.len(), next, solve, checkpoint, watch)?;
        added.failures.splice(0..0, failures);
    }
    let hint = hint::for_additive(material, added.heads[0].validation(), options, watch);
    let weights = vec![1.0; added.heads.len()];
    let additive::Added { heads, failures, joint_steps } = added;
    Ok((heads, weights, Extra { joint_steps, failures, before, hint }))
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
fn file_bytes(material: &Material<'_>, heads: &[Head], options: &fit::Options) -> Result<usize, FitError> {
    let part = |head: &Head| ChosenHead {
        inputs: head.inputs.clone(),
        weight: 0.0,
        fit: head.typical().clone(),
        seconds: 0.0,
        outputs: head.outputs.clone(),
    };
    let choice = Choice {
        scaling: material.scaling.clone(),
        rows: material.parts[0].fit.rows.clone(),
        heads: heads.iter().map(part).collect(),
        held_out: Metrics::new(&[], &DMatrix::zeros(0, 0), &DMatrix::zeros(0, 0)),
        joint: false,
    };
    let note = note(heads.len(), Combine::Additive, material.data.len(), 1e3);
    let model = choice.model(material.data, options, &[], note);
    model.to_bytes().map(|bytes| bytes.len()).map_err(|error| FitError::Model(error.to_string()))
}

/// The weighted sum of the heads for the held-out samples of part `k`, physical units.
fn predict(material: &Material<'_>, k: usize, heads: &[Head], weights: &[f64]) -> DMatrix<f64> {
    let rows = &material.parts[k].judge;
    let predictions: Vec<DMatrix<f64>> = heads
        .par_iter()
        .zip(weights)
        .map(|(head, weight)| head.fits[k].train.evaluate(&rows.of_inputs(&head.inputs)) * *weight)
        .collect();
    let zero = DMatrix::zeros(rows.y.nrows(), rows.y.ncols());
    let mut sum = predictions.into_iter().fold(zero, |sum, prediction| sum + prediction);
    for (mut column, map) in sum.column_iter_mut().zip(&material.scaling.outputs) {
        column.apply(|value| *value = map.restore(*value));
    }
    sum
}
