//! [`State`]: the history of one stream and the work space of the contraction.
//!
//! The history is kept twice. *Raw* values in physical units, M samples of p, are what a new model is given when
//! it takes over. The *window* holds the same samples standardised, each written at slot s and at slot s + M of
//! 2 M slots that fill downwards, so that the last M samples are always one contiguous slice, newest first:
//! x_t of a model of lags without its leading 1. The filters' values stand behind it.

use crate::error::{CapacityError, PushError, SwapError};
use crate::facts::{Facts, Shape};
use crate::format::{Capacities, NonFinitePolicy, RangePolicy};
use crate::kernel::split_at;
use crate::model::Model;
use crate::push::{ChannelFlags, Flags};
use crate::sample;

/// The state of one stream. The capacities are those of [`Facts::capacities`], and can be taken from the file
/// at compile time with [`Capacities::of`](crate::Capacities::of).
///
/// `INPUTS` >= p, `HISTORY` >= 3 M p and the filters, `SCRATCH` as the heads need it. RAM: about `4 (HISTORY + SCRATCH) + INPUTS` bytes.
///
/// On a device it belongs in a `static`, made by [`State::empty`] and given its model by [`State::init`]: then no copy of
/// it ever lies on the stack. [`State::new`] does both where the stack is large.
#[derive(Clone, Debug)]
pub struct State<const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize> {
    history: [f32; HISTORY],
    scratch: [f32; SCRATCH],
    channels: [ChannelFlags; INPUTS],
    progress: Progress,
}

/// What [`State::swap`] did with the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The filters are the same: the next output is what the new model would have given had it run all along.
    Kept,
    /// The filters differ: the new model starts over and warms up.
    Restarted,
}

/// The scalars of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Checksum of the model that the window is standardised for, and of its filters.
    pub checksum: u32,
    pub sections: u32,
    /// p, M and l, which a model must share to take over.
    pub inputs: usize,
    pub memory: usize,
    pub outputs: usize,
    /// Values of the filters.
    pub signals: usize,
    /// Slot of the newest sample, 0 to M - 1.
    pub slot: usize,
    /// Samples taken since the start, and how many it takes to have an output.
    pub taken: u32,
    pub settled: u32,
    /// Samples for which an input out of range, and one that was replaced, will still be felt, the newest included.
    pub range_left: u32,
    pub held_left: u32,
    /// What was noticed at any input of the newest sample.
    pub noticed: u8,
    pub range: Option<RangePolicy>,
    pub non_finite: Option<NonFinitePolicy>,
}

impl Progress {
    /// Of a state that belongs to no model.
    pub const NONE: Self = Self {
        checksum: 0,
        sections: 0,
        inputs: 0,
        memory: 0,
        outputs: 0,
        signals: 0,
        slot: 0,
        taken: 0,
        settled: 0,
        range_left: 0,
        held_left: 0,
        noticed: 0,
        // Until there is a model; unlike `None` these are zeros.
        range: Some(RangePolicy::Pass),
        non_finite: Some(NonFinitePolicy::Hold),
    };

    /// Nothing taken yet.
    #[inline]
    pub fn new(model: &Facts<'_>, signals: usize) -> Self {
        let Shape { inputs, outputs, memory, .. } = model.shape();
        Self {
            checksum: model.checksum(),
            sections: model.sections(),
            inputs,
            memory,
            outputs,
            signals,
            slot: 0,
            taken: 0,
            settled: model.settled() as u32,
            range_left: 0,
            held_left: 0,
            noticed: 0,
            range: None,
            non_finite: None,
        }
    }

    /// The same with another model; policies stay.
    #[inline]
    pub fn renewed(&self, model: &Facts<'_>, signals: usize) -> Self {
        Self { range: self.range, non_finite: self.non_finite, ..Self::new(model, signals) }
    }

    /// Forgets the samples.
    #[inline]
    pub fn restart(&mut self) {
        *self = Self { slot: 0, taken: 0, range_left: 0, held_left: 0, ..*self };
    }

    /// Notes what was odd in the sample just entered: it is felt for `felt` samples where it was held, for `left` where out of range.
    #[inline]
    pub fn note(&mut self, noticed: u8, felt: u32, left: u32) {
        self.noticed = noticed;
        self.taken = self.taken.saturating_add(1);
        let outside = noticed & (ChannelFlags::BELOW | ChannelFlags::ABOVE) != 0;
        self.range_left = self.range_left.saturating_sub(1).max(if outside { left } else { 0 });
        self.held_left =
            if noticed & ChannelFlags::HELD != 0 { felt } else { self.held_left.saturating_sub(1) };
    }

    /// What there is to say about an output, with a feature `outside` its range or not.
    #[inline]
    pub fn flags(&self, outside: bool, overflow: bool) -> Flags {
        Flags {
            out_of_range: self.noticed & (ChannelFlags::BELOW | ChannelFlags::ABOVE) != 0,
            window_out_of_range: self.range_left > 0 || outside,
            held: self.noticed & ChannelFlags::HELD != 0,
            window_held: self.held_left > 0,
            overflow,
        }
    }

    /// Samples still missing before outputs come.
    pub fn remaining(&self) -> usize {
        self.settled.saturating_sub(self.taken) as usize
    }
}

/// A state without its capacities: what the code behind [`push`](crate::push()) works on, compiled once.
pub(crate) struct Parts<'s> {
    pub history: &'s mut [f32],
    pub scratch: &'s mut [f32],
    pub channels: &'s mut [ChannelFlags],
    pub progress: &'s mut Progress,
}

/// What a history consists of: raw values, the window and its mirror, the values of the filters.
#[inline]
pub(crate) fn split<'s>(history: &'s mut [f32], progress: &Progress) -> [&'s mut [f32]; 3] {
    let window = progress.inputs * progress.memory;
    let (raw, rest) = split_at(history, window);
    let (window, rest) = split_at(rest, 2 * window);
    let (signals, _) = split_at(rest, progress.signals);
    [raw, window, signals]
}

impl<const INPUTS: usize, const HISTORY: usize, const SCRATCH: usize> State<INPUTS, HISTORY, SCRATCH> {
    /// A state that belongs to no model yet: samples are refused until [`init`](Self::init). All its bits are zero, so a
    /// `static` one takes no flash.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            history: [0.0; HISTORY],
            scratch: [0.0; SCRATCH],
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
            sample::enter::<true>(model, &mut parts, row)?;
        }
        Ok(())
    }

    /// Lets `model` take over between two samples. Where its filters, and the scaling in front of them, are those of the old
    /// model, or neither has any, the history stays: the next output is, to the bit, what a state that had always run with `model`
    /// would give. Otherwise the state starts over. Policies stay in both cases.
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
        sample::restandardise(model, &mut self.parts());
        Ok(Swap::Kept)
    }

    /// Samples still missing before outputs come.
    #[must_use]
    pub fn warming(&self) -> usize {
        self.progress.remaining()
    }

    #[inline]
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        let Self { history, scratch, channels, progress } = self;
        Parts { history, scratch, channels, progress }
    }
}

/// Whether a model may take over by its shape.
#[inline]
pub(crate) fn same_shape(progress: &Progress, model: &Facts<'_>) -> Result<(), SwapError> {
    let shape = model.shape();
    for (what, state, model) in [
        ("inputs", progress.inputs, shape.inputs),
        ("outputs", progress.outputs, shape.outputs),
        ("samples of memory", progress.memory, shape.memory),
    ] {
        if state != model {
            return Err(SwapError::Shape { what, state, model });
        }
    }
    Ok(())
}

/// Whether a state of these capacities has room for a model that `needs` those.
pub(crate) fn suffices(room: Capacities, needs: Capacities) -> Result<(), CapacityError> {
    for (capacity, found, needed) in [
        ("INPUTS", room.inputs, needs.inputs),
        ("HISTORY", room.history, needs.history),
        ("SCRATCH", room.scratch, needs.scratch),
    ] {
        if found < needed {
            return Err(CapacityError { capacity, found, needed, needs: Some(needs) });
        }
    }
    Ok(())
}
