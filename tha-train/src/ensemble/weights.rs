//! OptimizeWeights of Algorithm 1, from inner products alone.
//!
//! Everything the weights depend on is the Gram matrix of the heads' predictions and the truth, accumulated over blocks
//! of rows: memory does not grow with the number of samples.
//!
//! `average`: min ||Y - sum w_k Yhat_k||, w >= 0, sum w = 1. With e_k = Yhat_k - Y this is the point of least norm in
//! the convex hull of the e_k, found exactly by Wolfe's active-set method.
//! `stack`: the same without constraints, with a penalty on the distance from the average's weights: the strongest that is
//! level with the best by contiguous folds over the held-out rows.

use crate::linalg::{add_gram_lower, view, view_mut};
use crate::stage::mean_and_std;
use nalgebra::{DMatrix, DVector};

/// Inner products over some rows: of the predictions with each other, with the truth, and of the truth with itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Products {
    /// <Yhat_j, Yhat_k>.
    pub gram: DMatrix<f64>,
    /// <Yhat_k, Y>.
    pub truth: DVector<f64>,
    /// ||Y||^2.
    pub square: f64,
}

impl Products {
    /// No rows yet, for so many heads.
    pub fn new(heads: usize) -> Self {
        Self { gram: DMatrix::zeros(heads, heads), truth: DVector::zeros(heads), square: 0.0 }
    }

    /// Adds rows: one column for each head, all outputs below each other.
    pub fn add(&mut self, predictions: &DMatrix<f64>, truth: &DVector<f64>) {
        add_gram_lower(view_mut(&mut self.gram), view(predictions));
        self.gram.fill_upper_triangle_with_lower_triangle();
        self.truth.gemv_tr(1.0, predictions, truth, 1.0);
        self.square += truth.norm_squared();
    }

    /// Adds what other rows gave.
    pub fn add_products(&mut self, other: &Self) {
        self.gram += &other.gram;
        self.truth += &other.truth;
        self.square += other.square;
    }

    /// ||Y - sum w_k Yhat_k||^2.
    pub fn loss(&self, weights: &DVector<f64>) -> f64 {
        (self.square - 2.0 * self.truth.dot(weights) + weights.dot(&(&self.gram * weights))).max(0.0)
    }

    /// The same for some of the heads.
    pub fn select(&self, heads: &[usize]) -> Self {
        Self {
            gram: self.gram.select_rows(heads).select_columns(heads),
            truth: self.truth.select_rows(heads),
            square: self.square,
        }
    }

    /// The rows of `self` that are not among those of `other`.
    pub fn minus(&self, other: &Self) -> Self {
        Self {
            gram: &self.gram - &other.gram,
            truth: &self.truth - &other.truth,
            square: self.square - other.square,
        }
    }
}

/// The convex weights of least error.
pub fn average(products: &Products) -> DVector<f64> {
    let count = products.truth.len();
    // <e_j, e_k> with e = Yhat - Y.
    let errors = DMatrix::from_fn(count, count, |j, k| {
        products.gram[(j, k)] - products.truth[j] - products.truth[k] + products.square
    });
    least_norm(&errors)
}

/// Wolfe's method: the convex weights w that minimise w^T E w for a Gram matrix E.
fn least_norm(gram: &DMatrix<f64>) -> DVector<f64> {
    let count = gram.nrows();
    let mut weights = DVector::zeros(count);
    let Some(best) = (0..count).min_by(|&a, &b| gram[(a, a)].total_cmp(&gram[(b, b)])) else {
        return weights;
    };
    weights[best] = 1.0;
    let mut active = vec![best];
    let scale = gram.diagonal().max();
    for _ in 0..20 * count + 100 {
        let slope = gram * &weights;
        let norm = weights.dot(&slope);
        let Some(enter) = (0..count).min_by(|&a, &b| slope[a].total_cmp(&slope[b])) else { break };
        // Optimal when no vertex lies on the near side of the supporting plane.
        if slope[enter] >= norm - 1e-12 * scale || active.contains(&enter) {
            break;
        }
        active.push(enter);
        while let Some(affine) = affine_least_norm(gram, &active) {
            if affine.iter().all(|&w| w > 0.0) {
                weights.fill(0.0);
                active.iter().zip(affine.iter()).for_each(|(&k, &w)| weights[k] = w);
                break;
            }
            // As far as the simplex goes, and drop what becomes zero.
            let reach = active.iter().zip(affine.iter()).filter(|(_, w)| **w <= 0.0).map(|(&k, &w)| {
                let old = weights[k];
                if old - w > 0.0 { old / (old - w) } else { 0.0 }
            });
            let reach = reach.fold(1.0, f64::min);
            let mut kept = Vec::new();
            for (&k, &w) in active.iter().zip(affine.iter()) {
                let moved = weights[k] + reach * (w - weights[k]);
                let stays = moved > 1e-14;
                weights[k] = if stays { moved } else { 0.0 };
                if stays {
                    kept.push(k);
                }
            }
            if kept.is_empty() || kept.len() == active.len() {
                break;
            }
            active = kept;
        }
    }
    let sum: f64 = weights.sum();
    weights / sum
}

/// Weights on `active`, of any sign but with sum 1, of least norm: E w = lambda 1, sum w = 1. A small ridge keeps
/// equal heads apart.
fn affine_least_norm(gram: &DMatrix<f64>, active: &[usize]) -> Option<DVector<f64>> {
    let mut matrix = gram.select_rows(active).select_columns(active);
    let ridge = 1e-13 * matrix.diagonal().max();
    for k in 0..active.len() {
        matrix[(k, k)] += ridge;
    }
    let weights = matrix.lu().solve(&DVector::from_element(active.len(), 1.0))?;
    let sum = weights.sum();
    (sum.is_finite() && sum != 0.0).then(|| weights / sum)
}

/// Penalties tried, relative to the mean diagonal of the Gram matrix; the last one leaves the average as it is.
const PENALTIES: [f64; 9] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 1e6];

/// Free weights near the average's. `folds` are the products over contiguous blocks of the rows; their sum is `all`.
pub fn stack(all: &Products, folds: &[Products]) -> DVector<f64> {
    let anchor = average(all);
    let mut losses = vec![Vec::with_capacity(folds.len()); PENALTIES.len()];
    for fold in folds {
        let rest = all.minus(fold);
        let anchor = average(&rest);
        for (losses, &penalty) in losses.iter_mut().zip(&PENALTIES) {
            losses.push(fold.loss(&near(&rest, &anchor, penalty)));
        }
    }
    match strongest(&losses) {
        Some(k) => near(all, &anchor, PENALTIES[k]),
        None => anchor,
    }
}

/// The last setting, from weak to strong, that is no worse than the best by more than one standard error of the difference
/// over the folds; `losses` by setting and fold. `None` where there is nothing to compare.
fn strongest(losses: &[Vec<f64>]) -> Option<usize> {
    let sum = |k: &usize| losses[*k].iter().sum::<f64>();
    let best = (0..losses.len()).min_by(|a, b| sum(a).total_cmp(&sum(b)))?;
    let level = |k: &usize| {
        let (mean, deviation) = mean_and_std(losses[*k].iter().zip(&losses[best]).map(|(a, b)| a - b));
        mean <= deviation / (losses[best].len() as f64 - 1.0).sqrt()
    };
    (losses[best].len() > 1).then(|| (best..losses.len()).rfind(level).unwrap_or(best))
}

/// Free weights of least error on the rows themselves; the smallest penalty keeps equal heads apart.
pub fn free(products: &Products) -> DVector<f64> {
    near(products, &average(products), 1e-8)
}

/// min ||Y - sum w_k Yhat_k||^2 + penalty ||w - anchor||^2.
fn near(products: &Products, anchor: &DVector<f64>, penalty: f64) -> DVector<f64> {
    let count = anchor.len();
    let penalty = penalty * products.gram.trace() / count.max(1) as f64;
    let mut matrix = products.gram.clone();
    for k in 0..count {
        matrix[(k, k)] += penalty;
    }
    match matrix.cholesky() {
        Some(factor) => factor.solve(&(&products.truth + anchor * penalty)),
        None => anchor.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;
    use proptest::prelude::*;

    fn random(seed: u64, rows: usize, heads: usize, collinear: bool) -> Products {
        let mut normal = Normal::new(seed);
        let truth = DVector::from_fn(rows, |_, _| normal.draw());
        let mut predictions =
            DMatrix::from_fn(rows, heads, |t, k| truth[t] * (0.2 * k as f64) + 0.5 * normal.draw());
        if collinear && heads > 1 {
            let first = predictions.column(0).into_owned();
            predictions.set_column(heads - 1, &first);
        }
        let mut products = Products::new(heads);
        products.add(&predictions, &truth);
        products
    }

    proptest! {
        /// Karush-Kuhn-Tucker: on the simplex, and the gradient is the same for all heads that count and no smaller
        /// for the others.
        #[test]
        fn the_average_is_optimal(seed in any::<u64>(), rows in 3usize..60, heads in 1usize..30, collinear: bool) {
            let products = random(seed, rows, heads, collinear);
            let weights = average(&products);
            prop_assert!((weights.sum() - 1.0).abs() < 1e-12);
            prop_assert!(weights.iter().all(|&w| w >= 0.0));
            let gradient = &products.gram * &weights - &products.truth;
            let level = weights.dot(&gradient);
            let scale = products.gram.diagonal().max() + products.square;
            for (k, &weight) in weights.iter().enumerate() {
                prop_assert!(gradient[k] >= level - 1e-8 * scale, "head {k}");
                if weight > 1e-6 {
                    prop_assert!((gradient[k] - level).abs() < 1e-8 * scale, "head {k} with weight {weight}");
                }
            }
        }

        #[test]
        fn stacking_is_no_worse_where_it_is_fitted(seed in any::<u64>(), heads in 1usize..12) {
            let folds: Vec<Products> = (0..4).map(|k| random(seed.wrapping_add(k), 50, heads, false)).collect();
            let mut all = Products::new(heads);
            folds.iter().for_each(|fold| all.add_products(fold));
            prop_assert!(all.loss(&stack(&all, &folds)) <= all.loss(&average(&all)) * (1.0 + 1e-9));
        }
    }

    #[test]
    fn a_perfect_head_gets_everything() {
        let truth = DVector::from_column_slice(&[1.0, -2.0, 3.0]);
        let predictions = DMatrix::from_columns(&[truth.map(|y| y + 1.0), truth.clone(), truth.map(|y| -y)]);
        let mut products = Products::new(3);
        products.add(&predictions, &truth);
        let weights = average(&products);
        assert!((weights[1] - 1.0).abs() < 1e-9, "{weights}");
        assert!(products.loss(&weights) < 1e-12 * products.square);
    }
}
