//! Seeded fault campaigns: what the device does when sensors, power or flash misbehave.
//!
//! A trial runs a stretch of the recording twice, once clean and once with a fault, through a [`Driver`] that behaves
//! as the firmware guide of tha-core asks for. An output is *affected* when it is missing or differs in a bit. M samples
//! after the end of the fault the outputs must again have the bits of the clean run. Filters never forget to the bit: with them
//! an output is affected when it differs by more than `TOLERATED`, and the time to recover is what the model says of
//! how long a sample is felt. Every wrong output must carry a word
//! of the device (a flag, a warm-up, a refusal, a failed check of the flash): a fault is *silent* when one does not.
//! Two things can only be noticed after a while, a channel that stands still and bits that flip in flash; there the wrong
//! outputs before the report are counted as *late*, and more than the driver's own delay are silent too.

mod driver;
mod flash;
mod signal;

use crate::model_file::ModelFile;
use crate::replay::ReplayError;
use crate::stream::{Device, samples};
use driver::{Answer, Driver, Event, SCRUB_EVERY};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;
use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tha_train::Dataset;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Samples that never arrive.
    Dropped,
    /// NaN at one channel or more.
    NaN,
    /// Infinities of either sign.
    Infinite,
    /// A channel that stays at a plausible value.
    Stuck,
    /// A channel at a rail, beyond its training range or where that ends.
    Saturated,
    /// One sample far outside the training range.
    Spike,
    /// The device stands still for some samples, nobody can say how many.
    TimeGap,
    /// The device is off for some samples, and its state is gone.
    PowerLoss,
    /// Bits of the model flipped before the device starts.
    FlashAtStart,
    /// Bits of the model flipped while it runs.
    FlashWhileRunning,
    /// Another model of the same shape takes over.
    Swap,
    /// A model of another shape is to take over.
    SwapOtherShape,
    /// The model is exchanged behind the back of the state.
    SwapForgotten,
}

/// All kinds in the order of the table, each in words, with what notices it: tha-core itself, or something the firmware around it
/// must do.
const KINDS: [(Kind, &str, &str); 13] = [
    (Kind::Dropped, "dropped samples", "driver: pushes NaN"),
    (Kind::NaN, "NaN", "push"),
    (Kind::Infinite, "infinity", "push"),
    (Kind::Stuck, "stuck channel", "driver: watch on standing values"),
    (Kind::Saturated, "saturated channel", "push, or the driver's watch"),
    (Kind::Spike, "spike", "push: training range"),
    (Kind::TimeGap, "time gap", "driver: time stamps, reset"),
    (Kind::PowerLoss, "power loss", "push: history not full"),
    (Kind::FlashAtStart, "flash bits, at start", "parse"),
    (Kind::FlashWhileRunning, "flash bits, running", "driver: parses again"),
    (Kind::Swap, "swap", "swap"),
    (Kind::SwapOtherShape, "swap, other shape", "swap"),
    (Kind::SwapForgotten, "swap, state not told", "push: checksum of the model"),
];

/// What one trial came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// Outputs that are missing or differ from the clean run.
    pub affected: usize,
    /// Wrong outputs that came without a word.
    pub late: usize,
    /// Samples after the end of the fault until the last affected output.
    pub recovery: usize,
    /// What the device said first.
    pub report: Option<String>,
    /// More of those than the driver's delay explains, or the fault was never reported.
    pub silent: bool,
}

/// All trials of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The kind.
    pub kind: Kind,
    /// The same in words.
    #[serde(skip)]
    pub name: &'static str,
    /// Faults injected.
    pub trials: usize,
    /// Outputs affected, all trials together.
    pub affected: usize,
    /// Faults that were reported.
    pub reported: usize,
    /// What notices it.
    pub noticed_by: &'static str,
    /// What the device said first, and in how many trials, the most frequent first.
    pub report: String,
    /// The most wrong outputs of a trial that came without a word.
    pub late: usize,
    /// The longest recovery, in samples.
    pub recovery: usize,
    /// Recoveries that took longer than [`recovery_limit`].
    pub unrecovered: usize,
    /// Faults with more of those than the driver's delay explains, and faults that were never reported.
    pub silent: usize,
    /// Trials that panicked.
    pub crashed: usize,
}

impl Summary {
    /// Nothing silent, nothing crashed, everything recovered.
    pub fn ok(&self) -> bool {
        self.silent == 0 && self.crashed == 0 && self.unrecovered == 0
    }
}

/// Runs `trials` faults of every kind on the longest record of `data`.
pub fn campaign(
    file: &ModelFile,
    data: &Dataset,
    seed: u64,
    trials: usize,
) -> Result<Vec<Summary>, ReplayError> {
    Device::new(file)?;
    let bench = Bench::new(file, data)?;
    let summaries = KINDS.into_iter().enumerate().map(|(k, kind)| {
        // A stream of numbers per kind: more kinds or trials do not change the others.
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(k as u64);
        let outcomes: Vec<Option<Trial>> = (0..trials)
            .map(|_| catch_unwind(AssertUnwindSafe(|| bench.trial(kind.0, &mut random))).ok())
            .collect();
        summarise(kind, &outcomes, bench.memory)
    });
    Ok(summaries.collect())
}

/// The most by which an output of a model with filters may differ after a fault, in units of its scale.
const TOLERATED: f32 = 0.01;

/// Samples within which the outputs must recover: M; with filters half as long again as a sample is felt, for one far out of
/// range, and the time to settle after a restart.
pub fn recovery_limit(file: &ModelFile) -> usize {
    let model = file.model();
    let filters = model.felt() > model.shape().memory || model.settled() > model.shape().memory;
    if filters { model.felt() * 3 / 2 + model.settled() } else { model.shape().memory }
}

fn summarise(
    (kind, name, noticed_by): (Kind, &'static str, &'static str),
    outcomes: &[Option<Trial>],
    memory: usize,
) -> Summary {
    let finished = || outcomes.iter().flatten();
    let mut words: Vec<(&str, usize)> = Vec::new();
    for report in finished().filter_map(|trial| trial.report.as_deref()) {
        match words.iter_mut().find(|(word, _)| *word == report) {
            Some((_, count)) => *count += 1,
            None => words.push((report, 1)),
        }
    }
    words.sort_by_key(|(_, count)| Reverse(*count));
    let words: Vec<String> = words.iter().map(|(word, count)| format!("{word} ({count})")).collect();
    Summary {
        kind,
        name,
        trials: outcomes.len(),
        affected: finished().map(|trial| trial.affected).sum(),
        reported: finished().filter(|trial| trial.report.is_some()).count(),
        noticed_by,
        report: if words.is_empty() { "-".into() } else { words.join(", ") },
        late: finished().map(|trial| trial.late).max().unwrap_or(0),
        recovery: finished().map(|trial| trial.recovery).max().unwrap_or(0),
        unrecovered: finished().filter(|trial| trial.recovery > memory).count(),
        silent: finished().filter(|trial| trial.silent).count(),
        crashed: outcomes.len() - finished().count(),
    }
}

/// What all trials share.
struct Bench<'m> {
    file: &'m ModelFile,
    /// The longest record, sample by sample.
    samples: Vec<f32>,
    width: usize,
    /// Samples in which the outputs recover.
    memory: usize,
    /// Samples until there are outputs.
    settled: usize,
    /// Differences of the outputs that do not count.
    tolerance: Vec<f32>,
    /// Per channel, the longest run of one value in the recording.
    runs: Vec<usize>,
}

impl<'m> Bench<'m> {
    fn new(file: &'m ModelFile, data: &Dataset) -> Result<Self, ReplayError> {
        let shape = file.shape();
        let all = samples(data);
        let longest = data.records.iter().max_by_key(|record| record.rows.len());
        let rows = longest.map_or(0..0, |record| record.rows.clone());
        let width = shape.inputs;
        let samples = all[rows.start * width..rows.end * width].to_vec();
        let runs = (0..width).map(|channel| longest_run(&samples, width, channel)).collect();
        let (memory, model) = (recovery_limit(file), file.model());
        let filters = memory > shape.memory;
        let tolerance = model
            .outputs()
            .iter()
            .map(|output| if filters { TOLERATED * output.scale } else { 0.0 })
            .collect();
        let bench = Self { file, samples, width, memory, settled: model.settled(), tolerance, runs };
        let needed = bench.before() + bench.after() + 8;
        if bench.len() < needed {
            return Err(ReplayError::TooShort { found: bench.len(), needed });
        }
        Ok(bench)
    }

    fn len(&self) -> usize {
        self.samples.len() / self.width
    }

    /// Clean samples before a fault: every window is full.
    fn before(&self) -> usize {
        2 * self.settled
    }

    /// Clean samples after a fault: enough to see a recovery that is too slow.
    fn after(&self) -> usize {
        self.memory + 2 * self.settled + SCRUB_EVERY
    }

    fn trial(&self, kind: Kind, random: &mut ChaCha8Rng) -> Trial {
        match kind {
            Kind::FlashAtStart => self.flash_at_start(random),
            Kind::FlashWhileRunning => self.flash_while_running(random),
            Kind::Swap => self.swap(random),
            Kind::SwapOtherShape => self.swap_other_shape(random),
            Kind::SwapForgotten => self.swap_forgotten(random),
            _ => self.signal(kind, random),
        }
    }

    /// A stretch as events.
    fn events(&self, stretch: &[f32]) -> Vec<Event> {
        stretch.chunks_exact(self.width).map(|row| Event::Sample(row.to_vec())).collect()
    }

    /// What a device with this model does with events.
    fn run(&self, file: &ModelFile, events: &[Event]) -> Vec<Answer> {
        let mut driver = Driver::new(file, &self.runs);
        events.iter().map(|event| driver.handle(event)).collect()
    }

    /// A stretch with room for a fault of `length` samples: where it starts, and its samples.
    fn stretch(&self, length: usize, random: &mut ChaCha8Rng) -> &[f32] {
        let whole = (self.before() + length + self.after()).min(self.len());
        let start = random.random_range(0..self.len() - whole + 1);
        &self.samples[start * self.width..(start + whole) * self.width]
    }
}

fn longest_run(samples: &[f32], width: usize, channel: usize) -> usize {
    let column = samples.iter().skip(channel).step_by(width);
    let (mut longest, mut run, mut last) = (0, 0, f32::NAN);
    for &value in column {
        run = if value == last { run + 1 } else { 1 };
        last = value;
        longest = longest.max(run);
    }
    longest
}
