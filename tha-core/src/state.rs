//! [`State`]: the history of one stream and the work space of the contraction.
//!
//! The history is kept twice. *Raw* values in physical units, M samples of p, are what a new model is given when
//! it takes over. The *window* holds the same samples standardised, each written at slot s and at slot s + M of
//! 2 M slots that fill downwards, so that the last M samples are always one contiguous slice, newest first:
//! x_t without its leading 1.

use heapless::Vec;

use crate::error::{CapacityError, PushError, SwapError};
use crate::format::{NonFinitePolicy, RangePolicy};
use crate::model::{Model, Shape};
use crate::push::{self, ChannelFlags};

/// The state of one stream. The capacities are those of [`Model::capacities`], and can be taken from the file
/// at compile time with [`Capacities::of`](crate::Capacities::of).
///
/// `INPUTS` >= p, `HISTORY` >= 3 M p, `SCRATCH` as the heads need it. RAM: about `4 (HISTORY + SCRATCH) + INPUTS` bytes.
#[derive(Clone, Debug)]
pub struct State<const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize> {
    history: Vec<f32, HISTORY>,
    scratch: Vec<f32, SCRATCH>,
    channels: Vec<ChannelFlags, INPUTS>,
    progress: Progress,
}

/// The scalars of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Checksum of the model that the window is standardised for.
    pub checksum: u32,
    /// p, M and l, which a model must share to take over.
    pub inputs: usize,
    pub memory: usize,
    pub outputs: usize,
    /// Slot of the newest sample, 0 to M - 1.
    pub slot: usize,
    /// Samples taken, at most M.
    pub filled: usize,
    /// Samples since one had an input out of range, and since one had an input replaced; at most M.
    pub since_range: usize,
    pub since_held: usize,
    pub range: Option<RangePolicy>,
    pub non_finite: Option<NonFinitePolicy>,
}

/// A state without its capacities: what the code behind [`push`](crate::push()) works on, compiled once.
pub(crate) struct Parts<'s> {
    pub raw: &'s mut [f32],
    pub window: &'s mut [f32],
    pub scratch: &'s mut [f32],
    pub channels: &'s mut [ChannelFlags],
    pub progress: &'s mut Progress,
}

impl<const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize> State<INPUTS, HISTORY, SCRATCH> {
    /// An empty history for `model`.
    ///
    /// # Errors
    /// [`CapacityError`] names the capacity that is too small and what all of them should be.
    pub fn new(model: &Model<'_>) -> Result<Self, CapacityError> {
        Self::check(model)?;
        let needs = model.capacities();
        let Shape { inputs, outputs, memory, .. } = model.shape();
        let mut state = Self {
            history: Vec::new(),
            scratch: Vec::new(),
            channels: Vec::new(),
            progress: Progress {
                checksum: model.checksum(),
                inputs,
                memory,
                outputs,
                slot: 0,
                filled: 0,
                since_range: memory,
                since_held: memory,
                range: None,
                non_finite: None,
            },
        };
        // `check` has made sure that these fit.
        let _ = state.history.resize(needs.history, 0.0);
        let _ = state.scratch.resize(SCRATCH, 0.0);
        let _ = state.channels.resize(needs.inputs, ChannelFlags::default());
        Ok(state)
    }

    fn check(model: &Model<'_>) -> Result<(), CapacityError> {
        let needs = model.capacities();
        for (capacity, found, needed) in [
            ("INPUTS", INPUTS, needs.inputs),
            ("HISTORY", HISTORY, needs.history),
            ("SCRATCH", SCRATCH, needs.scratch),
        ] {
            if found < needed {
                return Err(CapacityError { capacity, found, needed, needs: Some(needs) });
            }
        }
        Ok(())
    }

    /// Overrides the model's range policy, from the next sample on. `None` goes back to the model's.
    pub fn set_range_policy(&mut self, policy: Option<RangePolicy>) {
        self.progress.range = policy;
    }

    /// Overrides the model's policy for NaN and infinities, from the next sample on. `None` goes back to the model's.
    pub fn set_non_finite_policy(&mut self, policy: Option<NonFinitePolicy>) {
        self.progress.non_finite = policy;
    }

    /// Forgets the history: the next M - 1 samples warm up again. Policies stay.
    pub fn reset(&mut self) {
        let memory = self.progress.memory;
        self.progress =
            Progress { slot: 0, filled: 0, since_range: memory, since_held: memory, ..self.progress };
    }

    /// Takes `samples`, oldest first, p values each, into the history without computing outputs: the state is
    /// then, to the bit, what pushing them one by one would have left.
    ///
    /// # Errors
    /// [`PushError`] as from [`push`](crate::push()); samples before the refused one have been taken. A length that is not a
    /// multiple of p is refused before anything is taken.
    pub fn prime(&mut self, model: &Model<'_>, samples: &[f32]) -> Result<(), PushError> {
        let p = self.progress.inputs;
        let rows = samples.chunks_exact(p.max(1));
        if !rows.remainder().is_empty() {
            return Err(PushError::Inputs { expected: p, found: rows.remainder().len() });
        }
        let mut parts = self.parts();
        for row in rows {
            push::take(model, &mut parts, row)?;
        }
        Ok(())
    }

    /// Lets `model` take over between two samples. The history stays: the next output is, to the bit, what a
    /// state that had always run with `model` would give.
    ///
    /// # Errors
    /// [`SwapError`] when p, l or M differ or the capacities do not suffice; then the old model goes on.
    pub fn swap(&mut self, model: &Model<'_>) -> Result<(), SwapError> {
        let shape = model.shape();
        for (what, state, model) in [
            ("inputs", self.progress.inputs, shape.inputs),
            ("outputs", self.progress.outputs, shape.outputs),
            ("samples of memory", self.progress.memory, shape.memory),
        ] {
            if state != model {
                return Err(SwapError::Shape { what, state, model });
            }
        }
        Self::check(model).map_err(SwapError::Capacity)?;
        push::restandardise(model, &mut self.parts());
        Ok(())
    }

    /// Samples still missing before outputs come.
    #[must_use]
    pub fn warming(&self) -> usize {
        self.progress.memory - self.progress.filled.min(self.progress.memory)
    }

    pub(crate) fn parts(&mut self) -> Parts<'_> {
        let (raw, window) = push::split_at(&mut self.history, self.progress.inputs * self.progress.memory);
        Parts {
            raw,
            window,
            scratch: &mut self.scratch,
            channels: &mut self.channels,
            progress: &mut self.progress,
        }
    }
}
