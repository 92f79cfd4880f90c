//! Millions of samples through the stream with random resets, swaps, gaps and outliers, against the batch.
//!
//! The batch knows nothing of states: a reset starts a new record, a swap lets the other model predict from the same
//! record, a NaN is the value before it. Every output must be within the bound of its sample.

use crate::model_file::{DeviceModel, ModelFile};
use crate::replay::{Bound, ReplayError, bounds};
use crate::stream::Device;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use tha_core::{NonFinitePolicy, Swap};
use tha_train::{Dataset, Record};

/// Samples that are drawn, streamed and predicted together.
const BLOCK: usize = 20_000;

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SoakReport {
    /// Samples pushed.
    pub samples: usize,
    /// Outputs compared.
    pub outputs: usize,
    /// Times the history was forgotten.
    pub resets: usize,
    /// Times the other model took over.
    pub swaps: usize,
    /// Values that were NaN or infinite.
    pub held: usize,
    /// Largest difference.
    pub max_abs_error: f64,
    /// Largest bound of a sample.
    pub error_bound: f64,
    /// Largest ratio of a difference to the bound of its sample.
    pub bound_used: f64,
    /// Outputs beyond the bound of their sample, missing, or there when none was due.
    pub broken: usize,
}

/// Streams `samples` random samples through `file` and `other`, which must have the same shape, in turns.
pub fn soak(
    file: &ModelFile,
    other: &ModelFile,
    samples: usize,
    seed: u64,
    mut progress: impl FnMut(usize),
) -> Result<SoakReport, ReplayError> {
    let files = [file, other];
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut report = SoakReport::default();
    let mut device = Device::new(file)?;
    let mut active = 0;
    while report.samples < samples {
        let length = BLOCK.min(samples - report.samples);
        let mut block = Block::draw(file, length, &mut random);
        let shape = file.shape();
        let mut outputs = vec![f32::NAN; length * shape.outputs];
        let mut row = vec![0.0f32; shape.inputs];
        for t in 0..length {
            if t == 0 || random.random_range(0..500) == 0 {
                device.reset();
                report.resets += 1;
                block.start_record(t);
            } else if random.random_range(0..300) == 0 {
                active = 1 - active;
                if device.swap(files[active]) != Ok(Swap::Kept) {
                    report.broken += 1;
                }
                report.swaps += 1;
            }
            report.held += block.sample(t, files[active], &mut row);
            block.active.push(active);
            let said = device.push(&row);
            if said.status.ready() {
                outputs[t * shape.outputs..(t + 1) * shape.outputs].copy_from_slice(said.y);
            }
        }
        block.finish(length);
        judge(&files, &block, &outputs, &mut report);
        report.samples += length;
        progress(report.samples);
    }
    if report.outputs == 0 {
        return Err(ReplayError::Nothing { samples, memory: file.model().settled() });
    }
    Ok(report)
}

fn judge(files: &[&ModelFile; 2], block: &Block, outputs: &[f32], report: &mut SoakReport) {
    let settled = files[0].model().settled();
    let width = files[0].shape().outputs;
    let scored = block.data.scored_rows(settled);
    let given = outputs.chunks_exact(width).filter(|y| !y[0].is_nan()).count();
    report.broken += given.abs_diff(scored.len());
    for (k, file) in files.iter().enumerate() {
        // Integers leave nothing to rounding: the batch is the device without resets and swaps, and must agree to the bit.
        let integers = matches!(file.model(), DeviceModel::Integer(_));
        let batch = if integers { file.device_batch() } else { file.batch() };
        let mut bound = Bound::new(file, batch.spec());
        let rows: Vec<usize> = scored.iter().copied().filter(|&t| block.active[t] == k).collect();
        let prediction = batch.predict(&block.data, &rows);
        let bounds = bounds(&mut bound, settled, &block.data, &[]).filter(|(t, _)| block.active[*t] == k);
        for (i, (t, bounds)) in bounds.enumerate() {
            for (j, bound) in bounds.into_iter().enumerate() {
                let difference = (f64::from(outputs[t * width + j]) - prediction[(i, j)]).abs();
                report.outputs += 1;
                // A NaN is not within the bound.
                let within = difference <= if integers { 0.0 } else { bound };
                report.broken += usize::from(!within);
                report.max_abs_error = report.max_abs_error.max(difference);
                report.error_bound = report.error_bound.max(bound);
                report.bound_used = report.bound_used.max(difference / bound);
            }
        }
    }
}

/// Samples as they are pushed, and what the batch is to see of them.
struct Block {
    /// The numbers that are drawn, physical units.
    drawn: Vec<f32>,
    data: Dataset,
    /// The model that ran at each sample.
    active: Vec<usize>,
    holds: bool,
}

impl Block {
    fn draw(file: &ModelFile, length: usize, random: &mut ChaCha8Rng) -> Self {
        let (model, batch) = (file.model(), file.batch());
        let inputs = &batch.spec().inputs;
        let holds = model.non_finite_policy() == NonFinitePolicy::Hold;
        let mut drawn = Vec::with_capacity(length * inputs.len());
        for _ in 0..length {
            for input in inputs {
                let (middle, half) = (0.5 * (input.low + input.high), 0.5 * (input.high - input.low));
                let far = if random.random_range(0..200) == 0 { 1.5 } else { 1.0 };
                let value = middle + far * half * random.random_range(-1.0..1.0);
                drawn.push(if holds && random.random_range(0..1000) == 0 { f32::NAN } else { value });
            }
        }
        let columns = vec![Vec::with_capacity(length); inputs.len()];
        let inputs = model.input_names().map(str::to_owned).collect();
        let data = Dataset { inputs, records: Vec::new(), ..Dataset::new("soak", columns, Vec::new()) };
        Self { drawn, data, active: Vec::with_capacity(length), holds }
    }

    fn start_record(&mut self, t: usize) {
        self.finish(t);
        self.data.records.push(Record { id: t.to_string(), rows: t..t });
    }

    fn finish(&mut self, t: usize) {
        if let Some(last) = self.data.records.last_mut() {
            last.rows.end = t;
        }
    }

    /// Sample `t` as it is pushed; enters what the batch sees, and counts the values that are to be held.
    fn sample(&mut self, t: usize, file: &ModelFile, row: &mut [f32]) -> usize {
        let width = row.len();
        row.copy_from_slice(&self.drawn[t * width..(t + 1) * width]);
        let first = self.data.records.last().is_some_and(|record| record.rows.start == t);
        let mut held = 0;
        for (channel, (&value, column)) in row.iter().zip(&mut self.data.u).enumerate() {
            let missing = self.holds && !value.is_finite();
            held += usize::from(missing);
            column.push(match column.last() {
                _ if !missing => value.into(),
                Some(&before) if !first => before,
                _ => file.model().mean(channel).into(),
            });
        }
        held
    }
}
