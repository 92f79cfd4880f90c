//! Alternating least squares: one core at a time, all others fixed.
//!
//! The local problem of core k has r_{k-1} q r_k unknowns; for the first core the outputs decouple inside the normal
//! equations. With the cores left of it left-orthogonal and those right of it right-orthogonal the penalty on the core
//! is the penalty on B.

use super::SolveError;
use super::jacobian::NormalEquations;
use super::log::{Step, StepKind, record};
use super::rows::Rows;
use crate::linalg::{cholesky_in_place, cholesky_solve};
use crate::network::Network;
use crate::progress::Progress;
use nalgebra::DMatrix;

/// Solves for core `k`; gives J before and after, both with the penalty ridge N l ||V_k||^2.
pub(super) fn update(network: &mut Network, k: usize, rows: &Rows, ridge: f64) -> (f64, f64) {
    let ridge = ridge * rows.entries() as f64;
    let normal = NormalEquations::new(rows, network, k..k + 1);
    let core = &network.cores[k].data;
    let size = core.len();
    let gradient = DMatrix::from_fn(size, 1, |i, _| normal.gradient[i] - ridge * core[i]);
    let before = normal.loss + ridge * core.iter().map(|v| v * v).sum::<f64>();
    let largest = (0..size).fold(f64::MIN_POSITIVE, |m, i| m.max(normal.gram[(i, i)]));
    // The damping only decides between solutions of equal loss; it rises where rounding has eaten it.
    let mut damping = 1e-13 * largest;
    for _ in 0..4 {
        let mut damped = normal.gram.clone();
        (0..size).for_each(|i| damped[(i, i)] += ridge + damping);
        damping *= 1e2;
        if !cholesky_in_place(&mut damped) {
            continue;
        }
        let mut delta = gradient.clone();
        cholesky_solve(&damped, &mut delta);
        let mut trial = network.clone();
        trial.cores[k].data.iter_mut().zip(delta.iter()).for_each(|(v, d)| *v += d);
        let penalty = ridge * trial.cores[k].data.iter().map(|v| v * v).sum::<f64>();
        let after = rows.loss(&trial) + penalty;
        if after <= before {
            *network = trial;
            return (before, after);
        }
    }
    (before, before)
}

/// Sweeps forth and back until one lowers J by less than `tolerance` times itself; gives the number of sweeps.
pub(super) fn sweeps(
    network: &mut Network,
    rows: &Rows,
    ridge: f64,
    most: usize,
    tolerance: f64,
    progress: &dyn Progress,
) -> Result<usize, SolveError> {
    let last = network.degree() - 1;
    let unit = rows.square;
    network.orthogonalize_right();
    for sweep in 0..most {
        let mut first = None;
        let mut latest = 0.0;
        let order = (0..last).map(|k| (k, 1)).chain((0..=last).rev().map(|k| (k, -1)));
        for (k, direction) in order {
            let (before, after) = update(network, k, rows, ridge);
            first.get_or_insert(before);
            latest = after;
            let (kind, ranks) = (StepKind::Core(k), network.ranks());
            let (loss, gain) = (after / unit, (before - after) / unit);
            record(progress, Step { kind, loss, gain, truncation: 0.0, ranks })?;
            if direction > 0 {
                network.pass_right(k);
            } else if k > 0 {
                network.pass_left(k);
            }
        }
        let before = first.unwrap_or(latest);
        if before - latest <= tolerance * before {
            return Ok(sweep + 1);
        }
    }
    Ok(most)
}
