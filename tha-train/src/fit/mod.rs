//! A fit from data to model: split, standardise, choose on samples the solver does not fit, refit on everything.
//!
//! What decides on real recordings is how the choice is made. Rank, ridge and early stopping are chosen on rows that are held
//! out of the descent; what is reported as validation comes from other rows again, which chose nothing (`judged`); then
//! the chosen structure is refitted on all of the data.

mod error;
mod full;
pub(crate) mod judged;
mod params;
mod valid;

pub use error::FitError;
pub(crate) use full::{figures, held_out};
pub use params::FitParams;
pub(crate) use params::{check_coverage, setters};
pub use valid::{ValidFitParams, Validation};

use crate::ensemble::Summary;
use crate::metrics::Metrics;
use crate::model::Model;
use serde::Serialize;

/// A finished fit.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The model as its file holds it.
    pub model: Model,
    /// Figures of the delivered network on the samples it was fitted to, before its coefficients are rounded to f32.
    pub train: Metrics,
    /// Figures on samples that were neither fitted nor took part in a choice, before the refit on all data and before
    /// rounding.
    pub validation: Metrics,
    /// Figures on the samples that were held out to choose on: good for comparing settings with each other only.
    pub held_out: Metrics,
    /// One entry per head of the model.
    pub heads: Vec<HeadReport>,
    /// What there is to say about an ensemble.
    pub ensemble: Option<Summary>,
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
    /// Relative residual on the validation samples, before the refit; of all heads together where they are added up, and
    /// none where each fold has heads of its own.
    pub val_residual: Option<f64>,
    /// Mean square of all features together, that of the constant being one.
    pub gamma: f64,
    /// Ridge parameter.
    pub ridge: f64,
    /// Time constant of the prior over the lags, in samples, where there was one.
    pub decay: Option<f64>,
    /// Sweeps of the solver.
    pub sweeps: usize,
    /// Wall-clock time.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Pair;
    use crate::data::Dataset;
    use crate::ensemble::{Combine, Strategy};
    use crate::progress::{Silent, Until};
    use crate::synth::{self, Kind};
    use std::time::Instant;

    fn fit(data: &Dataset, validation: Validation<'_>, refit: bool) -> Outcome {
        params().validation(validation).refit(refit).check(data).unwrap().fit(data, &Silent).unwrap()
    }

    fn params<'a>() -> FitParams<'a> {
        FitParams::new().memory(2).degree(2).max_rank(3)
    }

    fn data(noise: f64) -> synth::Synthetic {
        let made = synth::SynthParams {
            memory: 2,
            degree: 2,
            samples: 400,
            noise,
            ..synth::SynthParams::new(Kind::Volterra)
        };
        synth::generate(&made).unwrap()
    }

    #[test]
    fn the_validation_figures_are_those_before_the_refit() {
        let data = data(0.1);
        let refitted = fit(&data.train, Validation::End(0.25), true);
        let kept = fit(&data.train, Validation::End(0.25), false);
        assert_eq!(refitted.validation, kept.validation);
        assert_eq!((refitted.train.samples, kept.train.samples), (399, 299));
        assert_ne!(refitted.model.spec().heads, kept.model.spec().heads);
        let kept_residual = kept.model.spec().outputs[0].residual;
        assert_eq!(kept_residual, kept.validation.outputs[0].rmse as f32, "the file says what to expect");
    }

    #[test]
    fn folds_judge_every_sample_and_settle_on_one_setting() {
        let data = data(0.1);
        let outcome = fit(&data.train, Validation::Folds(4), true);
        assert_eq!((outcome.validation.samples, outcome.train.samples), (399, 399));
        let fresh = outcome.model.evaluate(&data.test).relative_residual;
        assert!(fresh < 0.05, "{fresh}");
        assert!(outcome.validation.relative_residual < 0.15, "{}", outcome.validation.relative_residual);
    }

    #[test]
    fn models_of_the_same_rows_have_the_same_features_though_maps_change() {
        let mut data = data(0.1).train;
        // Two values at first: fewer pieces than all of the rows have.
        data.u[1].iter_mut().take(320).enumerate().for_each(|(t, u)| *u = (t % 2) as f64);
        let params = || params().memory(1).maps(4);
        let fit = |params: FitParams<'_>| params.check(&data).unwrap().fit(&data, &Silent).unwrap().model;
        let full = fit(params());
        let before = fit(params().refit(false));
        assert_ne!(full.spec().stage.features[1].nodes.len(), before.spec().stage.features[1].nodes.len());
        for heads in [
            params().heads(2).subset_size(1),
            params().heads(1).subset_size(2).combine(Combine::Additive),
            params().subsets(Strategy::PerOutput),
        ] {
            let ensemble = fit(heads);
            assert_eq!(ensemble.spec().stage, full.spec().stage);
            Pair::from_models(&full, &ensemble, &data).unwrap();
        }
    }

    #[test]
    fn a_validation_set_is_never_fitted() {
        let data = data(0.05);
        let outcome = fit(&data.train, Validation::Data(&data.test), true);
        assert_eq!((outcome.train.samples, outcome.validation.samples), (399, 999));
        let fresh = outcome.model.evaluate(&data.test).relative_residual;
        assert!((fresh - outcome.validation.relative_residual).abs() < 1e-6);
    }

    #[test]
    fn it_can_be_stopped() {
        let data = data(0.1).train;
        let impatient = Until(&Silent, Some(Instant::now()));
        let result = params().check(&data).unwrap().fit(&data, &impatient);
        assert!(matches!(result, Err(FitError::Stopped)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_fit_in_memory_is_refused_before_it_is_tried() {
        let mut long = data(0.1).train;
        long.records[0].rows.end = 1 << 50;
        let refusal = params().check(&long).unwrap_err().to_string();
        assert!(refusal.contains("GB are free"), "{refusal}");
    }
}
