//! What can go wrong, one type per operation. Every message says what was found and what to do about it.

mod parse;
mod words;

pub use parse::ParseError;

use core::fmt::{Display, Formatter, Result};

use crate::format::Capacities;

/// A capacity in a type is too small for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityError {
    /// The const parameter to raise.
    pub capacity: &'static str,
    /// What it is.
    pub found: usize,
    /// What it must be at least.
    pub needed: usize,
    /// All capacities of the [`State`](crate::State), where it is one of them.
    pub needs: Option<Capacities>,
}

impl Display for Capacities {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "State<INPUTS = {}, HISTORY = {}, SCRATCH = {}>", self.inputs, self.history, self.scratch)
    }
}

impl Display for CapacityError {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { capacity, found, needed, needs } = self;
        write!(f, "{capacity} is {found}, too small for the model: raise it to {needed}")?;
        match needs {
            Some(needs) => write!(f, " ({needs})"),
            None => Ok(()),
        }
    }
}

/// Why [`push`](crate::push()) took no sample. The state is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError {
    /// The sample does not have the model's number of inputs.
    Inputs {
        /// Inputs of the model.
        expected: usize,
        /// Values in the sample.
        found: usize,
    },
    /// A NaN or an infinity, and the policy is to refuse it.
    NonFinite {
        /// The first such channel.
        channel: usize,
    },
    /// The state belongs to another model, or to none yet.
    OtherModel,
}

impl Display for PushError {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::Inputs { expected, found } => {
                write!(f, "the sample has {found} values, the model {expected} inputs")
            }
            Self::NonFinite { channel } => {
                write!(f, "input {channel} is NaN or infinite; the sample was refused")
            }
            Self::OtherModel => write!(
                f,
                "the state belongs to another model or to none yet; call State::swap or State::init first"
            ),
        }
    }
}

/// Why [`State::swap`](crate::State::swap) kept the old model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwapError {
    /// Inputs, outputs or memory differ, so the history means something else.
    Shape {
        /// Which dimension.
        what: &'static str,
        /// Of the state.
        state: usize,
        /// Of the new model.
        model: usize,
    },
    /// The new model has larger heads than the state has room for.
    Capacity(CapacityError),
}

impl Display for SwapError {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Shape { what, state, model } => {
                write!(f, "the new model has {model} {what}, the running one {state}; make a new State")
            }
            Self::Capacity(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ParseError {}
impl core::error::Error for CapacityError {}
impl core::error::Error for PushError {}
impl core::error::Error for SwapError {}
