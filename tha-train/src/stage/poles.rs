//! Poles of a recording: those of a long linear model (Ho and Kalman; eigensystem realisation).
//!
//! A linear FIR model of M lags with a ridge, H_k = l x p coefficients of lag k; the Hankel matrix of H_1, H_2, ... is
//! observability times controllability, so its leading singular vectors O = U sqrt(S) obey O without its first block =
//! (O without its last block) A. The eigenvalues of A are the poles.

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
/// A pole of a smaller imaginary part does not ring; one of a larger modulus does not fade within a recording; a real one that
/// is smaller is gone with the next sample.
const ANGLE: f64 = 0.02;
const MODULUS: f64 = 0.999;
const FADES: f64 = 0.1;

/// The poles of the linear models of so many states: of each conjugate pair that above the real axis, and the positive real ones;
/// those of the largest modulus first. None where the recording is too short to tell.
pub fn poles(data: &Dataset, orders: &[usize]) -> Result<Vec<Vec<Complex<f64>>>, DataError> {
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
    let poles = |&order: &usize| {
        let order = order.min((side - 1) * outputs).min(side * p);
        let mut observed = parts.u.columns(0, order).into_owned();
        observed.column_iter_mut().zip(&parts.s).for_each(|(mut column, s)| column *= s.sqrt());
        let (first, shifted) =
            (observed.rows(0, (side - 1) * outputs), observed.rows(outputs, (side - 1) * outputs));
        let Ok(step) = first.into_owned().svd(true, true).solve(&shifted, 1e-12) else { return Vec::new() };
        let mut poles: Vec<Complex<f64>> = step.complex_eigenvalues().iter().copied().collect();
        // Of a conjugate pair one, also where it is so near to the real axis that it counts as real.
        poles.retain(|pole| pole.im >= 0.0 && pole.norm() < MODULUS);
        poles.iter_mut().filter(|pole| pole.im <= ANGLE).for_each(|pole| pole.im = 0.0);
        poles.retain(|pole| pole.im > 0.0 || pole.re > FADES);
        poles.sort_by(|a, b| b.norm().total_cmp(&a.norm()));
        poles
    };
    Ok(orders.iter().map(poles).collect())
}
