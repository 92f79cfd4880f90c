//! The tail T = (I - C_w) B* and its norm (Definition "Tail and Empirical Coverage Bias").
//!
//! As a network T is B* - sum_k w_k P_{S_k} B*, of rank (K + 1) r: its norm by orthogonalisation loses no digits. With
//! many heads that rank is too large, and the square is expanded instead: <P_a B*, P_b B*> = ||P_{a and b} B*||^2, one
//! inner product per distinct intersection. Cancellation then limits ||T|| to about 1e-8 of ||B*||.

use super::Part;
use super::mask::{embed, restrict};
use crate::network::Network;
use std::collections::BTreeMap;

/// Largest rank at which T is formed as a network.
const RANK: usize = 200;

/// ||T||_F.
pub fn tail_norm(full: &Network, heads: &[Part], owners: &[usize]) -> f64 {
    let rank = full.ranks().into_iter().max().unwrap_or(1);
    if rank * (heads.len() + 1) <= RANK {
        tail(full, heads, owners).norm()
    } else {
        expanded(full, heads, owners).max(0.0).sqrt()
    }
}

/// T as a network.
fn tail(full: &Network, heads: &[Part], owners: &[usize]) -> Network {
    heads.iter().fold(full.clone(), |tail, head| {
        let mut masked = embed(&restrict(full, &head.subset, owners), &head.subset, owners);
        masked.scale(-head.weight);
        tail.add(&masked)
    })
}

/// ||B*||^2 - 2 sum w_k ||P_k B*||^2 + sum w_a w_b ||P_{a and b} B*||^2.
fn expanded(full: &Network, heads: &[Part], owners: &[usize]) -> f64 {
    let mut known: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    let mut square = |subset: Vec<usize>| {
        if let Some(&value) = known.get(&subset) {
            return value;
        }
        let part = restrict(full, &subset, owners);
        let value = part.inner(&part);
        known.insert(subset, value);
        value
    };
    let mut sum = full.inner(full);
    for (k, a) in heads.iter().enumerate() {
        let own = square(a.subset.clone());
        sum += (a.weight - 2.0) * a.weight * own;
        for b in &heads[..k] {
            let common = a.subset.iter().copied().filter(|input| b.subset.contains(input)).collect();
            sum += 2.0 * a.weight * b.weight * square(common);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    #[test]
    fn both_ways_agree() {
        let mut normal = Normal::new(3);
        let full = Network::random(2, 9, &[3, 2], &mut normal);
        let head = |subset: &[usize], weight| Part {
            subset: subset.to_vec(),
            weight,
            network: Network::zeros(2, 2 * subset.len() + 1, &[1, 1]),
            ranks: vec![1, 1],
        };
        let heads = [head(&[0, 1], 0.5), head(&[1, 2], 0.3), head(&[3], 0.4)];
        let owners = super::super::mask::lag_owners(4, 2);
        let (a, b) = (tail(&full, &heads, &owners).norm(), expanded(&full, &heads, &owners).sqrt());
        assert!((a - b).abs() < 1e-12 * a, "{a} {b}");
    }
}
