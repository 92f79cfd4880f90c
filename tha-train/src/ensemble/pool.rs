//! Predictions of heads for samples that they were not fitted to, and the heads among which weights are found.

use super::heads::{Head, Material};
use super::weights::{Products, average};
use crate::network::Features;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;

/// Rows whose predictions by all heads are held at a time.
const BLOCK: usize = 1024;

/// Calls `each` with the predictions of heads for samples that they were not fitted to, one column for each, and the number of the block
/// and the rows: some rows at a time.
fn predictions(
    material: &Material<'_>,
    heads: &[&Head],
    mut each: impl FnMut(usize, &[usize], DMatrix<f64>),
) {
    for (k, rows) in material.by_block().iter().enumerate() {
        for rows in rows.chunks(BLOCK) {
            let columns: Vec<DVector<f64>> = heads
                .par_iter()
                .map(|head| {
                    let x = material.samples.of_inputs(&head.inputs).select_rows(rows);
                    DVector::from_column_slice(head.choice.networks[k].evaluate(&x).as_slice())
                })
                .collect();
            each(k, rows, DMatrix::from_columns(&columns));
        }
    }
}

/// The outputs of some rows, below each other.
fn outputs_at(material: &Material<'_>, rows: &[usize]) -> DVector<f64> {
    DVector::from_column_slice(material.samples.y.select_rows(rows).as_slice())
}

/// Inner products of the heads' predictions for samples that they were not fitted to, in total and by block.
pub(super) fn products(material: &Material<'_>, heads: &[&Head]) -> (Products, Vec<Products>) {
    let mut blocks = vec![Products::new(heads.len()); material.by_block().len()];
    predictions(material, heads, |block, rows, columns| {
        blocks[block].add(&columns, &outputs_at(material, rows))
    });
    let mut all = Products::new(heads.len());
    blocks.iter().for_each(|block| all.add_products(block));
    (all, blocks)
}

/// Heads among which the weights of an average are found; the products of all pairs of more would take more time than the heads.
pub(super) const POOL: usize = 256;

/// Which heads can have a weight in the average, with their products. Where there are more than `most`, those of least error, and then as long as
/// there are any, those that would make the average of the former better: what has the least error over them has it over all heads.
pub(super) fn pool(
    material: &Material<'_>,
    heads: &[Head],
    most: usize,
) -> (Vec<usize>, Products, Vec<Products>) {
    let error = |k: &usize| heads[*k].choice.error;
    let mut pool: Vec<usize> = (0..heads.len()).collect();
    if heads.len() > most {
        pool.sort_by(|a, b| error(a).total_cmp(&error(b)).then(a.cmp(b)));
        pool.truncate(most);
        pool.sort_unstable();
    }
    loop {
        let inside: Vec<&Head> = pool.iter().map(|&k| &heads[k]).collect();
        let (all, blocks) = products(material, &inside);
        let outside: Vec<usize> = (0..heads.len()).filter(|k| pool.binary_search(k).is_err()).collect();
        let mut better = better(material, heads, &outside, &inside, &average(&all));
        better.truncate(most);
        if better.is_empty() {
            return (pool, all, blocks);
        }
        pool.extend(better);
        pool.sort_unstable();
    }
}

/// Of the heads `outside` those that make a convex combination of others better, those that promise most first: e_k the error of a
/// head and e that of the combination, there is something to gain where <e_k, e> is less than <e, e>.
fn better(
    material: &Material<'_>,
    heads: &[Head],
    outside: &[usize],
    inside: &[&Head],
    weights: &DVector<f64>,
) -> Vec<usize> {
    if outside.is_empty() {
        return Vec::new();
    }
    let (used, weights): (Vec<&Head>, Vec<f64>) = inside
        .iter()
        .zip(weights.iter())
        .filter(|(_, weight)| **weight > 0.0)
        .map(|(head, weight)| (*head, *weight))
        .unzip();
    let weights = DVector::from_vec(weights);
    let mut errors = Vec::new();
    predictions(material, &used, |_, rows, columns| {
        errors.push(columns * &weights - outputs_at(material, rows))
    });
    let square: f64 = errors.iter().map(DVector::norm_squared).sum();
    let others: Vec<&Head> = outside.iter().map(|&k| &heads[k]).collect();
    let (mut slopes, mut errors) = (DVector::zeros(outside.len()), errors.iter());
    predictions(material, &others, |_, rows, columns| {
        let error = errors.next().expect("the same rows again");
        slopes.gemv_tr(1.0, &columns, error, 1.0);
        slopes.add_scalar_mut(-outputs_at(material, rows).dot(error));
    });
    let mut found: Vec<usize> = (0..outside.len()).filter(|&i| slopes[i] < (1.0 - 1e-9) * square).collect();
    found.sort_by(|&a, &b| slopes[a].total_cmp(&slopes[b]).then(a.cmp(&b)));
    found.iter().map(|&i| outside[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::heads::{Run, train_all};
    use super::*;
    use crate::FitParams;
    use crate::data::Dataset;
    use crate::network::Normal;
    use crate::progress::Silent;
    use crate::solve::SolveParams;

    #[test]
    fn a_pool_has_the_weights_of_all_heads() {
        let mut normal = Normal::new(5);
        let u: Vec<Vec<f64>> = (0..12).map(|_| (0..400).map(|_| normal.draw()).collect()).collect();
        let y = (0..400).map(|t| u.iter().map(|u| u[t]).sum::<f64>() + normal.draw()).collect();
        let data = Dataset::new("sum", u, vec![y]);
        let scored = data.scored_rows(1);
        let stage = FitParams::new().memory(1).check(&data).unwrap().stage(&data, &scored).unwrap();
        let options = SolveParams { degree: 1, max_rank: 1, memory: 1, ..SolveParams::default() };
        let subsets: Vec<Vec<usize>> = (0..40).map(|k| vec![k % 12, (k + 1 + k / 12) % 12]).collect();
        let run = Run { solve: &options, checkpoint: None, progress: &Silent };
        let material = Material::new(&data, scored, stage, run);
        let (heads, _) = train_all(&material, &subsets).unwrap();
        let (every, all, _) = pool(&material, &heads, 40);
        let weights = average(&all);
        assert_eq!(every.len(), 40);
        let (pool, some, blocks) = pool(&material, &heads, 3);
        let found = average(&some);
        assert!((4..40).contains(&pool.len()), "{pool:?}");
        assert_eq!(blocks.iter().map(|block| block.square).sum::<f64>(), some.square);
        for k in 0..40 {
            let weight = pool.binary_search(&k).map_or(0.0, |at| found[at]);
            assert!((weight - weights[k]).abs() < 1e-6, "head {k}: {weight} and {}", weights[k]);
        }
    }
}
