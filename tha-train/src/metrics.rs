//! How good a prediction is, in physical units over the scored samples.
//!
//! Per output: RMSE, NRMSE = RMSE / std(y), R2 = 1 - NRMSE^2 and the relative residual ||y - yhat|| / ||y||.
//! In total: the relative residual in the Frobenius norm over all outputs, the RMSE over all values, and the means of
//! NRMSE and R2 over the outputs. Where a divisor is zero (a constant output) the figure is NaN, `null` in JSON, and
//! left out of the means.

use crate::data::mean_and_std;
use nalgebra::DMatrix;
use serde::Serialize;

/// Figures for a whole prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// ||Y - Yhat||_F / ||Y||_F.
    pub relative_residual: f64,
    /// Root mean square error over all values.
    pub rmse: f64,
    /// Mean over the outputs of RMSE / std(y).
    pub nrmse: f64,
    /// Mean over the outputs of the coefficient of determination.
    pub r2: f64,
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
        let outputs: Vec<OutputMetrics> = names
            .iter()
            .enumerate()
            .map(|(j, name)| {
                let (y, e) = (truth.column(j), error.column(j));
                let rmse = (e.norm_squared() / samples as f64).sqrt();
                let nrmse = ratio(rmse, spread(y.as_slice()));
                OutputMetrics {
                    name: name.clone(),
                    relative_residual: ratio(e.norm(), y.norm()),
                    rmse,
                    nrmse,
                    r2: 1.0 - nrmse * nrmse,
                }
            })
            .collect();
        Self {
            relative_residual: ratio(error.norm(), truth.norm()),
            rmse: (error.norm_squared() / error.len() as f64).sqrt(),
            nrmse: mean(outputs.iter().map(|output| output.nrmse)),
            r2: mean(outputs.iter().map(|output| output.r2)),
            samples,
            outputs,
        }
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

/// The mean of the values that are numbers.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.filter(|v| !v.is_nan()).fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
    sum / count
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
    fn constant_outputs_have_no_nrmse() {
        let m = metrics(&[2.0, 2.0, 1.0, 3.0], &[2.0, 2.0, 1.0, 1.0], 2);
        assert!(m.outputs[0].nrmse.is_nan());
        assert_eq!(m.nrmse, 2.0_f64.sqrt());
        assert!(serde_json::to_string(&m.outputs[0]).unwrap().contains("\"nrmse\":null"));
    }
}
