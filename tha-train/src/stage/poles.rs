//! Poles of a recording, from linear models of few states.
//!
//! Two ways to them give the observability matrix O of a model, its block rows C, C A, C A^2, ...; O without its first block = (O without
//! its last block) A, and the eigenvalues of A are the poles.
//!
//! - `of_lags` (Ho and Kalman; eigensystem realisation): an FIR model of M lags with a ridge, H_k = l x p coefficients of lag k; the Hankel
//!   matrix of H_1, H_2, ... is observability times controllability. For what fades within these lags.
//! - `of_windows` (subspace identification, MOESP): what the windows of past inputs and outputs tell of the window of outputs that follows,
//!   beyond the inputs in it, is observability times state. The outputs of the past stand for all that was before them, so that
//!   resonances which ring far longer than the window are found.

use super::Scaling;
use crate::data::{DataError, Dataset};
use crate::linalg::{add_gram_lower, add_product, cholesky_in_place, cholesky_solve, svd, view, view_mut};
use crate::network::Features;
use nalgebra::{Complex, DMatrix};

/// Lags of the linear model, and its coefficients per output at most.
const LAGS: usize = 200;
const COEFFICIENTS: usize = 800;
/// The ridge of the linear model, in observations.
const RIDGE: f64 = 10.0;
/// Channels times samples in each of the two windows, their samples at least and at most, and windows at most.
const WINDOW: usize = 200;
const SAMPLES: (usize, usize) = (6, 40);
const WINDOWS: usize = 60_000;
/// What is added to the moments of the windows, relative to their mean: inputs that were filtered hold hardly all frequencies.
const FLOOR: f64 = 1e-9;
/// A pole rings if its imaginary part is larger than this part of its distance from the unit circle; one of a larger modulus does not
/// fade within a recording; a real one that is smaller is gone with the next sample.
const RINGS: f64 = 0.5;
const MODULUS: f64 = 0.9995;
const FADES: f64 = 0.1;

/// The poles of the linear models of so many states, of all orders one way, then the other: of each conjugate pair that above the real axis,
/// and the positive real ones; those of the largest modulus first. None where the recording is too short to tell.
pub fn poles(data: &Dataset, orders: &[usize]) -> Result<Vec<Vec<Complex<f64>>>, DataError> {
    let mut all = of_windows(data, orders)?;
    all.extend(of_lags(data, orders)?);
    Ok(all)
}

/// The poles that so many columns of an observability matrix, of which each block has so many rows, stand for.
fn of_observability(u: &DMatrix<f64>, singular: &[f64], block: usize, order: usize) -> Vec<Complex<f64>> {
    let order = order.min(u.nrows() - block).min(u.ncols());
    let mut observed = u.columns(0, order).into_owned();
    observed.column_iter_mut().zip(singular).for_each(|(mut column, s)| column *= s.sqrt());
    let rows = u.nrows() - block;
    let (first, shifted) = (observed.rows(0, rows).into_owned(), observed.rows(block, rows));
    let Ok(step) = first.svd(true, true).solve(&shifted, 1e-12) else { return Vec::new() };
    let mut poles: Vec<Complex<f64>> = step.complex_eigenvalues().iter().copied().collect();
    // Of a conjugate pair one, also where it is so near to the real axis that it counts as real.
    poles.retain(|pole| pole.im >= 0.0 && pole.norm() < MODULUS);
    let is_real = |pole: &Complex<f64>| pole.im <= RINGS * (1.0 - pole.norm());
    poles.iter_mut().filter(|pole| is_real(pole)).for_each(|pole| pole.im = 0.0);
    poles.retain(|pole| pole.im > 0.0 || pole.re > FADES);
    poles.sort_by(|a, b| b.norm().total_cmp(&a.norm()));
    poles
}

/// Subspace identification with past inputs and outputs as instruments, from the moments of all windows.
fn of_windows(data: &Dataset, orders: &[usize]) -> Result<Vec<Vec<Complex<f64>>>, DataError> {
    let (p, outputs) = (data.inputs.len(), data.outputs.len());
    let samples = (WINDOW / (p + outputs).max(1)).clamp(SAMPLES.0, SAMPLES.1);
    let ends = data.records.iter().flat_map(|record| record.rows.start + 2 * samples - 1..record.rows.end);
    let ends: Vec<usize> = ends.collect();
    let n = 1 + 2 * samples * (p + outputs);
    if ends.len() < 2 * n || outputs == 0 {
        return Ok(vec![Vec::new(); orders.len()]);
    }
    let every = ends.len().div_ceil(WINDOWS);
    let ends: Vec<usize> = ends.into_iter().step_by(every).collect();
    let scaling = Scaling::from_rows(data, &ends)?;
    let u = |row: usize, i: usize| scaling.inputs[i].standardise(data.u[i][row]);
    let y = |row: usize, j: usize| scaling.outputs[j].standardise(data.y[j][row]);
    // A constant, inputs of the future, of the past, outputs of the past, of the future.
    let parts = [(true, samples), (true, 0), (false, 0), (false, samples)];
    let mut gram = DMatrix::zeros(n, n);
    for ends in ends.chunks(n) {
        let mut window: DMatrix<f64> = DMatrix::from_element(ends.len(), n, 1.0);
        let mut column = 1;
        for (of_inputs, start) in parts {
            for k in start..start + samples {
                for channel in 0..if of_inputs { p } else { outputs } {
                    for (to, &end) in window.column_mut(column).iter_mut().zip(ends) {
                        let row = end + 1 + k - 2 * samples;
                        *to = if of_inputs { u(row, channel) } else { y(row, channel) };
                    }
                    column += 1;
                }
            }
        }
        add_gram_lower(view_mut(&mut gram), view(&window));
    }
    let floor = FLOOR * gram.trace() / n as f64;
    (0..n).for_each(|k| gram[(k, k)] += floor);
    if !cholesky_in_place(&mut gram) {
        return Ok(vec![Vec::new(); orders.len()]);
    }
    let (future, past) = (samples * outputs, samples * (p + outputs));
    let told = gram.view((n - future, 1 + samples * p), (future, past)).into_owned();
    let Some(found) = svd(&told) else { return Ok(vec![Vec::new(); orders.len()]) };
    Ok(orders.iter().map(|&order| of_observability(&found.u, &found.s, outputs, order)).collect())
}

fn of_lags(data: &Dataset, orders: &[usize]) -> Result<Vec<Vec<Complex<f64>>>, DataError> {
    let (p, outputs) = (data.inputs.len(), data.outputs.len());
    let memory = LAGS.min(COEFFICIENTS / p.max(1));
    let long = |rows: &usize| *rows > 2 * memory;
    let rows: Vec<usize> = data
        .records
        .iter()
        .filter(|record| long(&record.rows.len()))
        .flat_map(|record| record.rows.start + memory.max(1) - 1..record.rows.end)
        .collect();
    if rows.is_empty() || memory < 4 || outputs == 0 {
        return Ok(vec![Vec::new(); orders.len()]);
    }
    let scaling = Scaling::from_rows(data, &rows)?;
    let samples = data.lagged(memory, &scaling, rows);
    let q = samples.ncols();
    let mut gram = DMatrix::zeros(q, q);
    let mut response = DMatrix::zeros(q, outputs);
    for (start, x) in (&samples as &dyn Features).parts() {
        add_gram_lower(view_mut(&mut gram), view(&x));
        let y = samples.y.rows(start, x.nrows()).into_owned();
        add_product(view_mut(&mut response), view(&x).transpose(), view(&y));
    }
    (1..q).for_each(|k| gram[(k, k)] += RIDGE);
    cholesky_in_place(&mut gram);
    cholesky_solve(&gram, &mut response);

    let side = memory / 2 - 1;
    let hankel = DMatrix::from_fn(side * outputs, side * p, |i, j| {
        response[(1 + (i / outputs + j / p + 1) * p + j % p, i % outputs)]
    });
    let Some(parts) = svd(&hankel) else { return Ok(vec![Vec::new(); orders.len()]) };
    Ok(orders.iter().map(|&order| of_observability(&parts.u, &parts.s, outputs, order)).collect())
}
