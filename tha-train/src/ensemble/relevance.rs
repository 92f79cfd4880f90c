//! Which inputs, and which pairs of inputs, a residual still depends on.
//!
//! For standardised features x_a and a residual r the mean of r x_a x_b, in units of the residual's spread, is the
//! correlation with a product of two features; with x_0 = 1 among them it is the correlation with one. Squared, less
//! the 1/N that noise alone gives, and summed over lags and outputs, it says how much a pair of inputs has to offer.

use crate::linalg::{add_product, cholesky_in_place, cholesky_solve, transposed_product, view, view_mut};
use crate::network::Features;
use nalgebra::DMatrix;

/// Rows that are looked at: enough to see a correlation of a few per cent.
pub(super) const ROWS: usize = 4000;
/// Numbers held for every pair of features, and for every feature of a row that is looked at, by [`relevance`] and [`strongest`].
pub(super) const NUMBERS: f64 = 6.0;

/// A p x p symmetric table: how much the residual depends on products of two inputs; on the diagonal, on one input
/// alone and on its square.
pub(super) fn dependence(x: &dyn Features, residual: &DMatrix<f64>, p: usize) -> DMatrix<f64> {
    let stride = x.nrows().div_ceil(ROWS).max(1);
    let rows: Vec<usize> = (0..x.nrows()).step_by(stride).collect();
    let x = x.select_rows(&rows);
    let residual = residual.select_rows(&rows);
    let (n, q) = (rows.len() as f64, x.ncols());
    let mut table = DMatrix::zeros(p, p);
    for r in residual.column_iter() {
        let spread = (r.norm_squared() / n).sqrt();
        if spread == 0.0 {
            continue;
        }
        let mut weighted = x.clone();
        for mut column in weighted.column_iter_mut() {
            column.component_mul_assign(&r);
        }
        let products = transposed_product(&x, &weighted);
        let strength = |a: usize, b: usize| ((products[(a, b)] / (n * spread)).powi(2) - 1.0 / n).max(0.0);
        for a in 1..q {
            let c = (a - 1) % p;
            table[(c, c)] += strength(0, a);
            for b in 1..=a {
                let other = (b - 1) % p;
                table[(c, other)] += strength(a, b);
                if c != other {
                    table[(other, c)] += strength(a, b);
                }
            }
        }
    }
    table
}

/// How relevant each input is: what it alone explains in a linear fit to all inputs, and what the residual of that
/// fit depends on it. Not its plain correlation with the outputs, which it may owe to others.
pub(super) fn relevance(x: &dyn Features, y: &DMatrix<f64>, p: usize) -> Vec<f64> {
    let q = x.ncols();
    let mut gram = DMatrix::zeros(q, q);
    let mut coefficients = DMatrix::zeros(q, y.ncols());
    for (start, x) in x.parts() {
        add_product(view_mut(&mut gram), view(&x).transpose(), view(&x));
        coefficients += x.tr_mul(&y.rows(start, x.nrows()));
    }
    let ridge = 1e-6 * gram.trace() / q as f64;
    for k in 0..q {
        gram[(k, k)] += ridge;
    }
    if !cholesky_in_place(&mut gram) {
        return vec![1.0; p];
    }
    cholesky_solve(&gram, &mut coefficients);
    let mut inverse = DMatrix::identity(q, q);
    cholesky_solve(&gram, &mut inverse);
    let mut residual = y.clone();
    for (start, x) in x.parts() {
        let mut part = residual.rows_mut(start, x.nrows());
        part -= x * &coefficients;
    }
    let table = dependence(x, &residual, p);
    let mut relevance: Vec<f64> = (0..p).map(|c| table.column(c).sum()).collect();
    for (j, column) in coefficients.column_iter().enumerate() {
        let total = y.column(j).norm_squared();
        for a in 1..q {
            // The part of ||y||^2 that goes when feature a alone is left out.
            if total > 0.0 {
                relevance[(a - 1) % p] += column[a].powi(2) / inverse[(a, a)] / total;
            }
        }
    }
    relevance
}

/// The subset of `size` inputs that has most to offer, grown from the strongest pair, and not among `taken`.
pub(super) fn strongest(table: &DMatrix<f64>, size: usize, taken: &[Vec<usize>]) -> Option<Vec<usize>> {
    let p = table.nrows();
    let mut seeds: Vec<(f64, usize, usize)> =
        (0..p).flat_map(|a| (0..=a).map(move |b| (a, b))).map(|(a, b)| (table[(a, b)], a, b)).collect();
    // Strongest first; equal ones in a fixed order.
    seeds.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    for (_, a, b) in seeds {
        let mut subset = if a == b || size == 1 { vec![a] } else { vec![b, a] };
        while subset.len() < size {
            let offer = |c: usize| table[(c, c)] + subset.iter().map(|&k| table[(c, k)]).sum::<f64>();
            let rest = (0..p).filter(|c| !subset.contains(c));
            let Some(best) = rest.max_by(|&a, &b| offer(a).total_cmp(&offer(b)).then(b.cmp(&a))) else {
                break;
            };
            subset.push(best);
        }
        subset.sort_unstable();
        if subset.len() == size && !taken.contains(&subset) {
            return Some(subset);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    /// Six inputs, M = 1; y = x0 + x1 x2, with x3 a copy of x0 plus noise.
    fn example() -> (DMatrix<f64>, DMatrix<f64>) {
        let mut normal = Normal::new(1);
        let mut x = DMatrix::from_fn(3000, 7, |_, c| if c == 0 { 1.0 } else { normal.draw() });
        for t in 0..3000 {
            x[(t, 4)] = 0.95 * x[(t, 1)] + 0.3 * x[(t, 4)];
        }
        let y = DMatrix::from_fn(3000, 1, |t, _| x[(t, 1)] + x[(t, 2)] * x[(t, 3)] + 0.1 * normal.draw());
        (x, y)
    }

    #[test]
    fn relevance_is_partial() {
        let (x, y) = example();
        let relevance = relevance(&x, &y, 6);
        let bystander = relevance[3].max(relevance[4]).max(relevance[5]);
        for c in 0..3 {
            assert!(relevance[c] > 3.0 * bystander, "{relevance:?}");
        }
    }

    #[test]
    fn the_strongest_subset_holds_the_product() {
        let (x, y) = example();
        let table = dependence(&x, &y, 6);
        let first = strongest(&table, 3, &[]).unwrap();
        assert!(first.contains(&1) && first.contains(&2), "{first:?}");
        let second = strongest(&table, 3, std::slice::from_ref(&first)).unwrap();
        assert_ne!(first, second);
        assert!(strongest(&table, 6, &[vec![0, 1, 2, 3, 4, 5]]).is_none());
    }
}
