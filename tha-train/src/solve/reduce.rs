//! Coming down in rank: which direction of a bond the polynomial can do without.
//!
//! A network is one of many for the same polynomial: y = sum_i h_i(x) c_i(x) with the linear forms c_i of the last core
//! also equals sum_i (h_i + sum_k s_ik c_k) c_i for every antisymmetric s. This freedom hides spare directions from a
//! singular value decomposition of the bond, in the norm of the coefficients as in that of the data. It vanishes on the
//! subspace W = {x : c(x) = 0}: a direction u can be spared if h_u = sum_i u_i h_i is zero on W. So the rows are
//! projected onto W (each x becomes what a regression of x on c(x) leaves), the h_i are evaluated there, and the right
//! singular vectors of that matrix with small singular values are the directions to drop. With the forms scaled to
//! unit covariance the singular values are, to first order, the root-mean-square losses in the output.
//!
//! The first bond is the mirror image, with one subspace per output. Bonds in the middle have no such subspace; there
//! the rows are used as they are.

use crate::linalg::{svd, symmetric_eigen};
use crate::network::{Contraction, Network, unfold};
use nalgebra::{DMatrix, DMatrixView};

/// A bond in the gauge in which its directions are sorted by what dropping them costs.
pub(super) struct Spectrum {
    /// Losses times the square root of the number of rows, falling.
    #[cfg(test)]
    losses: Vec<f64>,
    network: Network,
    bond: usize,
}

impl Spectrum {
    /// Bond `bond` (1 to d - 1) of `network`, judged on the rows of x; `None` where the network is not finite. Bonds at
    /// the ends are judged where the forms of the end vanish, if `projected`.
    pub(super) fn new(network: &Network, bond: usize, x: &DMatrix<f64>, projected: bool) -> Option<Self> {
        let mut network = network.clone();
        let values = match bond {
            b if projected && b + 1 == network.degree() => last_bond(&mut network, x)?,
            1 if projected => first_bond(&mut network, x)?,
            _ => middle_bond(&mut network, bond, x)?,
        };
        let parts = svd(&values)?;
        network.absorb_from_right(bond - 1, &parts.v);
        network.absorb_from_left(bond, &parts.v.transpose());
        Some(Self {
            #[cfg(test)]
            losses: parts.s,
            network,
            bond,
        })
    }

    /// The network with only the `rank` most needed directions of the bond.
    pub(super) fn cut(&self, rank: usize) -> Network {
        let mut network = self.network.clone();
        let keep = DMatrix::identity(network.cores[self.bond].left, rank);
        network.absorb_from_right(self.bond - 1, &keep);
        network.absorb_from_left(self.bond, &keep.transpose());
        network
    }
}

/// Scales the forms of the last core to unit covariance; what multiplies them, on W.
fn last_bond(network: &mut Network, x: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let bond = network.degree() - 1;
    let forms = network.cores[bond].wide().transpose();
    let (root, inverse) = roots(&covariance(&(x * forms)))?;
    network.absorb_from_left(bond, &inverse);
    network.absorb_from_right(bond - 1, &root);
    let projected = off(x, &network.cores[bond].wide().transpose())?;
    let parts = contract(network, &projected);
    Some(stacked(&parts.left[bond], x.nrows(), network.outputs(), network.cores[bond].left))
}

/// Scales the forms of the first core to unit covariance; what they multiply, on the subspace of each output.
fn first_bond(network: &mut Network, x: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let rank = network.cores[0].right;
    let forms = unfold(&network.cores[0]);
    let mut spread = DMatrix::zeros(rank, rank);
    for j in 0..network.outputs() {
        spread += covariance(&(x * forms.columns(j * rank, rank))) / network.outputs() as f64;
    }
    let (root, inverse) = roots(&spread)?;
    network.absorb_from_right(0, &inverse.transpose());
    network.absorb_from_left(1, &root.transpose());
    let forms = unfold(&network.cores[0]);
    let mut values = Vec::new();
    for j in 0..network.outputs() {
        let projected = off(x, &forms.columns(j * rank, rank).into_owned())?;
        values.push(stacked(&contract(network, &projected).right[1], x.nrows(), 1, rank));
    }
    let rows: Vec<_> = values.iter().flat_map(|v| v.row_iter()).collect();
    Some(DMatrix::from_rows(&rows))
}

/// Scales what stands right of the bond to unit covariance; what stands left of it.
fn middle_bond(network: &mut Network, bond: usize, x: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let rank = network.cores[bond].left;
    let right = stacked(&contract(network, x).right[bond], x.nrows(), 1, rank);
    let (root, inverse) = roots(&covariance(&right))?;
    network.absorb_from_left(bond, &inverse);
    network.absorb_from_right(bond - 1, &root);
    Some(stacked(&contract(network, x).left[bond], x.nrows(), network.outputs(), rank))
}

fn contract(network: &Network, x: &DMatrix<f64>) -> Contraction {
    Contraction::new(network, &network.unfolded(), x)
}

/// (rows x (outputs rank)) values as an (outputs rows) x rank matrix.
fn stacked(values: &[f64], rows: usize, outputs: usize, rank: usize) -> DMatrix<f64> {
    let values = DMatrixView::from_slice(values, rows, outputs * rank);
    DMatrix::from_fn(outputs * rows, rank, |t, a| values[(t % rows, (t / rows) * rank + a)])
}

fn covariance(values: &DMatrix<f64>) -> DMatrix<f64> {
    values.tr_mul(values) / values.nrows() as f64
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

/// What a regression of the rows on the forms (q x rank) leaves of them: the forms vanish on the result.
fn off(x: &DMatrix<f64>, forms: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let values = x * forms;
    let (_, inverse) = roots(&covariance(&values))?;
    let scores = values * inverse.transpose();
    let loadings = scores.tr_mul(x) / x.nrows() as f64;
    Some(x - scores * loadings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    #[test]
    fn a_spare_direction_hidden_by_symmetry_is_seen() {
        // y = a^T A c of rank 2, written with rank 3 and an antisymmetric term that a plain cut cannot remove.
        let q = 7;
        let mut normal = Normal::new(5);
        let truth = Network::random(1, q, &[2, 2], &mut normal);
        let x = DMatrix::from_fn(300, q, |_, i| if i == 0 { 1.0 } else { normal.draw() });
        let mut network = Network::random(1, q, &[2, 3], &mut normal);
        network.cores[0] = truth.cores[0].clone();
        let (s, t) = (normal.draw(), normal.draw());
        for i in 0..q {
            for b in 0..2 {
                network.cores[2].data[b * q + i] = truth.cores[2].data[b * q + i];
            }
            for a in 0..2 {
                // Middle core: the true one, plus s c_2 on c_0 and -s c_0 on c_2 (t for the second row).
                let w = if a == 0 { s } else { t };
                let extra = network.cores[2].data[2 * q + i];
                let first = network.cores[2].data[i];
                let row = &mut network.cores[1].data[(a * q + i) * 3..][..3];
                row[0] = truth.cores[1].get(a, i, 0) + w * extra;
                row[1] = truth.cores[1].get(a, i, 1);
                row[2] = -w * first;
            }
        }
        assert!((network.evaluate(&x) - truth.evaluate(&x)).norm() < 1e-9);
        let spectrum = Spectrum::new(&network, 2, &x, true).unwrap();
        assert!(spectrum.losses[2] < 1e-9 * spectrum.losses[1], "{:?}", spectrum.losses);
        assert_eq!(spectrum.cut(2).ranks(), vec![2, 2]);
    }
}
