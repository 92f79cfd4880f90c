//! TrainHeads of Algorithm 1: heads in parallel over one recording, of which each reads the lag windows of its inputs.

use super::subset_names;
use crate::checkpoint::{self, Checkpoint};
use crate::data::{Dataset, Split};
use crate::fit::FitError;
use crate::fit::judged::ChosenHead;
use crate::progress::{Event, OnlyStop, Progress};
use crate::solve::{self, Fit, Problem};
use crate::stage::{Stage, Staged};
use rayon::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The data as the heads see it.
pub(super) struct Material<'a> {
    pub data: &'a Dataset,
    /// All heads share one stage, so that their sum is one model.
    pub samples: Staged<'a>,
    /// The number of the block of every sample.
    pub blocks: Vec<usize>,
    /// A hash of the rows: with folds there are several choices in one run.
    pub scope: u64,
    pub run: Run<'a>,
}

impl<'a> Material<'a> {
    pub(super) fn new(data: &'a Dataset, rows: Vec<usize>, stage: Stage, run: Run<'a>) -> Self {
        let blocks = Split::blocks(data, &rows);
        let mut hasher = DefaultHasher::new();
        rows.hash(&mut hasher);
        let samples = stage.rows(data, rows);
        Self { data, samples, blocks, scope: hasher.finish(), run }
    }

    pub(super) fn inputs(&self) -> usize {
        self.data.inputs.len()
    }

    /// The samples of each block.
    pub(super) fn by_block(&self) -> Vec<Vec<usize>> {
        let count = self.blocks.iter().max().map_or(0, |last| last + 1);
        let mut rows = vec![Vec::new(); count];
        self.blocks.iter().enumerate().for_each(|(row, &block)| rows[block].push(row));
        rows
    }
}

/// What every step of an ensemble is done with: the settings of the solver, where what is done is kept, and who watches.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub solve: &'a solve::SolveParams,
    pub checkpoint: Option<&'a Checkpoint<'a>>,
    pub progress: &'a dyn Progress,
}

impl Run<'_> {
    /// The settings of head `k`: the same but for the seed.
    pub(super) fn settings(&self, k: usize) -> solve::SolveParams {
        let seed = self.solve.seed.wrapping_add((k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        solve::SolveParams { seed, ..self.solve.clone() }
    }

    /// Ends what was asked to stop.
    pub(super) fn go_on(&self) -> Result<(), FitError> {
        if self.progress.stop() { Err(FitError::Stopped) } else { Ok(()) }
    }
}

/// A head whose settings are chosen.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Its number, from 0.
    pub number: usize,
    pub inputs: Vec<usize>,
    /// Its settings, and for each block the network that was fitted without it.
    pub choice: solve::Choice,
    pub seconds: f64,
    /// The outputs it serves.
    pub outputs: Range<usize>,
}

impl Head {
    /// The head, unless it has diverged.
    pub(super) fn sound(self) -> Result<Self, FitError> {
        match self.choice.error {
            error if error <= DIVERGED => Ok(self),
            error => Err(FitError::NoHead {
                reason: format!("it diverged: NRMSE {error:.3e} on held-out samples"),
            }),
        }
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

/// Worse than this on the held-out samples, relative to the spread of the outputs, a head has diverged.
const DIVERGED: f64 = 100.0;

/// Chooses the settings of head `k`.
pub(super) fn train(material: &Material<'_>, k: usize, subset: &[usize]) -> Result<Head, FitError> {
    let (start, run) = (Instant::now(), material.run);
    let from = (checkpoint::numbered(run.checkpoint, subset), material.scope);
    let choice = checkpoint::keep(run.checkpoint, &format!("head-{k:05}"), &from, || {
        let problem = Problem { x: &material.samples.of_inputs(subset), y: &material.samples.y };
        Ok(solve::choose(&problem, &material.blocks, &run.settings(k), &OnlyStop(run.progress))?)
    })?;
    let outputs = 0..material.data.outputs.len();
    let seconds = start.elapsed().as_secs_f64();
    Ok(Head { number: k, inputs: subset.to_vec(), choice, seconds, outputs })
}

/// Chooses the settings of all heads; those that fail are named, not fatal.
pub(super) fn train_all(
    material: &Material<'_>,
    subsets: &[Vec<usize>],
) -> Result<(Vec<Head>, Vec<Failure>), FitError> {
    let results = side_by_side(subsets.len(), |k| train(material, k, &subsets[k]), material.run.progress);
    sort_out(material, subsets, results.into_iter().map(|head| head?.sound()))
}

/// So many heads on all threads, each reported when it is done.
pub(super) fn side_by_side(
    count: usize,
    head: impl Fn(usize) -> Result<Head, FitError> + Sync,
    progress: &dyn Progress,
) -> Vec<Result<Head, FitError>> {
    let (start, done) = (Instant::now(), AtomicUsize::new(0));
    let one = |k: usize| {
        let head = head(k);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if let Ok(head) = &head {
            progress.report(&Event::head(k, done, count, head.choice.error, start));
        }
        head
    };
    (0..count).into_par_iter().map(one).collect()
}

/// Sound heads, and the others with their reasons. Ctrl-C and a full disk end everything.
pub(super) fn sort_out<T>(
    material: &Material<'_>,
    subsets: &[Vec<usize>],
    results: impl IntoIterator<Item = Result<T, FitError>>,
) -> Result<(Vec<T>, Vec<Failure>), FitError> {
    let (mut heads, mut failures) = (Vec::new(), Vec::new());
    for (subset, result) in subsets.iter().zip(results) {
        let reason = match result {
            Ok(head) => {
                heads.push(head);
                continue;
            }
            Err(FitError::NoHead { reason }) => reason,
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

/// Fits the settings of every head to `rows`: from a network that was fitted with them, or anew.
pub(super) fn fit_all(
    rows: &Staged<'_>,
    heads: &[ChosenHead],
    stage: &str,
    run: Run<'_>,
) -> Result<Vec<Fit>, FitError> {
    let fit = |head: &ChosenHead| {
        let k = head.number;
        let from = (checkpoint::numbered(run.checkpoint, &head.inputs), &head.fit, &rows.rows);
        checkpoint::keep(run.checkpoint, &format!("{stage}-{k:05}"), &from, || {
            let y = rows.y.columns_range(head.outputs.clone()).into_owned();
            let problem = Problem { x: &rows.of_inputs(&head.inputs), y: &y };
            let (settings, start) = (&head.fit.settings, Some(&head.fit.network));
            Ok(solve::fit(&problem, settings, start, &run.settings(k), &OnlyStop(run.progress))?)
        })
    };
    heads.par_iter().map(fit).collect()
}
