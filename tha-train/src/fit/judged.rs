//! From a choice to a model and its figures: what is reported as validation comes from rows that took no part in any choice.
//!
//! | judge | chosen on | validated on | delivered |
//! |---|---|---|---|
//! | [`Validation::End`] | blocks of the rest of each record | the end of each record, by a fit to the rest | all rows: chosen on their blocks once more, or refitted |
//! | [`Validation::Data`] | blocks of the data | the other data | fitted to all rows of the data |
//! | [`Validation::Folds`] | blocks of the data | each fold, by a choice and a fit on the other folds alone | fitted to all rows |
//!
//! Every error is computed by [`Model::predict`], which obeys the model's own range policy; those on validation rows give the intervals too.

use super::{FitError, HeadReport, Outcome, ValidFitParams, Validation};
use crate::data::{Dataset, Split};
use crate::metrics::Metrics;
use crate::model::{Frame, HeadPart, Interval, Model};
use crate::solve::{self, Fit};
use crate::stage::{Basis, Stage, Staged};
use nalgebra::DMatrix;
use std::ops::Range;
use tha_core::RangePolicy;

/// A head that was chosen, as it is fitted now.
#[derive(Clone, Debug)]
pub(crate) struct ChosenHead {
    /// Its number among all heads that were tried, from 0: its seed comes from it.
    pub number: usize,
    pub inputs: Vec<usize>,
    pub weight: f64,
    pub fit: Fit,
    pub seconds: f64,
    /// The outputs it serves.
    pub outputs: Range<usize>,
}

/// Networks fitted to some rows, with the settings that a refit keeps.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// From samples to features: what all heads share, so that their sum is one model.
    pub stage: Stage,
    /// The rows the networks were fitted to.
    pub rows: Vec<usize>,
    pub heads: Vec<ChosenHead>,
    /// Figures on the rows that were held out to choose on: good for comparing settings, too good to be believed.
    pub held_out: Metrics,
    /// Whether a head predicts only what the others leave, so that its error is that of all together.
    pub joint: bool,
}

/// A way from rows of a recording to a model.
pub(crate) trait Procedure {
    /// What a refit needs beside the heads.
    type Extra;
    /// Decides everything there is to decide on the given rows alone, and fits it to them.
    fn choose(&self, rows: Vec<usize>) -> Result<(Choice, Self::Extra), FitError>;
    /// Whether a model of more rows than `choice` is chosen anew, and not only fitted.
    fn chooses_again(&self, choice: &Choice) -> bool;
    /// Fits the chosen settings to other rows. `stage` is a name for what is kept of it.
    fn refit(
        &self,
        choice: &Choice,
        extra: &Self::Extra,
        rows: Vec<usize>,
        stage: &str,
    ) -> Result<Choice, FitError>;
    /// What the model says of itself.
    fn note(&self, choice: &Choice, validation: &Metrics) -> String;
}

impl Choice {
    /// The model of these networks before rounding, with the RMS residuals and the note of its file.
    pub(crate) fn model(
        &self,
        data: &Dataset,
        options: &ValidFitParams,
        residual: &[f64],
        note: String,
    ) -> Model {
        let all: Vec<usize> = (0..data.inputs.len()).collect();
        let linear = (options.range == RangePolicy::Extend)
            .then(|| self.stage.clone().rows(data, self.rows.clone()).linear_part(&all));
        let frame = Frame {
            data,
            rows: &self.rows,
            scaling: self.stage.scaling(),
            residual,
            memory: match options.basis {
                Basis::Lags(memory) => memory,
                _ => 1,
            },
            stage: self.stage.spec(linear.as_ref()),
            range: options.range,
            seed: options.solve.seed,
            note,
        };
        let networks: Vec<_> = self
            .heads
            .iter()
            .map(|head| {
                let mut network = head.fit.network.clone();
                // The gauge with the least cancellation: rounding to f32 costs the fewest digits in it.
                network.balance();
                self.stage.deliver(&network, &head.inputs)
            })
            .collect();
        let parts: Vec<HeadPart<'_>> = self
            .heads
            .iter()
            .zip(&networks)
            .map(|(head, network)| HeadPart {
                inputs: head.inputs.clone(),
                outputs: head.outputs.clone(),
                weights: vec![head.weight; head.outputs.len()],
                features: self.stage.listed(&head.inputs),
                network,
            })
            .collect();
        frame.unrounded(&parts)
    }

    /// The same heads on other rows, behind the stage that those suggest, so that models of the same rows have the same stage; lags only
    /// widen their range. Where maps have other columns then, each network becomes the nearest one over these.
    pub(crate) fn over<'a>(
        &self,
        rows: Vec<usize>,
        data: &'a Dataset,
        options: &ValidFitParams,
    ) -> Result<(Self, Staged<'a>), FitError> {
        let stage = match self.stage.is_plain() {
            true => self.stage.clone().widened(data, &rows),
            false => options.stage(data, &rows)?,
        };
        let mut heads = self.heads.clone();
        let samples = stage.clone().rows(data, rows);
        if !stage.has_columns_of(&self.stage) {
            let before = self.stage.clone().rows(data, samples.rows.clone());
            for head in &mut heads {
                let (from, to) = (before.of_inputs(&head.inputs), samples.of_inputs(&head.inputs));
                head.fit.network = solve::carried(&head.fit.network, &from, &to)?;
            }
        }
        Ok((Self { stage, rows: samples.rows.clone(), heads, ..self.clone() }, samples))
    }

    /// The relative residual of every head by itself on some rows, in standardised units.
    fn residuals(&self, samples: &Staged<'_>, all: f64) -> Vec<f64> {
        let alone = |head: &ChosenHead| {
            let truth = samples.y.columns_range(head.outputs.clone());
            let prediction = head.fit.network.evaluate(&samples.of_inputs(&head.inputs));
            (truth - prediction).norm() / truth.norm().max(f64::MIN_POSITIVE)
        };
        self.heads.iter().map(|head| if self.joint { all } else { alone(head) }).collect()
    }
}

/// All that takes long in [`fit`], for what is kept of it: the same choices and fits without figures and a model.
pub(crate) fn work<P: Procedure>(
    procedure: &P,
    data: &Dataset,
    options: &ValidFitParams,
) -> Result<(), FitError> {
    let all = options.training_rows(data);
    match options.validation {
        Validation::End(fraction) => {
            let (choice, extra) = procedure.choose(Split::by_end(data, &all, fraction)?.train)?;
            if options.refit {
                procedure.refit(&choice, &extra, all, "refit")?;
            }
        }
        Validation::Data(_) => drop(procedure.choose(all)?),
        Validation::Folds(count) => {
            for fold in Split::folds(data, &all, count)? {
                procedure.choose(fold.train)?;
            }
            procedure.choose(all)?;
        }
    }
    Ok(())
}

/// The rows of the first choice.
pub(crate) fn first_rows(data: &Dataset, options: &ValidFitParams) -> Result<Vec<usize>, FitError> {
    let all = options.training_rows(data);
    Ok(match options.validation {
        Validation::End(fraction) => Split::by_end(data, &all, fraction)?.train,
        Validation::Data(_) => all,
        Validation::Folds(count) => {
            Split::folds(data, &all, count)?.into_iter().next().map_or(all, |fold| fold.train)
        }
    })
}

/// Chooses, validates and delivers.
pub(crate) fn fit<P: Procedure>(
    procedure: &P,
    data: &Dataset,
    options: &ValidFitParams,
) -> Result<(Outcome, P::Extra), FitError> {
    let all = options.training_rows(data);
    let plain = |choice: &Choice| choice.model(data, options, &[], String::new());
    // The figures of a prediction, and its errors.
    let judged = |truth: DMatrix<f64>, prediction: DMatrix<f64>| {
        (Metrics::new(&data.outputs, &truth, &prediction), truth - prediction)
    };
    let (choice, extra, (validation, errors), residuals) = match options.validation {
        Validation::End(fraction) => {
            let Split { train, validation: held } = Split::by_end(data, &all, fraction)?;
            let (mut choice, mut extra) = procedure.choose(train)?;
            let validation = judged(data.outputs_at(&held), plain(&choice).predict(data, &held));
            let samples = choice.stage.clone().rows(data, held);
            let residuals = choice.residuals(&samples, validation.0.relative_residual);
            if options.refit {
                if procedure.chooses_again(&choice) {
                    (choice, extra) = procedure.choose(all)?;
                } else {
                    choice = procedure.refit(&choice, &extra, all, "refit")?;
                }
            }
            (choice, extra, validation, Some(residuals))
        }
        Validation::Data(other) => {
            let settled = options.settled();
            other.check_memory(settled)?;
            let (choice, extra) = procedure.choose(all)?;
            let held = other.scored_rows(settled);
            let validation = judged(other.outputs_at(&held), plain(&choice).predict(other, &held));
            let samples = choice.stage.clone().rows(other, held);
            let residuals = choice.residuals(&samples, validation.0.relative_residual);
            (choice, extra, validation, Some(residuals))
        }
        Validation::Folds(count) => {
            let mut prediction = DMatrix::zeros(all.len(), data.outputs.len());
            let mut next = 0;
            for fold in Split::folds(data, &all, count)? {
                let (choice, _) = procedure.choose(fold.train)?;
                let block = plain(&choice).predict(data, &fold.validation);
                prediction.rows_mut(next, block.nrows()).copy_from(&block);
                next += block.nrows();
            }
            let validation = judged(data.outputs_at(&all), prediction);
            let (choice, extra) = procedure.choose(all)?;
            (choice, extra, validation, None)
        }
    };
    let residual: Vec<f64> = validation.outputs.iter().map(|output| output.rmse).collect();
    let note = procedure.note(&choice, &validation);
    let mut model = choice.model(data, options, &residual, note);
    model.set_interval(Interval::from_residuals(
        options.coverage,
        errors.column_iter().map(|column| column.iter().copied().collect::<Vec<f64>>()),
    ));
    let train = model.evaluate_at(data, &choice.rows);
    let report = |(k, head): (usize, &ChosenHead)| HeadReport {
        inputs: head.inputs.iter().map(|&c| data.inputs[c].clone()).collect(),
        ranks: head.fit.network.ranks(),
        weight: head.weight,
        train_residual: head.fit.train_residual,
        val_residual: residuals.as_ref().map(|residuals| residuals[k]),
        gamma: head.fit.settings.gamma,
        ridge: head.fit.settings.ridge,
        decay: head.fit.settings.decay,
        sweeps: head.fit.sweeps,
        seconds: head.seconds,
    };
    let heads = choice.heads.iter().enumerate().map(report).collect();
    Ok((
        Outcome {
            model: model.rounded(),
            train,
            validation,
            held_out: choice.held_out,
            heads,
            ensemble: None,
        },
        extra,
    ))
}
