//! A fit from data to model: split, standardise, choose on samples the solver does not fit, refit on everything.
//!
//! What decides on real recordings is how the choice is made. Rank, ridge and early stopping are chosen on the end of
//! each record, on a validation file or on contiguous blocks over all records; then the chosen structure is refitted on
//! all of the data. The validation figures are always those of the chosen model *before* the refit: the refitted one
//! has seen those samples.

mod choice;
mod error;
mod folds;
mod options;

pub use error::FitError;
pub(crate) use folds::{Setting, fit_setting};
pub use options::{Judge, Options};

use crate::data::Dataset;
use crate::metrics::Metrics;
use crate::model::{Frame, HeadPart, Model};
use crate::solve::{self, Observer};
use choice::{Choice, choose, predict, problem};
use serde::Serialize;
use std::time::Instant;

/// A finished fit.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The model as its file holds it.
    pub model: Model,
    /// Figures of the delivered network on the samples it was fitted to, before its coefficients are rounded to f32.
    pub train: Metrics,
    /// Figures of the chosen network on samples it was not fitted to, before the refit and before rounding.
    pub validation: Metrics,
    /// One entry per head of the model.
    pub heads: Vec<HeadReport>,
}

/// How the fit of one head went.
#[derive(Clone, Debug, Serialize)]
pub struct HeadReport {
    /// Names of its inputs.
    pub inputs: Vec<String>,
    /// Inner ranks r_1..r_{d-1}.
    pub ranks: Vec<usize>,
    /// Its weight in the model.
    pub weight: f64,
    /// Relative residual on the samples it was fitted to.
    pub train_residual: f64,
    /// Relative residual on samples it was not fitted to, before the refit.
    pub val_residual: f64,
    /// Ridge parameter.
    pub ridge: f64,
    /// Time constant of the prior over the lags, in samples, where there was one.
    pub decay: Option<f64>,
    /// Sweeps of the solver.
    pub sweeps: usize,
    /// Wall-clock time.
    pub seconds: f64,
}

/// Fits the full model: one head on all inputs.
pub fn fit(
    data: &Dataset,
    judge: Judge<'_>,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Outcome, FitError> {
    let start = Instant::now();
    options.check(judge)?;
    let options = &options.lagged();
    data.check_memory(options.memory)?;
    options.check_size(data)?;
    let Choice { fit, scaling, validation, fitted } = choose(data, judge, options, observer)?;
    let (fit, fitted) = match fitted {
        Some(fitted) => (fit, fitted),
        None => {
            let all = data.lagged(options.memory, &scaling, data.scored_rows(options.memory));
            (solve::refit(&problem(&all), &fit, &options.solve, observer)?, all)
        }
    };
    let mut network = fit.train;
    // The gauge with the least cancellation: rounding to f32 costs the fewest digits in it.
    network.balance();
    let prediction = predict(&network, &fitted, &scaling);
    let train = Metrics::new(&data.outputs, &data.outputs_at(&fitted.rows), &prediction);

    let residual: Vec<f64> = validation.outputs.iter().map(|output| output.rmse).collect();
    let frame = Frame {
        data,
        scaling: &scaling,
        residual: &residual,
        memory: options.memory,
        degree: options.solve.degree,
        range: options.range,
        seed: options.solve.seed,
        note: format!("{} samples, validation NRMSE {:.4}", train.samples, validation.nrmse),
    };
    let inputs = (0..data.inputs.len()).collect();
    let model = frame.model(&[HeadPart { inputs, weight: 1.0, train: &network }]);
    let head = HeadReport {
        inputs: data.inputs.clone(),
        ranks: network.ranks(),
        weight: 1.0,
        train_residual: train.relative_residual,
        val_residual: validation.relative_residual,
        ridge: fit.ridge,
        decay: fit.decay,
        sweeps: fit.sweeps,
        seconds: start.elapsed().as_secs_f64(),
    };
    Ok(Outcome { model, train, validation, heads: vec![head] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Silent;
    use crate::synth::{self, Kind};
    use tha_core::RangePolicy;

    fn options() -> Options {
        let solve = solve::Options { degree: 2, max_rank: 3, ..solve::Options::default() };
        Options { memory: 2, solve, refit: true, range: RangePolicy::Pass }
    }

    fn data(noise: f64) -> synth::Synthetic {
        let made = synth::Options {
            memory: 2,
            degree: 2,
            samples: 400,
            noise,
            ..synth::Options::new(Kind::Volterra)
        };
        synth::generate(&made).unwrap()
    }

    #[test]
    fn the_validation_figures_are_those_before_the_refit() {
        let data = data(0.1);
        let refitted = fit(&data.train, Judge::End(0.25), &options(), &Silent).unwrap();
        let kept =
            fit(&data.train, Judge::End(0.25), &Options { refit: false, ..options() }, &Silent).unwrap();
        assert_eq!(refitted.validation, kept.validation);
        assert_eq!((refitted.train.samples, kept.train.samples), (399, 299));
        assert_ne!(refitted.model.spec().heads, kept.model.spec().heads);
        let kept_residual = kept.model.spec().outputs[0].residual;
        assert_eq!(kept_residual, kept.validation.outputs[0].rmse as f32, "the file says what to expect");
    }

    #[test]
    fn folds_judge_every_sample_and_settle_on_one_setting() {
        let data = data(0.1);
        let outcome = fit(&data.train, Judge::Folds(4), &options(), &Silent).unwrap();
        assert_eq!((outcome.validation.samples, outcome.train.samples), (399, 399));
        let fresh = outcome.model.evaluate(&data.test).relative_residual;
        assert!(fresh < 0.05, "{fresh}");
        assert!(outcome.validation.relative_residual < 0.15, "{}", outcome.validation.relative_residual);
    }

    #[test]
    fn a_validation_set_is_never_fitted() {
        let data = data(0.05);
        let outcome = fit(&data.train, Judge::Data(&data.test), &options(), &Silent).unwrap();
        assert_eq!((outcome.train.samples, outcome.validation.samples), (399, 999));
        let fresh = outcome.model.evaluate(&data.test).relative_residual;
        assert!((fresh - outcome.validation.relative_residual).abs() < 1e-6);
    }

    #[test]
    fn an_observer_can_stop_it() {
        struct Impatient;
        impl Observer for Impatient {
            fn stop(&self) -> bool {
                true
            }
        }
        let result = fit(&data(0.1).train, Judge::End(0.2), &options(), &Impatient);
        assert!(matches!(result, Err(FitError::Stopped)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_fit_in_memory_is_refused_before_it_is_tried() {
        let mut long = data(0.1).train;
        long.records[0].rows.end = 1 << 50;
        let refusal = options().check_size(&long).unwrap_err().to_string();
        assert!(refusal.contains("GB are free"), "{refusal}");
    }
}
