//! Every term of the analysis against explicit U and B at small Q.

mod analysis_common;

use analysis_common::{
    Sizes, close, dense_features, dense_head, dense_mask, dense_matrix, derivative, random_pair, weigh,
};
use nalgebra::{DMatrix, DVector};
use tha_train::analysis::kernel::{Kernel, Route};
use tha_train::analysis::mask;
use tha_train::analysis::projection::project;
use tha_train::analysis::spectrum::{lambda_max, lanczos, trace};
use tha_train::network::Network;
use tha_train::{AnalysisParams, Pair, analyze};

const SIZES: [Sizes; 4] = [
    Sizes { inputs: 3, memory: 1, degree: 3, outputs: 2, rows: 40, heads: 3 },
    Sizes { inputs: 2, memory: 2, degree: 2, outputs: 1, rows: 60, heads: 2 },
    Sizes { inputs: 4, memory: 1, degree: 1, outputs: 3, rows: 30, heads: 4 },
    Sizes { inputs: 2, memory: 1, degree: 4, outputs: 2, rows: 50, heads: 1 },
];

fn pairs() -> impl Iterator<Item = Pair> {
    (0..20).flat_map(|seed| SIZES.map(|sizes| random_pair(seed, sizes)))
}

#[test]
fn sums_and_norms_of_sections_3_and_4() {
    for pair in pairs() {
        let analysis = analyze(&pair, &AnalysisParams::default());
        let (p, q, d, n) = (pair.inputs.len(), pair.full.q(), pair.degree(), pair.x.nrows());
        let u = dense_features(&pair.x, d);
        let full = dense_matrix(&pair.full);
        let norm = |m: &DMatrix<f64>| m.norm() / (n as f64).sqrt();
        let (mut coverage, mut ensemble) = (vec![0.0; u.ncols()], DMatrix::zeros(full.nrows(), full.ncols()));
        for (head, reported) in pair.heads.iter().zip(&analysis.heads) {
            let keep = dense_mask(&head.subset, p, q, d);
            coverage.iter_mut().zip(&keep).for_each(|(c, k)| *c += head.weight * k);
            let trained = dense_head(&pair, head);
            close("support", (weigh(&keep, &trained) - &trained).norm(), 0.0, 1e-12);
            let epsilon = norm(&(&u * (&trained - weigh(&keep, &full))));
            close("epsilon", reported.epsilon, epsilon, 1e-9);
            ensemble += trained * head.weight;
        }
        let tail = &full - weigh(&coverage, &full);
        let (bias, bake) = (-(&u * &tail), &u * (&ensemble - weigh(&coverage, &full)));
        close("tail", analysis.tail_norm, tail.norm(), 1e-9);
        close("bias", analysis.bias, norm(&bias), 1e-9);
        close("bake", analysis.bake, norm(&bake), 1e-9);
        close("align", analysis.align, -bake.dot(&bias) / n as f64, 1e-8);
        close("error", analysis.error, norm(&(&u * (&ensemble - &full))), 1e-9);
        let gram = u.transpose() * &u / n as f64;
        close("lambda", analysis.lambda_max, gram.clone().symmetric_eigen().eigenvalues.max(), 1e-9);
        close("trace", trace(&pair.x, d), gram.trace(), 1e-12);
        assert!(analysis.lambda_exact && analysis.convex && analysis.identity_gap < 1e-12);
        assert!(analysis.failures().is_empty(), "{:?}", analysis.failures());
    }
}

/// An orthonormal basis of the tangent space from the Jacobian of the cores.
fn tangent_basis(network: &Network) -> DMatrix<f64> {
    // The space does not depend on the length of a direction; the number of digits does.
    let columns: Vec<_> = (0..network.parameters())
        .map(|at| derivative(network, at, dense_matrix).normalize())
        .filter(|direction| direction.iter().all(|v| v.is_finite()))
        .collect();
    let jacobian = DMatrix::from_columns(&columns);
    let eigen = (&jacobian * jacobian.transpose()).symmetric_eigen();
    let largest = eigen.eigenvalues.max();
    let kept: Vec<usize> =
        (0..eigen.eigenvalues.len()).filter(|&i| eigen.eigenvalues[i] > 1e-11 * largest).collect();
    eigen.eigenvectors.select_columns(&kept)
}

#[test]
fn correlation_tangent_space_and_residual_split() {
    for pair in pairs() {
        let analysis = analyze(&pair, &AnalysisParams { measure_zero: 5, ..AnalysisParams::default() });
        let (p, d, n) = (pair.inputs.len(), pair.degree(), pair.x.nrows() as f64);
        let full = pair.full.evaluate(&pair.x);
        for (head, reported) in pair.heads.iter().zip(&analysis.heads) {
            let x = head.features(&pair.x, &pair.owners);
            let u = dense_features(&x, d);
            let truncated = mask::restrict(&pair.full, &head.subset, &pair.owners);
            let omitted = &full - &u * dense_matrix(&truncated);
            let c = u.transpose() * &omitted;
            // Rounding of the predictions, summed over the rows, is what remains where nothing is omitted.
            let rounding = 1e-12 * u.norm() * full.norm();
            assert!((reported.correlation_norm - c.norm()).abs() < 1e-8 * c.norm() + rounding);
            let projected = project(&truncated, &head.ranks);
            let basis = tangent_basis(&projected);
            let flat = DVector::from_column_slice(c.as_slice());
            let expected = basis.tr_mul(&flat).norm();
            let gap = (reported.tangent_norm - expected).abs();
            assert!(gap < 1e-7 * expected + rounding, "{} against {expected}", reported.tangent_norm);
            assert_eq!(
                reported.incentive,
                head.subset.len() < p,
                "omitted inputs, and only they, give a reason"
            );
            assert!(reported.tangent_norm <= reported.correlation_norm * (1.0 + 1e-9) + 1e-9);

            let start = &pair.y - &u * dense_matrix(&projected);
            close("R_0", reported.residual.total, start.norm() / n.sqrt(), 1e-9);
            close("omitted", reported.residual.omitted, omitted.norm() / n.sqrt(), 1e-8);
            close("noise", reported.residual.noise, (&pair.y - &full).norm() / n.sqrt(), 1e-9);
            assert!(reported.residual.gap < 1e-12);
            let trial = reported.measure_zero.expect("asked for");
            assert!(trial.orthogonal == 0 && trial.smallest > 1e-6 && trial.mean <= 1.0 + 1e-12, "{trial:?}");
        }
    }
}

#[test]
fn steps_realise_what_theorem_5_predicts() {
    for pair in pairs() {
        let analysis = analyze(&pair, &AnalysisParams::default());
        let (d, n) = (pair.degree(), pair.x.nrows() as f64);
        for (head, reported) in pair.heads.iter().zip(&analysis.heads) {
            let x = head.features(&pair.x, &pair.owners);
            let (u, y) = (dense_features(&x, d), &pair.y);
            let mut start = project(&mask::restrict(&pair.full, &head.subset, &pair.owners), &head.ranks);
            // Where a bond has less than its rank, what a core can move depends on the gauge: the one that the steps start in.
            start.balance();
            let residual = y - &u * dense_matrix(&start);
            // The best of all cores, by projection on the range of each dense local design matrix.
            let mut best: f64 = 0.0;
            let mut at = 0;
            for core in &start.cores {
                let columns: Vec<_> = (at..at + core.data.len())
                    .map(|at| derivative(&start, at, |moved| &u * dense_matrix(moved)))
                    .collect();
                at += core.data.len();
                let svd = DMatrix::from_columns(&columns).svd(true, false);
                let range = svd.u.expect("asked for");
                let largest = svd.singular_values.max();
                let flat = DVector::from_column_slice(residual.as_slice());
                let gain: f64 = (0..svd.singular_values.len())
                    .filter(|&i| svd.singular_values[i] > 1e-7 * largest)
                    .map(|i| range.column(i).dot(&flat).powi(2))
                    .sum();
                best = best.max(gain / n);
            }
            let als = reported.als.expect("small enough");
            close("Delta J_LS", als.predicted, best, 1e-6);
            close("realised", als.realised, als.predicted, 1e-6);
            if let Some(mals) = reported.mals {
                let scale = reported.residual.total.powi(2) + mals.truncation;
                let gap = mals.realised - (mals.predicted - mals.truncation);
                assert!(gap.abs() < 1e-8 * scale, "{mals:?} of {scale}");
                assert!(mals.predicted >= 0.0 && mals.truncation >= 0.0);
            } else {
                assert_eq!(d, 1);
            }
        }
    }
}

#[test]
fn both_routes_of_the_kernel_agree_with_a_dense_eigenvalue() {
    let sizes = Sizes { inputs: 4, memory: 2, degree: 3, outputs: 2, rows: 500, heads: 1 };
    for seed in 0..3 {
        let pair = random_pair(seed, sizes);
        let dense = (&pair.x * pair.x.transpose()).map(|v| v.powi(3) / 500.0);
        let expected = dense.symmetric_eigen().eigenvalues.max();
        for route in [Route::Rows, Route::Monomials] {
            let kernel = Kernel::by(&pair.x, 3, route);
            let found = lanczos(&kernel, 500).expect("settles");
            close("lambda_max", found.value, expected, 1e-9);
            let correlation = (dense_features(&pair.x, 3).transpose() * &pair.y).norm();
            close("||U^T Y||", kernel.correlation_square(&pair.y).sqrt(), correlation, 1e-10);
        }
        let bound = lambda_max(&pair.x, 3, 0.0);
        assert!(!bound.exact && bound.value >= expected, "the trace bounds the eigenvalue");
    }
}

#[test]
fn coverage_counts_pairs_of_inputs() {
    let heads: [(&[usize], f64); 2] = [(&[0, 1], 0.25), (&[1, 2], 0.75)];
    let coverage = mask::coverage(heads.into_iter(), 3, 1);
    assert_eq!(coverage.as_slice(), [0.25, 0.25, 0.0, 0.25, 1.0, 0.75, 0.0, 0.75, 0.75]);
}
