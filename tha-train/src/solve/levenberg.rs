//! Levenberg-Marquardt over all cores: descent on J = ||y - f||^2 + ridge N l ||theta||^2.
//!
//! The damping also settles the gauge freedom, which leaves J^T J singular. Steps are accepted only where J falls;
//! the damping follows the ratio of actual to predicted decrease (Nielsen's rule).

use super::conjugate::Linearised;
use super::normal::{NormalEquations, Rows};
use crate::linalg::{cholesky_in_place, cholesky_solve};
use crate::network::Network;
use nalgebra::DMatrix;

/// Rejected trials after which a descent has converged as far as the arithmetic allows.
const TRIALS: usize = 10;

/// Coefficients up to which the normal equations are formed; above, conjugate gradients are faster.
pub(crate) const EXPLICIT: usize = 1000;

/// A train on its way down, and the buffers of its steps.
pub(super) struct Descent {
    /// Where it is.
    pub(super) train: Network,
    /// ||y - f||^2 there.
    pub(super) loss: f64,
    damping: f64,
    growth: f64,
    normal: NormalEquations,
    damped: DMatrix<f64>,
}

impl Descent {
    /// Starts at `train`.
    pub(super) fn new(train: Network) -> Self {
        Self {
            train,
            loss: f64::INFINITY,
            damping: 1e-3,
            growth: 2.0,
            normal: NormalEquations::default(),
            damped: DMatrix::zeros(0, 0),
        }
    }

    /// Takes another train, keeping the buffers.
    pub(super) fn restart(&mut self, train: Network) {
        self.train = train;
        self.loss = f64::INFINITY;
        self.damping = 1e-3;
        self.growth = 2.0;
    }

    /// One accepted step. Gives the decrease of J, or `None` where no step lowers it.
    pub(super) fn step(&mut self, rows: &Rows, ridge: f64) -> Option<f64> {
        let ridge = ridge * rows.entries() as f64;
        // Moments have no rows to multiply with.
        if self.train.parameters() > EXPLICIT && !rows.are_condensed() {
            let linear = Linearised::new(rows, &self.train);
            self.loss = linear.loss;
            return self.trials(rows, ridge, linear.scale(), |theta, damping, _| {
                linear.solve(theta, ridge, damping)
            });
        }
        let mut normal = std::mem::take(&mut self.normal);
        rows.normal_equations(&self.train, 0..self.train.degree(), &mut normal);
        self.loss = normal.loss;
        let size = self.train.parameters();
        let largest = (0..size).fold(f64::MIN_POSITIVE, |m, i| m.max(normal.gram[(i, i)]));
        let gain = self.trials(rows, ridge, largest, |theta, damping, damped| {
            damped.clone_from(&normal.gram);
            (0..size).for_each(|i| damped[(i, i)] += ridge + damping);
            let rhs: Vec<f64> = normal.gradient.iter().zip(theta).map(|(g, t)| g - ridge * t).collect();
            let mut delta = DMatrix::from_column_slice(size, 1, &rhs);
            cholesky_in_place(damped).then(|| cholesky_solve(damped, &mut delta))?;
            Some((delta.as_slice().to_vec(), rhs))
        });
        self.normal = normal;
        gain
    }

    /// Raises the damping until a step of `solve` (its solution and right-hand side) lowers J.
    fn trials(
        &mut self,
        rows: &Rows,
        ridge: f64,
        largest: f64,
        solve: impl Fn(&[f64], f64, &mut DMatrix<f64>) -> Option<(Vec<f64>, Vec<f64>)>,
    ) -> Option<f64> {
        let theta = self.train.coefficients();
        let penalised = self.loss + ridge * square(&theta);
        for _ in 0..TRIALS {
            self.damping = self.damping.max(1e-15 * theta.len() as f64);
            let damping = self.damping * largest;
            let Some((delta, gradient)) = solve(&theta, damping, &mut self.damped) else {
                self.damping *= 10.0;
                continue;
            };
            let moved: Vec<f64> = theta.iter().zip(&delta).map(|(t, d)| t + d).collect();
            let trial = self.train.with_coefficients(&moved);
            let loss = rows.loss(&trial);
            let after = loss + ridge * square(&moved);
            if after < penalised {
                let predicted: f64 = delta.iter().zip(&gradient).map(|(d, g)| d * (damping * d + g)).sum();
                let ratio = (penalised - after) / predicted;
                self.damping *= (1.0 - (2.0 * ratio - 1.0).powi(3)).clamp(0.1, 2.0);
                self.growth = 2.0;
                self.train = trial;
                self.loss = loss;
                return Some(penalised - after);
            }
            self.damping *= self.growth;
            self.growth *= 2.0;
        }
        None
    }
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum()
}
