//! A model as a device runs it, in f32 or in 16-bit integers: the code of tha-core on the host.

use std::ops::Deref;
use tha_core::{
    CapacityError, ChannelFlags, Facts, Flags, Model, ParseError, PushError, State, Step, Swap, SwapError,
    integer, push,
};

/// A model as the device sees it, with numbers of one kind or the other.
#[derive(Clone, Copy, Debug)]
pub enum DeviceModel<'m> {
    /// f32.
    Float(Model<'m>),
    /// 16-bit integers.
    Integer(integer::Model<'m>),
}

impl<'m> DeviceModel<'m> {
    /// Checks a file.
    pub fn parse(bytes: &'m [u8]) -> Result<Self, ParseError> {
        match Model::parse(bytes) {
            Err(ParseError::Numbers { found: 1 }) => integer::Model::parse(bytes).map(Self::Integer),
            model => model.map(Self::Float),
        }
    }

    /// Multiply-accumulates of the heads per sample.
    pub fn macs(&self) -> usize {
        match self {
            Self::Float(model) => model.macs(),
            Self::Integer(model) => model.macs(),
        }
    }

    /// What a channel is held at before its first value, physical units.
    pub fn mean(&self, channel: usize) -> f32 {
        match self {
            Self::Float(model) => model.inputs()[channel].offset,
            Self::Integer(model) => {
                let input = model.inputs()[channel];
                input.zero + f32::from(input.mean()) / input.rate
            }
        }
    }
}

impl<'m> Deref for DeviceModel<'m> {
    type Target = Facts<'m>;

    fn deref(&self) -> &Facts<'m> {
        match self {
            Self::Float(model) => model,
            Self::Integer(model) => model,
        }
    }
}

const INPUTS: usize = 1024;
const HISTORY: usize = 1 << 16;
const SCRATCH: usize = 1 << 15;

/// The state of a stream, with room for every model that a microcontroller could hold.
#[derive(Debug)]
pub enum DeviceState {
    /// Of a model in f32.
    Float(Box<State<INPUTS, HISTORY, SCRATCH>>),
    /// Of a model in integers, and its last outputs in physical units.
    Integer(Box<integer::State<INPUTS, HISTORY, SCRATCH>>, Vec<f32>),
}

/// What the device said to a sample.
#[derive(Clone, Copy, Debug)]
pub enum DeviceStep<'s> {
    /// There are outputs.
    Ready {
        /// l outputs in physical units.
        y: &'s [f32],
        /// What was noticed.
        flags: Flags,
        /// What was noticed at each input.
        channels: &'s [ChannelFlags],
    },
    /// So many samples are missing until there are.
    Warming(usize),
    /// The sample was not taken.
    Refused(PushError),
}

impl DeviceState {
    /// Before the first sample of a model, unless that is far larger than any microcontroller.
    pub fn new(model: &DeviceModel<'_>) -> Result<Self, CapacityError> {
        Ok(match model {
            DeviceModel::Float(model) => Self::Float(Box::new(State::new(model)?)),
            DeviceModel::Integer(model) => Self::Integer(Box::new(integer::State::new(model)?), Vec::new()),
        })
    }

    /// Takes one sample of p values in physical units.
    pub fn push<'s>(&'s mut self, model: &'s DeviceModel<'_>, u: &[f32]) -> DeviceStep<'s> {
        match (model, self) {
            (DeviceModel::Float(model), Self::Float(state)) => match push(model, state, u) {
                Step::Ready(output) => {
                    DeviceStep::Ready { y: output.y, flags: output.flags, channels: output.channels }
                }
                Step::Warming { remaining } => DeviceStep::Warming(remaining),
                Step::Refused(error) => DeviceStep::Refused(error),
            },
            (DeviceModel::Integer(model), Self::Integer(state, y)) => match integer::push(model, state, u) {
                integer::Step::Ready(output) => {
                    y.clear();
                    y.extend(output.values());
                    DeviceStep::Ready { y, flags: output.flags, channels: output.channels }
                }
                integer::Step::Warming { remaining } => DeviceStep::Warming(remaining),
                integer::Step::Refused(error) => DeviceStep::Refused(error),
            },
            _ => DeviceStep::Refused(PushError::OtherModel),
        }
    }

    /// Forgets the history: a new record starts.
    pub fn reset(&mut self) {
        match self {
            Self::Float(state) => state.reset(),
            Self::Integer(state, _) => state.reset(),
        }
    }

    /// Goes on with another model; one of another shape or with other numbers is refused, and the old one goes on.
    pub fn swap(&mut self, model: &DeviceModel<'_>) -> Result<Swap, SwapError> {
        match (model, self) {
            (DeviceModel::Float(model), Self::Float(state)) => state.swap(model),
            (DeviceModel::Integer(model), Self::Integer(state, _)) => state.swap(model),
            // A state of another kind has other outputs, so to say.
            _ => Err(SwapError::Shape { what: "kinds of numbers", state: 0, model: 1 }),
        }
    }
}
