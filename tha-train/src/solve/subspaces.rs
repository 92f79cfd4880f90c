//! Linear subspaces on which a polynomial vanishes: where the end cores of a network come from.
//!
//! y = sum_i h_i(x) c_i(x), i <= r, is zero on W = {x : c(x) = 0}, a subspace of codimension r; so is, with one output,
//! a network on the subspace of its first core. A generic polynomial of degree d > 2 vanishes on no subspace that large,
//! so those that exist give the forms away. Finding W is a small problem: minimise sum_s |f(W z_s)|^2 over the
//! r (q - r) coordinates of W, for points z_s enough to determine a polynomial on W. It has local minima too, but a
//! start costs a thousandth of one of the whole network.

use crate::linalg::{
    add_gram_lower, cholesky_in_place, cholesky_solve, product, qr, svd, symmetric_eigen, view, view_mut,
};
use crate::network::{Normal, monomials};
use nalgebra::DMatrix;

/// Gauss-Newton steps of one start at most.
const STEPS: usize = 40;
/// Ratio of successive losses above which a start has ended.
const PACE: f64 = 0.99;
/// Points per distinct monomial on W.
const POINTS: f64 = 1.3;

/// A symmetric tensor per output, as a polynomial to be evaluated with its gradient.
pub(super) struct Polynomial {
    /// q^(d-1) x q, one per output.
    tensors: Vec<DMatrix<f64>>,
    q: usize,
    degree: usize,
}

/// A subspace and the root-mean-square of the polynomial on it.
pub(super) struct Subspace {
    /// q x (q - r), orthonormal columns.
    pub(super) basis: DMatrix<f64>,
    pub(super) level: f64,
}

impl Subspace {
    /// The r forms that vanish on it, as the columns of a q x r matrix.
    pub(super) fn forms(&self) -> DMatrix<f64> {
        complement(&self.basis)
    }

    /// Largest sine of an angle between this subspace and another of the same dimension.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        let rest = self.forms().tr_mul(&other.basis);
        svd(&rest).map_or(1.0, |parts| parts.s.first().copied().unwrap_or(0.0))
    }
}

impl Polynomial {
    /// The polynomial of a dense symmetric tensor, `outputs` x q^d row-major.
    pub(super) fn new(dense: &[f64], q: usize, degree: usize) -> Self {
        let size = q.pow(degree as u32);
        let tensors =
            dense.chunks_exact(size).map(|t| DMatrix::from_column_slice(q, size / q, t).transpose());
        Self { tensors: tensors.collect(), q, degree }
    }

    /// More equations than unknowns: a subspace of this codimension is no accident. Clearly more, unless the polynomial is
    /// `exact`.
    pub(super) fn special(&self, codimension: usize, exact: bool) -> bool {
        let free = self.q.saturating_sub(codimension);
        let (equations, unknowns) = (self.tensors.len() * monomials(free, self.degree), codimension * free);
        free > 0 && self.degree > 2 && (equations >= 2 * unknowns || exact && equations > unknowns)
    }

    /// Descends from a random subspace.
    pub(super) fn search(&self, codimension: usize, normal: &mut Normal) -> Subspace {
        let free = self.q - codimension;
        let count = (POINTS * monomials(free, self.degree) as f64).ceil() as usize;
        let points = DMatrix::from_fn(free, count, |_, _| normal.draw());
        let mut basis = qr(&DMatrix::from_fn(self.q, free, |_, _| normal.draw())).0;
        let (mut values, mut gradients) = self.values(&(&basis * &points));
        let mut across = complement(&basis);
        let mut damping = 1e-2;
        for _ in 0..STEPS {
            let unknowns = codimension * free;
            let mut gram = DMatrix::zeros(unknowns, unknowns);
            let mut rhs = DMatrix::zeros(unknowns, 1);
            for (values, gradients) in values.iter().zip(&gradients) {
                let slopes = across.tr_mul(gradients);
                let jacobian = DMatrix::from_fn(count, unknowns, |s, at| {
                    slopes[(at % codimension, s)] * points[(at / codimension, s)]
                });
                add_gram_lower(view_mut(&mut gram), view(&jacobian));
                rhs -= jacobian.tr_mul(values);
            }
            let largest = (0..unknowns).fold(f64::MIN_POSITIVE, |m, i| m.max(gram[(i, i)]));
            (0..unknowns).for_each(|i| gram[(i, i)] += damping * largest);
            if !cholesky_in_place(&mut gram) {
                damping *= 10.0;
                continue;
            }
            cholesky_solve(&gram, &mut rhs);
            let step = DMatrix::from_column_slice(codimension, free, rhs.as_slice());
            let trial = moved(&basis, &across, &step);
            let (next, slopes) = self.values(&(&trial * &points));
            let (before, after) = (square(&values), square(&next));
            if after < before {
                across = moved(&across, &basis, &-step.transpose());
                (basis, values, gradients) = (trial, next, slopes);
                damping = (damping * 0.2).max(1e-12);
                if after > PACE * before || after < 1e-26 {
                    break;
                }
            } else {
                damping *= 8.0;
            }
        }
        let entries = (count * values.len()) as f64;
        Subspace { basis, level: (square(&values) / entries).sqrt() }
    }

    /// Values and gradients at the columns of x, per output.
    fn values(&self, x: &DMatrix<f64>) -> (Vec<DMatrix<f64>>, Vec<DMatrix<f64>>) {
        let (q, count) = (self.q, x.ncols());
        let mut values = Vec::new();
        let mut gradients = Vec::new();
        for tensor in &self.tensors {
            let mut rest = product(tensor, x);
            let mut size = tensor.nrows();
            // Contract one index after the other until one is left.
            while size > q {
                size /= q;
                let mut next = DMatrix::zeros(size, count);
                let columns = rest.as_slice().chunks_exact(size * q).zip(x.as_slice().chunks_exact(q));
                for (to, (from, x)) in next.as_mut_slice().chunks_exact_mut(size).zip(columns) {
                    for (from, weight) in from.chunks_exact(size).zip(x) {
                        to.iter_mut().zip(from).for_each(|(to, from)| *to += weight * from);
                    }
                }
                rest = next;
            }
            values.push(DMatrix::from_fn(count, 1, |s, _| rest.column(s).dot(&x.column(s))));
            gradients.push(rest * self.degree as f64);
        }
        (values, gradients)
    }
}

fn square(values: &[DMatrix<f64>]) -> f64 {
    values.iter().map(|v| v.norm_squared()).sum()
}

/// Orthonormal columns across those of `basis`.
fn complement(basis: &DMatrix<f64>) -> DMatrix<f64> {
    let (q, free) = basis.shape();
    let mut projector = DMatrix::identity(q, q) - basis * basis.transpose();
    projector.fill_upper_triangle_with_lower_triangle();
    let (_, vectors) = symmetric_eigen(&projector).expect("a projector is finite");
    vectors.columns(free, q - free).into_owned()
}

/// `basis + across step` made orthonormal: for a small step the points on W move no more than W does.
fn moved(basis: &DMatrix<f64>, across: &DMatrix<f64>, step: &DMatrix<f64>) -> DMatrix<f64> {
    let mut gram = step.tr_mul(step);
    (0..gram.nrows()).for_each(|i| gram[(i, i)] += 1.0);
    let factor = nalgebra::Cholesky::new_unchecked(gram);
    let mut turned = (basis + across * step).transpose();
    factor.l_dirty().solve_lower_triangular_mut(&mut turned);
    turned.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Network;

    #[test]
    fn the_forms_of_a_network_are_found() {
        // A quartic y = a(x) (...) c(x) of rank 2 in five variables vanishes where its end forms do.
        let (q, degree) = (5, 4);
        let mut normal = Normal::new(3);
        let network = Network::random(1, q, &[2, 2, 2], &mut normal);
        let dense = symmetric(&network.to_dense(), q, degree);
        let polynomial = Polynomial::new(&dense, q, degree);
        assert!(polynomial.special(2, false));
        let ends = [crate::network::unfold(&network.cores[0]), crate::network::unfold(&network.cores[3])];
        let ends = ends.map(|forms| Subspace { basis: complement(&qr(&forms).0), level: 0.0 });
        let found: Vec<_> =
            (0..300).map(|_| polynomial.search(2, &mut normal)).filter(|w| w.level < 1e-9).collect();
        assert!(!found.is_empty());
        for end in ends {
            assert!(found.iter().any(|w| w.distance(&end) < 1e-6));
        }
    }

    /// The mean over all orders of the indices.
    fn symmetric(dense: &[f64], q: usize, degree: usize) -> Vec<f64> {
        let sorted = |mut at: usize| {
            let mut indices: Vec<usize> = Vec::new();
            for _ in 0..degree {
                indices.push(at % q);
                at /= q;
            }
            indices.sort_unstable();
            indices
        };
        let mut sums = std::collections::HashMap::new();
        for (at, value) in dense.iter().enumerate() {
            let entry = sums.entry(sorted(at)).or_insert((0.0, 0.0));
            *entry = (entry.0 + value, entry.1 + 1.0);
        }
        (0..dense.len()).map(|at| sums[&sorted(at)]).map(|(sum, count)| sum / count).collect()
    }
}
