//! Heads that predict Y, each by itself, and their weights: `average` and `stack`.

use super::heads::{self, Failure, Head, Material, train_all};
use super::options::Plan;
use super::pool::{POOL, pool, products};
use super::select::{Cost, Offer};
use super::{Chosen, Combine, Ensemble, Extra, chosen, cost, file_bytes, hint, relevance, settled, weights};
use crate::fit::{self, FitError};
use crate::progress::Event;
use nalgebra::{DMatrix, DVector};
use std::time::Instant;

/// Heads that predict Y, weighted: `average` and `stack`.
pub(super) fn choose(of: &Ensemble<'_>, material: &Material<'_>, plan: Plan) -> Result<Chosen, FitError> {
    let Ensemble { options, ensemble, .. } = *of;
    let (heads, failures) = match plan {
        Plan::Fixed(subsets) => train_all(material, &subsets)?,
        Plan::Adaptive(count) => train_adaptively(material, count, ensemble.subset_size)?,
    };
    let before = (heads.len(), file_bytes(material, &settled(&heads, &vec![0.0; heads.len()]), options)?);
    let rest =
        before.1 - heads.iter().map(|head| cost(&head.inputs, &head.choice.networks[0]).flash).sum::<usize>();
    // Every head can have a weight of `stack`.
    let (heads, all, folds) = match ensemble.combine {
        Combine::Average => {
            let (pool, all, folds) = pool(material, &heads, POOL);
            (pool.into_iter().map(|k| heads[k].clone()).collect(), all, folds)
        }
        _ => {
            let (all, folds) = products(material, &heads.iter().collect::<Vec<_>>());
            (heads, all, folds)
        }
    };
    let costs: Vec<Cost> = heads.iter().map(|head| cost(&head.inputs, &head.choice.networks[0])).collect();
    let (combine, room) = (ensemble.combine, ensemble.room(rest));
    let offer = Offer { all: &all, folds: &folds, combine, costs: &costs, room };
    let selection = offer.select().ok_or_else(|| ensemble.too_tight(&costs, rest))?;
    let hint = hint::for_weights(material, &all, &folds, ensemble.combine);
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
) -> Result<(Vec<Head>, Vec<Failure>), FitError> {
    let samples = &material.samples;
    let truth = DVector::from_column_slice(samples.y.as_slice());
    let (mut subsets, mut results): (Vec<Vec<usize>>, Vec<Result<Head, FitError>>) = (Vec::new(), Vec::new());
    let mut columns: Vec<DVector<f64>> = Vec::new();
    let mut residual = samples.y.clone();
    let start = Instant::now();
    for k in 0..count {
        let table = relevance::dependence(samples, &residual, material.inputs());
        let Some(subset) = relevance::strongest(&table, size, &subsets) else { break };
        let result = heads::train(material, k, &subset);
        if let Ok(head) = &result {
            let x = samples.of_inputs(&subset);
            let prediction = fit::held_out(&head.choice.networks, &material.blocks, &x);
            columns.push(DVector::from_column_slice(prediction.as_slice()));
            let matrix = DMatrix::from_columns(&columns);
            let mut products = weights::Products::new(columns.len());
            products.add(&matrix, &truth);
            let left = &truth - matrix * weights::free(&products);
            residual = DMatrix::from_column_slice(residual.nrows(), residual.ncols(), left.as_slice());
            material.run.progress.report(&Event::head(k, k + 1, count, head.choice.error, start));
        }
        subsets.push(subset);
        results.push(result);
    }
    heads::sort_out(material, &subsets, results)
}
