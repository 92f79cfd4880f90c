//! The choice of rank, ridge and early stopping on samples that are not fitted.

use super::folds::choose_by_folds;
use super::{FitError, Judge, Options};
use crate::data::{Dataset, Lagged, Scaling, Split};
use crate::metrics::Metrics;
use crate::solve::{self, Fit, Observer, Problem};
use crate::tt::{Features, TensorTrain};
use nalgebra::DMatrix;

/// What was chosen.
pub(super) struct Choice<'a> {
    /// The network and the settings it was made with.
    pub fit: Fit,
    /// The standardisation it belongs to.
    pub scaling: Scaling,
    /// Figures on samples that were not fitted.
    pub validation: Metrics,
    /// The samples `fit` was fitted to when it is final; `None` asks for a refit on all of the data.
    pub fitted: Option<Lagged<'a>>,
}

/// Chooses as the judge demands.
pub(super) fn choose<'a>(
    data: &'a Dataset,
    judge: Judge<'_>,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Choice<'a>, FitError> {
    let memory = options.memory;
    match judge {
        Judge::End(fraction) => {
            let split = Split::by_end(data, memory, fraction)?;
            let (candidate, part) = candidate(data, split.train, data, split.validation, options, observer)?;
            Ok(candidate.chosen(data, (!options.refit).then_some(part)))
        }
        Judge::Data(other) => {
            other.check_memory(memory)?;
            let rows = (data.scored_rows(memory), other.scored_rows(memory));
            let (candidate, part) = candidate(data, rows.0, other, rows.1, options, observer)?;
            Ok(candidate.chosen(data, Some(part)))
        }
        Judge::Folds(count) => choose_by_folds(data, count, options, observer),
    }
}

/// A fit and what it says about samples it has not seen.
pub(super) struct Candidate {
    pub fit: Fit,
    pub scaling: Scaling,
    pub truth: DMatrix<f64>,
    pub prediction: DMatrix<f64>,
}

impl Candidate {
    pub(super) fn chosen<'a>(self, data: &Dataset, fitted: Option<Lagged<'a>>) -> Choice<'a> {
        let validation = Metrics::new(&data.outputs, &self.truth, &self.prediction);
        Choice { fit: self.fit, scaling: self.scaling, validation, fitted }
    }
}

/// Fits to some rows of `data`, choosing on rows of `other`; gives the fitted samples back too.
pub(super) fn candidate<'a>(
    data: &'a Dataset,
    rows: Vec<usize>,
    other: &Dataset,
    judged: Vec<usize>,
    options: &Options,
    observer: &dyn Observer,
) -> Result<(Candidate, Lagged<'a>), FitError> {
    let scaling = Scaling::from_rows(data, &rows);
    let part = data.lagged(options.memory, &scaling, rows);
    let judge = other.lagged(options.memory, &scaling, judged);
    let fit = solve::fit(&problem(&part), Some(&problem(&judge)), &options.solve, observer)?;
    let truth = other.outputs_at(&judge.rows);
    let prediction = predict(&fit.train, &judge, &scaling);
    Ok((Candidate { fit, scaling, truth, prediction }, part))
}

/// The solver's view of some samples.
pub(super) fn problem<'a>(samples: &'a Lagged<'_>) -> Problem<'a> {
    Problem { x: samples, y: &samples.y }
}

/// A network's outputs in physical units.
pub(super) fn predict(train: &TensorTrain, x: &dyn Features, scaling: &Scaling) -> DMatrix<f64> {
    let mut y = train.evaluate(x);
    for (mut column, map) in y.column_iter_mut().zip(&scaling.outputs) {
        column.apply(|value| *value = map.restore(*value));
    }
    y
}
