//! Mask operator P_S and coverage operator C_w = sum_k w_k P_{S_k} (section 3, "Masking and Coverage").
//!
//! P_S B keeps the coefficients of the monomials over the inputs in S and the constant: the slices of every core that
//! belong to S. Everything outside is zero, so a masked network is stored as its *restriction*, a network over the
//! columns of S alone, and evaluated on those columns. C_w is diagonal; its entry for a monomial is the weight
//! of the heads that see all of its inputs.

use crate::network::{Core, Network};
use nalgebra::{DMatrix, DVector};

/// Positions of a subset's columns in x_t: the constant, then those that belong to its inputs. `owners` names the input of every
/// column but the constant.
pub fn columns_of(subset: &[usize], owners: &[usize]) -> Vec<usize> {
    let belongs = |column: &usize| subset.contains(&owners[column - 1]);
    std::iter::once(0).chain((1..=owners.len()).filter(belongs)).collect()
}

/// The owners of lag windows: one input after the other, lag by lag.
pub fn lag_owners(inputs: usize, memory: usize) -> Vec<usize> {
    (0..memory).flat_map(|_| 0..inputs).collect()
}

/// The restriction of P_S B to the columns of S.
pub fn restrict(network: &Network, subset: &[usize], owners: &[usize]) -> Network {
    let columns = columns_of(subset, owners);
    let restricted = |core: &Core| {
        let mut data = Vec::with_capacity(core.left * columns.len() * core.right);
        for a in 0..core.left {
            for &i in &columns {
                data.extend_from_slice(&core.data[(a * core.q + i) * core.right..][..core.right]);
            }
        }
        Core { left: core.left, q: columns.len(), right: core.right, data }
    };
    Network { cores: network.cores.iter().map(restricted).collect() }
}

/// A head's network in the space of all inputs: zero for every monomial outside its subset.
pub fn embed(network: &Network, subset: &[usize], owners: &[usize]) -> Network {
    let (q, columns) = (owners.len() + 1, columns_of(subset, owners));
    let embedded = |core: &Core| {
        let mut wide = Core::zeros(core.left, q, core.right);
        for a in 0..core.left {
            for (from, &to) in columns.iter().enumerate() {
                let slice = &core.data[(a * core.q + from) * core.right..][..core.right];
                wide.data[(a * q + to) * core.right..][..core.right].copy_from_slice(slice);
            }
        }
        wide
    };
    Network { cores: network.cores.iter().map(embedded).collect() }
}

/// Entries of C_w for products of two inputs: the diagonal is the coverage of each input by itself. Means over cells of
/// `stretch` inputs each; with 1 the matrix is p x p.
pub fn coverage<'a>(
    heads: impl Iterator<Item = (&'a [usize], f64)>,
    inputs: usize,
    stretch: usize,
) -> DMatrix<f64> {
    let cells = inputs.div_ceil(stretch);
    let mut covered = DMatrix::zeros(cells, cells);
    for (subset, weight) in heads {
        let mut share = DVector::zeros(cells);
        for &input in subset {
            let cell = input / stretch;
            share[cell] += (stretch.min(inputs - cell * stretch) as f64).recip();
        }
        covered.ger(weight, &share, &share, 1.0);
    }
    covered
}
