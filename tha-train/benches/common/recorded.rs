//! The recorded problems, and noise-free networks.

use super::{Normal, lagged, network};
use nalgebra::DMatrix;
use serde_json::Value;
use std::path::Path;
use tha_train::Silent;
use tha_train::network::Network;
use tha_train::solve::{Fit, Problem, SolveParams, choose_and_fit};

/// Rows and outputs.
pub struct Rows {
    /// N x q.
    pub x: DMatrix<f64>,
    /// N x l.
    pub y: DMatrix<f64>,
}

impl Rows {
    /// Chooses on five blocks, fits everything.
    pub fn fit(&self, options: &SolveParams) -> Fit {
        choose_and_fit(&Problem { x: &self.x, y: &self.y }, options, &Silent).expect("a fit")
    }

    /// ||Y - Yhat|| / ||Y||.
    pub fn residual(&self, network: &Network) -> f64 {
        (network.evaluate(&self.x) - &self.y).norm() / self.y.norm()
    }
}

/// The rows of a file after as many samples of zeros.
fn read(path: &Path, inputs: usize, memory: usize, zeros: usize) -> Rows {
    let text = std::fs::read_to_string(path).expect("a readable CSV file");
    let parse = |line: &str| -> Vec<f64> { line.split(',').map(|v| v.parse().expect("a number")).collect() };
    let samples: Vec<_> = text.lines().skip(1).map(parse).collect();
    let rows = [vec![vec![0.0; samples[0].len()]; zeros], samples].concat();
    let count = rows.len() + 1 - memory;
    let lag = |i: usize| memory - 1 - (i - 1) / inputs;
    Rows {
        x: DMatrix::from_fn(count, inputs * memory + 1, |t, i| match i {
            0 => 1.0,
            i => rows[t + lag(i)][(i - 1) % inputs],
        }),
        y: DMatrix::from_fn(count, rows[0].len() - inputs, |t, j| rows[t + memory - 1][inputs + j]),
    }
}

/// Zero mean and unit deviation for every input; outputs as they are. The first column stays one.
fn standardise(train: &mut DMatrix<f64>, other: &mut DMatrix<f64>) {
    for i in 1..train.ncols() {
        let column = train.column(i);
        let (mean, deviation) = (column.mean(), column.variance().sqrt().max(1e-300));
        for matrix in [&mut *train, &mut *other] {
            matrix.column_mut(i).apply(|v| *v = (*v - mean) / deviation);
        }
    }
}

/// A problem of a directory: what is recorded of it, the rows to fit and fresh ones, standardised by the former.
pub struct Recorded {
    /// NAME.json.
    pub facts: Value,
    /// NAME_train.csv.
    pub train: Rows,
    /// NAME_val.csv.
    pub fresh: Rows,
}

impl Recorded {
    /// Reads it.
    pub fn read(directory: &Path, name: &str) -> Self {
        let text = std::fs::read_to_string(directory.join(format!("{name}.json"))).expect("readable");
        let facts: Value = serde_json::from_str(&text).expect("valid JSON");
        let count = |key: &str| facts[key].as_u64().expect(key) as usize;
        let (p, memory) = (count("p"), count("M"));
        let mut train = read(&directory.join(format!("{name}_train.csv")), p, memory, 0);
        let zeros = facts["convention"].as_str().is_some_and(|text| text.contains("zeros before"));
        let zeros = if zeros { memory - 1 } else { 0 };
        let mut fresh = read(&directory.join(format!("{name}_val.csv")), p, memory, zeros);
        standardise(&mut train.x, &mut fresh.x);
        Self { facts, train, fresh }
    }
}

/// The names of the problems of a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .expect("a directory")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// (p, M, d, l, N).
pub type Shape = (usize, usize, usize, usize, usize);

/// Rows of a random network without noise, and fresh ones.
pub fn noise_free((p, memory, degree, outputs, rows): Shape, rank: usize, seed: u64) -> (Rows, Rows) {
    let mut draws = Normal::new(seed);
    let truth = network(p * memory + 1, degree, outputs, rank, &mut draws);
    let mut sample = |count| {
        let x = lagged(p, memory, count, &mut draws);
        let y = truth.evaluate(&x);
        Rows { x, y }
    };
    let (mut train, mut fresh) = (sample(rows), sample(2000));
    standardise(&mut train.x, &mut fresh.x);
    (train, fresh)
}
