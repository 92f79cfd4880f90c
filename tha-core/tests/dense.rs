//! `push` against the definition: y = phi_t^T B with phi_t the d-fold Kronecker power of x_t and B the dense tensor
//! of every head, in f64.

mod common;

use common::{Dimensions, Room, loaded, random_spec, units};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use tha_core::build::Head;
use tha_core::push;

/// B(j, i_1, ..., i_d) of a head, flattened with i_d fastest.
fn dense(head: &Head) -> Vec<Vec<f64>> {
    let l = head.cores[0].left;
    (0..l)
        .map(|j| {
            // Rows: multi-indices so far; columns: the open bond.
            let mut open = vec![vec![0.0; l]];
            open[0][j] = 1.0;
            for core in &head.cores {
                let mut next = Vec::new();
                for row in &open {
                    for i in 0..core.q {
                        let at = |a: usize, b: usize| f64::from(core.data[(a * core.q + i) * core.right + b]);
                        next.push(
                            (0..core.right)
                                .map(|b| row.iter().enumerate().map(|(a, r)| r * at(a, b)).sum())
                                .collect(),
                        );
                    }
                }
                open = next;
            }
            open.into_iter().map(|row| row[0]).collect()
        })
        .collect()
}

/// phi = x (x) x (x) ... (x) x.
fn kronecker_power(x: &[f64], d: usize) -> Vec<f64> {
    (0..d).fold(vec![1.0], |phi, _| phi.iter().flat_map(|p| x.iter().map(move |x| p * x)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn push_is_the_dense_contraction(
        seed in any::<u64>(), inputs in 1usize..4, outputs in 1usize..4, memory in 1usize..4, degree in 1usize..6,
        heads in 1usize..4, max_rank in 1usize..10,
    ) {
        // Q = q^d stays below 10^5.
        prop_assume!((inputs * memory + 1).pow(degree as u32) <= 100_000);
        let spec = random_spec(seed, Dimensions { inputs, outputs, memory, degree, heads, max_rank });
        let model = loaded(&spec);
        let mut state = Room::new(&model).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 1);
        let window: Vec<Vec<f32>> = (0..memory).map(|_| units(&mut random, inputs)).collect();
        let mut y = Vec::new();
        for u in window.iter().rev() {
            y = push(&model, &mut state, u).output().map(|output| output.y.to_vec()).unwrap_or_default();
        }

        let mut expected = vec![0.0; outputs];
        let mut size = vec![0.0; outputs];
        for head in &spec.heads {
            let mut x = vec![1.0];
            for u in &window {
                x.extend(head.inputs.iter().map(|&c| {
                    (f64::from(u[c]) - f64::from(spec.inputs[c].offset)) * f64::from(spec.inputs[c].gain)
                }));
            }
            let phi = kronecker_power(&x, degree);
            for (j, row) in dense(head).iter().enumerate() {
                let y: f64 = row.iter().zip(&phi).map(|(b, p)| b * p).sum();
                expected[j] += f64::from(head.weight()) * y;
                size[j] += row.iter().zip(&phi).map(|(b, p)| (b * p).abs()).sum::<f64>();
            }
        }
        for (j, channel) in spec.outputs.iter().enumerate() {
            let expected = f64::from(channel.offset) + f64::from(channel.scale) * expected[j];
            let found = f64::from(y[j]);
            // Rounding is relative to the terms of the sum, not to their sum; ranks inside can be 9 terms each.
            let tolerance = 1e-5 * (1.0 + 9.0 * size[j]);
            prop_assert!((found - expected).abs() <= tolerance, "output {j}: {found} against {expected}");
        }
    }
}
