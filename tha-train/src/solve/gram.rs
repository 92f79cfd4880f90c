//! Sums over rows of the products of all pairs of monomials: phi^T phi.
//!
//! A product of two monomials of degree d is one of degree 2d, and of those there are far fewer than pairs (d = 3, q = 13: 18 564, and 103 740
//! pairs). So only pairs are summed whose factors are in order, those of the first monomial before those of the second: the first
//! monomials are taken in groups by their last factor, each group together with all monomials whose first factor is no smaller.

use super::Problem;
use super::rows::in_order;
use crate::linalg::{add_product, columns_mut, view, view_mut};
use crate::network::Monomials;
use nalgebra::DMatrix;
use std::ops::Range;

/// Rows whose monomials are made at a time: 256 take the same time (12 heads of 455 monomials: 1.5 and 1.6 CPU s) and twice the memory.
const BLOCK: usize = 128;
/// Rows summed by one thread.
const GROUP: usize = 4096;
/// First monomials of a group, at least. 1, 16 and 32 take the same time at degree 3 (1.5 to 1.6 CPU s); at degree 1 single ones would be
/// products with vectors.
const FIRST: usize = 16;

/// Which pairs of monomials are summed.
pub(super) struct Pairs {
    pub(super) monomials: Monomials,
    /// Monomials by their last factor.
    by_last: Vec<usize>,
    groups: Vec<Pairing>,
    /// Sums kept.
    size: usize,
    /// Where the sum of every pair stands: lower triangle, column by column.
    places: Vec<u32>,
}

struct Pairing {
    /// First monomials, as a range of `by_last`.
    first: Range<usize>,
    /// Second monomials: these and all that follow.
    second: usize,
    /// Where the sums begin.
    start: usize,
}

/// Sums over some rows: of pairs of monomials, of monomials times outputs, and ||y||^2.
#[derive(Clone)]
pub(super) struct Sums {
    pairs: Vec<f64>,
    truth: DMatrix<f64>,
    pub(super) square: f64,
    pub(super) count: usize,
}

impl Pairs {
    pub(super) fn new(monomials: Monomials) -> Self {
        let count = monomials.count();
        let factors: Vec<Vec<usize>> = (0..count).map(|m| monomials.factors(m)).collect();
        let last = |m: usize| factors[m].last().copied().unwrap_or(0);
        let mut by_last: Vec<usize> = (0..count).collect();
        by_last.sort_by_key(|&m| last(m));
        let (mut groups, mut start, mut begin) = (Vec::new(), 0, 0);
        while begin < count {
            let least = last(by_last[begin]);
            let mut end = begin;
            while end < count && (end - begin < FIRST || last(by_last[end]) == last(by_last[end - 1])) {
                end += 1;
            }
            let second = factors.partition_point(|factors| factors[0] < least);
            groups.push(Pairing { first: begin..end, second, start });
            start += (end - begin) * (count - second);
            begin = end;
        }
        let places = places(&monomials, &factors, &by_last, &groups);
        Self { monomials, by_last, groups, size: start, places }
    }

    /// Sums over the rows of a problem.
    pub(super) fn sums(&self, problem: &Problem) -> Sums {
        let (rows, size) = (problem.x.nrows(), self.monomials.count());
        let none = || (vec![0.0; self.size], DMatrix::zeros(size, problem.y.ncols()));
        let group = |k: usize| {
            let (mut pairs, mut truth) = none();
            let end = ((k + 1) * GROUP).min(rows);
            for at in (k * GROUP..end).step_by(BLOCK) {
                let count = BLOCK.min(end - at);
                let phi = self.monomials.products(&problem.x.rows(at, count));
                let first = phi.select_columns(&self.by_last);
                for Pairing { first: range, second, start } in &self.groups {
                    let (m, n) = (range.len(), size - second);
                    let to = columns_mut(&mut pairs[*start..start + m * n], m, n);
                    let first = view(&first).subcols(range.start, m).transpose();
                    add_product(to, first, view(&phi).subcols(*second, n));
                }
                let y = problem.y.rows(at, count).into_owned();
                add_product(view_mut(&mut truth), view(&phi).transpose(), view(&y));
            }
            (pairs, truth)
        };
        let (mut pairs, mut truth) = none();
        in_order(rows.div_ceil(GROUP), group, |part| {
            pairs.iter_mut().zip(part.0).for_each(|(sum, part)| *sum += part);
            truth += part.1;
        });
        for (mut row, root) in truth.row_iter_mut().zip(self.monomials.roots()) {
            row *= *root;
        }
        Sums { pairs, truth, square: problem.y.norm_squared(), count: rows }
    }

    /// phi^T phi (lower triangle) and phi^T y.
    pub(super) fn gram(&self, sums: &Sums) -> (DMatrix<f64>, DMatrix<f64>) {
        let (count, roots) = (self.monomials.count(), self.monomials.roots());
        let mut gram = DMatrix::zeros(count, count);
        let mut next = self.places.iter();
        for j in 0..count {
            let column = &mut gram.as_mut_slice()[j * count..(j + 1) * count];
            for ((to, root), &place) in column[j..].iter_mut().zip(&roots[j..]).zip(&mut next) {
                *to = sums.pairs[place as usize] * (root * roots[j]);
            }
        }
        (gram, sums.truth.clone())
    }
}

/// Where the sum of every pair stands, with the factors of all monomials.
fn places(monomials: &Monomials, factors: &[Vec<usize>], by_last: &[usize], groups: &[Pairing]) -> Vec<u32> {
    let (count, degree) = (monomials.count(), monomials.degree());
    let mut place = vec![(0, 0, 0); count];
    for group in groups {
        for at in group.first.clone() {
            let start = group.start + at - group.first.start;
            place[by_last[at]] = (start, group.first.len(), group.second);
        }
    }
    let mut both = Vec::with_capacity(2 * degree);
    let pairs = (0..count).flat_map(|j| (j..count).map(move |i| (i, j)));
    pairs
        .map(|(i, j)| {
            both.clear();
            both.extend_from_slice(&factors[i]);
            both.extend_from_slice(&factors[j]);
            both.sort_unstable();
            let (first, second) = both.split_at(degree);
            let (start, stride, from) = place[monomials.place(first)];
            (start + stride * (monomials.place(second) - from)) as u32
        })
        .collect()
}

impl Sums {
    /// Adds other rows.
    pub(super) fn add(&mut self, other: &Self) {
        self.pairs.iter_mut().zip(&other.pairs).for_each(|(sum, other)| *sum += other);
        self.truth += &other.truth;
        self.square += other.square;
        self.count += other.count;
    }
}

/// phi^T phi (lower triangle) and phi^T y of a problem.
pub(super) fn gram(problem: &Problem, monomials: Monomials) -> (DMatrix<f64>, DMatrix<f64>) {
    let pairs = Pairs::new(monomials);
    pairs.gram(&pairs.sums(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    #[test]
    fn sums_of_ordered_pairs_are_those_of_all_pairs() {
        let mut normal = Normal::new(1);
        for (q, degree, outputs) in [(5, 3, 1), (40, 1, 2), (9, 2, 1), (3, 5, 2), (1, 3, 1), (4, 4, 1)] {
            let x = DMatrix::from_fn(300, q, |_, i| if i == 0 { 1.0 } else { normal.draw() });
            let y = DMatrix::from_fn(300, outputs, |_, _| normal.draw());
            let phi = Monomials::new(q, degree).values(&x);
            let (mut gram, truth) = gram(&Problem { x: &x, y: &y }, Monomials::new(q, degree));
            gram.fill_upper_triangle_with_lower_triangle();
            let expected = phi.transpose() * &phi;
            assert!((gram - &expected).norm() < 1e-12 * expected.norm(), "q {q}, degree {degree}");
            assert!((truth - phi.transpose() * y).norm() < 1e-12 * expected.norm());
        }
    }
}
