//! TrainHeads of Algorithm 1: heads in parallel over one recording, of which each reads the lag windows of its inputs.

use super::weights::Products;
use super::{Watch, subset_names};
use crate::checkpoint::{self, Checkpoint};
use crate::data::{Dataset, Lagged, Scaling, Split};
use crate::fit::judged::{ChosenHead, HeldOut};
use crate::fit::{FitError, Setting};
use crate::solve::{self, Fit, Observer, Problem, Ridge};
use crate::tt::Features;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Samples to fit and samples held out to choose on; one part, or one for each fold.
pub(super) struct Part<'a> {
    pub fit: Lagged<'a>,
    pub judge: Lagged<'a>,
}

/// The data as the heads see it.
pub(super) struct Material<'a> {
    pub data: &'a Dataset,
    pub scaling: Scaling,
    pub parts: Vec<Part<'a>>,
    /// A hash of the rows: with folds there are several choices in one run.
    pub scope: u64,
}

impl<'a> Material<'a> {
    pub(super) fn new(
        data: &'a Dataset,
        rows: &[usize],
        held_out: HeldOut,
        memory: usize,
    ) -> Result<Self, FitError> {
        // All heads and folds share one standardisation, so that their sum is one model.
        let scaling = Scaling::from_rows(data, rows)?;
        let part = |split: Split| Part {
            fit: data.lagged(memory, &scaling, split.train),
            judge: data.lagged(memory, &scaling, split.validation),
        };
        let parts = held_out.splits(data, rows)?.into_iter().map(part).collect();
        let mut hasher = DefaultHasher::new();
        (rows, format!("{held_out:?}")).hash(&mut hasher);
        Ok(Self { data, scaling, parts, scope: hasher.finish() })
    }

    pub(super) fn inputs(&self) -> usize {
        self.data.inputs.len()
    }
}

/// A trained head.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub inputs: Vec<usize>,
    /// One fit for each part.
    pub fits: Vec<Fit>,
    pub seconds: f64,
    /// The outputs it serves.
    pub outputs: Range<usize>,
}

impl Head {
    /// Relative residual on the judged samples, over all parts.
    pub(super) fn validation(&self) -> f64 {
        let sum: f64 = self.fits.iter().map(|fit| fit.validation_residual.unwrap_or(f64::NAN).powi(2)).sum();
        (sum / self.fits.len() as f64).sqrt()
    }

    /// The fit whose ranks and ridge the refit takes over: the setting most folds agree on, the first of equals.
    pub(super) fn typical(&self) -> &Fit {
        let settings: Vec<Setting> = self.fits.iter().map(Setting::of).collect();
        let votes = |k: usize| settings.iter().filter(|other| **other == settings[k]).count();
        let winner = (0..settings.len()).max_by(|&a, &b| votes(a).cmp(&votes(b)).then(b.cmp(&a)));
        &self.fits[winner.unwrap_or(0)]
    }
}

/// A head that was left out, and why.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Failure {
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// What went wrong.
    pub reason: String,
}

/// Passes the wish to stop on to the solver, and nothing back: the heads speak for themselves.
pub(super) struct Stop<'a>(pub &'a dyn Watch);

impl Observer for Stop<'_> {
    fn stop(&self) -> bool {
        self.0.stop()
    }
}

/// Worse than this on the judged samples, relative to predicting zero, a head has diverged.
const DIVERGED: f64 = 100.0;

/// Options of head `k`: the same but for the seed.
pub(super) fn head_options(options: &solve::Options, k: usize) -> solve::Options {
    let seed = options.seed.wrapping_add((k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    solve::Options { seed, ..options.clone() }
}

/// Trains head `k` on every part.
pub(super) fn train(
    material: &Material<'_>,
    k: usize,
    subset: &[usize],
    options: &solve::Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Head, FitError> {
    let start = Instant::now();
    let options = head_options(options, k);
    let stage = format!("head-{k:05}");
    let outputs = 0..material.data.outputs.len();
    let fits = checkpoint::keep(checkpoint, &stage, &(subset, material.scope), || {
        let mut fits: Vec<Fit> = Vec::with_capacity(material.parts.len());
        for part in &material.parts {
            let rows = Problem { x: &part.fit.of_inputs(subset), y: &part.fit.y };
            let judge = Problem { x: &part.judge.of_inputs(subset), y: &part.judge.y };
            let mut fit = solve::fit(&rows, Some(&judge), &options, &Stop(watch))?;
            fit.log.clear();
            fits.push(fit);
        }
        Ok(fits)
    })?;
    Ok(Head { inputs: subset.to_vec(), fits, seconds: start.elapsed().as_secs_f64(), outputs })
}

/// Trains all heads; those that fail are named, not fatal.
pub(super) fn train_all(
    material: &Material<'_>,
    subsets: &[Vec<usize>],
    options: &solve::Options,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<(Vec<Head>, Vec<Failure>), FitError> {
    let (start, done) = (Instant::now(), AtomicUsize::new(0));
    let results: Vec<Result<Head, FitError>> = subsets
        .par_iter()
        .enumerate()
        .map(|(k, subset)| {
            let head = train(material, k, subset, options, checkpoint, watch);
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Ok(head) = &head {
                let left = start.elapsed().as_secs_f64() / count as f64 * (subsets.len() - count) as f64;
                watch.head(k, count, subsets.len(), head.validation(), left);
            }
            head
        })
        .collect();
    sort_out(material, subsets, results)
}

/// Sound heads, and the others with their reasons. Ctrl-C and a full disk end everything.
pub(super) fn sort_out(
    material: &Material<'_>,
    subsets: &[Vec<usize>],
    results: Vec<Result<Head, FitError>>,
) -> Result<(Vec<Head>, Vec<Failure>), FitError> {
    let (mut heads, mut failures) = (Vec::new(), Vec::new());
    for (subset, result) in subsets.iter().zip(results) {
        let reason = match result {
            Ok(head) if head.validation() <= DIVERGED => {
                heads.push(head);
                continue;
            }
            Ok(head) => format!("it diverged: relative residual {:.3e} on validation", head.validation()),
            Err(FitError::Solve(error)) => error.to_string(),
            Err(error) => return Err(error),
        };
        failures.push(Failure { inputs: subset_names(material.data, subset), reason });
    }
    if heads.is_empty() {
        return Err(FitError::NoHead {
            reason: failures.pop().map_or_else(String::new, |failure| failure.reason),
        });
    }
    Ok((heads, failures))
}

/// Rows whose predictions by all heads are held at a time.
const BLOCK: usize = 1024;
/// Contiguous blocks of the held-out samples, for what is decided by cross-validation among them.
const FOLDS: usize = 5;

/// Inner products of the heads' predictions for the held-out samples, in total and by contiguous fold: the parts where there
/// are several, else [`FOLDS`] of the one part.
pub(super) fn products(material: &Material<'_>, heads: &[Head]) -> (Products, Vec<Products>) {
    let cuts = if material.parts.len() > 1 { 1 } else { FOLDS };
    let mut folds = Vec::with_capacity(cuts * material.parts.len());
    for (k, part) in material.parts.iter().enumerate() {
        let count = part.judge.y.nrows();
        for fold in 0..cuts {
            let (first, end) = (fold * count / cuts, (fold + 1) * count / cuts);
            let mut sum = Products::new(heads.len());
            for start in (first..end).step_by(BLOCK) {
                let rows = BLOCK.min(end - start);
                let y = part.judge.y.rows(start, rows).into_owned();
                let columns: Vec<DVector<f64>> = heads
                    .par_iter()
                    .map(|head| {
                        let x = part.judge.of_inputs(&head.inputs).rows(start, rows);
                        let prediction = head.fits[k].train.evaluate(&x);
                        DVector::from_column_slice(prediction.as_slice())
                    })
                    .collect();
                sum.add(&DMatrix::from_columns(&columns), &DVector::from_column_slice(y.as_slice()));
            }
            folds.push(sum);
        }
    }
    let mut all = Products::new(heads.len());
    for fold in &folds {
        all.gram += &fold.gram;
        all.truth += &fold.truth;
        all.square += fold.square;
    }
    (all, folds)
}

/// Fits the setting of every head to all of `rows`, starting from what it is.
pub(super) fn refit_all(
    rows: &Lagged<'_>,
    heads: &[ChosenHead],
    options: &solve::Options,
    stage: &str,
    checkpoint: Option<&Checkpoint>,
    watch: &dyn Watch,
) -> Result<Vec<Fit>, FitError> {
    heads
        .par_iter()
        .enumerate()
        .map(|(k, head)| {
            let from = (&head.inputs, &head.fit, &rows.rows);
            checkpoint::keep(checkpoint, &format!("{stage}-{k:05}"), &from, || {
                let options =
                    solve::Options { ridge: Ridge::Fixed(head.fit.ridge), ..head_options(options, k) };
                let problem = Problem { x: &rows.of_inputs(&head.inputs), y: &rows.y };
                let mut fit = solve::refit(&problem, &head.fit, &options, &Stop(watch))?;
                fit.log.clear();
                Ok(fit)
            })
        })
        .collect()
}
