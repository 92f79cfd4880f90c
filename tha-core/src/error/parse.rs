//! Why a file is refused.

use crate::format::Capacities;

/// Why [`Model::parse`](crate::Model::parse) refused a file.
///
/// What is `found` is so in the file (of sizes, in bytes or words); what is `expected` or `needed` belongs there. Indices
/// count from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub enum ParseError {
    /// Fewer bytes than a header.
    TooShort { found: usize },
    /// The magic is missing.
    NotAModel,
    /// The file ends before the length in its header.
    Truncated { expected: usize, found: usize },
    /// Bytes after the length in the header.
    TrailingBytes { expected: usize, found: usize },
    /// The contents do not match the checksum.
    Checksum { stored: u32, computed: u32 },
    /// Written in a later format than this crate knows.
    NewerFormat { found: u16, supported: u16 },
    /// Format 0, or a header length that its format does not have.
    Header { format: u16, length: usize },
    /// Metadata and block lengths do not add up to the file, or overflow.
    Lengths { metadata: usize, words: usize, about: usize, file: usize },
    /// The padding between metadata and block is not zero.
    Padding,
    /// The bytes do not start at a multiple of four.
    Unaligned,
    /// The metadata is not what postcard would have written for this format.
    Metadata,
    /// The metadata ends before its section does.
    MetadataTrailing { extra: usize },
    /// The numbers in the block are of another kind: 0 is f32, 1 is i16.
    Numbers { found: u32 },
    /// A sum of an integer model could overflow. The heads are counted from 0; behind the last one stands the sum of them all, by output.
    Overflow { head: usize, sum: usize },
    /// A run of sections has an unknown kind, a source that is not there before it, or a pole outside the unit circle.
    Section { run: usize },
    /// A feature uses a signal that is not there, two inputs, or an empty range.
    Feature { feature: usize },
    /// The nodes of a feature do not increase, or there are fewer than two.
    Nodes { feature: usize },
    /// A head serves outputs that the model does not have, or none.
    Served { head: usize, outputs: usize },
    /// A head uses a feature that the model does not have or that belongs to none of its inputs.
    HeadFeature { head: usize, feature: usize },
    /// A dimension is zero.
    Zero { what: &'static str },
    /// The number of names is not the number of channels.
    Names { what: &'static str, expected: usize, found: usize },
    /// A size computed from the file does not fit this machine's address space.
    SizeOverflow,
    /// The block ends inside the scaling or inside a head.
    BlockTooShort { needed: usize, found: usize },
    /// The block goes on after the last head.
    BlockTooLong { used: usize, found: usize },
    /// A channel's offset, gain, scale, range or residual is not finite, its gain or scale is not positive, its range
    /// is empty or its residual negative.
    Scaling { what: &'static str, channel: usize },
    /// A head has no inputs, or more than the model.
    SubsetSize { head: usize, found: usize, inputs: usize },
    /// A head uses an input the model does not have.
    SubsetRange { head: usize, input: usize, inputs: usize },
    /// The inputs of a head do not increase strictly.
    SubsetOrder { head: usize, position: usize },
    /// A rank is zero.
    RankZero { head: usize, bond: usize },
    /// The chain of ranks does not start at l or does not end at 1.
    RankChain { head: usize, bond: usize, expected: usize, found: usize },
    /// The stored number of sums of a head is not the sum of r_{k-1} r_k, or its rows are not those of its features.
    Sums { head: usize, expected: usize, found: usize },
    /// A coefficient, weight or node is NaN or infinite.
    NonFinite { part: &'static str, index: usize, word: usize },
    /// The capacities in the header are not those of the model.
    Capacities { computed: Capacities },
}
