//! Random problems, and the dense U and B that the analysis never forms.
#![allow(dead_code, reason = "each test file uses its part")]

use nalgebra::DMatrix;
use tha_train::analysis::{Part, Setting, mask};
use tha_train::network::Network;

/// SplitMix64.
pub struct Draws(pub u64);

impl Draws {
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Near enough to normal, mean 0 and variance 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.uniform() * limit as f64) as usize
    }

    pub fn train(&mut self, outputs: usize, q: usize, ranks: &[usize]) -> Network {
        let zero = Network::zeros(outputs, q, ranks);
        let coefficients: Vec<f64> = (0..zero.parameters()).map(|_| self.normal()).collect();
        with_coefficients(&zero, &coefficients)
    }
}

/// All coefficients, core after core.
pub fn coefficients(train: &Network) -> Vec<f64> {
    train.cores.iter().flat_map(|core| core.data.clone()).collect()
}

/// The train of the same shape with other coefficients.
pub fn with_coefficients(train: &Network, coefficients: &[f64]) -> Network {
    let mut rest = coefficients.iter().copied();
    let mut train = train.clone();
    train.cores.iter_mut().flat_map(|core| &mut core.data).zip(&mut rest).for_each(|(v, c)| *v = c);
    train
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
pub fn random_setting(seed: u64, sizes: Sizes) -> Setting {
    let mut draws = Draws(seed);
    let Sizes { inputs, memory, degree, outputs, rows, heads } = sizes;
    let q = inputs * memory + 1;
    let correlation = draws.uniform();
    let x = {
        let mut x = DMatrix::from_element(rows, q, 1.0);
        for t in 0..rows {
            let common = draws.normal();
            for i in 1..q {
                x[(t, i)] = correlation * common + (1.0 - correlation) * draws.normal();
            }
        }
        x
    };
    let ranks: Vec<usize> = (1..degree).map(|_| 1 + draws.below(3)).collect();
    let full = draws.train(outputs, q, &ranks);
    let mut y = full.evaluate(&x);
    y.apply(|v| *v += 0.1 * draws.normal());
    let raw: Vec<f64> = (0..heads).map(|_| draws.uniform()).collect();
    let sum: f64 = raw.iter().sum();
    let part = |weight: f64, draws: &mut Draws| {
        let mut subset: Vec<usize> = (0..inputs).filter(|_| draws.uniform() < 0.6).collect();
        if subset.is_empty() {
            subset.push(draws.below(inputs));
        }
        let ranks: Vec<usize> = (1..degree).map(|_| 1 + draws.below(2)).collect();
        let mut train = draws.train(outputs, subset.len() * memory + 1, &ranks);
        let far = draws.uniform();
        train.scale(far * far);
        let near = mask::restrict(&full, &subset, inputs);
        Part { train: near.add(&train), subset, weight: weight / sum, ranks }
    };
    let heads = raw.into_iter().map(|weight| part(weight, &mut draws)).collect();
    Setting {
        x,
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
pub fn dense_matrix(train: &Network) -> DMatrix<f64> {
    let dense = train.to_dense();
    DMatrix::from_column_slice(dense.len() / train.outputs(), train.outputs(), &dense)
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
pub fn dense_head(setting: &Setting, head: &Part) -> DMatrix<f64> {
    dense_matrix(&mask::embed(&head.train, &head.subset, setting.inputs.len(), setting.full.q()))
}

/// Asserts closeness relative to the larger magnitude.
#[track_caller]
pub fn close(what: &str, a: f64, b: f64, tolerance: f64) {
    let scale = a.abs().max(b.abs()).max(1e-3);
    assert!((a - b).abs() <= tolerance * scale, "{what}: {a} against {b}");
}
