//! A recording through the stream, against the f64 batch prediction of tha-train.

use crate::bound::ErrorBound;
use crate::emulator::{self, EmulatorError, Processor, Setting, StackUse};
use crate::model_file::ModelFile;
use crate::reference;
use crate::stream::{Device, Stream, record_lengths, samples};
use serde::Serialize;
use std::time::{Duration, Instant};
use tha_core::CapacityError;
use tha_core::build::ModelSpec;
use tha_train::data::Dataset;

/// Where the stream runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// tha-core on this machine.
    Host,
    /// tha-core on an emulated board.
    Board(Processor),
}

/// Why a recording could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The model is too large for the simulator.
    #[error("the simulator has no room for the model: {0}")]
    Capacity(#[from] CapacityError),
    /// The recording is too short.
    #[error("the longest record has {found} samples, at least {needed} are needed; use a longer recording")]
    TooShort {
        /// Samples of the longest record.
        found: usize,
        /// Samples that would do.
        needed: usize,
    },
    /// The board could not be emulated.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
}

/// How one output compares with the batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputComparison {
    /// Its name.
    pub name: String,
    /// Largest difference, physical units.
    pub max_abs_error: f64,
    /// Root mean square of the differences.
    pub rms_error: f64,
    /// Largest difference relative to the largest value of the batch.
    pub max_rel_error: f64,
    /// Largest bound of a sample.
    pub error_bound: f64,
    /// Bound for any input in the training range.
    pub model_bound: f64,
}

/// The stream against the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Samples that gave outputs.
    pub samples: usize,
    /// Samples that filled a history.
    pub warmup: usize,
    /// Per output.
    pub outputs: Vec<OutputComparison>,
    /// The largest ratio of a difference to the bound of its sample.
    pub bound_used: f64,
    /// Every difference is within the bound of its sample, and every sample that should have an output has one.
    pub ok: bool,
}

/// Compares a stream over `data` with the batch prediction.
#[must_use]
pub fn compare(file: &ModelFile, data: &Dataset, stream: &Stream) -> Comparison {
    let batch = file.batch();
    let spec = batch.spec();
    let rows = data.scored_rows(spec.memory);
    let prediction = batch.predict(data, &rows);
    let bound = ErrorBound::new(spec);
    let model_bound = bound.model();
    let mut outputs: Vec<OutputComparison> = spec
        .outputs
        .iter()
        .zip(model_bound)
        .map(|(channel, model_bound)| OutputComparison {
            name: channel.name.clone(),
            max_abs_error: 0.0,
            rms_error: 0.0,
            max_rel_error: 0.0,
            error_bound: 0.0,
            model_bound,
        })
        .collect();
    let ready = stream.status.iter().filter(|status| status.ready()).count();
    let mut ok = stream.status.len() == data.len() && ready == rows.len();
    let mut bound_used = 0.0f64;
    for (k, &row) in rows.iter().enumerate() {
        let bounds = bound.window(|input, lag| data.u[input][row - lag]);
        for ((j, output), (&y, bound)) in
            outputs.iter_mut().enumerate().zip(stream.at(row).iter().zip(bounds))
        {
            let expected = prediction[(k, j)];
            // The range of f32 was left: both say so, which is all that can be compared.
            let difference = if y.is_finite() { (f64::from(y) - expected).abs() } else { f64::INFINITY };
            ok &= difference <= bound;
            output.error_bound = output.error_bound.max(bound);
            if difference.is_finite() || bound.is_finite() {
                output.max_abs_error = output.max_abs_error.max(difference);
                output.rms_error += difference * difference;
                bound_used = bound_used.max(difference / bound);
            }
        }
    }
    for (j, output) in outputs.iter_mut().enumerate() {
        let largest = prediction.column(j).amax();
        output.max_rel_error = if largest > 0.0 { output.max_abs_error / largest } else { 0.0 };
        output.rms_error = (output.rms_error / rows.len().max(1) as f64).sqrt();
    }
    Comparison { samples: ready, warmup: stream.status.len() - ready, outputs, bound_used, ok }
}

/// Whether the stream has, to the bit, the outputs that `FORMAT.md` prescribes.
#[must_use]
pub fn follows_the_format(spec: &ModelSpec, data: &Dataset, samples: &[f32], stream: &Stream) -> bool {
    let row = |t: usize| &samples[t * data.u.len()..(t + 1) * data.u.len()];
    data.scored_rows(spec.memory).into_iter().all(|t| {
        let window: Vec<&[f32]> = (0..spec.memory).map(|lag| row(t - lag)).collect();
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        reference::outputs(spec, &window).iter().zip(stream.at(t)).all(same)
    })
}

/// What the board says beside the outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardReport {
    /// Instructions of one push: the least, the most, the mean.
    pub instructions: [f64; 3],
    /// Stack that was used.
    pub stack: StackUse,
    /// Flash of the whole image; the model included where it is linked in.
    pub image_bytes: usize,
}

/// Time per sample on the host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the samples took at most this, in nanoseconds.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// All but one in a hundred.
    pub p99: f64,
    /// All but one in a thousand.
    pub p999: f64,
    /// All.
    pub max: f64,
    /// Samples per second, over all.
    pub samples_per_second: f64,
}

/// A whole replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Against the batch.
    pub comparison: Comparison,
    /// On a board: the bits of the host. On the host: the bits that `FORMAT.md` prescribes.
    pub bit_exact: bool,
    /// Samples with an output that the device flagged.
    pub flagged: usize,
    /// On a board.
    pub board: Option<BoardReport>,
    /// On the host.
    pub latency: Option<Latency>,
}

impl Report {
    /// Bits and bound are as they should be.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.bit_exact && self.comparison.ok
    }
}

/// Replays `data` on a target and compares.
///
/// # Errors
/// [`ReplayError`] when the target is not there or has no room.
pub fn run(file: &ModelFile, data: &Dataset, target: Target) -> Result<Report, ReplayError> {
    let (samples, records) = (samples(data), record_lengths(data));
    let mut device = Device::new(file)?;
    let host = device.replay(&samples, &records);
    let (stream, bit_exact, board, latency) = match target {
        Target::Host => {
            let exact = follows_the_format(file.batch().spec(), data, &samples, &host);
            (host, exact, None, Some(latency(&mut device, &samples, &records)))
        }
        Target::Board(processor) => {
            let image = match processor {
                Processor::CortexM0 => emulator::build_linked(processor, file)?,
                _ => emulator::build(processor, Setting::default())?,
            };
            let replay = emulator::replay(&image, file, &samples, &records)?;
            let report = BoardReport {
                instructions: replay.instructions,
                stack: replay.stack,
                image_bytes: image.sizes.flash,
            };
            let exact = replay.stream.same_bits(&host);
            (replay.stream, exact, Some(report), None)
        }
    };
    let flagged = stream.status.iter().filter(|status| status.ready() && status.reported()).count();
    Ok(Report { comparison: compare(file, data, &stream), bit_exact, flagged, board, latency })
}

/// Times every push. The clock itself takes a few dozen nanoseconds of each; the rate is measured without it.
fn latency(device: &mut Device<'_>, samples: &[f32], records: &[usize]) -> Latency {
    let start = Instant::now();
    std::hint::black_box(device.replay(samples, records));
    let total = start.elapsed();
    let width = device.model.shape().inputs;
    device.reset();
    let mut times: Vec<Duration> = samples
        .chunks_exact(width)
        .map(|row| {
            let start = Instant::now();
            std::hint::black_box(device.push(row));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let percentile = |part: f64| {
        let at = ((times.len() as f64 * part).ceil() as usize).clamp(1, times.len().max(1)) - 1;
        times.get(at).map_or(0.0, |time| time.as_nanos() as f64)
    };
    Latency {
        p50: percentile(0.5),
        p90: percentile(0.9),
        p99: percentile(0.99),
        p999: percentile(0.999),
        max: percentile(1.0),
        samples_per_second: (samples.len() / width.max(1)) as f64 / total.as_secs_f64().max(1e-9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tha_train::synth::{Kind, Options, generate};

    #[test]
    fn a_wrong_output_a_missing_one_and_a_wrong_bit_are_found() {
        let made = generate(&Options { samples: 300, ..Options::new(Kind::Volterra) }).unwrap();
        let file = ModelFile::new(&made.model.unwrap().to_bytes().unwrap()).unwrap();
        let spec = file.batch().spec().clone();
        let samples = samples(&made.train);
        let stream = Device::new(&file).unwrap().replay(&samples, &[300]);
        let good = compare(&file, &made.train, &stream);
        assert!(good.ok && good.bound_used > 0.0 && good.bound_used < 1.0);
        assert!(follows_the_format(&spec, &made.train, &samples, &stream));

        let mut wrong = stream.clone();
        wrong.outputs[100] += 2.0 * good.outputs[0].error_bound as f32;
        assert!(!compare(&file, &made.train, &wrong).ok);

        let mut missing = stream.clone();
        missing.outputs[100] = f32::NAN;
        assert!(!compare(&file, &made.train, &missing).ok);

        let mut flipped = stream.clone();
        flipped.outputs[100] = f32::from_bits(stream.outputs[100].to_bits() ^ 1);
        assert!(compare(&file, &made.train, &flipped).ok);
        assert!(!follows_the_format(&spec, &made.train, &samples, &flipped));
        assert!(!flipped.same_bits(&stream));
    }
}
