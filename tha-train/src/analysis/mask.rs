//! Mask operator P_S and coverage operator C_w = sum_k w_k P_{S_k} (section 3, "Masking and Coverage").
//!
//! P_S B keeps the coefficients of the monomials over the inputs in S and the constant: the slices of every core that
//! belong to S. Everything outside is zero, so a masked network is stored as its *restriction*, a network over the
//! k M + 1 columns of S alone, and evaluated on those columns. C_w is diagonal; its entry for a monomial is the weight
//! of the heads that see all of its inputs.

use crate::network::{Core, Network};
use nalgebra::{DMatrix, DVector};

/// Positions of a subset's columns in x_t: the constant, then the subset at each lag.
pub fn columns_of(subset: &[usize], inputs: usize, q: usize) -> Vec<usize> {
    let memory = (q - 1) / inputs.max(1);
    let lags = (0..memory).flat_map(|lag| subset.iter().map(move |input| 1 + lag * inputs + input));
    std::iter::once(0).chain(lags).collect()
}

/// The restriction of P_S B to the columns of S.
pub fn restrict(network: &Network, subset: &[usize], inputs: usize) -> Network {
    let columns = columns_of(subset, inputs, network.q());
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
pub fn embed(network: &Network, subset: &[usize], inputs: usize, q: usize) -> Network {
    let columns = columns_of(subset, inputs, q);
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
