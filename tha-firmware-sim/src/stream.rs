//! tha-core on the host: what the device would say to every sample of a recording.

use crate::model_file::{DeviceModel, ModelFile};
use tha_core::{CapacityError, ChannelFlags, Flags, State, Step, Swap, SwapError, integer, push};
use tha_train::data::Dataset;

/// Room for every model that a microcontroller could hold.
type Room = State<1024, { 1 << 16 }, { 1 << 15 }>;
type IntegerRoom = integer::State<1024, { 1 << 16 }, { 1 << 15 }>;

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
    state: Memory,
    /// The outputs of an integer model in physical units.
    y: Vec<f32>,
}

/// The state of a device.
#[derive(Debug)]
enum Memory {
    Float(Box<Room>),
    Integer(Box<IntegerRoom>),
}

/// A state of another kind has other outputs, so to say.
const OTHER_NUMBERS: SwapError = SwapError::Shape { what: "kinds of numbers", state: 0, model: 1 };

impl<'m> Device<'m> {
    /// Switches on.
    ///
    /// # Errors
    /// [`CapacityError`] for a model far larger than any microcontroller.
    pub fn new(file: &'m ModelFile) -> Result<Self, CapacityError> {
        let model = file.model();
        let state = match &model {
            DeviceModel::Float(model) => Memory::Float(Box::new(Room::new(model)?)),
            DeviceModel::Integer(model) => Memory::Integer(Box::new(IntegerRoom::new(model)?)),
        };
        Ok(Self { model, state, y: Vec::new() })
    }

    /// One sample.
    pub fn push(&mut self, u: &[f32]) -> Said<'_> {
        let refused = Said { status: Status(Status::REFUSED), y: &[], channels: &[] };
        match (&self.model, &mut self.state) {
            (DeviceModel::Float(model), Memory::Float(state)) => match push(model, state, u) {
                Step::Ready(output) => {
                    let status = Status(flag_bits(output.flags));
                    Said { status, y: output.y, channels: output.channels }
                }
                Step::Warming { .. } => Said { status: Status(Status::WARMING), ..refused },
                Step::Refused(_) => refused,
            },
            (DeviceModel::Integer(model), Memory::Integer(state)) => match integer::push(model, state, u) {
                integer::Step::Ready(output) => {
                    self.y.clear();
                    self.y.extend(output.values());
                    let status = Status(flag_bits(output.flags));
                    Said { status, y: &self.y, channels: output.channels }
                }
                integer::Step::Warming { .. } => Said { status: Status(Status::WARMING), ..refused },
                integer::Step::Refused(_) => refused,
            },
            _ => refused,
        }
    }

    /// Forgets the history, as after a loss of power.
    pub fn reset(&mut self) {
        match &mut self.state {
            Memory::Float(state) => state.reset(),
            Memory::Integer(state) => state.reset(),
        }
    }

    /// Goes on with another model.
    ///
    /// # Errors
    /// [`SwapError`] for a model of another shape or with other numbers; the old one goes on.
    pub fn swap(&mut self, file: &'m ModelFile) -> Result<Swap, SwapError> {
        let model = file.model();
        let swap = match (&model, &mut self.state) {
            (DeviceModel::Float(model), Memory::Float(state)) => state.swap(model)?,
            (DeviceModel::Integer(model), Memory::Integer(state)) => state.swap(model)?,
            _ => return Err(OTHER_NUMBERS),
        };
        self.model = model;
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
