//! Levenberg-Marquardt over all cores: descent on J = ||y - f||^2 + ridge N l ||theta||^2.
//!
//! The damping also settles the gauge freedom, which leaves J^T J singular. Steps are accepted only where J falls;
//! the damping follows the ratio of actual to predicted decrease (Nielsen's rule).

use super::conjugate::Linearised;
use super::jacobian::NormalEquations;
use super::rows::Rows;
use crate::linalg::{cholesky_in_place, cholesky_solve};
use crate::network::Network;
use nalgebra::DMatrix;

/// Rejected trials after which a descent has converged as far as the arithmetic allows.
const TRIALS: usize = 10;

/// Coefficients up to which the normal equations are formed, by each thread (8 MB); above, conjugate gradients are faster.
pub(crate) const EXPLICIT: usize = 1000;
/// The same for rows and networks of up to [`SHORT`] cores; longer ones are too ill-conditioned for few conjugate gradients, and for starts
/// of random cores.
const FAST: usize = 200;
pub(super) const SHORT: usize = 4;

/// A network on its way down.
pub(super) struct Descent {
    /// Where it is.
    pub(super) network: Network,
    /// ||y - f||^2 there.
    pub(super) loss: f64,
    damping: f64,
    growth: f64,
    /// Memory of the last step.
    normal: NormalEquations,
    damped: DMatrix<f64>,
}

impl Descent {
    /// Starts at `network`.
    pub(super) fn new(network: Network) -> Self {
        let (normal, damped) = (NormalEquations::zeros(0), DMatrix::zeros(0, 0));
        Self { network, loss: f64::INFINITY, damping: 1e-3, growth: 2.0, normal, damped }
    }

    /// One accepted step. Gives the decrease of J, or `None` where no step lowers it.
    pub(super) fn step(&mut self, rows: &Rows, ridge: f64) -> Option<f64> {
        let ridge = ridge * rows.entries() as f64;
        let most = if self.network.degree() > SHORT { EXPLICIT } else { FAST };
        if self.network.parameters() > most && !rows.are_condensed() {
            let linear = Linearised::new(rows, &self.network);
            self.loss = linear.loss;
            return self
                .trials(rows, ridge, linear.scale(), |theta, damping| linear.solve(theta, ridge, damping));
        }
        let old = std::mem::replace(&mut self.normal, NormalEquations::zeros(0));
        let normal = NormalEquations::within(old, rows, &self.network, 0..self.network.degree());
        let mut damped = std::mem::replace(&mut self.damped, DMatrix::zeros(0, 0));
        self.loss = normal.loss;
        let size = self.network.parameters();
        if damped.nrows() != size {
            damped = DMatrix::zeros(size, size);
        }
        let largest = (0..size).fold(f64::MIN_POSITIVE, |m, i| m.max(normal.gram[(i, i)]));
        let gain = self.trials(rows, ridge, largest, |theta, damping| {
            damped.copy_from(&normal.gram);
            (0..size).for_each(|i| damped[(i, i)] += ridge + damping);
            let rhs: Vec<f64> = normal.gradient.iter().zip(theta).map(|(g, t)| g - ridge * t).collect();
            let mut delta = DMatrix::from_column_slice(size, 1, &rhs);
            cholesky_in_place(&mut damped).then(|| cholesky_solve(&damped, &mut delta))?;
            Some((delta.as_slice().to_vec(), rhs))
        });
        (self.normal, self.damped) = (normal, damped);
        gain
    }

    /// Raises the damping until a step of `solve` (its solution and right-hand side) lowers J.
    fn trials(
        &mut self,
        rows: &Rows,
        ridge: f64,
        largest: f64,
        mut solve: impl FnMut(&[f64], f64) -> Option<(Vec<f64>, Vec<f64>)>,
    ) -> Option<f64> {
        let theta = self.network.coefficients();
        let penalised = self.loss + ridge * square(&theta);
        for _ in 0..TRIALS {
            self.damping = self.damping.max(1e-15 * theta.len() as f64);
            let damping = self.damping * largest;
            let Some((delta, gradient)) = solve(&theta, damping) else {
                self.damping *= 10.0;
                continue;
            };
            let moved: Vec<f64> = theta.iter().zip(&delta).map(|(t, d)| t + d).collect();
            let trial = self.network.with_coefficients(&moved);
            let loss = rows.loss(&trial);
            let after = loss + ridge * square(&moved);
            if after < penalised {
                let predicted: f64 = delta.iter().zip(&gradient).map(|(d, g)| d * (damping * d + g)).sum();
                let ratio = (penalised - after) / predicted;
                self.damping *= (1.0 - (2.0 * ratio - 1.0).powi(3)).clamp(0.1, 2.0);
                self.growth = 2.0;
                self.network = trial;
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

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::*;
    use crate::network::Normal;
    use nalgebra::DVector;

    #[test]
    fn a_step_solves_the_damped_normal_equations_of_dense_algebra() {
        let mut normal = Normal::new(3);
        let x = DMatrix::from_fn(60, 4, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let truth = Network::random(2, 4, &[2, 2], &mut normal);
        let y = truth.evaluate(&x);
        let theta = DVector::from_vec(truth.coefficients()).map(|v| v + 1e-2 * normal.draw());
        let values = |theta: &DVector<f64>| {
            DVector::from_column_slice(truth.with_coefficients(theta.as_slice()).evaluate(&x).as_slice())
        };
        // A network is linear in each of its coefficients.
        let column = |at: usize| {
            let mut moved = theta.clone();
            moved[at] += 1.0;
            values(&moved) - values(&theta)
        };
        let jacobian = DMatrix::from_columns(&(0..theta.len()).map(column).collect::<Vec<_>>());
        let outputs = DVector::from_column_slice(y.as_slice());
        let (ridge, entries) = (1e-6, 120.0);
        let mut descent = Descent::new(truth.with_coefficients(theta.as_slice()));
        let mut damped = jacobian.tr_mul(&jacobian);
        let shift = ridge * entries + descent.damping * damped.diagonal().max();
        (0..theta.len()).for_each(|i| damped[(i, i)] += shift);
        let rhs = jacobian.tr_mul(&(&outputs - values(&theta))) - ridge * entries * &theta;
        let wanted = damped.cholesky().expect("positive definite").solve(&rhs);
        let penalised = |theta: &DVector<f64>| {
            (&outputs - values(theta)).norm_squared() + ridge * entries * theta.norm_squared()
        };

        let problem = Problem { x: &x, y: &y };
        let gain = descent.step(&Rows::new(&problem, 1), ridge).expect("a step downhill");
        let found = DVector::from_vec(descent.network.coefficients());
        assert!((&found - &theta - &wanted).norm() < 1e-8 * wanted.norm());
        assert!((gain / (penalised(&theta) - penalised(&found)) - 1.0).abs() < 1e-8);
    }
}
