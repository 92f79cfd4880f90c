//! The parts of a file that postcard decodes, borrowed from flash: the description that the device reads, and what is said
//! about the model, which only a host reads. The two were one in format 1.

use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::format::{NonFinitePolicy, RangePolicy};

/// The kind of numbers in the block: f32. Others may come.
pub(crate) const F32: u8 = 0;

/// What the device must know before it reads the block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Description {
    pub numbers: u8,
    pub inputs: u16,
    pub outputs: u16,
    pub memory: u16,
    pub heads: u16,
    pub range: RangePolicy,
    pub non_finite: NonFinitePolicy,
    /// Runs of sections.
    pub runs: u16,
    /// Features, the mapped ones included; 0: the lags of all inputs.
    pub features: u16,
    pub mapped: u16,
    /// Whether there are coefficients for what is beyond the range.
    pub linear: bool,
    /// The sample that gives the first output, if later than M.
    pub settled: u32,
    /// Samples for which a bad sample is felt, if longer than M.
    pub felt: u32,
}

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

/// Both in one, as format 1 had it. All heads have one degree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Format1<'a> {
    inputs: u16,
    outputs: u16,
    memory: u16,
    degree: u8,
    heads: u16,
    range: RangePolicy,
    non_finite: NonFinitePolicy,
    #[serde(borrow)]
    about: About<'a>,
}

impl Description {
    /// The description of a file of format 2.
    pub fn decode(bytes: &[u8]) -> Result<Self, ParseError> {
        let description: Self = whole(bytes)?;
        if description.numbers != F32 {
            return Err(ParseError::Numbers { found: description.numbers });
        }
        description.check()?;
        Ok(description)
    }

    /// Description and degree of a file of format 1, and what is said about it.
    pub fn decode_1(bytes: &[u8]) -> Result<(Self, usize, About<'_>), ParseError> {
        let Format1 { inputs, outputs, memory, degree, heads, range, non_finite, about } = whole(bytes)?;
        if range == RangePolicy::Extend {
            return Err(ParseError::Metadata);
        }
        let description = Self {
            numbers: F32,
            inputs,
            outputs,
            memory,
            heads,
            range,
            non_finite,
            runs: 0,
            features: 0,
            mapped: 0,
            linear: false,
            settled: 0,
            felt: 0,
        };
        description.check()?;
        if degree == 0 {
            return Err(ParseError::Zero { what: "degree" });
        }
        Ok((description, degree.into(), about))
    }

    fn check(&self) -> Result<(), ParseError> {
        for (what, size) in [
            ("inputs", self.inputs),
            ("outputs", self.outputs),
            ("memory", self.memory),
            ("heads", self.heads),
        ] {
            if size == 0 {
                return Err(ParseError::Zero { what });
            }
        }
        Ok(())
    }
}

impl<'a> About<'a> {
    /// Decodes and checks it: as many names as channels, texts in UTF-8.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ParseError> {
        whole(bytes)
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

/// All of `bytes` as one value.
fn whole<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ParseError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(ParseError::MetadataTrailing { extra: rest.len() }),
        Err(_) => Err(ParseError::Metadata),
    }
}
