//! Coming down in rank: a bond gives up the directions that the outputs depend on least.
//!
//! What stands right of the bond is scaled to unit covariance over the rows; the singular values of what stands left of it are
//! then the root-mean-square losses in the outputs, direction by direction.

use crate::linalg::{svd, symmetric_eigen};
use crate::network::{Contraction, Network, unfold};
use nalgebra::{DMatrix, DMatrixView};

/// The network with only the `rank` most needed directions of bond `bond` (1 to d - 1), judged on the rows of x; `None` where the
/// network is not finite.
pub(super) fn cut(network: &Network, bond: usize, rank: usize, x: &DMatrix<f64>) -> Option<Network> {
    let (mut network, width) = (network.clone(), network.cores[bond].left);
    let right = stacked(&contract(&network, x).right[bond], x.nrows(), 1, width);
    let (root, inverse) = roots(&(right.tr_mul(&right) / x.nrows() as f64))?;
    network.absorb_from_left(bond, &inverse);
    network.absorb_from_right(bond - 1, &root);
    let left = stacked(&contract(&network, x).left[bond], x.nrows(), network.outputs(), width);
    let keep = svd(&left)?.v.columns(0, rank).into_owned();
    network.absorb_from_right(bond - 1, &keep);
    network.absorb_from_left(bond, &keep.transpose());
    Some(network)
}

fn contract(network: &Network, x: &DMatrix<f64>) -> Contraction {
    let unfolded: Vec<_> = network.cores.iter().map(unfold).collect();
    Contraction::new(network, &unfolded, x.as_slice(), x.nrows())
}

/// (rows x (outputs rank)) values as an (outputs rows) x rank matrix.
fn stacked(values: &[f64], rows: usize, outputs: usize, rank: usize) -> DMatrix<f64> {
    let values = DMatrixView::from_slice(values, rows, outputs * rank);
    DMatrix::from_fn(outputs * rows, rank, |t, a| values[(t % rows, (t / rows) * rank + a)])
}

/// `root root^T = spread` and the inverse of `root`, for a spread that may be singular.
fn roots(spread: &DMatrix<f64>) -> Option<(DMatrix<f64>, DMatrix<f64>)> {
    let (values, vectors) = symmetric_eigen(spread)?;
    let floor = values.last()?.max(f64::MIN_POSITIVE) * 1e-14;
    let size = spread.nrows();
    let weight = |i: usize| values[i].max(floor).sqrt();
    let root = DMatrix::from_fn(size, size, |i, j| vectors[(i, j)] * weight(j));
    let inverse = DMatrix::from_fn(size, size, |i, j| vectors[(j, i)] / weight(i));
    Some((root, inverse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    #[test]
    fn the_direction_that_counts_least_is_cut() {
        let mut normal = Normal::new(5);
        let x = DMatrix::from_fn(300, 7, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        for outputs in [1, 2] {
            let truth = Network::random(outputs, 7, &[2, 2], &mut normal);
            let mut more = Network::random(outputs, 7, &[1, 1], &mut normal);
            more.scale(1e-6);
            // A large first core and a small last one: the size of coefficients tells nothing.
            let mut network = truth.add(&more);
            network.cores[0].data.iter_mut().for_each(|v| *v *= 1e4);
            network.cores[2].data.iter_mut().for_each(|v| *v *= 1e-4);
            let low = cut(&cut(&network, 2, 2, &x).unwrap(), 1, 2, &x).unwrap();
            assert_eq!(low.ranks(), [2, 2]);
            let error = (low.evaluate(&x) - truth.evaluate(&x)).norm() / truth.evaluate(&x).norm();
            assert!(error < 1e-5, "{error}");
        }
    }
}
