//! The directions of x on which the outputs depend: where starts come from when the inputs are many.
//!
//! A network sees x through its slices V_k(a, :, b) only, few of the q directions there are. Inputs being white, moments
//! of what linear least squares leaves have their range in the span of those slices (Stein's lemma), and all else in
//! them is noise, whose eigenvalues end at an edge that their bulk tells. The second moment sum_t r_t x_t x_t^T shows
//! the directions of quadratic terms; the third, as the matrix of its inner products sum_{s /= t} r_s r_t (x_s . x_t)^2 x_s x_t^T,
//! those of cubic ones.

use super::Problem;
use super::conjugate::Linearised;
use super::rows::{Rows, in_order};
use crate::linalg::{
    add_gram_lower, add_product, cholesky_in_place, cholesky_solve, product, qr, set_product, svd,
    symmetric_eigen, transposed_product, view, view_mut,
};
use crate::network::{BLOCK, Features, Monomials, Network};
use nalgebra::DMatrix;

/// Half of the eigenvalues of a semicircle of radius one are no larger than this.
const MEDIAN: f64 = 0.404;
/// What stands out exceeds the edge of the noise by this factor.
const CLEAR: f64 = 1.05;
/// Rows per task.
const ROWS: usize = 16 * BLOCK;
/// Multiplications at which the third moment is too expensive.
const EXPENSIVE: f64 = 5e11;

/// Linear least squares: the forms of the outputs and of the constant, q x (l + 1).
pub(super) fn linear_forms(problem: &Problem, ridge: f64) -> Option<DMatrix<f64>> {
    let (q, outputs) = (problem.x.ncols(), problem.y.ncols());
    let mut gram = DMatrix::zeros(q, q);
    let mut forms = DMatrix::zeros(q, outputs + 1);
    for (start, x) in problem.x.parts() {
        let ones = problem.y.rows(start, x.nrows()).insert_column(outputs, 1.0);
        add_gram_lower(view_mut(&mut gram), view(&x));
        add_product(view_mut(&mut forms), view(&x).transpose(), view(&ones));
    }
    (0..q).for_each(|i| gram[(i, i)] += ridge * problem.x.nrows() as f64);
    cholesky_in_place(&mut gram).then(|| cholesky_solve(&gram, &mut forms))?;
    Some(forms)
}

/// What linear least squares finds and leaves.
pub(super) struct Directions<'a> {
    x: &'a dyn Features,
    /// q x (l + 1).
    forms: DMatrix<f64>,
    /// N x l.
    rest: DMatrix<f64>,
}

impl<'a> Directions<'a> {
    pub(super) fn new(problem: &Problem<'a>) -> Option<Self> {
        let forms = linear_forms(problem, 1e-9)?;
        let mut rest = problem.y.clone();
        for (start, x) in problem.x.parts() {
            let mut part = rest.rows_mut(start, x.nrows());
            part -= x * forms.columns(0, problem.y.ncols());
        }
        Some(Self { x: problem.x, forms, rest })
    }

    /// An orthonormal basis of the constant, the linear forms and the directions that stand out in the second moment, at
    /// most `most` of these.
    pub(super) fn quadratic(&self, most: usize) -> Option<DMatrix<f64>> {
        let q = self.x.ncols();
        let mut squares = DMatrix::zeros(q, q);
        for rest in self.rest.column_iter() {
            let moment = mean(self.x.nrows(), (q, q), |at, rows| {
                let plain = self.x.rows(at, rows);
                transposed_product(&plain, &weighted(&plain, &rest.as_slice()[at..]))
            });
            add_product(view_mut(&mut squares), view(&moment), view(&moment));
        }
        let (values, vectors) = symmetric_eigen(&squares)?;
        let edge = values[q / 2] / MEDIAN.powi(2);
        let standing = values.iter().rev().take_while(|v| **v > CLEAR.powi(2) * edge).count();
        self.basis(&vectors, standing.min(most))
    }

    /// The same by the third moment.
    pub(super) fn cubic(&self, most: usize) -> Option<DMatrix<f64>> {
        let (count, q) = (self.x.nrows(), self.x.ncols());
        if 2.0 * (count * count * q) as f64 > EXPENSIVE {
            return None;
        }
        let pairs = mean(count, (q, q), |at, rows| {
            let x = self.x.rows(at, rows);
            let rest = self.rest.rows(at, rows).into_owned();
            let mut right = DMatrix::zeros(rows, q);
            // Every pair of rows once: the transpose is the other half.
            for other in (at..count).step_by(ROWS) {
                let size = ROWS.min(count - other);
                let (others, rests) = (self.x.rows(other, size), self.rest.rows(other, size));
                let mut kernel = DMatrix::zeros(rows, size);
                set_product(view_mut(&mut kernel), view(&x), view(&others).transpose());
                let signs = &rest * rests.transpose();
                // x_s . x_t has mean square q.
                kernel.iter_mut().zip(signs.iter()).for_each(|(k, r)| *k = (*k * *k - q as f64) * r);
                if other == at {
                    (0..rows).for_each(|i| kernel[(i, i)] = 0.0);
                    kernel *= 0.5;
                }
                add_product(view_mut(&mut right), view(&kernel), view(&others));
            }
            transposed_product(&x, &right)
        });
        let (values, vectors) = symmetric_eigen(&(&pairs + pairs.transpose()))?;
        // Only noise makes eigenvalues negative, and as large ones on the other side.
        let edge = -CLEAR * values[0].min(0.0);
        let standing = values.iter().rev().take_while(|v| **v > edge).count();
        self.basis(&vectors, standing.min(most))
    }

    fn basis(&self, vectors: &DMatrix<f64>, standing: usize) -> Option<DMatrix<f64>> {
        let q = self.x.ncols();
        (standing > 0).then(|| joined(&self.forms, &vectors.columns(q - standing, standing).into_owned()))
    }
}

/// The values of the columns of `basis`, N x their number.
pub(super) fn entered(x: &dyn Features, basis: &DMatrix<f64>) -> DMatrix<f64> {
    let mut values = DMatrix::zeros(x.nrows(), basis.ncols());
    let mut at = 0;
    let part = |k: usize| product(&x.rows(k * ROWS, ROWS.min(x.nrows() - k * ROWS)), basis);
    in_order(x.nrows().div_ceil(ROWS), part, |part| {
        values.rows_mut(at, part.nrows()).copy_from(&part);
        at += part.nrows();
    });
    values
}

/// The directions in which a network varies, the most important ones first: left singular vectors of its slices, each of them weighted by
/// what it is multiplied with over the rows.
pub(super) fn of(rows: &Rows<'_>, network: &Network) -> Option<DMatrix<f64>> {
    let linear = Linearised::new(rows, network);
    let (values, vectors) = symmetric_eigen(&linear.coupling)?;
    let mut slices = linear.gather(&network.coefficients()) * vectors;
    for (mut slice, value) in slices.column_iter_mut().zip(values.iter()) {
        slice *= value.max(0.0).sqrt();
    }
    svd(&slices).map(|parts| parts.u)
}

/// `known`, an orthonormal basis, and the directions in which `rest` goes on from it: sums of x times monomials of degree `degree` in the
/// directions known, whose values are `z`; at most `most`.
pub(super) fn beyond(
    x: &dyn Features,
    rest: &DMatrix<f64>,
    (known, z): (&DMatrix<f64>, &DMatrix<f64>),
    degree: usize,
    most: usize,
) -> DMatrix<f64> {
    let (q, size) = known.shape();
    let monomials = Monomials::new(size, degree);
    let wide = monomials.count();
    let mut sums = mean(x.nrows(), (q, wide * rest.ncols()), |at, rows| {
        let x = x.rows(at, rows);
        let phi = monomials.values(&z.rows(at, rows).into_owned());
        let mut part = DMatrix::zeros(q, wide * rest.ncols());
        for (j, rest) in rest.column_iter().enumerate() {
            let weighted = weighted(&phi, &rest.as_slice()[at..]);
            let to = view_mut(&mut part).subcols_mut(j * wide, wide);
            set_product(to, view(&x).transpose(), view(&weighted));
        }
        part
    });
    sums -= known * known.tr_mul(&sums);
    let Some(parts) = svd(&sums) else { return known.clone() };
    // Noise alone: the singular values of a random matrix of this shape.
    let ratio = (sums.ncols() as f64 / (q - size).max(1) as f64).sqrt();
    let edge = CLEAR * CLEAR * (1.0 + ratio.min(ratio.recip())) * parts.s[parts.s.len() / 2];
    let standing = parts.s.iter().take(most).take_while(|s| **s > edge).count();
    joined(known, &parts.u.columns(0, standing).into_owned())
}

/// An orthonormal basis of the columns of both.
pub(super) fn joined(a: &DMatrix<f64>, b: &DMatrix<f64>) -> DMatrix<f64> {
    let mut all = DMatrix::zeros(a.nrows(), a.ncols() + b.ncols());
    all.columns_mut(0, a.ncols()).copy_from(a);
    all.columns_mut(a.ncols(), b.ncols()).copy_from(b);
    qr(&all).0
}

/// The rows of a matrix times weights.
fn weighted(rows: &DMatrix<f64>, weights: &[f64]) -> DMatrix<f64> {
    let mut weighted = rows.clone();
    for mut column in weighted.column_iter_mut() {
        column.iter_mut().zip(weights).for_each(|(v, w)| *v *= w);
    }
    weighted
}

/// The mean over all rows of what `part` (first row, number of rows) sums: a matrix of this shape.
fn mean(
    count: usize,
    shape: (usize, usize),
    part: impl Fn(usize, usize) -> DMatrix<f64> + Sync,
) -> DMatrix<f64> {
    let mut sum = DMatrix::zeros(shape.0, shape.1);
    in_order(count.div_ceil(ROWS), |k| part(k * ROWS, ROWS.min(count - k * ROWS)), |part| sum += part);
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    const Q: usize = 41;

    fn rows(degree: usize) -> (DMatrix<f64>, DMatrix<f64>, DMatrix<f64>) {
        let mut normal = Normal::new(5);
        let x = DMatrix::from_fn(6000, Q, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let forms = DMatrix::from_fn(Q, degree, |i, _| if i == 0 { 0.0 } else { normal.draw() / 6.0 });
        let values = &x * &forms;
        let y = DMatrix::from_fn(6000, 1, |t, _| values.row(t).product());
        (x, y, forms)
    }

    /// Largest part of a form outside the basis.
    fn missing(forms: &DMatrix<f64>, basis: &DMatrix<f64>) -> f64 {
        let rest = forms - basis * basis.tr_mul(forms);
        rest.column_iter().zip(forms.column_iter()).map(|(r, f)| r.norm() / f.norm()).fold(0.0, f64::max)
    }

    #[test]
    fn moments_show_the_forms_of_a_product() {
        let (x, y, forms) = rows(2);
        let basis = Directions::new(&Problem { x: &x, y: &y }).unwrap().quadratic(4).unwrap();
        assert!(basis.ncols() <= 6 && missing(&forms, &basis) < 0.2, "{}", missing(&forms, &basis));
        let (x, y, forms) = rows(3);
        let basis = Directions::new(&Problem { x: &x, y: &y }).unwrap().cubic(6).unwrap();
        assert!(basis.ncols() <= 8 && missing(&forms, &basis) < 0.3, "{}", missing(&forms, &basis));
    }

    #[test]
    fn what_is_left_shows_the_form_that_is_missing() {
        let (x, y, forms) = rows(3);
        let mut known = forms.columns(0, 2).into_owned().insert_column(0, 0.0);
        known[(0, 0)] = 1.0;
        let known = qr(&known).0;
        assert!(missing(&forms, &known) > 0.9);
        let basis = beyond(&x, &y, (&known, &(&x * &known)), 2, 1);
        assert!(missing(&forms, &basis) < 0.4, "{}", missing(&forms, &basis));
    }

    #[test]
    fn a_network_varies_in_the_directions_of_its_forms() {
        let (x, y, forms) = rows(3);
        let mut network = Network::zeros(1, Q, &[1, 1]);
        for (core, form) in network.cores.iter_mut().zip(forms.column_iter()) {
            core.data.copy_from_slice(form.as_slice());
        }
        let found = of(&Rows::new(&Problem { x: &x, y: &y }, 1), &network).unwrap();
        assert!(found.ncols() == 3 && missing(&forms, &found) < 1e-10);
    }
}
