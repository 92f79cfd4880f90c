//! What can go wrong, one type per operation. Every message says what was found and what to do about it.

use core::fmt::{Display, Formatter, Result};

use crate::format::Capacities;

/// Why [`Model::parse`](crate::Model::parse) refused a file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than a header.
    TooShort {
        /// Bytes given.
        found: usize,
    },
    /// The magic is missing.
    NotAModel,
    /// The file ends before the length in its header.
    Truncated {
        /// Length by the header.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// Bytes after the length in the header.
    TrailingBytes {
        /// Length by the header.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The contents do not match the checksum.
    Checksum {
        /// CRC-32 in the header.
        stored: u32,
        /// CRC-32 of the contents.
        computed: u32,
    },
    /// Written in a later format than this crate knows.
    NewerFormat {
        /// Format number of the file.
        found: u16,
        /// Newest format number this crate reads.
        supported: u16,
    },
    /// Format 0, or a header length that its format does not have.
    Header {
        /// Format number of the file.
        format: u16,
        /// Header length of the file.
        length: usize,
    },
    /// Metadata and block lengths do not add up to the file, or overflow.
    Lengths {
        /// Metadata length by the header.
        metadata: usize,
        /// Block words by the header.
        words: usize,
        /// Bytes behind the block by the header.
        about: usize,
        /// Bytes given.
        file: usize,
    },
    /// The padding between metadata and block is not zero.
    Padding,
    /// The bytes do not start at a multiple of four.
    Unaligned,
    /// The metadata is not what postcard would have written for this format.
    Metadata,
    /// The metadata ends before its section does.
    MetadataTrailing {
        /// Bytes left over.
        extra: usize,
    },
    /// The kind of numbers in the block is not known.
    Numbers {
        /// In the file.
        found: u32,
    },
    /// A run of sections has an unknown kind, a source that is not there before it, or a pole outside the unit circle.
    Section {
        /// Index of the run.
        run: usize,
    },
    /// A feature uses a signal that is not there, two inputs, or an empty range.
    Feature {
        /// Index of the feature.
        feature: usize,
    },
    /// The nodes of a feature do not increase, or there are fewer than two.
    Nodes {
        /// Index of the feature.
        feature: usize,
    },
    /// A head serves outputs that the model does not have, or none.
    Served {
        /// Head index.
        head: usize,
        /// Outputs of the model.
        outputs: usize,
    },
    /// A head uses a feature that the model does not have or that belongs to none of its inputs.
    HeadFeature {
        /// Head index.
        head: usize,
        /// Index of the feature.
        feature: usize,
    },
    /// A dimension is zero.
    Zero {
        /// Which one.
        what: &'static str,
    },
    /// The number of names is not the number of channels.
    Names {
        /// `input` or `output`.
        what: &'static str,
        /// Channels.
        expected: usize,
        /// Names.
        found: usize,
    },
    /// A size computed from the file does not fit this machine's address space.
    SizeOverflow,
    /// The block ends inside the scaling or inside a head.
    BlockTooShort {
        /// Words needed up to this point.
        needed: usize,
        /// Words in the block.
        found: usize,
    },
    /// The block goes on after the last head.
    BlockTooLong {
        /// Words used.
        used: usize,
        /// Words in the block.
        found: usize,
    },
    /// A channel's offset, gain, scale, range or residual is not finite, its gain or scale is not positive, its range
    /// is empty or its residual negative.
    Scaling {
        /// `input` or `output`.
        what: &'static str,
        /// Channel index.
        channel: usize,
    },
    /// A head has no inputs, or more than the model.
    SubsetSize {
        /// Head index.
        head: usize,
        /// Its inputs.
        found: usize,
        /// Inputs of the model.
        inputs: usize,
    },
    /// A head uses an input the model does not have.
    SubsetRange {
        /// Head index.
        head: usize,
        /// The input.
        input: usize,
        /// Inputs of the model.
        inputs: usize,
    },
    /// The inputs of a head do not increase strictly.
    SubsetOrder {
        /// Head index.
        head: usize,
        /// Position in the subset.
        position: usize,
    },
    /// A rank is zero.
    RankZero {
        /// Head index.
        head: usize,
        /// Bond index, 0 to d.
        bond: usize,
    },
    /// The chain of ranks does not start at l or does not end at 1.
    RankChain {
        /// Head index.
        head: usize,
        /// Bond index, 0 or d.
        bond: usize,
        /// The rank that belongs there.
        expected: usize,
        /// The rank in the file.
        found: usize,
    },
    /// The stored number of sums of a head is not the sum of r_{k-1} r_k, or its rows are not those of its features.
    Sums {
        /// Head index.
        head: usize,
        /// By the ranks.
        expected: usize,
        /// In the file.
        found: usize,
    },
    /// A coefficient, weight or node is NaN or infinite.
    NonFinite {
        /// What it belongs to.
        part: &'static str,
        /// Which of them.
        index: usize,
        /// Word in the block.
        word: usize,
    },
    /// The capacities in the header are not those of the model.
    Capacities {
        /// Of the model.
        computed: Capacities,
    },
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::TooShort { found } => {
                write!(f, "{found} bytes are too few for a .tha model; was the file written completely?")
            }
            Self::NotAModel => write!(f, "not a .tha model: it does not begin with 89 'T' 'H' 'A'"),
            Self::Truncated { expected, found } => {
                write!(f, "the model is cut off: {found} of {expected} bytes; copy the file again")
            }
            Self::TrailingBytes { expected, found } => {
                write!(
                    f,
                    "{} bytes follow the model's {expected}; pass the model's bytes alone",
                    found.saturating_sub(expected)
                )
            }
            Self::Checksum { stored, computed } => {
                write!(
                    f,
                    "the model is damaged: checksum {computed:08x}, expected {stored:08x}; write it again"
                )
            }
            Self::NewerFormat { found, supported } => write!(
                f,
                "made by a newer format: the file has format {found}, this tha-core reads up to {supported}; \
                 update tha-core or train with an older tha-train"
            ),
            Self::Header { format, length } => {
                write!(f, "no format {format} with a header of {length} bytes exists; the writer is at fault")
            }
            Self::Lengths { metadata, words, about, file } => write!(
                f,
                "{metadata} bytes of description, {words} words and {about} bytes do not make a file of {file} bytes"
            ),
            Self::Padding => {
                write!(f, "the padding after the description is not zero; the writer is at fault")
            }
            Self::Unaligned => write!(
                f,
                "the model does not start at a multiple of four bytes; use tha_core::include_model! or tha_core::Aligned"
            ),
            Self::Metadata => write!(f, "the description cannot be decoded; the writer is at fault"),
            Self::MetadataTrailing { extra } => {
                write!(f, "{extra} bytes follow the description; the writer is at fault")
            }
            Self::Numbers { found } => {
                write!(
                    f,
                    "numbers of kind {found} are not known here; update tha-core or export the model as f32"
                )
            }
            Self::Section { run } => {
                write!(f, "run {run} of the filters has no stable pole or no source; the writer is at fault")
            }
            Self::Feature { feature } => {
                write!(f, "feature {feature} has no usable signal or range; the writer is at fault")
            }
            Self::Nodes { feature } => {
                write!(f, "the nodes of feature {feature} do not increase; the writer is at fault")
            }
            Self::Served { head, outputs } => {
                write!(f, "head {head} serves outputs beyond the {outputs} of the model, or none")
            }
            Self::HeadFeature { head, feature } => {
                write!(
                    f,
                    "head {head} cannot use feature {feature}: it is missing or belongs to another input"
                )
            }
            Self::Zero { what } => write!(f, "the model has no {what}"),
            Self::Names { what, expected, found } => {
                write!(f, "{found} {what} names for {expected} channels")
            }
            Self::SizeOverflow => write!(f, "the model's sizes overflow the address space of this machine"),
            Self::BlockTooShort { needed, found } => {
                write!(
                    f,
                    "the heads need at least {needed} words, the block has {found}; the writer is at fault"
                )
            }
            Self::BlockTooLong { used, found } => {
                write!(f, "the heads end after {used} words, the block has {found}; the writer is at fault")
            }
            Self::Scaling { what, channel } => {
                write!(f, "the scaling or range of {what} {channel} is not usable")
            }
            Self::SubsetSize { head, found, inputs } => {
                write!(f, "head {head} uses {found} inputs; 1 to {inputs} are possible")
            }
            Self::SubsetRange { head, input, inputs } => {
                write!(
                    f,
                    "head {head} uses input {input}; the model has inputs 0 to {}",
                    inputs.saturating_sub(1)
                )
            }
            Self::SubsetOrder { head, position } => {
                write!(f, "the inputs of head {head} do not increase at position {position}")
            }
            Self::RankZero { head, bond } => write!(f, "rank {bond} of head {head} is zero"),
            Self::RankChain { head, bond, expected, found } => {
                write!(f, "rank {bond} of head {head} is {found}; the chain needs {expected} there")
            }
            Self::Sums { head, expected, found } => {
                write!(f, "head {head} says {found} sums, its ranks make {expected}; the writer is at fault")
            }
            Self::NonFinite { part, index, word } => {
                write!(f, "a number of {part} {index} (word {word} of the block) is NaN or infinite")
            }
            Self::Capacities { computed } => {
                write!(f, "the header does not ask for {computed}, as the model does; the writer is at fault")
            }
        }
    }
}

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
