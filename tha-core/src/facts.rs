//! [`Facts`]: what every model says of itself, whatever its numbers are.

use core::str::Split;

use bytemuck::{Pod, Zeroable};

use crate::description::{About, MILLION};
use crate::error::ParseError;
use crate::format::{Capacities, NonFinitePolicy, RangePolicy};

/// The dimensions of a model, in the paper's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// p, input channels.
    pub inputs: usize,
    /// l, output channels.
    pub outputs: usize,
    /// M, samples of each input that are kept as they are.
    pub memory: usize,
    /// d, degree of the Volterra series: the number of cores of the head that has most.
    pub degree: usize,
    /// K, heads in the ensemble.
    pub heads: usize,
}

/// Where a model came from, as its writer put it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provenance<'a> {
    /// Program and version.
    pub tool: &'a str,
    /// Seed of all randomness in training.
    pub seed: u64,
    /// Hash of the training data.
    pub data_hash: u64,
    /// Anything else.
    pub note: &'a str,
}

/// What a [`Model`](crate::Model) and an [`integer::Model`](crate::integer::Model) have in common; both give it where it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub(crate) shape: Shape,
    pub(crate) checksum: u32,
    pub(crate) capacities: Capacities,
    pub(crate) range: RangePolicy,
    pub(crate) non_finite: NonFinitePolicy,
    /// As in the file: M may be more.
    pub(crate) settled: u32,
    pub(crate) felt: u32,
    pub(crate) sections: u32,
    /// Names and provenance; decoded when somebody asks.
    pub(crate) about: &'a [u8],
    pub(crate) outputs: &'a [OutputScaling],
    /// In millionths.
    pub(crate) coverage: u32,
    pub(crate) half_widths: &'a [f32],
}

/// An output channel: y = offset + scale * (weighted sum of the heads).
#[derive(Clone, Copy, Debug, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub struct OutputScaling {
    /// Added last.
    pub offset: f32,
    /// Multiplied first; positive.
    pub scale: f32,
    /// RMS of the residual on data the model was not fitted to, physical units; 0 if unknown.
    pub residual: f32,
}

impl<'a> Facts<'a> {
    /// The dimensions.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The capacities a [`State`](crate::State) for this model needs.
    #[must_use]
    pub fn capacities(&self) -> Capacities {
        self.capacities
    }

    /// The CRC-32 of the file, which also tells models apart.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.checksum
    }

    /// What the model wants done with inputs outside their training range.
    #[must_use]
    pub fn range_policy(&self) -> RangePolicy {
        self.range
    }

    /// What the model wants done with NaN and infinities.
    #[must_use]
    pub fn non_finite_policy(&self) -> NonFinitePolicy {
        self.non_finite
    }

    /// Names of the inputs, in the order of a sample; nothing where a file that only a device has checked has no proper ones.
    pub fn input_names(&self) -> Split<'a, char> {
        text(self.about().input_names).split('\n')
    }

    /// Names of the outputs.
    pub fn output_names(&self) -> Split<'a, char> {
        text(self.about().output_names).split('\n')
    }

    /// Scaling and residual of the outputs.
    #[must_use]
    pub fn outputs(&self) -> &'a [OutputScaling] {
        self.outputs
    }

    /// The part of the measured outputs that lies within [`half_widths`](Self::half_widths) of the model's, such as 0.9; 0 where there are no intervals.
    #[must_use]
    pub fn coverage(&self) -> f32 {
        self.coverage as f32 / MILLION as f32
    }

    /// The same in millionths, as it stands in the file.
    #[cfg(feature = "alloc")]
    pub(crate) fn millionths(&self) -> u32 {
        self.coverage
    }

    /// Half the width of the interval around each output, physical units; empty where there are none.
    #[must_use]
    pub fn half_widths(&self) -> &'a [f32] {
        self.half_widths
    }

    /// Where the model came from.
    #[must_use]
    pub fn provenance(&self) -> Provenance<'a> {
        let About { tool, seed, data_hash, note, .. } = self.about();
        Provenance { tool: text(tool), seed, data_hash, note: text(note) }
    }

    /// The number of the first sample that gives outputs.
    #[must_use]
    pub fn settled(&self) -> usize {
        self.shape.memory.max(self.settled as usize)
    }

    /// Samples for which one that is held or out of range is felt, itself included.
    #[must_use]
    pub fn felt(&self) -> usize {
        self.shape.memory.max(self.felt as usize)
    }

    /// Both as they stand in the file.
    #[cfg(feature = "alloc")]
    pub(crate) fn extra_samples(&self) -> (usize, usize) {
        (self.settled as usize, self.felt as usize)
    }

    /// Tells filters apart, with the scaling in front of them; 0 without filters.
    pub(crate) fn sections(&self) -> u32 {
        self.sections
    }

    /// Names for all channels, and texts in UTF-8.
    #[cfg(feature = "alloc")]
    pub(crate) fn check_about(&self) -> Result<(), ParseError> {
        self.try_about()?.check(self.shape.inputs, self.shape.outputs)
    }

    fn about(&self) -> About<'a> {
        self.try_about().unwrap_or_default()
    }

    fn try_about(&self) -> Result<About<'a>, ParseError> {
        About::decode(self.about)
    }
}

/// A text of a file; where it is none, nothing.
fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or_default()
}
