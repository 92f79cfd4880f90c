//! phi_t = x_t^(kron d) in the coordinates of its distinct monomials.
//!
//! phi_t is a symmetric tensor, so it lives in a space of dimension m = C(q+d-1, d), far below Q = q^d. With every
//! monomial times the square root of its number of orderings, inner products stay what they are:
//! f_s . f_t = (x_s . x_t)^d. Features are made for a few rows at a time and never kept.

use nalgebra::DMatrix;

/// The distinct monomials of one degree in q variables.
pub(super) struct Monomials {
    /// For each degree e = 2..d: the monomial of degree e-1 and the variable that make it, and its run of that variable.
    levels: Vec<Vec<(usize, usize)>>,
    /// Square roots of the number of orderings.
    weights: Vec<f64>,
    q: usize,
}

impl Monomials {
    /// C(q+d-1, d), or `None` where it overflows.
    pub(super) fn count(q: usize, degree: usize) -> Option<usize> {
        let mut count = 1_usize;
        for e in 1..=degree {
            count = count.checked_mul(q + e - 1)? / e;
        }
        Some(count)
    }

    pub(super) fn new(q: usize, degree: usize) -> Self {
        let mut levels = Vec::new();
        // (last variable, how often it stands at the end, orderings) of the monomials so far.
        let mut last: Vec<(usize, usize, f64)> = (0..q).map(|i| (i, 1, 1.0)).collect();
        for e in 2..=degree {
            let (mut level, mut next) = (Vec::new(), Vec::new());
            for (parent, &(variable, run, orderings)) in last.iter().enumerate() {
                for i in variable..q {
                    let run = if i == variable { run + 1 } else { 1 };
                    level.push((parent, i));
                    next.push((i, run, orderings * e as f64 / run as f64));
                }
            }
            levels.push(level);
            last = next;
        }
        Self { levels, weights: last.iter().map(|(.., orderings)| orderings.sqrt()).collect(), q }
    }

    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Features of some rows: rows x m for rows x q.
    pub(super) fn features(&self, x: &DMatrix<f64>) -> DMatrix<f64> {
        debug_assert_eq!(x.ncols(), self.q);
        let rows = x.nrows();
        let mut current = x.clone();
        for level in &self.levels {
            let mut next = DMatrix::zeros(rows, level.len());
            for (column, &(parent, variable)) in next.as_mut_slice().chunks_exact_mut(rows).zip(level) {
                let parent = &current.as_slice()[parent * rows..][..rows];
                let variable = &x.as_slice()[variable * rows..][..rows];
                column.iter_mut().zip(parent).zip(variable).for_each(|((to, a), b)| *to = a * b);
            }
            current = next;
        }
        for (column, weight) in current.as_mut_slice().chunks_exact_mut(rows).zip(&self.weights) {
            if *weight != 1.0 {
                column.iter_mut().for_each(|value| *value *= weight);
            }
        }
        current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_products_are_powers() {
        let x = DMatrix::from_fn(5, 4, |t, i| ((3 * t + 7 * i) as f64).sin());
        for degree in 1..=4 {
            let monomials = Monomials::new(4, degree);
            assert_eq!(Some(monomials.len()), Monomials::count(4, degree));
            let f = monomials.features(&x);
            let expected = (&x * x.transpose()).map(|v| v.powi(degree as i32));
            assert!((&f * f.transpose() - expected).norm() < 1e-12);
        }
    }
}
