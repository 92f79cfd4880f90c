//! The parts of a file that postcard decodes, borrowed from flash: the description that the device reads, and what is said
//! about the model, which only a host reads.

use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::format::{NonFinitePolicy, RangePolicy};

/// The kind of numbers in the block: f32. Others may come.
const F32: u32 = 0;

/// What the device must know before it reads the block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Description {
    pub inputs: usize,
    pub outputs: usize,
    pub memory: usize,
    pub heads: usize,
    pub range: RangePolicy,
    pub non_finite: NonFinitePolicy,
    /// Runs of sections.
    pub runs: usize,
    /// Features, the mapped ones included; 0: the lags of all inputs.
    pub features: usize,
    pub mapped: usize,
    /// Whether there are coefficients for what is beyond the range.
    pub linear: bool,
    /// The sample that gives the first output, if later than M.
    pub settled: u32,
    /// Samples for which a bad sample is felt, if longer than M.
    pub felt: u32,
    /// The degree of all heads; format 1 only.
    pub degree: Option<usize>,
}

/// The fields as they are encoded. Format 1 has the first [`FIELDS_1`] places only, in another order.
type Fields = [u32; 13];
const FIELDS_1: usize = 7;

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
    /// Decodes the description of either format; what follows it, in format 1, is said about the model.
    #[inline]
    pub fn decode(bytes: &[u8], format: u16) -> Result<(Self, &[u8]), ParseError> {
        // postcard writes the fields one after the other. A loop decodes them in a tenth of the flash that a derived visitor
        // takes, which is spelled out field by field.
        let (mut rest, mut result) = (bytes, Ok(()));
        let count = if format == 1 { FIELDS_1 } else { usize::MAX };
        let mut all: Fields = core::array::from_fn(|k| {
            if k >= count {
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
        let mut degree = None;
        if format == 1 {
            let [inputs, outputs, memory, d, heads, range, non_finite, ..] = all;
            all = [F32, inputs, outputs, memory, heads, range, non_finite, 0, 0, 0, 0, 0, 0];
            if d == 0 || d > u8::MAX.into() || range == RangePolicy::Extend as u32 {
                return Err(ParseError::Zero { what: "degree" });
            }
            degree = Some(d as usize);
        }
        Ok((Self::check(all, degree)?, rest))
    }

    #[inline]
    fn check(all: Fields, degree: Option<usize>) -> Result<Self, ParseError> {
        let [
            numbers,
            inputs,
            outputs,
            memory,
            heads,
            range,
            non_finite,
            runs,
            features,
            mapped,
            linear,
            settled,
            felt,
        ] = all;
        if numbers != F32 {
            return Err(ParseError::Numbers { found: numbers });
        }
        let sizes = [inputs, outputs, memory, heads];
        for (what, size) in ["inputs", "outputs", "memory", "heads"].into_iter().zip(sizes) {
            if size == 0 {
                return Err(ParseError::Zero { what });
            }
        }
        if [inputs, outputs, memory, heads, runs, features, mapped].iter().any(|&size| size > u16::MAX.into())
        {
            return Err(ParseError::Metadata);
        }
        let range = match range {
            0 => RangePolicy::Pass,
            1 => RangePolicy::Clamp,
            2 => RangePolicy::Extend,
            _ => return Err(ParseError::Metadata),
        };
        let non_finite = match non_finite {
            0 => NonFinitePolicy::Hold,
            1 => NonFinitePolicy::Refuse,
            _ => return Err(ParseError::Metadata),
        };
        if linear > 1 {
            return Err(ParseError::Metadata);
        }
        let [inputs, outputs, memory, heads] = sizes.map(|size| size as usize);
        let [runs, features, mapped] = [runs, features, mapped].map(|size| size as usize);
        let linear = linear == 1;
        Ok(Self {
            inputs,
            outputs,
            memory,
            heads,
            range,
            non_finite,
            runs,
            features,
            mapped,
            linear,
            settled,
            felt,
            degree,
        })
    }

    /// As they are encoded.
    #[cfg(feature = "alloc")]
    pub fn fields(&self) -> Fields {
        let sizes = [self.inputs, self.outputs, self.memory, self.heads].map(|size| size as u32);
        let [inputs, outputs, memory, heads] = sizes;
        let [runs, features, mapped] = [self.runs, self.features, self.mapped].map(|size| size as u32);
        let (range, non_finite) = (self.range as u32, self.non_finite as u32);
        let linear = u32::from(self.linear);
        [
            F32,
            inputs,
            outputs,
            memory,
            heads,
            range,
            non_finite,
            runs,
            features,
            mapped,
            linear,
            self.settled,
            self.felt,
        ]
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
