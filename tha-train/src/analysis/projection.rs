//! The feasible projection B_proj (appendix A, Definition "Feasible TT Projection").
//!
//! The best approximation of P_k B* by a network of the head's ranks, in the Frobenius norm of the coefficients: rounding
//! by singular values bond by bond, then alternating over the cores. For degree 2 rounding is the optimum; beyond, it
//! is within sqrt(d-1) of it, and the alternation only comes closer.

use crate::network::{Core, Network};
use nalgebra::DMatrix;

/// What weighs less than this part of the norm is the rounding of f64, not rank.
const ZERO: f64 = 1e-12;
/// Sweeps over the cores after rounding.
const SWEEPS: usize = 8;

/// B_proj for the ranks r_1..r_{d-1}. Bonds on which `network` has less rank than allowed come out smaller: there the
/// regularity assumption of the paper does not hold.
pub fn project(network: &Network, ranks: &[usize]) -> Network {
    let mut projected = network.clone();
    projected.round(ZERO, ranks);
    // Alternation improves nothing where rounding has cut nothing.
    let cut = projected.ranks().iter().zip(ranks).any(|(now, allowed)| now == allowed);
    if cut && projected.degree() > 2 {
        for _ in 0..SWEEPS {
            alternate(network, &mut projected);
        }
    }
    projected
}

/// One sweep from the last core to the first and back: with orthogonal frames the best core is the contraction of the
/// target with them. Starts and ends in left-orthogonal form.
fn alternate(target: &Network, network: &mut Network) {
    let last = network.degree() - 1;
    for k in (1..=last).rev() {
        network.cores[k] = contracted(target, network, k);
        network.pass_left(k);
    }
    for k in 0..last {
        network.cores[k] = contracted(target, network, k);
        network.pass_right(k);
    }
    network.cores[last] = contracted(target, network, last);
}

/// The target's core k seen through the other cores of `network`.
fn contracted(target: &Network, network: &Network, k: usize) -> Core {
    let mut left: DMatrix<f64> = DMatrix::identity(network.outputs(), network.outputs());
    for (a, b) in network.cores.iter().zip(&target.cores).take(k) {
        // left(a, b) -> sum over i of A(a, i, a') left(a, b) B(b, i, b')
        let half = Core::from_unfolding(left.nrows(), b.q, b.right, &(&left * b.wide()));
        left = a.tall().transpose() * half.tall();
    }
    let mut right: DMatrix<f64> = DMatrix::identity(1, 1);
    for (a, b) in network.cores.iter().zip(&target.cores).skip(k + 1).rev() {
        let half = Core::from_unfolding(b.left, b.q, right.ncols(), &(b.tall() * &right));
        right = half.wide() * a.wide().transpose();
    }
    let core = &target.cores[k];
    let half = Core::from_unfolding(left.nrows(), core.q, core.right, &(&left * core.wide()));
    Core::from_unfolding(left.nrows(), core.q, right.ncols(), &(half.tall() * &right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    fn distance(a: &Network, b: &Network) -> f64 {
        let mut minus = b.clone();
        minus.scale(-1.0);
        a.add(&minus).norm()
    }

    #[test]
    fn no_worse_than_rounding_and_exact_where_ranks_allow() {
        let mut normal = Normal::new(5);
        for _ in 0..10 {
            let network = Network::random(2, 4, &[4, 3], &mut normal);
            let same = project(&network, &[5, 5]);
            assert!(distance(&same, &network) < 1e-12 * network.norm());
            assert_eq!(same.ranks(), [4, 3]);
            let (mut rounded, projected) = (network.clone(), project(&network, &[2, 2]));
            rounded.round(ZERO, &[2, 2]);
            assert!(distance(&projected, &network) <= distance(&rounded, &network) * (1.0 + 1e-12));
            assert_eq!(projected.ranks(), [2, 2]);
        }
    }
}
