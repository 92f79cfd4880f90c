//! Random problems, and the dense U and B that the analysis never forms.
#![allow(dead_code, reason = "each test file uses its part")]

use nalgebra::{DMatrix, DVector};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_train::Pair;
use tha_train::analysis::{Part, mask};
use tha_train::network::Network;

/// A number with mean 0 and variance about 1: the theorems ask for no distribution.
pub fn draw(rng: &mut ChaCha8Rng) -> f64 {
    rng.random_range(-1.7..1.7)
}

/// A network of independent coefficients.
pub fn random_network(outputs: usize, q: usize, ranks: &[usize], rng: &mut ChaCha8Rng) -> Network {
    let mut network = Network::zeros(outputs, q, ranks);
    network.cores.iter_mut().flat_map(|core| &mut core.data).for_each(|v| *v = draw(rng));
    network
}

/// The derivative of a function of the tensor by a coefficient, counted core after core: a difference, as the tensor is linear in each.
pub fn derivative(network: &Network, at: usize, of: impl Fn(&Network) -> DMatrix<f64>) -> DVector<f64> {
    let with = |value: f64| {
        let mut moved = network.clone();
        *moved.cores.iter_mut().flat_map(|core| &mut core.data).nth(at).expect("a coefficient") = value;
        of(&moved)
    };
    DVector::from_column_slice((with(1.0) - with(0.0)).as_slice())
}

/// Sizes of a random problem.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub inputs: usize,
    pub memory: usize,
    pub degree: usize,
    pub outputs: usize,
    pub rows: usize,
    pub heads: usize,
}

/// A full model, heads that are anything from the truncation to unrelated, convex weights, correlated inputs.
pub fn random_pair(seed: u64, sizes: Sizes) -> Pair {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let Sizes { inputs, memory, degree, outputs, rows, heads } = sizes;
    let q = inputs * memory + 1;
    let correlation: f64 = rng.random();
    let x = {
        let mut x = DMatrix::from_element(rows, q, 1.0);
        for t in 0..rows {
            let common = draw(&mut rng);
            for i in 1..q {
                x[(t, i)] = correlation * common + (1.0 - correlation) * draw(&mut rng);
            }
        }
        x
    };
    let ranks: Vec<usize> = (1..degree).map(|_| rng.random_range(1..=3)).collect();
    let full = random_network(outputs, q, &ranks, &mut rng);
    let mut y = full.evaluate(&x);
    y.apply(|v| *v += 0.1 * draw(&mut rng));
    let owners = mask::lag_owners(inputs, memory);
    let raw: Vec<f64> = (0..heads).map(|_| rng.random()).collect();
    let sum: f64 = raw.iter().sum();
    let part = |weight: f64, rng: &mut ChaCha8Rng| {
        let mut subset: Vec<usize> = (0..inputs).filter(|_| rng.random_bool(0.6)).collect();
        if subset.is_empty() {
            subset.push(rng.random_range(0..inputs));
        }
        let ranks: Vec<usize> = (1..degree).map(|_| rng.random_range(1..=2)).collect();
        let mut network = random_network(outputs, subset.len() * memory + 1, &ranks, rng);
        let far: f64 = rng.random();
        network.scale(far * far);
        let near = mask::restrict(&full, &subset, &owners);
        Part { network: near.add(&network), subset, weight: weight / sum, ranks }
    };
    let heads = raw.into_iter().map(|weight| part(weight, &mut rng)).collect();
    Pair {
        x,
        owners,
        y,
        inputs: (0..inputs).map(|i| format!("u{i}")).collect(),
        outputs: (0..outputs).map(|j| format!("y{j}")).collect(),
        scales: vec![1.0; outputs],
        full,
        heads,
        conversion_gap: None,
    }
}

/// U, N x q^d, with the index order of [`Network::to_dense`].
pub fn dense_features(x: &DMatrix<f64>, degree: usize) -> DMatrix<f64> {
    let q = x.ncols();
    DMatrix::from_fn(x.nrows(), q.pow(degree as u32), |t, c| {
        indices(c, q, degree).map(|i| x[(t, i)]).product()
    })
}

/// i1..id of column c.
pub fn indices(c: usize, q: usize, degree: usize) -> impl Iterator<Item = usize> {
    (0..degree).rev().map(move |e| c / q.pow(e as u32) % q)
}

/// B, q^d x l.
pub fn dense_matrix(network: &Network) -> DMatrix<f64> {
    let dense = network.to_dense();
    DMatrix::from_column_slice(dense.len() / network.outputs(), network.outputs(), &dense)
}

/// The diagonal of P_S.
pub fn dense_mask(subset: &[usize], inputs: usize, q: usize, degree: usize) -> Vec<f64> {
    let inside = |i: usize| i == 0 || subset.contains(&((i - 1) % inputs));
    (0..q.pow(degree as u32)).map(|c| f64::from(indices(c, q, degree).all(inside))).collect()
}

/// Rows times a diagonal.
pub fn weigh(diagonal: &[f64], matrix: &DMatrix<f64>) -> DMatrix<f64> {
    DMatrix::from_fn(matrix.nrows(), matrix.ncols(), |i, j| diagonal[i] * matrix[(i, j)])
}

/// Bhat_k in the space of all monomials.
pub fn dense_head(pair: &Pair, head: &Part) -> DMatrix<f64> {
    dense_matrix(&mask::embed(&head.network, &head.subset, &pair.owners))
}

/// Asserts closeness relative to the larger magnitude.
#[track_caller]
pub fn close(what: &str, a: f64, b: f64, tolerance: f64) {
    let scale = a.abs().max(b.abs()).max(1e-3);
    assert!((a - b).abs() <= tolerance * scale, "{what}: {a} against {b}");
}
