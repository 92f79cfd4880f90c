//! [`Model`]: a validated view of a `.tha` file. Everything is checked once, in [`Model::parse`]; afterwards
//! nothing can fail, and nothing was copied.

use core::str::Split;

use bytemuck::{Pod, Zeroable};

use crate::error::ParseError;
use crate::format::{self, Capacities, NonFinitePolicy, RangePolicy};
use crate::kernel;
use crate::metadata::Metadata;

/// The dimensions of a model, in the paper's letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// p, input channels.
    pub inputs: usize,
    /// l, output channels.
    pub outputs: usize,
    /// M, samples of each input that an output depends on.
    pub memory: usize,
    /// d, degree of the Volterra series and number of cores of a head.
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
    metadata: Metadata<'a>,
    pub(crate) inputs: &'a [InputScaling],
    pub(crate) outputs: &'a [OutputScaling],
    heads: &'a [u32],
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
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let sections = format::sections(bytes)?;
        let metadata = Metadata::decode(sections.metadata)?;
        let shape = Shape {
            inputs: metadata.inputs.into(),
            outputs: metadata.outputs.into(),
            memory: metadata.memory.into(),
            degree: metadata.degree.into(),
            heads: metadata.heads.into(),
        };
        let mut block = Cursor { words: sections.block, used: 0 };
        let inputs = block.table(shape.inputs)?;
        let outputs = block.table(shape.outputs)?;
        check_scaling(inputs, outputs)?;

        let heads = block.rest();
        let mut needs = Needs::default();
        for head in 0..shape.heads {
            check_head(&mut block, head, &shape, &mut needs)?;
        }
        if !block.rest().is_empty() {
            return Err(ParseError::BlockTooLong { used: block.used, found: block.words.len() });
        }
        let computed = needs.capacities(&shape).ok_or(ParseError::SizeOverflow)?;
        if computed != sections.capacities {
            return Err(ParseError::Capacities { stored: sections.capacities, computed });
        }
        Ok(Self {
            shape,
            checksum: sections.checksum,
            capacities: computed,
            needs,
            metadata,
            inputs,
            outputs,
            heads,
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
        self.metadata.range
    }

    /// What the model wants done with NaN and infinities.
    #[must_use]
    pub fn non_finite_policy(&self) -> NonFinitePolicy {
        self.metadata.non_finite
    }

    /// Names of the inputs, in the order of a sample.
    pub fn input_names(&self) -> Split<'a, char> {
        text(self.metadata.input_names).split('\n')
    }

    /// Names of the outputs.
    pub fn output_names(&self) -> Split<'a, char> {
        text(self.metadata.output_names).split('\n')
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

    /// Where the model came from.
    #[must_use]
    pub fn provenance(&self) -> Provenance<'a> {
        let Metadata { tool, seed, data_hash, note, .. } = self.metadata;
        Provenance { tool: text(tool), seed, data_hash, note: text(note) }
    }

    /// The heads, in the order of the file.
    #[must_use]
    pub fn heads(&self) -> Heads<'a> {
        Heads { rest: self.heads, degree: self.shape.degree, memory: self.shape.memory }
    }

    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }

    /// Multiply-accumulates per sample: the sum over heads and cores of r_{k-1} q r_k.
    #[must_use]
    pub fn macs(&self) -> usize {
        self.heads().map(|head| head.cores.len()).sum()
    }
}

/// A text of the metadata, which was checked when it was decoded.
fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or_default()
}

/// Iterator over the heads of a [`Model`].
#[derive(Clone, Debug)]
pub struct Heads<'a> {
    rest: &'a [u32],
    degree: usize,
    memory: usize,
}

impl<'a> Iterator for Heads<'a> {
    type Item = HeadView<'a>;

    #[inline]
    fn next(&mut self) -> Option<HeadView<'a>> {
        let [size, weight, sums, rest @ ..] = self.rest else { return None };
        let (ranks, rest) = rest.split_at_checked(self.degree + 1)?;
        let (inputs, rest) = rest.split_at_checked(*size as usize)?;
        let (sums, q) = (*sums as usize, inputs.len() * self.memory + 1);
        let (cores, rest) = rest.split_at_checked(sums.wrapping_mul(q))?;
        self.rest = rest;
        Some(HeadView { weight: f32::from_bits(*weight), inputs, ranks, cores: as_floats(cores), sums, q })
    }
}

/// One head: a tensor network over a subset of the inputs.
#[derive(Clone, Copy, Debug)]
pub struct HeadView<'a> {
    /// Its share in the ensemble.
    pub weight: f32,
    /// The inputs it sees, increasing.
    pub inputs: &'a [u32],
    /// r_0 = l, r_1, ..., r_d = 1.
    pub ranks: &'a [u32],
    /// The cores in kernel layout.
    pub(crate) cores: &'a [f32],
    /// The sum over the cores of r_{k-1} r_k.
    pub(crate) sums: usize,
    /// Features: inputs * M + 1.
    pub q: usize,
}

impl<'a> HeadView<'a> {
    /// Core `k` of V1, ..., Vd, counted from 0.
    #[must_use]
    pub fn core(&self, k: usize) -> Option<CoreView<'a>> {
        let (left, right) = (*self.ranks.get(k)? as usize, *self.ranks.get(k + 1)? as usize);
        let first = count_sums(self.ranks.get(k + 1..)?)?;
        Some(CoreView { left, q: self.q, right, first, sums: self.sums, cores: self.cores })
    }
}

/// The sum of r_{k-1} r_k over a chain of ranks. `None` when it overflows.
pub(crate) fn count_sums(ranks: &[u32]) -> Option<usize> {
    let mut sums = 0u32;
    for (&left, &right) in ranks.iter().zip(ranks.get(1..)?) {
        sums = sums.checked_add(left.checked_mul(right)?)?;
    }
    Some(sums as usize)
}

/// One core V of size r_{k-1} x q x r_k.
#[derive(Clone, Copy, Debug)]
pub struct CoreView<'a> {
    /// r_{k-1}.
    pub left: usize,
    /// Features.
    pub q: usize,
    /// r_k.
    pub right: usize,
    /// Where its sums begin among those of the head.
    first: usize,
    sums: usize,
    cores: &'a [f32],
}

impl CoreView<'_> {
    /// V(a, i, b), all counted from 0; feature 0 is the constant 1.
    #[must_use]
    pub fn get(&self, a: usize, i: usize, b: usize) -> Option<f32> {
        if a >= self.left || i >= self.q || b >= self.right {
            return None;
        }
        let sum = self.first + a * self.right + b;
        self.cores.get(kernel::position(self.sums, self.q, sum, i)).copied()
    }
}

/// Reads the block from the front, knowing how far it is.
struct Cursor<'a> {
    words: &'a [u32],
    used: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u32] {
        self.words.get(self.used..).unwrap_or(&[])
    }

    fn take(&mut self, n: usize) -> Result<&'a [u32], ParseError> {
        let needed = self.used.checked_add(n).ok_or(ParseError::SizeOverflow)?;
        let short = ParseError::BlockTooShort { needed, found: self.words.len() };
        let taken = self.words.get(self.used..needed).ok_or(short)?;
        self.used = needed;
        Ok(taken)
    }

    fn word(&mut self) -> Result<u32, ParseError> {
        self.take(1).map(|words| words.first().copied().unwrap_or(0))
    }

    fn floats(&mut self, n: usize) -> Result<&'a [f32], ParseError> {
        self.take(n).map(as_floats)
    }

    /// `n` rows of a table of floats.
    fn table<T: Pod>(&mut self, n: usize) -> Result<&'a [T], ParseError> {
        let words = n.checked_mul(size_of::<T>() / 4).ok_or(ParseError::SizeOverflow)?;
        Ok(bytemuck::try_cast_slice(self.take(words)?).unwrap_or(&[]))
    }
}

/// The same words as numbers; cannot fail, as size and alignment agree.
fn as_floats(words: &[u32]) -> &[f32] {
    bytemuck::try_cast_slice(words).unwrap_or(&[])
}

fn check_scaling(inputs: &[InputScaling], outputs: &[OutputScaling]) -> Result<(), ParseError> {
    for (channel, input) in inputs.iter().enumerate() {
        let InputScaling { offset, gain, low, high } = *input;
        let finite = offset.is_finite() && gain.is_finite() && low.is_finite() && high.is_finite();
        if !finite || gain <= 0.0 || low > high {
            return Err(ParseError::Scaling { what: "input", channel });
        }
    }
    for (channel, output) in outputs.iter().enumerate() {
        let OutputScaling { offset, scale, residual } = *output;
        if !(offset.is_finite() && scale.is_finite() && residual.is_finite())
            || scale <= 0.0
            || residual < 0.0
        {
            return Err(ParseError::Scaling { what: "output", channel });
        }
    }
    Ok(())
}

/// The largest sizes over all heads, from which the capacities follow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// Features of the largest head that does not see all inputs.
    pub gather: usize,
    /// Sums of the largest head.
    pub sums: usize,
    /// Largest rank.
    pub rank: usize,
}

impl Needs {
    /// Takes a head of `size` inputs into account. `None` when a size overflows.
    pub(crate) fn add(&mut self, shape: &Shape, size: usize, ranks: &[u32]) -> Option<()> {
        // A head on all inputs reads the window in place.
        let gather = if size == shape.inputs { 0 } else { size.checked_mul(shape.memory)? };
        self.gather = self.gather.max(gather);
        self.sums = self.sums.max(count_sums(ranks)?);
        self.rank = ranks.iter().fold(self.rank, |most, &rank| most.max(rank as usize));
        Some(())
    }

    /// Scratch is [features | t | y], laid out in `push::contract`, and by the format two vectors more, for readers that do not
    /// multiply out in place.
    pub(crate) fn capacities(&self, shape: &Shape) -> Option<Capacities> {
        let history = shape.inputs.checked_mul(shape.memory)?.checked_mul(3)?;
        let vectors = self.rank.checked_mul(2)?.checked_add(shape.outputs)?;
        let scratch = self.gather.checked_add(self.sums)?.checked_add(vectors)?;
        Some(Capacities { inputs: shape.inputs, history, scratch })
    }
}

fn check_head(
    block: &mut Cursor<'_>,
    head: usize,
    shape: &Shape,
    needs: &mut Needs,
) -> Result<(), ParseError> {
    let size = block.word()? as usize;
    if size == 0 || size > shape.inputs {
        return Err(ParseError::SubsetSize { head, found: size, inputs: shape.inputs });
    }
    let weight_at = block.used;
    if !f32::from_bits(block.word()?).is_finite() {
        return Err(ParseError::NonFinite { head, word: weight_at });
    }
    let stored_sums = block.word()? as usize;
    let ranks = block.take(shape.degree + 1)?;
    if let Some(bond) = ranks.iter().position(|&rank| rank == 0) {
        return Err(ParseError::RankZero { head, bond });
    }
    for (bond, expected) in [(0, shape.outputs), (shape.degree, 1)] {
        let found = ranks.get(bond).map_or(0, |&rank| rank as usize);
        if found != expected {
            return Err(ParseError::RankChain { head, bond, expected, found });
        }
    }
    let inputs = block.take(size)?;
    for (position, &input) in inputs.iter().enumerate() {
        if input as usize >= shape.inputs {
            return Err(ParseError::SubsetRange { head, input: input as usize, inputs: shape.inputs });
        }
        if position > 0 && inputs.get(position - 1) >= Some(&input) {
            return Err(ParseError::SubsetOrder { head, position });
        }
    }
    let overflow = ParseError::SizeOverflow;
    let q = size.checked_mul(shape.memory).and_then(|n| n.checked_add(1)).ok_or(overflow)?;
    needs.add(shape, size, ranks).ok_or(overflow)?;
    let sums = count_sums(ranks).ok_or(overflow)?;
    if sums != stored_sums {
        return Err(ParseError::Sums { head, expected: sums, found: stored_sums });
    }
    let start = block.used;
    let cores = block.floats(sums.checked_mul(q).ok_or(overflow)?)?;
    match cores.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(ParseError::NonFinite { head, word: start + at }),
        None => Ok(()),
    }
}
