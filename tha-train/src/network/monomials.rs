//! phi(x) = x^(kron d) in the coordinates of its distinct monomials.
//!
//! phi holds the monomials x_{i1} ... x_{id}, i1 <= ... <= id, each times the square root of its number of orderings, so that
//! inner products stay what they are: phi(x) . phi(z) = (x . z)^d, and minimal-norm coefficients are those of the
//! minimal-norm symmetric tensor. There are C(q+d-1, d) of them, far fewer than q^d.

use super::count::monomials;
use nalgebra::DMatrix;

/// The distinct monomials of degree d in q variables.
#[derive(Clone)]
pub(crate) struct Monomials {
    q: usize,
    /// Per degree and monomial: its first factors as an index into the monomials of one degree less, and the last factor.
    levels: Vec<Vec<(usize, usize)>>,
    /// Per degree but the last and monomial: the place of its product with x_i, i no smaller than its last factor, less i.
    longer: Vec<Vec<usize>>,
    /// Square roots of the numbers of orderings.
    roots: Vec<f64>,
}

impl Monomials {
    pub(crate) fn new(q: usize, degree: usize) -> Self {
        // (parent, last factor, orderings, length of the run of the last factor)
        let mut level: Vec<(usize, usize, f64, usize)> = (0..q).map(|i| (0, i, 1.0, 1)).collect();
        let mut levels = vec![level.iter().map(|m| (m.0, m.1)).collect::<Vec<_>>()];
        let mut longer = Vec::new();
        for length in 2..=degree {
            let mut next = Vec::with_capacity(monomials(q, length));
            let mut places = Vec::with_capacity(level.len());
            for (parent, &(_, last, count, run)) in level.iter().enumerate() {
                places.push(next.len().wrapping_sub(last));
                for i in last..q {
                    let run = if i == last { run + 1 } else { 1 };
                    next.push((parent, i, count * length as f64 / run as f64, run));
                }
            }
            levels.push(next.iter().map(|m| (m.0, m.1)).collect());
            longer.push(places);
            level = next;
        }
        Self { q, levels, longer, roots: level.iter().map(|m| m.2.sqrt()).collect() }
    }

    /// C(q+d-1, d).
    pub(crate) fn count(&self) -> usize {
        self.roots.len()
    }

    /// q.
    pub(crate) fn variables(&self) -> usize {
        self.q
    }

    /// d.
    pub(crate) fn degree(&self) -> usize {
        self.levels.len()
    }

    /// phi of some rows: rows x count for rows x q.
    pub(crate) fn values(&self, x: &DMatrix<f64>) -> DMatrix<f64> {
        let mut values = self.products(x);
        values.column_iter_mut().zip(&self.roots).for_each(|(mut column, root)| column *= *root);
        values
    }

    /// The same without the square roots.
    pub(crate) fn products(&self, x: &DMatrix<f64>) -> DMatrix<f64> {
        let rows = x.nrows();
        let mut values = x.clone();
        for level in &self.levels[1..] {
            let mut next = Vec::with_capacity(rows * level.len());
            for &(parent, last) in level {
                let (parent, last) =
                    (&values.as_slice()[parent * rows..][..rows], &x.as_slice()[last * rows..]);
                next.extend(parent.iter().zip(last).map(|(a, b)| a * b));
            }
            values = DMatrix::from_vec(rows, level.len(), next);
        }
        values
    }

    /// Square roots of the numbers of orderings.
    pub(crate) fn roots(&self) -> &[f64] {
        &self.roots
    }

    /// The dense symmetric tensor, `l` x q^d row-major, of coefficients (count x l).
    pub(crate) fn tensor(&self, coefficients: &DMatrix<f64>) -> Vec<f64> {
        let degree = self.degree();
        let size = self.q.pow(degree as u32);
        let mut tensor = vec![0.0; size * coefficients.ncols()];
        for at in 0..size {
            let mut factors: Vec<usize> = (0..degree).map(|k| at / self.q.pow(k as u32) % self.q).collect();
            factors.sort_unstable();
            let m = self.place(&factors);
            for j in 0..coefficients.ncols() {
                tensor[j * size + at] = coefficients[(m, j)] / self.roots[m];
            }
        }
        tensor
    }

    /// The place of the monomial with factors i1 <= ... <= id.
    pub(crate) fn place(&self, factors: &[usize]) -> usize {
        self.longer.iter().zip(&factors[1..]).fold(factors[0], |m, (longer, i)| longer[m].wrapping_add(*i))
    }

    /// i1 <= ... <= id of a monomial.
    pub(crate) fn factors(&self, mut m: usize) -> Vec<usize> {
        let mut factors = Vec::new();
        for level in self.levels.iter().rev() {
            factors.push(level[m].1);
            m = level[m].0;
        }
        factors.reverse();
        factors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_products_are_powers() {
        let x = DMatrix::from_fn(5, 4, |t, i| ((3 * t + 7 * i) as f64).sin());
        for degree in 1..=4 {
            let all = Monomials::new(4, degree);
            assert_eq!(all.count(), monomials(4, degree));
            assert!((0..all.count()).all(|m| all.place(&all.factors(m)) == m));
            let f = all.values(&x);
            let expected = (&x * x.transpose()).map(|v| v.powi(degree as i32));
            assert!((&f * f.transpose() - expected).norm() < 1e-12);
        }
    }

    #[test]
    fn the_tensor_gives_the_values_of_the_polynomial() {
        let x = DMatrix::from_fn(1, 3, |_, i| 0.7 + i as f64);
        let all = Monomials::new(3, 3);
        let coefficients = DMatrix::from_fn(all.count(), 1, |m, _| (m as f64).cos());
        let tensor = all.tensor(&coefficients);
        let term = |at: usize| tensor[at] * x[at / 9] * x[at / 3 % 3] * x[at % 3];
        let sum: f64 = (0..27).map(term).sum();
        assert!((sum - (all.values(&x) * coefficients)[0]).abs() < 1e-12);
    }
}
