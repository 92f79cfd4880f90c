//! For the ablation alone: a polynomial kernel in the place of short network fits.
//!
//! Kernel ridge regression with (x . x')^d over x = [1, sqrt(gamma / q) z] minimises the objective of the network with all ranks,
//! on as many rows as its matrix has room for.

use super::setting::Setting;
use crate::linalg::{cholesky_in_place, cholesky_solve, set_product, view, view_mut};
use crate::network::Features;
use crate::stage::mean_and_std;
use nalgebra::DMatrix;

/// Rows of the kernel's matrix at most.
const ROWS: usize = 1500;

/// What a kernel ridge regression on (x, y) predicts for other rows, for each ridge.
pub(super) fn predictions(
    x: &dyn Features,
    y: &DMatrix<f64>,
    others: &dyn Features,
    setting: &Setting,
    ridges: &[f64],
) -> Vec<DMatrix<f64>> {
    let rows: Vec<usize> = (0..x.nrows()).step_by(x.nrows().div_ceil(ROWS).max(1)).collect();
    let y = y.select_rows(&rows);
    let (mut fitted, mut asked) = (x.select_rows(&rows), others.rows(0, others.nrows()));
    let weight = (setting.gamma / fitted.ncols() as f64).sqrt();
    for k in 1..fitted.ncols() {
        let (mean, spread) = mean_and_std(fitted.column(k).iter().copied());
        for matrix in [&mut fitted, &mut asked] {
            let standard = |v: f64| if spread > 0.0 { weight * (v - mean) / spread } else { 0.0 };
            matrix.column_mut(k).apply(|v| *v = standard(*v));
        }
    }
    let kernel = |a: &DMatrix<f64>| {
        let mut products = DMatrix::zeros(a.nrows(), fitted.nrows());
        set_product(view_mut(&mut products), view(a), view(&fitted).transpose());
        products.apply(|v| *v = v.powi(setting.degree as i32));
        products
    };
    let (among, across) = (kernel(&fitted), kernel(&asked));
    let predict = |&ridge: &f64| {
        let mut factor = among.clone();
        (0..factor.nrows()).for_each(|k| factor[(k, k)] += ridge);
        let mut dual = y.clone();
        cholesky_in_place(&mut factor);
        cholesky_solve(&factor, &mut dual);
        &across * dual
    };
    ridges.iter().map(predict).collect()
}
