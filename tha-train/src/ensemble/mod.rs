//! Tensor Head Averaging, Algorithm 1 of the paper: an ensemble of small models over subsets of the inputs, and two more
//! ways of combining them.
//!
//! | combination | heads | weights |
//! |---|---|---|
//! | `average` (the paper) | each fitted to Y | w >= 0, sum w = 1, least validation error |
//! | `stack` | each fitted to Y | free, near the average's |
//! | `additive` | each fitted to what the others leave | 1 |
//!
//! Weights are chosen with heads that have not seen the validation samples; then the heads are refitted on all data, unless
//! validation has a file of its own and all data have been fitted. The model file and the code on the device are the same
//! for all three: a weighted sum. So they are for [`Strategy::PerOutput`], whose heads serve one output each and are added up.

mod additive;
pub(crate) mod checkpoint;
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

use crate::data::{Dataset, Lagged};
use crate::fit::{self, FitError, HeadReport, Judge};
use crate::metrics::Metrics;
use crate::model::{Frame, HeadPart, Model};
use crate::solve::Fit;
use checkpoint::Checkpoint;
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
    let material = Material::new(data, judge, options.memory)?;
    let checkpoint = match &ensemble.checkpoint {
        Some(folder) => Some(Checkpoint::open(folder, &ensemble.identity(data, judge, options))?),
        None => None,
    };
    let planned = ensemble.plan(&material, options)?;
    let chosen = match (planned, ensemble.combine) {
        (None, _) => per_output::choose(&material, options, ensemble, checkpoint.as_ref(), watch)?,
        (Some(plan), Combine::Additive) => {
            add(&material, plan, options, ensemble, checkpoint.as_ref(), watch)?
        }
        (Some(plan), _) => weigh(&material, plan, options, ensemble, checkpoint.as_ref(), watch)?,
    };
    if watch.stop() {
        return Err(FitError::Stopped);
    }
    finish(&material, chosen, options, ensemble)
}

/// Heads with their weights, and what is known about them.
struct Chosen<'a> {
    heads: Vec<Head>,
    weights: Vec<f64>,
    failures: Vec<Failure>,
    before: (usize, usize),
    /// The networks of the model, and the samples they were fitted to.
    fits: Vec<Fit>,
    fitted: Lagged<'a>,
    hint: Option<String>,
}

/// The bytes and operations of a head in a model file.
fn cost(head: &Head) -> Cost {
    let train = &head.typical().train;
    let words = 3 + (train.degree() + 1) + head.inputs.len() + train.parameters();
    Cost { flash: 4 * words, macs: train.parameters() }
}

/// Heads that predict Y, weighted: `average` and `stack`.
fn weigh<'a>(
    material: &Material<'a>,
    plan: Plan,
    options: &fit::Options,
    ensemble: &Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Chosen<'a>, FitError> {
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
    let (fits, fitted) = if options.refit && material.has_unfitted() {
        (refit_all(material, &heads, solve, checkpoint, watch)?, material.all())
    } else {
        (heads.iter().map(|head| head.typical().clone()).collect(), material.parts[0].fit.clone())
    };
    let weights = selection.weights.iter().copied().collect();
    Ok(Chosen { heads, weights, failures, before, fits, fitted, hint })
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
            let left = &truth - matrix * weights::stack(&products, &[]);
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
fn add<'a>(
    material: &Material<'a>,
    plan: Plan,
    options: &fit::Options,
    ensemble: &Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Chosen<'a>, FitError> {
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
    let (fits, fitted) = if options.refit && material.has_unfitted() {
        let all = material.all();
        (additive::refit(&all, &added, solve, checkpoint, watch)?, all)
    } else {
        (added.heads.iter().map(|head| head.fits[0].clone()).collect(), material.parts[0].fit.clone())
    };
    let weights = vec![1.0; fits.len()];
    Ok(Chosen { heads: added.heads, weights, failures: added.failures, before, fits, fitted, hint })
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
    let parts: Vec<HeadPart<'_>> = heads
        .iter()
        .map(|head| HeadPart { inputs: head.inputs.clone(), weight: 0.0, train: &head.typical().train })
        .collect();
    let model = frame(material, &[], options, note(heads.len(), Combine::Additive, material.data.len(), 1e3))
        .model(&parts);
    model.to_bytes().map(|bytes| bytes.len()).map_err(|error| FitError::Model(error.to_string()))
}

fn frame<'a>(
    material: &'a Material<'_>,
    residual: &'a [f64],
    options: &fit::Options,
    note: String,
) -> Frame<'a> {
    Frame {
        data: material.data,
        scaling: &material.scaling,
        residual,
        memory: options.memory,
        degree: options.solve.degree,
        range: options.range,
        seed: options.solve.seed,
        note,
    }
}

/// The weighted sum of some networks, physical units.
fn predict(
    material: &Material<'_>,
    rows: &Lagged<'_>,
    parts: &[(&[usize], f64, &crate::tt::TensorTrain)],
) -> DMatrix<f64> {
    let predictions: Vec<DMatrix<f64>> = parts
        .par_iter()
        .map(|(inputs, weight, train)| train.evaluate(&rows.of_inputs(inputs)) * *weight)
        .collect();
    let zero = DMatrix::zeros(rows.y.nrows(), rows.y.ncols());
    let mut sum = predictions.into_iter().fold(zero, |sum, prediction| sum + prediction);
    for (mut column, map) in sum.column_iter_mut().zip(&material.scaling.outputs) {
        column.apply(|value| *value = map.restore(*value));
    }
    sum
}

/// Figures and model.
fn finish(
    material: &Material<'_>,
    chosen: Chosen<'_>,
    options: &fit::Options,
    ensemble: &Options,
) -> Result<Outcome, FitError> {
    let Chosen { heads, weights, failures, before, fits, fitted, hint } = chosen;
    let p = material.inputs();
    let outputs = &material.data.outputs;

    let (mut truth, mut prediction) = (Vec::new(), Vec::new());
    for (k, part) in material.parts.iter().enumerate() {
        let parts: Vec<_> =
            heads.iter().zip(&weights).map(|(head, &w)| (&head.inputs[..], w, &head.fits[k].train)).collect();
        truth.push(material.judged.outputs_at(&part.judge.rows));
        prediction.push(predict(material, &part.judge, &parts));
    }
    let stacked = |parts: &[DMatrix<f64>]| {
        let rows: Vec<_> = parts.iter().flat_map(|part| part.row_iter()).collect();
        DMatrix::from_rows(&rows)
    };
    let validation = Metrics::new(outputs, &stacked(&truth), &stacked(&prediction));

    let networks: Vec<crate::tt::TensorTrain> = fits
        .iter()
        .map(|fit| {
            let mut train = fit.train.clone();
            // The gauge with the least cancellation: rounding to f32 costs the fewest digits in it.
            train.balance();
            train
        })
        .collect();
    let parts: Vec<_> = heads
        .iter()
        .zip(&weights)
        .zip(&networks)
        .map(|((head, &w), train)| (&head.inputs[..], w, train))
        .collect();
    let train = predict(material, &fitted, &parts);
    let train = Metrics::new(outputs, &material.data.outputs_at(&fitted.rows), &train);

    let residual: Vec<f64> = validation.outputs.iter().map(|output| output.rmse).collect();
    let note = note(heads.len(), ensemble.combine, train.samples, validation.nrmse);
    let head_parts: Vec<HeadPart<'_>> = heads
        .iter()
        .zip(&weights)
        .zip(&networks)
        .map(|((head, &weight), train)| HeadPart { inputs: head.inputs.clone(), weight, train })
        .collect();
    let model: Model = frame(material, &residual, options, note).model(&head_parts);
    let reports = heads.iter().zip(&weights).zip(&fits).map(|((head, &weight), fit)| HeadReport {
        inputs: subset_names(material.data, &head.inputs),
        ranks: fit.train.ranks(),
        weight,
        train_residual: fit.train_residual,
        val_residual: head.validation(),
        ridge: fit.ridge,
        decay: fit.decay,
        sweeps: fit.sweeps,
        seconds: head.seconds,
    });
    let subsets: Vec<Vec<usize>> = heads.iter().map(|head| head.inputs.clone()).collect();
    let coverage = subsets::coverage(p, options.solve.degree.min(p), &subsets);
    let fit = fit::Outcome { model, train, validation, heads: reports.collect() };
    let (heads_before, flash_bytes_before) = before;
    Ok(Outcome {
        fit,
        summary: Summary { failed: failures, heads_before, flash_bytes_before, coverage, hint },
    })
}
