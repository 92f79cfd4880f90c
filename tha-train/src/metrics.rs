//! How good a prediction is, in physical units over the scored samples.
//!
//! Per output: RMSE, NRMSE = RMSE / std(y), R2 = 1 - NRMSE^2 and the relative residual ||y - yhat|| / ||y||.
//! In total: the relative residual in the Frobenius norm over all outputs, the RMSE over all values, and the means of
//! NRMSE and R2 over the outputs that have them. A constant output has none: they are NaN, `null` in JSON, and
//! [`Metrics::without_nrmse`] names it, so that nobody takes the means for all of the outputs.

use crate::data::listed;
use crate::stage::{mean_and_std, root_mean_square};
use nalgebra::DMatrix;
use serde::Serialize;

/// Figures for a whole prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// ||Y - Yhat||_F / ||Y||_F.
    pub relative_residual: f64,
    /// Root mean square error over all values.
    pub rmse: f64,
    /// Mean of RMSE / std(y) over the outputs that have it; NaN where none has.
    pub nrmse: f64,
    /// Mean of the coefficient of determination, likewise.
    pub r2: f64,
    /// How many outputs `nrmse` and `r2` are the means of.
    pub nrmse_outputs: usize,
    /// Names of the outputs that are constant here: they have no NRMSE and no R2.
    pub without_nrmse: Vec<String>,
    /// Scored samples.
    pub samples: usize,
    /// The same for each output.
    pub outputs: Vec<OutputMetrics>,
}

/// Figures for one output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputMetrics {
    /// Name of the output.
    pub name: String,
    /// ||y - yhat|| / ||y||.
    pub relative_residual: f64,
    /// Root mean square error.
    pub rmse: f64,
    /// RMSE / std(y).
    pub nrmse: f64,
    /// Coefficient of determination, 1 - NRMSE^2.
    pub r2: f64,
}

impl Metrics {
    /// Compares a prediction with the truth, both N x l.
    ///
    /// # Panics
    /// Panics when the shapes differ.
    pub fn new(names: &[String], truth: &DMatrix<f64>, prediction: &DMatrix<f64>) -> Self {
        let samples = truth.nrows();
        let error = truth - prediction;
        let size = |values: &[f64]| root_mean_square(values.iter().copied());
        let outputs: Vec<OutputMetrics> = names
            .iter()
            .enumerate()
            .map(|(j, name)| {
                let (y, e) = (truth.column(j), error.column(j));
                let rmse = size(e.as_slice());
                let nrmse = ratio(rmse, spread(y.as_slice()));
                OutputMetrics {
                    name: name.clone(),
                    relative_residual: ratio(rmse, size(y.as_slice())),
                    rmse,
                    nrmse,
                    r2: 1.0 - nrmse * nrmse,
                }
            })
            .collect();
        let (scored, constant): (Vec<_>, Vec<_>) = outputs.iter().partition(|output| !output.nrmse.is_nan());
        let mean = |figure: fn(&OutputMetrics) -> f64| {
            scored.iter().map(|output| figure(output)).sum::<f64>() / scored.len() as f64
        };
        let rmse = size(error.as_slice());
        Self {
            relative_residual: ratio(rmse, size(truth.as_slice())),
            rmse,
            nrmse: mean(|output| output.nrmse),
            r2: mean(|output| output.r2),
            nrmse_outputs: scored.len(),
            without_nrmse: constant.iter().map(|output| output.name.clone()).collect(),
            samples,
            outputs,
        }
    }

    /// Which outputs the means of NRMSE and R2 leave out, where they leave any out.
    pub fn left_out(&self) -> Option<String> {
        (!self.without_nrmse.is_empty()).then(|| {
            let (count, of) = (self.nrmse_outputs, self.outputs.len());
            let names = listed(&self.without_nrmse);
            format!("NRMSE and R2 over {count} of {of} outputs; constant and without them: {names}")
        })
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { f64::NAN }
}

/// The standard deviation; zero when it is only the rounding of a constant.
fn spread(y: &[f64]) -> f64 {
    let (mean, std) = mean_and_std(y.iter().copied());
    if std > 1e-14 * mean.abs() { std } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(truth: &[f64], prediction: &[f64], outputs: usize) -> Metrics {
        let names: Vec<String> = (1..=outputs).map(|j| format!("y{j}")).collect();
        let rows = truth.len() / outputs;
        Metrics::new(
            &names,
            &DMatrix::from_column_slice(rows, outputs, truth),
            &DMatrix::from_column_slice(rows, outputs, prediction),
        )
    }

    #[test]
    fn figures_by_hand() {
        // y1 = 1, 3 (std 1) predicted 2, 3; y2 = 0, 4 (std 2) predicted exactly.
        let m = metrics(&[1.0, 3.0, 0.0, 4.0], &[2.0, 3.0, 0.0, 4.0], 2);
        assert_eq!(m.samples, 2);
        assert_eq!(m.outputs[0].rmse, 0.5_f64.sqrt());
        assert_eq!(m.outputs[0].nrmse, 0.5_f64.sqrt());
        assert!((m.outputs[0].r2 - 0.5).abs() < 1e-15);
        assert_eq!(m.outputs[1].r2, 1.0);
        assert_eq!(m.rmse, 0.5);
        assert_eq!(m.nrmse, 0.5_f64.sqrt() / 2.0);
        assert!((m.relative_residual - (1.0_f64 / 26.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn a_constant_output_is_named_and_counts_where_it_can() {
        // y1 is constant and predicted off by 1000; y2 = 1, 3 predicted 1, 1.
        let m = metrics(&[2.0, 2.0, 1.0, 3.0], &[1002.0, 1002.0, 1.0, 1.0], 2);
        assert!(m.outputs[0].nrmse.is_nan() && m.outputs[0].r2.is_nan());
        assert_eq!((m.outputs[0].rmse, m.outputs[0].relative_residual), (1000.0, 500.0));
        assert_eq!((m.without_nrmse.as_slice(), m.nrmse_outputs), (["y1".to_owned()].as_slice(), 1));
        assert_eq!(m.nrmse, 2.0_f64.sqrt());
        assert!(m.rmse > 700.0 && m.relative_residual > 300.0, "{m:?}");
        assert!(serde_json::to_string(&m.outputs[0]).unwrap().contains("\"nrmse\":null"));
        let none = metrics(&[2.0, 2.0], &[1.0, 2.0], 1);
        assert!(serde_json::to_string(&none).unwrap().contains("\"nrmse\":null,\"r2\":null"));
    }

    #[test]
    fn figures_do_not_depend_on_the_unit() {
        for unit in [1e-300, 1e-170, 1.0, 1e170, 1e300] {
            let m = metrics(&[unit, 3.0 * unit], &[2.0 * unit, 3.0 * unit], 1);
            assert!((m.nrmse - 0.5_f64.sqrt()).abs() < 1e-12, "{unit}: {m:?}");
            assert!((m.relative_residual - 0.1_f64.sqrt()).abs() < 1e-12, "{unit}: {m:?}");
        }
    }
}
