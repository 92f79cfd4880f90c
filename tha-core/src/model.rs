//! [`Model`]: a validated view of a `.tha` file. Everything is checked once, in [`Model::parse`]; afterwards
//! nothing can fail, and nothing was copied.

use core::ops::Deref;

use bytemuck::{Pod, Zeroable};

use crate::description::Description;
use crate::error::ParseError;
use crate::facts::{Facts, Shape};
use crate::format;
use crate::head::{HeadView, Heads, Layout};
use crate::parse::{self, Cursor, Needs};
use crate::stage::Stage;

/// A model in flash: immutable, `Copy`, borrowed from the bytes of its file. One model drives many
/// [`State`](crate::State)s.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    facts: Facts<'a>,
    needs: Needs,
    pub(crate) inputs: &'a [InputScaling],
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

impl<'a> Deref for Model<'a> {
    type Target = Facts<'a>;

    #[inline]
    fn deref(&self) -> &Facts<'a> {
        &self.facts
    }
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
        description.expect(Description::F32)?;
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
        parse::check_inputs(inputs)?;
        parse::check_outputs(outputs, half_widths)?;
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
        let facts = Facts {
            shape,
            checksum: parts.checksum,
            capacities: computed,
            range: description.range(),
            non_finite: description.non_finite(),
            settled: description.settled,
            felt: description.felt,
            sections,
            about,
            outputs,
            coverage,
            half_widths,
        };
        Ok(Self { facts, needs, inputs, stage, heads, layout })
    }

    /// Scaling and training range of the inputs.
    #[must_use]
    pub fn inputs(&self) -> &'a [InputScaling] {
        self.inputs
    }

    /// The heads, in the order of the file.
    #[must_use]
    pub fn heads(&self) -> Heads<'a> {
        parse::iterate(self.heads, self.layout)
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
