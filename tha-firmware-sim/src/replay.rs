//! A recording through the stream, against the f64 batch prediction of tha-train.

mod compare;

pub(crate) use compare::{Bound, bounds};
pub use compare::{Comparison, OutputComparison, compare, follows_the_format};

use crate::emulator::{self, EmulatorError, Numbers, Processor, StackUse};
use crate::model_file::ModelFile;
use crate::stream::{Device, record_lengths, samples};
use serde::Serialize;
use std::time::{Duration, Instant};
use tha_core::CapacityError;
use tha_train::Dataset;

/// Where the stream runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// tha-core on this machine.
    Host,
    /// tha-core on an emulated board.
    Board(Processor),
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 6] = {
        let [a, b, c, d, e] = Processor::ALL;
        [Self::Host, Self::Board(a), Self::Board(b), Self::Board(c), Self::Board(d), Self::Board(e)]
    };

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Board(processor) => processor.name(),
        }
    }
}

/// Why a recording could not be replayed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReplayError {
    /// The model is too large for the simulator.
    #[error("the simulator has no room for the model: {0}")]
    Capacity(#[from] CapacityError),
    /// The recording is too short.
    #[error("the longest record has {found} samples, at least {needed} are needed; use a longer recording")]
    TooShort { found: usize, needed: usize },
    /// There is nothing to compare.
    #[error("--samples: {samples} never filled the memory of {memory}, so no output was compared; raise it")]
    Nothing { samples: usize, memory: usize },
    /// The board could not be emulated.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
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
    /// Bits and bound are as they should be, and rounding takes little of what the outputs do.
    pub fn ok(&self) -> bool {
        self.bit_exact && self.comparison.within_bound && self.comparison.lost.is_none()
    }
}

/// Replays `data` on a target and compares.
pub fn run(file: &ModelFile, data: &Dataset, target: Target) -> Result<Report, ReplayError> {
    let (samples, records) = (samples(data), record_lengths(data));
    let mut device = Device::new(file)?;
    let host = device.replay(&samples, &records);
    let (stream, bit_exact, board, latency) = match target {
        Target::Host => {
            let exact = follows_the_format(file, data, &samples, &host);
            (host, exact, None, Some(latency(&mut device, &samples, &records)))
        }
        Target::Board(processor) => {
            let image = emulator::build_for(processor, file, Numbers::of(file))?;
            let replay = emulator::replay(&image, file, &samples, &records)?;
            // Integers are made for counts: what rounding physical units costs in software is no part of them.
            let numbers = image.numbers.counted();
            let counted = match numbers == image.numbers {
                true => replay.instructions,
                false => {
                    let image = emulator::build_for(processor, file, numbers)?;
                    emulator::replay(&image, file, &samples, &records)?.instructions
                }
            };
            let report = BoardReport { instructions: counted, stack: replay.stack, image_bytes: image.flash };
            let exact = replay.stream.same_bits(&host);
            (replay.stream, exact, Some(report), None)
        }
    };
    let flagged = stream.status.iter().filter(|status| status.ready() && status.reported()).count();
    Ok(Report { comparison: compare(file, data, &stream), bit_exact, flagged, board, latency })
}

/// Times every push. The clock itself takes a few dozen nanoseconds of each; the rate is that of the fastest of five replays
/// without it.
fn latency(device: &mut Device<'_>, samples: &[f32], records: &[usize]) -> Latency {
    let mut total = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        std::hint::black_box(device.replay(samples, records));
        total = total.min(start.elapsed());
    }
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
