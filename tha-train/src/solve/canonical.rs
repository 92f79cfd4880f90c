//! Alternating least squares in canonical form: descent on J = ||Y - Yhat||^2 + ridge ||B||^2, one core at a time.
//!
//! With the cores left of core k left-orthogonal and those right of it right-orthogonal, ||B|| = ||V_k||: the penalty on the
//! core is the penalty on the whole tensor.

use super::SolveError;
use super::local::Objective;
use super::log::{Step, StepKind, record};
use super::precondition::Covariance;
use crate::network::Network;
use crate::progress::Progress;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Sweeps forth and back, at most.
    pub(super) sweeps: usize,
    /// Conjugate gradient steps per core, at most.
    pub(super) steps: usize,
}

/// A sweep that lowers J by less than this part of it is the last.
const TOLERANCE: f64 = 2e-4;

/// Sweeps from the last core to the first, and back between them; gives their number. The first core is left in the centre.
pub(super) fn sweeps(
    network: &mut Network,
    objective: &dyn Objective,
    covariance: &Covariance,
    ridge: f64,
    effort: Effort,
    progress: &dyn Progress,
) -> Result<usize, SolveError> {
    let last = network.degree() - 1;
    // Solves for one core; gives J with the penalty ridge ||V_k||^2.
    let update = |network: &mut Network, k: usize| -> Result<f64, SolveError> {
        let (before, after) = objective.local(network, k).descend(network, covariance, ridge, effort.steps);
        let unit = objective.square().max(f64::MIN_POSITIVE);
        let (kind, ranks) = (StepKind::Core(k), network.ranks());
        let (loss, gain) = (after / unit, (before - after) / unit);
        record(progress, Step { kind, loss, gain, truncation: 0.0, ranks })?;
        Ok(after)
    };
    network.orthogonalize_left();
    let mut before = f64::INFINITY;
    let mut sweep = 0;
    loop {
        sweep += 1;
        for k in (1..=last).rev() {
            update(network, k)?;
            network.pass_left(k);
        }
        let loss = update(network, 0)?;
        if last == 0 || sweep == effort.sweeps || before - loss < TOLERANCE * loss {
            return Ok(sweep);
        }
        before = loss;
        for k in 0..last {
            if k > 0 {
                update(network, k)?;
            }
            network.pass_right(k);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::super::local::tests::problem;
    use super::super::rows::Rows;
    use super::*;
    use crate::network::Normal;
    use crate::progress::Silent;

    #[test]
    fn the_penalty_is_the_norm_of_the_tensor_and_sweeps_go_down() {
        let (x, y) = problem(5, 200, 5, 2);
        let covariance = Covariance::new(&(x.transpose() * &x)).unwrap();
        let problem = Problem { x: &x, y: &y };
        let rows = Rows::new(&problem, 1);
        let mut network = Network::random(2, 5, &[3, 2], &mut Normal::new(1));
        let mut losses = Vec::new();
        for _ in 0..4 {
            let effort = Effort { sweeps: 2, steps: 30 };
            sweeps(&mut network, &rows, &covariance, 3.0, effort, &Silent).unwrap();
            let norm: f64 = network.to_dense().iter().map(|v| v * v).sum();
            let core: f64 = network.cores[0].data.iter().map(|v| v * v).sum();
            assert!((core / norm - 1.0).abs() < 1e-10, "the first core carries the norm");
            losses.push(rows.loss(&network) + 3.0 * norm);
        }
        assert!(losses.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-9)), "{losses:?}");
    }
}
