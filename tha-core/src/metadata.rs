//! The metadata section of a file, in postcard's encoding. The builder writes it with postcard and serde; the reader is written
//! by hand to save flash. The tests compare the two.

use crate::error::ParseError;
use crate::format::{NonFinitePolicy, RangePolicy};

/// The metadata section. Texts are checked UTF-8, kept as bytes: nobody but [`Model`](crate::Model)'s accessors needs them as
/// `str`, and postcard encodes both alike. Names are separated by line feeds, so that no table of names is needed to
/// borrow them.
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

/// What `core::str::from_utf8` would accept, without its table and fast paths: smaller.
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

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// The section as `FORMAT.md` specifies it, for postcard to read.
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Derived<'a> {
        inputs: u16,
        outputs: u16,
        memory: u16,
        degree: u8,
        heads: u16,
        range: RangePolicy,
        non_finite: NonFinitePolicy,
        input_names: &'a str,
        output_names: &'a str,
        tool: &'a str,
        seed: u64,
        data_hash: u64,
        note: &'a str,
    }

    /// What postcard makes of `bytes`.
    fn derived(bytes: &[u8]) -> Result<Metadata<'_>, ParseError> {
        let (read, extra) =
            postcard::take_from_bytes::<Derived<'_>>(bytes).map_err(|_| ParseError::Metadata)?;
        let Derived { inputs, outputs, memory, degree, heads, range, non_finite, seed, data_hash, .. } = read;
        let (input_names, output_names) = (read.input_names.as_bytes(), read.output_names.as_bytes());
        let (tool, note) = (read.tool.as_bytes(), read.note.as_bytes());
        let metadata = Metadata {
            inputs,
            outputs,
            memory,
            degree,
            heads,
            range,
            non_finite,
            input_names,
            output_names,
            tool,
            seed,
            data_hash,
            note,
        };
        if extra.is_empty() { Ok(metadata) } else { Err(ParseError::MetadataTrailing { extra: extra.len() }) }
    }

    /// The decoder agrees with postcard; what it refuses beyond that are sizes and numbers of names.
    fn agrees(bytes: &[u8]) -> Result<(), TestCaseError> {
        match (Metadata::decode(bytes), derived(bytes)) {
            (Err(ParseError::Zero { .. } | ParseError::Names { .. }), Ok(_)) => {}
            (found, expected) => prop_assert_eq!(found, expected),
        }
        Ok(())
    }

    fn names(names: &[String]) -> String {
        names.join("\n")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn reads_what_postcard_reads(
            inputs in prop::collection::vec("[^\n]{0,6}", 1..200), outputs in prop::collection::vec("[^\n]{0,6}", 1..4),
            memory in 1u16.., degree in 1u8.., heads in 1u16.., clamp in any::<bool>(), refuse in any::<bool>(),
            tool in "\\PC*", seed in any::<u64>(), data_hash in any::<u64>(), note in "\\PC*",
            place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
        ) {
            let (input_names, output_names) = (names(&inputs), names(&outputs));
            let section = postcard::to_allocvec(&Derived {
                inputs: inputs.len() as u16,
                outputs: outputs.len() as u16,
                memory,
                degree,
                heads,
                range: if clamp { RangePolicy::Clamp } else { RangePolicy::Pass },
                non_finite: if refuse { NonFinitePolicy::Refuse } else { NonFinitePolicy::Hold },
                input_names: &input_names,
                output_names: &output_names,
                tool: &tool,
                seed,
                data_hash,
                note: &note,
            }).unwrap();
            let metadata = Metadata::decode(&section);
            prop_assert_eq!(&metadata, &derived(&section));
            prop_assert_eq!(postcard::to_allocvec(&metadata.unwrap()).unwrap(), section.clone());

            let mut changed = section.clone();
            *place.get_mut(&mut changed) = byte;
            agrees(&changed)?;
            // The first bytes decide most: a number that goes on too long, a policy that does not exist.
            changed = section.clone();
            changed[place.index(12.min(section.len()))] = byte | 0x80;
            agrees(&changed)?;
            agrees(&section[..cut.index(section.len())])?;
        }

        #[test]
        fn any_bytes_are_read_as_postcard_reads_them(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            agrees(&bytes)?;
        }
    }

    #[test]
    fn numbers_as_postcard_reads_them() {
        let number = |bytes: &[u8], bits| {
            let mut from = Postcard { rest: bytes, failed: false };
            let value = from.varint(bits);
            (!from.failed).then_some(value)
        };
        let mut bytes = [0; 10];
        for last in [0u8, 1, 2, 3, 4, 15, 16, 127, 128] {
            for length in 0..=10 {
                for fill in [0x80, 0xff] {
                    bytes.fill(fill);
                    if let Some(place) = bytes.get_mut(length) {
                        *place = last;
                    }
                    let section = &bytes[..(length + 1).min(10)];
                    assert_eq!(number(section, 16), postcard::from_bytes::<u16>(section).ok().map(u64::from));
                    assert_eq!(number(section, 32), postcard::from_bytes::<u32>(section).ok().map(u64::from));
                    assert_eq!(number(section, 64), postcard::from_bytes::<u64>(section).ok());
                }
            }
        }
    }

    /// All sequences of two bytes, followed by one or two at the edges of every range.
    #[test]
    fn utf8_is_what_core_says() {
        let agrees = |text: &[u8]| assert_eq!(is_utf8(text), core::str::from_utf8(text).is_ok(), "{text:x?}");
        let edges: Vec<u8> =
            (0..=255u8).filter(|byte| byte.wrapping_add(1) & 0x3e == 0 || *byte == 0xc1).collect();
        agrees(&[]);
        for a in 0..=255 {
            agrees(&[a]);
            for b in 0..=255 {
                agrees(&[a, b]);
                for &c in &edges {
                    agrees(&[a, b, c]);
                    for &d in &edges {
                        agrees(&[a, b, c, d]);
                    }
                }
            }
        }
    }
}
