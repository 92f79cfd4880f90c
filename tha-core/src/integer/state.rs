//! [`State`]: the history of one stream of counts and the work space of the contraction.

use super::head::cast_mut;
use super::model::Model;
use super::sample;
use crate::error::{CapacityError, PushError, SwapError};
use crate::format::{Capacities, NonFinitePolicy, RangePolicy};
use crate::push::ChannelFlags;
use crate::state::{Progress, Swap, same_shape, suffices};

/// The state of one stream through an integer [`Model`], as [`crate::State`] for the other models. RAM: about `4 (HISTORY + SCRATCH) + INPUTS`
/// bytes.
#[derive(Clone, Debug)]
pub struct State<const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize> {
    history: [i32; HISTORY],
    scratch: [i32; SCRATCH],
    channels: [ChannelFlags; INPUTS],
    progress: Progress,
}

/// A state without its capacities.
pub(super) struct Parts<'s> {
    /// Counts as they came, M samples of p.
    pub counts: &'s mut [i16],
    /// x, each sample at slot s and at slot s + M of 2 M slots that fill downwards.
    pub window: &'s mut [i16],
    pub signals: &'s mut [i32],
    pub scratch: &'s mut [i32],
    pub channels: &'s mut [ChannelFlags],
    pub progress: &'s mut Progress,
}

impl<const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize> State<INPUTS, HISTORY, SCRATCH> {
    /// A state that belongs to no model yet: samples are refused until [`init`](Self::init). All its bits are zero.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            history: [0; HISTORY],
            scratch: [0; SCRATCH],
            channels: [ChannelFlags::NONE; INPUTS],
            progress: Progress::NONE,
        }
    }

    /// Starts over with `model`, in place: an empty history, and the policies of the model.
    ///
    /// # Errors
    /// [`CapacityError`] names the capacity that is too small and what all of them should be; then the state stays as
    /// it was.
    pub fn init(&mut self, model: &Model<'_>) -> Result<(), CapacityError> {
        Self::check(model)?;
        self.progress = Progress::new(model, model.stage.signals);
        Ok(())
    }

    /// [`empty`](Self::empty) and [`init`](Self::init) in one. The state is built on the stack and may be copied there.
    ///
    /// # Errors
    /// As [`init`](Self::init).
    pub fn new(model: &Model<'_>) -> Result<Self, CapacityError> {
        let mut state = Self::empty();
        state.init(model)?;
        Ok(state)
    }

    fn check(model: &Model<'_>) -> Result<(), CapacityError> {
        suffices(Capacities { inputs: INPUTS, history: HISTORY, scratch: SCRATCH }, model.capacities())
    }

    /// Overrides the model's range policy, from the next sample on. `None` goes back to the model's.
    pub fn set_range_policy(&mut self, policy: Option<RangePolicy>) {
        self.progress.range = policy;
    }

    /// Overrides the model's policy for NaN and infinities, from the next sample on. `None` goes back to the model's.
    pub fn set_non_finite_policy(&mut self, policy: Option<NonFinitePolicy>) {
        self.progress.non_finite = policy;
    }

    /// Forgets the history: the next samples warm up again. Policies stay.
    pub fn reset(&mut self) {
        self.progress.restart();
    }

    /// Takes `samples`, oldest first, p counts each, into the history without computing outputs: the state is
    /// then, to the bit, what pushing them one by one would have left.
    ///
    /// # Errors
    /// [`PushError`] as from [`push_counts`](super::push_counts); samples before the refused one have been taken. A length that is not a
    /// multiple of p is refused before anything is taken.
    pub fn prime(&mut self, model: &Model<'_>, samples: &[i16]) -> Result<(), PushError> {
        let p = self.progress.inputs;
        let rows = samples.chunks_exact(p.max(1));
        if !rows.remainder().is_empty() {
            return Err(PushError::Inputs { expected: p, found: rows.remainder().len() });
        }
        let mut parts = self.parts();
        for row in rows {
            sample::enter(model, &mut parts, row)?;
        }
        Ok(())
    }

    /// Lets `model` take over between two samples, as [`crate::State::swap`]: the history stays where its counts mean the same and the filters
    /// are the same.
    ///
    /// # Errors
    /// [`SwapError`] when p, l or M differ or the capacities do not suffice; then the old model goes on.
    pub fn swap(&mut self, model: &Model<'_>) -> Result<Swap, SwapError> {
        same_shape(&self.progress, model)?;
        Self::check(model).map_err(SwapError::Capacity)?;
        if self.progress.sections != model.sections() || self.progress.signals != model.stage.signals {
            self.progress = self.progress.renewed(model, model.stage.signals);
            return Ok(Swap::Restarted);
        }
        sample::rescale(model, &mut self.parts());
        Ok(Swap::Kept)
    }

    /// Samples still missing before outputs come.
    #[must_use]
    pub fn warming(&self) -> usize {
        self.progress.remaining()
    }

    pub(super) fn parts(&mut self) -> Parts<'_> {
        let window = self.progress.inputs * self.progress.memory;
        let (counts, rest) = split_at(&mut self.history, window.div_ceil(2));
        let (slots, rest) = split_at(rest, window);
        let (signals, _) = split_at(rest, self.progress.signals);
        Parts {
            counts: cast_mut(counts),
            window: cast_mut(slots),
            signals,
            scratch: &mut self.scratch,
            channels: self.channels.get_mut(..self.progress.inputs).unwrap_or_default(),
            progress: &mut self.progress,
        }
    }
}

/// `split_at_mut` for lengths that validation has made sure of.
#[inline]
pub(super) fn split_at(words: &mut [i32], at: usize) -> (&mut [i32], &mut [i32]) {
    words.split_at_mut_checked(at).unwrap_or_default()
}
