//! [`Model`]: a validated view of a `.tha` file. Everything is checked once, in [`Model::parse`]; afterwards
//! nothing can fail, and nothing was copied.

use core::str::Split;

use bytemuck::{Pod, Zeroable};

use crate::description::{About, Description, MILLION};
use crate::error::ParseError;
use crate::format::{self, Capacities, NonFinitePolicy, RangePolicy};
use crate::head::{HeadView, Heads, Layout};
use crate::parse::{self, Cursor, Needs};
use crate::stage::Stage;

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

/// A model in flash: immutable, `Copy`, borrowed from the bytes of its file. One model drives many
/// [`State`](crate::State)s.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    shape: Shape,
    checksum: u32,
    capacities: Capacities,
    needs: Needs,
    range: RangePolicy,
    non_finite: NonFinitePolicy,
    /// As in the file: M may be more.
    settled: u32,
    felt: u32,
    sections: u32,
    /// Names and provenance; decoded when somebody asks.
    about: &'a [u8],
    pub(crate) inputs: &'a [InputScaling],
    pub(crate) outputs: &'a [OutputScaling],
    /// In millionths.
    coverage: u32,
    pub(crate) half_widths: &'a [f32],
    pub(crate) stage: Stage<'a>,
    heads: &'a [u32],
    layout: Layout,
}

/// An input channel: x = (u - offset) * gain, trained on low..=high (physical units).
#[derive(Clone, Copy, Debug, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub struct InputScaling {
    /// Subtracted first.
    pub offset: f32,
    /// Multiplied then; positive.
    pub gain: f32,
    /// Smallest value seen in training.
    pub low: f32,
    /// Largest value seen in training.
    pub high: f32,
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

impl<'a> Model<'a> {
    /// Checks `bytes` from the first to the last and borrows them.
    ///
    /// The bytes must start at a multiple of four; see [`include_model!`](crate::include_model).
    ///
    /// # Errors
    /// A [`ParseError`] that names what is wrong. Nothing is decoded before the checksum has been verified.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let parts = format::parts(bytes)?;
        let (description, rest) = Description::decode(parts.description, parts.format)?;
        let Description { inputs, outputs, memory, heads, coverage, .. } = description;
        let [inputs, outputs, memory, heads] = [inputs, outputs, memory, heads].map(|size| size as usize);
        let mut shape = Shape { inputs, outputs, memory, degree: 0, heads };
        let (layout, about) = match description.degree as usize {
            0 if rest.is_empty() => (Layout::Two, parts.about),
            degree @ 1.. => (Layout::One { degree, memory, outputs }, rest),
            _ => return Err(ParseError::MetadataTrailing { extra: rest.len() }),
        };
        let mut block = Cursor { words: parts.block, used: 0 };
        let inputs = block.table::<_, 4>(shape.inputs)?;
        let outputs = block.table::<_, 3>(shape.outputs)?;
        let half_widths = block.floats(if coverage > 0 { outputs.len() } else { 0 }, "interval", 0)?;
        parse::check_scaling(inputs, outputs, half_widths)?;
        let stage = parse::stage(&mut block, &description, &shape)?;
        let heads = block.rest();
        let needs = parse::heads(&mut block, layout, &mut shape, &stage)?;
        let computed = needs.capacities(&shape, &stage, layout).ok_or(ParseError::SizeOverflow)?;
        if computed != parts.capacities {
            return Err(ParseError::Capacities { computed });
        }
        // Filters run on standardised inputs: their state goes on only where those mean the same.
        let sections = match stage.runs {
            [] => 0,
            runs => format::hash(&[bytemuck::cast_slice(runs), bytemuck::cast_slice(inputs)]),
        };
        Ok(Self {
            shape,
            checksum: parts.checksum,
            capacities: computed,
            needs,
            range: description.range(),
            non_finite: description.non_finite(),
            settled: description.settled,
            felt: description.felt,
            sections,
            about,
            inputs,
            outputs,
            coverage,
            half_widths,
            stage,
            heads,
            layout,
        })
    }

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

    /// Scaling and training range of the inputs.
    #[must_use]
    pub fn inputs(&self) -> &'a [InputScaling] {
        self.inputs
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

    /// The heads, in the order of the file.
    #[must_use]
    pub fn heads(&self) -> Heads<'a> {
        parse::iterate(self.heads, self.layout)
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

    fn about(&self) -> About<'a> {
        self.try_about().unwrap_or_default()
    }

    pub(crate) fn try_about(&self) -> Result<About<'a>, ParseError> {
        About::decode(self.about)
    }

    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }

    /// Multiply-accumulates of the heads per sample: the sum over heads and cores of r_{k-1} n r_k, with n = 1 + plain features
    /// + twice the mapped ones, of which two rows are read.
    #[must_use]
    pub fn macs(&self) -> usize {
        let rows = |head: &HeadView<'_>| match head.features.len() {
            0 => head.q,
            used => {
                let mapped = head.features.iter().filter(|&&feature| feature as usize >= self.stage.plain());
                1 + used + mapped.count()
            }
        };
        self.heads().map(|head| head.sums * rows(&head)).sum()
    }
}

/// A text of a file; where it is none, nothing.
fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or_default()
}
