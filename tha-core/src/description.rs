//! The parts of a file that postcard decodes, borrowed from flash: the description that the device reads, and what is said
//! about the model, which only a host reads.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::format::{NonFinitePolicy, RangePolicy};

/// What the device must know before it reads the block: the numbers as they are encoded, one after the other, those that the
/// format does not have being 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Zeroable, Pod)]
#[repr(C)]
pub(crate) struct Description {
    /// The kind of numbers in the block.
    pub numbers: u32,
    pub inputs: u32,
    pub outputs: u32,
    pub memory: u32,
    /// Of all heads in format 1; in others 0, because each head has its own.
    pub degree: u32,
    pub heads: u32,
    pub range: u32,
    pub non_finite: u32,
    /// Runs of sections.
    pub runs: u32,
    /// Features, the mapped ones included; 0: the lags of all inputs.
    pub features: u32,
    pub mapped: u32,
    /// 1 if there are coefficients for what is beyond the range.
    pub linear: u32,
    /// The sample that gives the first output, if later than M.
    pub settled: u32,
    /// Samples for which a bad sample is felt, if longer than M.
    pub felt: u32,
    /// Of the intervals around the outputs, in millionths; 0: there are none.
    pub coverage: u32,
}

/// The same as a list, and which of them each format has, from the lowest bit on.
type Fields = [u32; 15];
const FORMAT_1: u32 = 0b000_0000_1111_1110;
const FORMAT_2: u32 = 0b011_1111_1110_1111;
const FORMAT_3: u32 = 0b111_1111_1110_1111;
/// Certainty, in the unit of the coverage.
pub(crate) const MILLION: u32 = 1_000_000;

/// What is said about a model. Texts are borrowed as bytes: postcard encodes both alike, and the device need not know UTF-8.
/// Names are separated by line feeds, so that no table of names is needed to borrow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct About<'a> {
    pub input_names: &'a [u8],
    pub output_names: &'a [u8],
    pub tool: &'a [u8],
    pub seed: u64,
    pub data_hash: u64,
    pub note: &'a [u8],
}

impl Description {
    /// Kinds of numbers.
    pub const F32: u32 = 0;
    pub const I16: u32 = 1;

    /// Decodes the description of any format; what follows it, in format 1, is said about the model.
    #[inline]
    pub fn decode(bytes: &[u8], format: u16) -> Result<(Self, &[u8]), ParseError> {
        // postcard writes the fields one after the other. A loop decodes them in a tenth of the flash that a derived visitor
        // takes, which is spelled out field by field.
        let (mut rest, mut result) = (bytes, Ok(()));
        let present = match format {
            1 => FORMAT_1,
            2 => FORMAT_2,
            _ => FORMAT_3,
        };
        // Not an array of zeros to be filled: that would link a memset.
        let all: Fields = core::array::from_fn(|k| {
            if present >> k & 1 == 0 {
                return 0;
            }
            let (field, later) = take(rest).unwrap_or_else(|error| {
                result = Err(error);
                Default::default()
            });
            rest = later;
            field
        });
        result?;
        let description: Self = bytemuck::cast(all);
        let Self { inputs, outputs, memory, degree, heads, range, non_finite, linear, coverage, .. } =
            description;
        let old = format == 1;
        let what = match (inputs, outputs, memory, heads) {
            (0, ..) => "inputs",
            (_, 0, ..) => "outputs",
            (_, _, 0, _) => "memory",
            (_, _, _, 0) => "heads",
            _ if old && (degree == 0 || degree > u8::MAX.into() || range == RangePolicy::Extend as u32) => {
                "degree"
            }
            _ => "",
        };
        if !what.is_empty() {
            return Err(ParseError::Zero { what });
        }
        let sizes = all.get(1..11).unwrap_or_default().iter().fold(0, |any, size| any | size);
        if sizes > u16::MAX.into() || range > 2 || non_finite > 1 || linear > 1 || coverage >= MILLION {
            return Err(ParseError::Metadata);
        }
        Ok((description, rest))
    }

    /// Whether the block holds numbers of one kind.
    #[inline]
    pub fn expect(&self, numbers: u32) -> Result<(), ParseError> {
        if self.numbers == numbers { Ok(()) } else { Err(ParseError::Numbers { found: self.numbers }) }
    }

    /// The lowest format that can say this, and the numbers as they are encoded in it.
    #[cfg(feature = "alloc")]
    pub fn fields(&self) -> (u16, impl Iterator<Item = u32>) {
        let all: Fields = bytemuck::cast(*self);
        let (format, present) = match (self.numbers, self.coverage) {
            (Self::F32, 0) => (2, FORMAT_2),
            (Self::F32, _) => (3, FORMAT_3),
            _ => (4, FORMAT_3),
        };
        let own = move |(k, field)| (present >> k & 1 == 1).then_some(field);
        (format, all.into_iter().enumerate().filter_map(own))
    }

    /// The policy outside the training range.
    #[inline]
    pub fn range(&self) -> RangePolicy {
        match self.range {
            0 => RangePolicy::Pass,
            1 => RangePolicy::Clamp,
            _ => RangePolicy::Extend,
        }
    }

    /// The policy for NaN and infinities.
    #[inline]
    pub fn non_finite(&self) -> NonFinitePolicy {
        match self.non_finite {
            0 => NonFinitePolicy::Hold,
            _ => NonFinitePolicy::Refuse,
        }
    }
}

impl<'a> About<'a> {
    /// Decodes all of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ParseError> {
        match take(bytes)? {
            (about, []) => Ok(about),
            (_, rest) => Err(ParseError::MetadataTrailing { extra: rest.len() }),
        }
    }

    /// Names for so many channels, and texts in UTF-8. Only a host asks.
    #[cfg(feature = "alloc")]
    pub fn check(&self, inputs: usize, outputs: usize) -> Result<(), ParseError> {
        for text in [self.input_names, self.output_names, self.tool, self.note] {
            core::str::from_utf8(text).map_err(|_| ParseError::Metadata)?;
        }
        for (what, names, expected) in
            [("input", self.input_names, inputs), ("output", self.output_names, outputs)]
        {
            let found = 1 + names.iter().filter(|&&byte| byte == b'\n').count();
            if found != expected {
                return Err(ParseError::Names { what, expected, found });
            }
        }
        Ok(())
    }
}

/// A value from the front of `bytes`, and the rest.
#[inline]
fn take<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), ParseError> {
    postcard::take_from_bytes(bytes).map_err(|_| ParseError::Metadata)
}
