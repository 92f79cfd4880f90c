//! What is said of a file that is refused: what was found, and what to do about it.

use core::fmt::{Display, Formatter, Result};

use super::ParseError;

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
            Self::Numbers { found: 0 } => {
                write!(
                    f,
                    "the model holds f32 numbers; read it with Model, or make integers of it by tha-train quantize"
                )
            }
            Self::Numbers { found: 1 } => {
                write!(
                    f,
                    "the model holds 16-bit integers; read it with integer::Model, or use the f32 model it was made from"
                )
            }
            Self::Numbers { found } => {
                write!(f, "numbers of kind {found} are not known here; update tha-core")
            }
            Self::Overflow { head, sum } => {
                write!(
                    f,
                    "sum {sum} of head {head} could overflow 32 bits; the writer is at fault, quantize the model again"
                )
            }
            Self::Section { run } => {
                write!(
                    f,
                    "run {run} of the filters has no stable poles, no source, or the form of an earlier state of the format; fit the model again"
                )
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
