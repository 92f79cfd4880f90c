//! Batch prediction: the file's f32 numbers in f64 arithmetic, with the file's range policy. The device's stream is measured
//! against it.

use super::Model;
use crate::data::Dataset;
use crate::reference::{Reference, beyond, used};
use crate::stage::{InputMap, OutputMap, cell};
use nalgebra::DMatrix;
use tha_core::RangePolicy;
use tha_core::build::{self, Head, ModelSpec};

/// Rows that are predicted together: their lag windows fit a cache. Wide windows come in fewer rows, of so many entries in all.
const BLOCK: usize = 4096;
const ENTRIES: usize = 1 << 23;

impl Model {
    /// Predicts the outputs at the given rows, physical units, N x l. The data must have been read with
    /// [`Model::columns`], the rows must increase, and the model must have settled on the rows of their record before them.
    pub fn predict(&self, data: &Dataset, rows: &[usize]) -> DMatrix<f64> {
        if let Some(integers) = &self.integers {
            return integers.outputs(data, rows).y;
        }
        let mut prediction = DMatrix::zeros(rows.len(), self.spec.outputs.len());
        let widest = self.spec.heads.iter().map(|head| head.cores[0].q).max().unwrap_or(1);
        let size = (ENTRIES / widest.max(self.spec.stage.features.len())).clamp(1, BLOCK);
        let mut stream = Stream::new(&self.spec, data);
        for (block, rows) in rows.chunks(size).enumerate() {
            let features = stream.features(rows);
            let mut sum = self.beyond(&features, rows.len());
            for (head, network) in self.spec.heads.iter().zip(&self.networks) {
                let x = self.x_of(head, data, rows, &features);
                for ((mut column, v), weight) in sum
                    .columns_range_mut(head.outputs.clone())
                    .column_iter_mut()
                    .zip(network.evaluate(&x).column_iter())
                    .zip(&head.weights)
                {
                    column.axpy(f64::from(*weight), &v, 1.0);
                }
            }
            for (mut column, channel) in sum.column_iter_mut().zip(&self.spec.outputs) {
                let map = OutputMap { offset: channel.offset, scale: channel.scale };
                column.apply(|value| *value = map.restore(*value));
            }
            prediction.rows_mut(block * size, rows.len()).copy_from(&sum);
        }
        prediction
    }

    /// What the linear part of the model adds outside the training range.
    fn beyond(&self, features: &[Vec<f64>], rows: usize) -> DMatrix<f64> {
        let mut sum = DMatrix::zeros(rows, self.spec.outputs.len());
        if self.spec.range == RangePolicy::Extend {
            for (row, z) in features.iter().enumerate() {
                for (i, (z, feature)) in z.iter().zip(&self.spec.stage.features).enumerate() {
                    let beyond = beyond(*z, feature);
                    for j in 0..sum.ncols() {
                        sum[(row, j)] +=
                            f64::from(self.spec.stage.linear[j * features[row].len() + i]) * beyond;
                    }
                }
            }
        }
        sum
    }

    /// x of a head: 1, the plain features, and for each mapped one the hat functions of its nodes.
    fn rows(&self, head: &Head, features: &[Vec<f64>]) -> DMatrix<f64> {
        let mut x = DMatrix::zeros(features.len(), head.cores[0].q);
        x.column_mut(0).fill(1.0);
        for (row, z) in features.iter().enumerate() {
            let mut column = 1;
            for (z, nodes) in used(&self.spec, head, z) {
                if nodes.is_empty() {
                    x[(row, column)] = z;
                } else {
                    let (cell, t) = cell(nodes, z);
                    x[(row, column + cell)] = 1.0 - t;
                    x[(row, column + cell + 1)] = t;
                }
                column += nodes.len().max(1);
            }
        }
        x
    }

    /// x of every head at some rows.
    pub(crate) fn features_of_heads(&self, data: &Dataset, rows: &[usize]) -> Vec<DMatrix<f64>> {
        let features = Stream::new(&self.spec, data).features(rows);
        self.spec.heads.iter().map(|head| self.x_of(head, data, rows, &features)).collect()
    }

    /// x of a head at some rows, of which the features are given.
    fn x_of(&self, head: &Head, data: &Dataset, rows: &[usize], features: &[Vec<f64>]) -> DMatrix<f64> {
        match self.spec.stage.features.is_empty() {
            true => self.windows(data, &head.inputs, rows),
            false => self.rows(head, features),
        }
    }

    /// x at some rows with the columns of all features that the file lists, in its order.
    pub(crate) fn features_at(&self, data: &Dataset, rows: &[usize]) -> DMatrix<f64> {
        let inputs: Vec<usize> = (0..self.spec.inputs.len()).collect();
        let listed = &self.spec.stage.features;
        let q = 1 + listed.iter().map(build::Feature::rows).sum::<usize>();
        let core = build::Core::new(1, q, 1, Vec::new());
        let all = Head { features: (0..listed.len()).collect(), ..Head::from_cores(inputs, 1.0, vec![core]) };
        self.rows(&all, &Stream::new(&self.spec, data).features(rows))
    }

    /// Standardised lag windows of a head's inputs, clamped where the model says so.
    fn windows(&self, data: &Dataset, inputs: &[usize], rows: &[usize]) -> DMatrix<f64> {
        let mut x = DMatrix::from_element(rows.len(), inputs.len() * self.spec.memory + 1, 1.0);
        for (k, &input) in inputs.iter().enumerate() {
            let channel = &self.spec.inputs[input];
            let map = InputMap { offset: channel.offset, gain: channel.gain };
            let (low, high) = match self.spec.range {
                RangePolicy::Pass => (f64::NEG_INFINITY, f64::INFINITY),
                _ => (f64::from(channel.low), f64::from(channel.high)),
            };
            let column = &data.u[input];
            for lag in 0..self.spec.memory {
                for (value, &row) in x.column_mut(1 + lag * inputs.len() + k).iter_mut().zip(rows) {
                    *value = map.standardise(column[row - lag].clamp(low, high));
                }
            }
        }
        x
    }
}

/// The features of a data set, record by record, in the order of the rows that are asked for.
struct Stream<'m> {
    data: &'m Dataset,
    model: Reference<'m, f64>,
    /// The next row to take, and the end of its record.
    next: usize,
    end: usize,
}

impl<'m> Stream<'m> {
    fn new(spec: &'m ModelSpec, data: &'m Dataset) -> Self {
        Self { data, model: Reference::new(spec), next: 0, end: 0 }
    }

    /// The features at some rows, behind those of the call before; nothing where they are lags.
    fn features(&mut self, rows: &[usize]) -> Vec<Vec<f64>> {
        if !self.model.has_features() {
            return Vec::new();
        }
        let at = |&row: &usize| {
            if row < self.next || row >= self.end {
                let record = self.data.records.iter().find(|record| record.rows.contains(&row));
                let record = record.map_or(row..row + 1, |record| record.rows.clone());
                (self.next, self.end) = (record.start, record.end);
                self.model.reset();
            }
            while self.next <= row {
                let u: Vec<f64> = self.data.u.iter().map(|column| column[self.next]).collect();
                self.model.take(&u);
                self.next += 1;
            }
            self.model.features()
        };
        rows.iter().map(at).collect()
    }
}
