//! tha-core on the host: what the device would say to every sample of a recording.

use crate::model_file::{DeviceModel, ModelFile};
use tha_core::{CapacityError, ChannelFlags, Flags, Swap, SwapError};
use tha_train::Dataset;
use tha_train::device::{DeviceState, DeviceStep};

/// What the device said to a sample, in one word, the same as the replay image writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    const WARMING: u32 = 1 << 8;
    const REFUSED: u32 = 1 << 9;

    /// There is an output.
    pub fn ready(self) -> bool {
        self.0 & (Self::WARMING | Self::REFUSED) == 0
    }

    /// The sample was not taken.
    pub fn refused(self) -> bool {
        self.0 & Self::REFUSED != 0
    }

    /// The history is not full yet.
    pub fn warming(self) -> bool {
        self.0 & Self::WARMING != 0
    }

    /// The output depends on an input outside its training range.
    pub fn out_of_range(self) -> bool {
        self.ready() && self.0 & 0b10 != 0
    }

    /// The output depends on an input that was replaced.
    pub fn held(self) -> bool {
        self.ready() && self.0 & 0b1000 != 0
    }

    /// The output is not finite.
    pub fn overflow(self) -> bool {
        self.ready() && self.0 & 0b1_0000 != 0
    }

    /// The device has said that this output is not to be trusted like others, or that there is none.
    pub fn reported(self) -> bool {
        self.0 != 0
    }
}

fn flag_bits(flags: Flags) -> u32 {
    let Flags { out_of_range, window_out_of_range, held, window_held, overflow } = flags;
    [out_of_range, window_out_of_range, held, window_held, overflow]
        .into_iter()
        .enumerate()
        .map(|(bit, set)| u32::from(set) << bit)
        .sum()
}

/// What the device said to a sample.
#[derive(Clone, Copy, Debug)]
pub struct Said<'s> {
    /// In one word.
    pub status: Status,
    /// l outputs in physical units; none while there are none.
    pub y: &'s [f32],
    /// What was noticed at each input, where there are outputs.
    pub channels: &'s [ChannelFlags],
}

/// Status and outputs of every sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// l.
    pub width: usize,
    /// One word per sample.
    pub status: Vec<Status>,
    /// l values per sample; NaN where there is no output.
    pub outputs: Vec<f32>,
}

impl Stream {
    /// Nothing yet, with `width` outputs per sample to come.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Appends what was said to a sample.
    pub fn push(&mut self, said: &Said<'_>) {
        self.status.push(said.status);
        match said.status.ready() {
            true => self.outputs.extend(said.y),
            false => self.outputs.extend(std::iter::repeat_n(f32::NAN, self.width)),
        }
    }

    /// The outputs of sample `t`.
    pub fn at(&self, t: usize) -> &[f32] {
        self.outputs.get(t * self.width..(t + 1) * self.width).unwrap_or(&[])
    }

    /// Whether every word and every output has the same bits; one NaN is as good as another.
    pub fn same_bits(&self, other: &Self) -> bool {
        let bits = |y: f32| if y.is_nan() { u32::MAX } else { y.to_bits() };
        let same = |(a, b): (&f32, &f32)| bits(*a) == bits(*b);
        self.status == other.status
            && self.outputs.len() == other.outputs.len()
            && self.outputs.iter().zip(&other.outputs).all(same)
    }
}

/// A device on the host: a model and the state of one stream.
#[derive(Debug)]
pub struct Device<'m> {
    /// The running model.
    pub model: DeviceModel<'m>,
    state: DeviceState,
}

impl<'m> Device<'m> {
    /// Switches on.
    pub fn new(file: &'m ModelFile) -> Result<Self, CapacityError> {
        let model = file.model();
        Ok(Self { model, state: DeviceState::new(&model)? })
    }

    /// One sample.
    pub fn push(&mut self, u: &[f32]) -> Said<'_> {
        let none = |status| Said { status: Status(status), y: &[], channels: &[] };
        match self.state.push(&self.model, u) {
            DeviceStep::Ready { y, flags, channels } => {
                Said { status: Status(flag_bits(flags)), y, channels }
            }
            DeviceStep::Warming(_) => none(Status::WARMING),
            DeviceStep::Refused(_) => none(Status::REFUSED),
        }
    }

    /// Forgets the history, as after a loss of power.
    pub fn reset(&mut self) {
        self.state.reset();
    }

    /// Goes on with another model.
    pub fn swap(&mut self, file: &'m ModelFile) -> Result<Swap, SwapError> {
        let swap = self.state.swap(&file.model())?;
        self.model = file.model();
        Ok(swap)
    }

    /// A whole recording, with a reset before every record.
    pub fn replay(&mut self, samples: &[f32], records: &[usize]) -> Stream {
        let shape = self.model.shape();
        let mut stream = Stream::new(shape.outputs);
        let mut rows = samples.chunks_exact(shape.inputs);
        for &length in records {
            self.reset();
            for row in rows.by_ref().take(length) {
                stream.push(&self.push(row));
            }
        }
        stream
    }
}

/// The inputs of a data set as a device gets them: f32, sample by sample.
pub fn samples(data: &Dataset) -> Vec<f32> {
    (0..data.len()).flat_map(|t| data.u.iter().map(move |column| column[t] as f32)).collect()
}

/// The lengths of the records.
pub fn record_lengths(data: &Dataset) -> Vec<usize> {
    data.records.iter().map(|record| record.rows.len()).collect()
}
