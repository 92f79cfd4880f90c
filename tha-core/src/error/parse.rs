//! Why a file is refused.

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
    /// The numbers in the block are of another kind: 0 is f32, 1 is i16.
    Numbers {
        /// In the file.
        found: u32,
    },
    /// A sum of an integer model could overflow. The heads are counted from 0; behind the last one stands the sum of them all, by output.
    Overflow {
        /// Head index.
        head: usize,
        /// Which of its sums.
        sum: usize,
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
