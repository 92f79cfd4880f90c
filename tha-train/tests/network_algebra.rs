//! Tensor-network algebra against dense tensors, over random shapes.

use nalgebra::DMatrix;
use proptest::prelude::*;
use tha_train::network::Network;

fn shape() -> impl Strategy<Value = (usize, usize, Vec<usize>)> {
    (1usize..4, 1usize..5, prop::collection::vec(1usize..4, 0..4))
}

/// A network of the given shape filled from a list of numbers.
fn filled(outputs: usize, q: usize, ranks: &[usize], values: &[f64]) -> Network {
    let mut network = Network::zeros(outputs, q, ranks);
    let entries = network.cores.iter_mut().flat_map(|core| &mut core.data);
    entries.zip(values.iter().cycle()).for_each(|(to, from)| *to = *from);
    network
}

fn numbers() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0f64..1.0, 97)
}

fn close(a: &[f64], b: &[f64]) -> bool {
    let size = b.iter().map(|v| v * v).sum::<f64>().sqrt() + 1e-3;
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-10 * size)
}

proptest! {
    #[test]
    fn gauge_changes_leave_the_tensor((l, q, ranks) in shape(), values in numbers()) {
        let network = filled(l, q, &ranks, &values);
        let dense = network.to_dense();
        let mut left = network.clone();
        left.orthogonalize_left();
        prop_assert!(close(&left.to_dense(), &dense));
        let mut right = network.clone();
        right.orthogonalize_right();
        prop_assert!(close(&right.to_dense(), &dense));
        let norm = dense.iter().map(|v| v * v).sum::<f64>().sqrt();
        prop_assert!((network.norm() - norm).abs() < 1e-10 * (1.0 + norm));
    }

    #[test]
    fn sums_and_inner_products((l, q, ranks) in shape(), a in numbers(), b in numbers()) {
        let (a, b) = (filled(l, q, &ranks, &a), filled(l, q, &ranks, &b));
        let (da, db) = (a.to_dense(), b.to_dense());
        let sum: Vec<f64> = da.iter().zip(&db).map(|(x, y)| x + y).collect();
        prop_assert!(close(&a.add(&b).to_dense(), &sum));
        let inner: f64 = da.iter().zip(&db).map(|(x, y)| x * y).sum();
        prop_assert!((a.inner(&b) - inner).abs() < 1e-10 * (1.0 + a.norm() * b.norm()));
        let mut scaled = a.clone();
        scaled.scale(-2.5);
        prop_assert!(close(&scaled.to_dense(), &da.iter().map(|v| -2.5 * v).collect::<Vec<_>>()));
    }

    #[test]
    fn rounding_undoes_a_sum_with_itself((l, q, ranks) in shape(), values in numbers()) {
        let network = filled(l, q, &ranks, &values);
        let mut twice = network.add(&network);
        twice.round(1e-9, &vec![100; ranks.len()]);
        let dense: Vec<f64> = network.to_dense().iter().map(|v| 2.0 * v).collect();
        let error: f64 = twice.to_dense().iter().zip(&dense).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        prop_assert!(error <= 1e-8 * (1.0 + network.norm()));
        prop_assert!(twice.ranks().iter().zip(&ranks).all(|(new, old)| new <= old));
    }

    #[test]
    fn values_are_those_of_the_dense_tensor((l, q, ranks) in shape(), values in numbers(), rows in 1usize..600) {
        let network = filled(l, q, &ranks, &values);
        let x = DMatrix::from_fn(rows, q, |t, i| if i == 0 { 1.0 } else { ((t * 31 + i * 17) as f64).sin() });
        let y = network.evaluate(&x);
        let dense = network.to_dense();
        let size = dense.len() / l;
        for t in [0, rows / 2, rows - 1] {
            for j in 0..l {
                let value: f64 = (0..size)
                    .map(|at| {
                        let factors = (0..network.degree()).map(|k| x[(t, at / q.pow(k as u32) % q)]);
                        dense[j * size + at] * factors.product::<f64>()
                    })
                    .sum();
                prop_assert!((y[(t, j)] - value).abs() < 1e-10 * (1.0 + value.abs()));
            }
        }
    }
}
