//! [`Model`]: a validated view of a `.tha` file of integers.

use core::ops::Deref;

use bytemuck::{Pod, Zeroable};

use super::head::{Head, Heads, cast};
use super::parse::{self, Needs};
use super::proof;
use super::stage::{FeatureRecord, Node, Run, Stage};
use crate::description::Description;
use crate::error::ParseError;
use crate::facts::{Facts, Shape};
use crate::format;
use crate::parse::Cursor;

/// A model of integers in flash: immutable, `Copy`, borrowed from the bytes of its file. What every model says of itself, as its
/// shape and the names of its inputs, comes from [`Facts`].
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    facts: Facts<'a>,
    pub(super) needs: Needs,
    pub(super) bits: u32,
    pub(super) inputs: &'a [InputCounts],
    pub(super) units: &'a [Unit],
    pub(super) stage: Stage<'a>,
    heads: &'a [u32],
}

/// An input channel: counts c = (u - zero) * rate of physical units, and x = (c gain + offset) >> shift.
#[derive(Clone, Copy, Debug, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub struct InputCounts {
    /// The physical value at 0 counts.
    pub zero: f32,
    /// Counts per physical unit; positive.
    pub rate: f32,
    /// Added to c gain; has the half that rounds.
    pub offset: i32,
    /// Multiplied first; positive.
    pub gain: i16,
    /// At most 30.
    pub shift: u16,
    /// Smallest value seen in training, in counts.
    pub low: i16,
    /// Largest value seen in training, in counts.
    pub high: i16,
}

/// What one of the counts of an output is worth.
#[derive(Clone, Copy, Debug, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub struct Unit {
    /// y = offset + unit * counts, with the offset of [`OutputScaling`](crate::OutputScaling).
    pub unit: f32,
    /// How far y can be from what the model would give without rounding, for inputs in the training range while nothing is limited.
    pub bound: f32,
}

impl<'a> Deref for Model<'a> {
    type Target = Facts<'a>;

    #[inline]
    fn deref(&self) -> &Facts<'a> {
        &self.facts
    }
}

impl<'a> Model<'a> {
    /// Checks `bytes` from the first to the last, proves that no sum can overflow, and borrows them.
    ///
    /// # Errors
    /// A [`ParseError`] that names what is wrong. Nothing is decoded before the checksum has been verified.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let parts = format::parts(bytes)?;
        let (description, rest) = Description::decode(parts.description, parts.format)?;
        description.expect(Description::I16)?;
        if parts.format < 4 {
            return Err(ParseError::Metadata);
        }
        let Description { inputs, outputs, memory, heads, coverage, .. } = description;
        let [inputs, outputs, memory, heads] = [inputs, outputs, memory, heads].map(|size| size as usize);
        let mut shape = Shape { inputs, outputs, memory, degree: 0, heads };
        if !rest.is_empty() {
            return Err(ParseError::MetadataTrailing { extra: rest.len() });
        }
        let mut block = Cursor { words: parts.block, used: 0 };
        let [bits] = block.words()?.map(|bits: usize| bits as u32);
        if !(8..=14).contains(&bits) {
            return Err(ParseError::Metadata);
        }
        let inputs = block.table::<InputCounts, 5>(shape.inputs)?;
        let outputs = block.table::<_, 3>(shape.outputs)?;
        let units = block.table::<Unit, 2>(shape.outputs)?;
        let half_widths = block.floats(if coverage > 0 { outputs.len() } else { 0 }, "interval", 0)?;
        crate::parse::check_outputs(outputs, half_widths)?;
        parse::check_scaling(inputs, units)?;
        let stage = parse::stage(&mut block, &description, &shape, bits)?;
        let heads = block.rest();
        let needs = parse::heads(&mut block, &mut shape, &stage, bits)?;
        proof::check_sum_of_heads(Heads { rest: heads, features: stage.features.len() }, &shape, &stage)?;
        let computed = needs.capacities(&shape, &stage).ok_or(ParseError::SizeOverflow)?;
        if computed != parts.capacities {
            return Err(ParseError::Capacities { computed });
        }
        // The history is kept in counts, and filters run on what comes of them.
        let scaling = inputs.iter().fold(0u32, |hash, input| {
            let one = format::hash(&[bytemuck::bytes_of(&[input.zero, input.rate])]);
            hash.rotate_left(1) ^ one
        });
        let sections = match stage.runs {
            [] => scaling,
            runs => format::hash(&[cast::<_, u8>(runs), cast(inputs)]),
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
            about: parts.about,
            outputs,
            coverage,
            half_widths,
        };
        Ok(Self { facts, needs, bits, inputs, units, stage, heads })
    }

    /// Features are at most 2^bits in size.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// From counts to x.
    #[must_use]
    pub fn inputs(&self) -> &'a [InputCounts] {
        self.inputs
    }

    /// What the counts of the outputs are worth, and how exact they are.
    #[must_use]
    pub fn units(&self) -> &'a [Unit] {
        self.units
    }

    /// Runs of filters, features, the nodes of each of the mapped ones, which are the last.
    pub fn stage(&self) -> (&'a [Run], &'a [FeatureRecord], impl Iterator<Item = &'a [Node]>) {
        let mut rest = self.stage.nodes;
        let nodes = self.stage.counts.iter().map(move |&count| {
            let (own, later) = rest.split_at_checked(count as usize).unwrap_or_default();
            rest = later;
            own
        });
        (self.stage.runs, self.stage.features, nodes)
    }

    /// What is added for each unit beyond the range of a feature, output by output, and how far the sums are shifted.
    #[must_use]
    pub fn linear(&self) -> (&'a [i16], &'a [u32]) {
        (self.stage.linear, self.stage.linear_shifts)
    }

    /// The heads, in the order of the file.
    #[must_use]
    pub fn heads(&self) -> Heads<'a> {
        Heads { rest: self.heads, features: self.stage.features.len() }
    }

    /// Multiply-accumulates of the heads per sample, counted as in [`Model::macs`](crate::Model::macs).
    #[must_use]
    pub fn macs(&self) -> usize {
        let rows = |head: &Head<'_>| match head.features.len() {
            0 => 1 + head.rows,
            used => {
                let mapped = head.features.iter().filter(|&feature| feature >= self.stage.plain());
                1 + used + mapped.count()
            }
        };
        let sums = |head: &Head<'_>| crate::head::count_sums(head.ranks).unwrap_or(0);
        self.heads().map(|head| sums(&head) * rows(&head)).sum()
    }
}
