//! The `.tha` file: header, metadata, block. `FORMAT.md` is the specification; this file is its only reader
//! of fixed positions, and [`build`](crate::build) its only writer.
//!
//! ```text
//! 0    header     36 bytes at fixed positions
//! 36   metadata   postcard, padded with zeros to a multiple of four
//! ..   block      little-endian 32-bit words: scaling, ranges, heads, in the order the kernel reads them
//! ```

use crc::{CRC_32_ISO_HDLC, Crc, NoTable};

use crate::error::ParseError;

/// The first four bytes of every model file.
pub const MAGIC: [u8; 4] = *b"\x89THA";
/// The format number this crate reads and writes.
pub const FORMAT: u16 = 1;
/// Bytes before the metadata.
pub const HEADER_LEN: usize = 36;

/// The position of the checksum, the one field that it does not cover.
const CRC_AT: usize = 12;
/// Positions of the capacities, read at compile time by [`Capacities::of`].
const INPUTS_AT: usize = 24;
const HISTORY_AT: usize = 28;
const SCRATCH_AT: usize = 32;

/// Bit-wise CRC: a table would be faster at start-up and cost 1 KiB of flash for ever.
const CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISO_HDLC);

/// What to do with an input outside the range seen in training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "alloc", derive(serde::Serialize, serde::Deserialize))]
pub enum RangePolicy {
    /// Use the value as it is, and flag it.
    #[default]
    Pass,
    /// Use the nearest end of the range, and flag it.
    Clamp,
}

/// What to do with a NaN or an infinity at the input. It never enters the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "alloc", derive(serde::Serialize, serde::Deserialize))]
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
    /// Raw history and mirrored window: 3 M p values.
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
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    if let Some((before, rest)) = bytes.split_at_checked(CRC_AT) {
        digest.update(before);
        digest.update(rest.get(4..).unwrap_or(&[]));
    }
    digest.finalize()
}

/// The checked parts of a file, nothing of them decoded yet.
pub(crate) struct Sections<'a> {
    pub checksum: u32,
    pub capacities: Capacities,
    pub metadata: &'a [u8],
    pub block: &'a [u32],
}

/// Checks length, magic, checksum, format number and lengths, in this order, and cuts the file up.
pub(crate) fn sections(bytes: &[u8]) -> Result<Sections<'_>, ParseError> {
    if bytes.len() < HEADER_LEN {
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
    if format > FORMAT {
        return Err(ParseError::NewerFormat { found: format, supported: FORMAT });
    }
    let header = (read_u32(bytes, 4) >> 16) as usize;
    if format == 0 || header != HEADER_LEN {
        return Err(ParseError::Header { format, length: header });
    }

    let metadata_len = read_u32(bytes, 16) as usize;
    let words = read_u32(bytes, 20) as usize;
    let lengths = || ParseError::Lengths { metadata: metadata_len, words, file: bytes.len() };
    let padded = metadata_len.checked_next_multiple_of(4).ok_or_else(lengths)?;
    let total =
        words.checked_mul(4).and_then(|b| b.checked_add(padded)).and_then(|b| b.checked_add(HEADER_LEN));
    if total != Some(bytes.len()) {
        return Err(lengths());
    }
    let (_, rest) = bytes.split_at_checked(HEADER_LEN).ok_or_else(lengths)?;
    let (metadata, block) = rest.split_at_checked(padded).ok_or_else(lengths)?;
    let (metadata, padding) = metadata.split_at_checked(metadata_len).ok_or_else(lengths)?;
    if padding.iter().any(|&byte| byte != 0) {
        return Err(ParseError::Padding);
    }
    let block = bytemuck::try_cast_slice(block).map_err(|_| ParseError::Unaligned)?;
    Ok(Sections { checksum: stored, capacities: Capacities::of(bytes), metadata, block })
}

/// The metadata section. Texts are checked UTF-8, kept as bytes: nobody but [`Model`](crate::Model)'s accessors needs them as
/// `str`, and postcard encodes both alike. Names are separated by line feeds, so that no table of names is needed to
/// borrow them.
///
/// The builder writes it with postcard; the reader below is written by hand, a third of the flash of a derived one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "alloc", derive(serde::Serialize))]
pub(crate) struct Metadata<'a> {
    pub inputs: u16,
    pub outputs: u16,
    pub memory: u16,
    pub degree: u8,
    pub heads: u16,
    pub range: RangePolicy,
    pub non_finite: NonFinitePolicy,
    pub input_names: &'a [u8],
    pub output_names: &'a [u8],
    pub tool: &'a [u8],
    pub seed: u64,
    pub data_hash: u64,
    pub note: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// Decodes the section and checks what can be checked without the block.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut from = Postcard { rest: bytes, failed: false };
        let metadata = Self {
            inputs: from.u16(),
            outputs: from.u16(),
            memory: from.u16(),
            degree: from.byte(),
            heads: from.u16(),
            range: if from.choice() { RangePolicy::Clamp } else { RangePolicy::Pass },
            non_finite: if from.choice() { NonFinitePolicy::Refuse } else { NonFinitePolicy::Hold },
            input_names: from.text(),
            output_names: from.text(),
            tool: from.text(),
            seed: from.varint(u64::BITS),
            data_hash: from.varint(u64::BITS),
            note: from.text(),
        };
        if from.failed {
            return Err(ParseError::Metadata);
        }
        if !from.rest.is_empty() {
            return Err(ParseError::MetadataTrailing { extra: from.rest.len() });
        }
        for (what, size) in [
            ("inputs", metadata.inputs),
            ("outputs", metadata.outputs),
            ("memory", metadata.memory),
            ("degree", u16::from(metadata.degree)),
            ("heads", metadata.heads),
        ] {
            if size == 0 {
                return Err(ParseError::Zero { what });
            }
        }
        check_names("input", metadata.input_names, metadata.inputs)?;
        check_names("output", metadata.output_names, metadata.outputs)?;
        Ok(metadata)
    }
}

#[inline(never)]
fn check_names(what: &'static str, names: &[u8], expected: u16) -> Result<(), ParseError> {
    let found = 1 + names.iter().filter(|&&byte| byte == b'\n').count();
    if found != usize::from(expected) {
        return Err(ParseError::Names { what, expected: expected.into(), found });
    }
    Ok(())
}

/// Reads postcard's encoding from the front. A failure is remembered, so that one look at the end is enough.
struct Postcard<'a> {
    rest: &'a [u8],
    failed: bool,
}

impl<'a> Postcard<'a> {
    #[inline(never)]
    fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&byte, rest)) => {
                self.rest = rest;
                byte
            }
            None => {
                self.failed = true;
                0
            }
        }
    }

    /// An unsigned number of `bits`, seven in a byte, the lowest first.
    #[inline(never)]
    fn varint(&mut self, bits: u32) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        while shift < bits {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                // The last byte may not say more than there are bits for.
                self.failed |= shift > bits && u32::from(byte) >> (bits + 7 - shift) != 0;
                return value;
            }
        }
        self.failed = true;
        0
    }

    fn u16(&mut self) -> u16 {
        self.varint(u16::BITS) as u16
    }

    /// An enum of two.
    #[inline(never)]
    fn choice(&mut self) -> bool {
        let variant = self.varint(u32::BITS);
        self.failed |= variant > 1;
        variant == 1
    }

    #[inline(never)]
    fn text(&mut self) -> &'a [u8] {
        let length = self.varint(usize::BITS) as usize;
        match self.rest.split_at_checked(length) {
            Some((text, rest)) if is_utf8(text) => {
                self.rest = rest;
                text
            }
            _ => {
                self.failed = true;
                &[]
            }
        }
    }
}

/// What `core::str::from_utf8` would accept, in a tenth of its flash.
#[inline(never)]
fn is_utf8(mut text: &[u8]) -> bool {
    while let Some((&first, rest)) = text.split_first() {
        text = rest;
        // Bytes that follow, and the smallest character that needs as many.
        let (more, least) = match first {
            0..0x80 => continue,
            0xc0..0xe0 => (1, 0x80),
            0xe0..0xf0 => (2, 0x800),
            0xf0..0xf8 => (3, 0x1_0000),
            _ => return false,
        };
        let mut character = u32::from(first) & (0x3f >> more);
        for _ in 0..more {
            let Some((&next @ 0x80..0xc0, rest)) = text.split_first() else { return false };
            text = rest;
            character = character << 6 | u32::from(next & 0x3f);
        }
        if character < least || char::from_u32(character).is_none() {
            return false;
        }
    }
    true
}
