//! The `.tha` file: header, description, block, and what only a host reads. `FORMAT.md` is the specification; this file is
//! its only reader of fixed positions, and [`build`](crate::build) its only writer.
//!
//! ```text
//! 0    header        40 bytes at fixed positions (36 in format 1)
//! 40   description   postcard, padded with zeros to a multiple of four
//! ..   block         little-endian 32-bit words: scaling, filters, features, heads, in the order the kernel reads them
//! ..   about         postcard: names and provenance (in format 1 part of the description)
//! ```

use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

use crate::error::ParseError;

/// The first four bytes of every model file.
pub const MAGIC: [u8; 4] = *b"\x89THA";
/// The newest format number this crate reads. It writes the lowest that can say what the model has: 2, 3 with intervals, 4 in integers.
pub const FORMAT: u16 = 4;
/// Bytes before the description.
pub const HEADER_LEN: usize = 40;
/// The same in format 1, and the least that a file must have to be looked at.
const HEADER_LEN_1: usize = 36;

/// The position of the checksum, the one field that it does not cover.
const CRC_AT: usize = 12;
/// Positions of the capacities, read at compile time by [`Capacities::of`].
const INPUTS_AT: usize = 24;
const HISTORY_AT: usize = 28;
const SCRATCH_AT: usize = 32;
/// Bytes of the part that only a host reads; since format 2.
const ABOUT_AT: usize = 36;

/// Bit-wise CRC: a table would be faster at start-up and cost 1 KiB of flash for ever.
const CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// What to do outside the range seen in training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangePolicy {
    /// Use the value as it is, and flag it. Maps are constant outside their nodes.
    #[default]
    Pass,
    /// Use the nearest end of the range, and flag it.
    Clamp,
    /// As `Clamp` in products and maps, while the linear part of the model goes on. A model without one clamps.
    Extend,
}

/// What to do with a NaN or an infinity at the input. It never enters the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NonFinitePolicy {
    /// Use the channel's previous value (before the first sample: the training mean), and flag it.
    #[default]
    Hold,
    /// Refuse the whole sample; the state does not change.
    Refuse,
}

/// The capacities of a [`State`](crate::State) that holds a model, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacities {
    /// Input channels: p.
    pub inputs: usize,
    /// Raw history, mirrored window and filters: 3 M p values and those of the filters.
    pub history: usize,
    /// Work space of the contraction and the outputs.
    pub scratch: usize,
}

impl Capacities {
    /// What the model in `bytes` asks for, read from the header without checking anything, at compile time
    /// if need be. Zeros when `bytes` is shorter than a header.
    ///
    /// ```
    /// use tha_core::{Capacities, Model, State};
    ///
    /// const MODEL: &[u8] = tha_core::include_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/small.tha"));
    /// const NEEDS: Capacities = Capacities::of(MODEL);
    /// type MyState = State<{ NEEDS.inputs }, { NEEDS.history }, { NEEDS.scratch }>;
    ///
    /// let model = Model::parse(MODEL)?;
    /// let state = MyState::new(&model)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn of(bytes: &[u8]) -> Self {
        Self {
            inputs: read_u32(bytes, INPUTS_AT) as usize,
            history: read_u32(bytes, HISTORY_AT) as usize,
            scratch: read_u32(bytes, SCRATCH_AT) as usize,
        }
    }
}

/// Whether `bytes` starts with the magic of a model file.
#[must_use]
pub const fn begins_like_a_model(bytes: &[u8]) -> bool {
    match bytes.first_chunk::<4>() {
        Some(&[a, b, c, d]) => a == MAGIC[0] && b == MAGIC[1] && c == MAGIC[2] && d == MAGIC[3],
        None => false,
    }
}

/// A little-endian number at `at`; 0 past the end.
#[inline]
const fn read_u32(bytes: &[u8], at: usize) -> u32 {
    match bytes.split_at_checked(at) {
        Some((_, tail)) => match tail.first_chunk::<4>() {
            Some(&word) => u32::from_le_bytes(word),
            None => 0,
        },
        None => 0,
    }
}

/// CRC-32 (ISO-HDLC) over everything but the checksum field itself.
#[inline]
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let (before, rest) = bytes.split_at_checked(CRC_AT).unwrap_or_default();
    hash(&[before, rest.get(4..).unwrap_or(&[])])
}

/// CRC-32 of some tables, one behind the other.
#[inline(never)]
pub(crate) fn hash(tables: &[&[u8]]) -> u32 {
    let mut digest = CRC.digest();
    tables.iter().for_each(|table| digest.update(table));
    digest.finalize()
}

/// The checked parts of a file, nothing of them decoded yet.
pub(crate) struct Parts<'a> {
    pub format: u16,
    pub checksum: u32,
    pub capacities: Capacities,
    pub description: &'a [u8],
    pub block: &'a [u32],
    pub about: &'a [u8],
}

/// Checks length, magic, checksum, format number and lengths, in this order, and cuts the file up.
#[inline]
pub(crate) fn parts(bytes: &[u8]) -> Result<Parts<'_>, ParseError> {
    if bytes.len() < HEADER_LEN_1 {
        return Err(ParseError::TooShort { found: bytes.len() });
    }
    if !begins_like_a_model(bytes) {
        return Err(ParseError::NotAModel);
    }
    let expected = read_u32(bytes, 8) as usize;
    if bytes.len() < expected {
        return Err(ParseError::Truncated { expected, found: bytes.len() });
    }
    if bytes.len() > expected {
        return Err(ParseError::TrailingBytes { expected, found: bytes.len() });
    }
    let stored = read_u32(bytes, CRC_AT);
    let computed = checksum(bytes);
    // Under a fuzzer the checksum would hide everything behind it.
    if stored != computed && !cfg!(fuzzing) {
        return Err(ParseError::Checksum { stored, computed });
    }
    let format = (read_u32(bytes, 4) & 0xffff) as u16;
    let header = (read_u32(bytes, 4) >> 16) as usize;
    let (length, about) = match format {
        1 => (HEADER_LEN_1, 0),
        2..=FORMAT => (HEADER_LEN, read_u32(bytes, ABOUT_AT) as usize),
        0 => (0, 0),
        _ => return Err(ParseError::NewerFormat { found: format, supported: FORMAT }),
    };
    if format == 0 || header != length {
        return Err(ParseError::Header { format, length: header });
    }

    let description_len = read_u32(bytes, 16) as usize;
    let words = read_u32(bytes, 20) as usize;
    let lengths = || ParseError::Lengths { metadata: description_len, words, about, file: bytes.len() };
    let cut = || {
        let padded = description_len.checked_next_multiple_of(4)?;
        let (_, rest) = bytes.split_at_checked(header)?;
        let (description, rest) = rest.split_at_checked(padded)?;
        let (block, rest) = rest.split_at_checked(words.checked_mul(4)?)?;
        (rest.len() == about).then_some((description.split_at_checked(description_len)?, block, rest))
    };
    let ((description, padding), block, about) = cut().ok_or_else(lengths)?;
    if padding.iter().any(|&byte| byte != 0) {
        return Err(ParseError::Padding);
    }
    let block = bytemuck::try_cast_slice(block).map_err(|_| ParseError::Unaligned)?;
    Ok(Parts { format, checksum: stored, capacities: Capacities::of(bytes), description, block, about })
}
