//! Making model files on a host (feature `alloc`): [`ModelSpec`] is a model in ordinary owned types, with the
//! cores in the paper's index order; [`ModelSpec::to_bytes`] lays it out as the device reads it.
//!
//! The round trip is exact: `from_bytes(to_bytes(spec)) == spec`, and bytes to spec to bytes gives the same bytes.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt::{Display, Formatter};

use crate::error::ParseError;
use crate::format::{self, Capacities, FORMAT, HEADER_LEN, MAGIC, NonFinitePolicy, RangePolicy};
use crate::kernel;
use crate::metadata::Metadata;
use crate::model::{HeadView, InputScaling, Model, Needs, OutputScaling, Shape, count_sums};

/// A model as its maker sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// The inputs, in the order of a sample.
    pub inputs: Vec<InputChannel>,
    /// The outputs.
    pub outputs: Vec<OutputChannel>,
    /// M.
    pub memory: usize,
    /// d.
    pub degree: usize,
    /// Policy for inputs outside their training range.
    pub range: RangePolicy,
    /// Policy for NaN and infinities.
    pub non_finite: NonFinitePolicy,
    /// The ensemble.
    pub heads: Vec<Head>,
    /// Where the model comes from.
    pub provenance: Provenance,
}

/// An input channel: the heads see x = (u - offset) * gain.
#[derive(Clone, Debug, PartialEq)]
pub struct InputChannel {
    /// Name, without line feeds.
    pub name: String,
    /// Subtracted first.
    pub offset: f32,
    /// Multiplied then; positive.
    pub gain: f32,
    /// Smallest value seen in training.
    pub low: f32,
    /// Largest value seen in training.
    pub high: f32,
}

/// An output channel: y = offset + scale * (weighted sum of the heads).
#[derive(Clone, Debug, PartialEq)]
pub struct OutputChannel {
    /// Name, without line feeds.
    pub name: String,
    /// Added last.
    pub offset: f32,
    /// Multiplied first; positive.
    pub scale: f32,
    /// RMS residual on data the model was not fitted to, physical units; 0 if unknown.
    pub residual: f32,
}

/// Where a model comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Program and version.
    pub tool: String,
    /// Seed of all randomness in training.
    pub seed: u64,
    /// Hash of the training data.
    pub data_hash: u64,
    /// Anything else.
    pub note: String,
}

/// A tensor network over a subset of the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The inputs it sees, strictly increasing.
    pub inputs: Vec<usize>,
    /// Its weight in the ensemble.
    pub weight: f32,
    /// V1, ..., Vd.
    pub cores: Vec<Core>,
}

/// A core V of size r_{k-1} x q x r_k.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// r_{k-1}.
    pub left: usize,
    /// Features: inputs of the head times M, plus 1.
    pub q: usize,
    /// r_k.
    pub right: usize,
    /// V(a, i, b) at `(a * q + i) * right + b`.
    pub data: Vec<f32>,
}

/// Why a [`ModelSpec`] cannot be written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// A dimension is zero or larger than the format can say.
    Size {
        /// Which one.
        what: &'static str,
        /// What it is.
        found: usize,
        /// The largest possible.
        limit: usize,
    },
    /// A head does not have d cores.
    CoreCount {
        /// Head index.
        head: usize,
        /// Its cores.
        found: usize,
        /// d.
        expected: usize,
    },
    /// A core's dimensions do not fit its neighbours, the outputs or the features of its head.
    CoreShape {
        /// Head index.
        head: usize,
        /// Core index.
        core: usize,
        /// left, q, right of the core.
        found: (usize, usize, usize),
        /// left and q that belong there; right must be 1 in the last core.
        expected: (usize, usize),
    },
    /// A core does not have left * q * right coefficients.
    CoreLength {
        /// Head index.
        head: usize,
        /// Core index.
        core: usize,
        /// Coefficients given.
        found: usize,
        /// left * q * right.
        expected: usize,
    },
    /// A name contains a line feed, which separates names in the file.
    Name(String),
    /// What the reader would say of the result.
    Refused(ParseError),
}

impl Display for BuildError {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Size { what, found, limit } => write!(f, "{found} {what}; 1 to {limit} are possible"),
            Self::CoreCount { head, found, expected } => {
                write!(f, "head {head} has {found} cores; a model of degree {expected} needs {expected}")
            }
            Self::CoreShape { head, core, found: (left, q, right), expected } => write!(
                f,
                "core {core} of head {head} is {left} x {q} x {right}; it must be {} x {} x r, with r = 1 in the last",
                expected.0, expected.1
            ),
            Self::CoreLength { head, core, found, expected } => {
                write!(f, "core {core} of head {head} has {found} coefficients; its shape needs {expected}")
            }
            Self::Name(name) => write!(f, "the channel name {name:?} contains a line feed"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BuildError {}

impl Core {
    /// A core from coefficients in the order (a, i, b), b fastest.
    #[must_use]
    pub fn new(left: usize, q: usize, right: usize, data: Vec<f32>) -> Self {
        Self { left, q, right, data }
    }
}

impl Head {
    /// A head over `inputs` (indices, strictly increasing) with the cores V1, ..., Vd.
    #[must_use]
    pub fn from_cores(inputs: Vec<usize>, weight: f32, cores: Vec<Core>) -> Self {
        Self { inputs, weight, cores }
    }

    /// r_0, ..., r_d, after checking that the cores chain.
    fn ranks(&self, head: usize, outputs: usize, degree: usize, q: usize) -> Result<Vec<u32>, BuildError> {
        if self.cores.len() != degree {
            return Err(BuildError::CoreCount { head, found: self.cores.len(), expected: degree });
        }
        let mut ranks = alloc::vec![fit("outputs", outputs, u32::MAX as usize)?];
        let mut left = outputs;
        for (core, c) in self.cores.iter().enumerate() {
            let found = (c.left, c.q, c.right);
            if c.left != left || c.q != q || (core + 1 == degree && c.right != 1) {
                return Err(BuildError::CoreShape { head, core, found, expected: (left, q) });
            }
            let expected = c.left.saturating_mul(c.q).saturating_mul(c.right);
            if c.data.len() != expected {
                return Err(BuildError::CoreLength { head, core, found: c.data.len(), expected });
            }
            ranks.push(fit("rank", c.right, u32::MAX as usize)?);
            left = c.right;
        }
        Ok(ranks)
    }

    fn write(
        &self,
        head: usize,
        shape: &Shape,
        needs: &mut Needs,
        block: &mut Vec<u32>,
    ) -> Result<(), BuildError> {
        let q = self.inputs.len() * shape.memory + 1;
        let ranks = self.ranks(head, shape.outputs, shape.degree, q)?;
        let overflow = BuildError::Refused(ParseError::SizeOverflow);
        let sums =
            needs.add(shape, self.inputs.len(), &ranks).and_then(|()| count_sums(&ranks)).ok_or(overflow)?;
        block.push(fit("inputs of a head", self.inputs.len(), u16::MAX.into())?);
        block.push(self.weight.to_bits());
        block.push(fit("sums of a head", sums, u32::MAX as usize)?);
        block.extend(&ranks);
        block.extend(self.inputs.iter().map(|&input| u32::try_from(input).unwrap_or(u32::MAX)));
        let mut laid_out = alloc::vec![0u32; sums * q];
        let mut first = 0;
        for core in self.cores.iter().rev() {
            for (at, value) in core.data.iter().enumerate() {
                let (a, i, b) = (at / core.right / q, at / core.right % q, at % core.right);
                if let Some(place) =
                    laid_out.get_mut(kernel::position(sums, q, first + a * core.right + b, i))
                {
                    *place = value.to_bits();
                }
            }
            first += core.left * core.right;
        }
        block.append(&mut laid_out);
        Ok(())
    }

    fn read(view: &HeadView<'_>) -> Self {
        let cores = (0..view.ranks.len() - 1).filter_map(|k| view.core(k)).map(|core| {
            let data = (0..core.left * core.q * core.right)
                .filter_map(|at| {
                    core.get(at / core.right / core.q, at / core.right % core.q, at % core.right)
                })
                .collect();
            Core { left: core.left, q: core.q, right: core.right, data }
        });
        Self {
            inputs: view.inputs.iter().map(|&input| input as usize).collect(),
            weight: view.weight,
            cores: cores.collect(),
        }
    }
}

impl ModelSpec {
    /// The `.tha` file of this model.
    ///
    /// # Errors
    /// [`BuildError`] when the parts do not fit together. The result has been through [`Model::parse`], so a file
    /// that is written can be read.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BuildError> {
        let shape = Shape {
            inputs: self.inputs.len(),
            outputs: self.outputs.len(),
            memory: self.memory,
            degree: self.degree,
            heads: self.heads.len(),
        };
        let input_names = join(self.inputs.iter().map(|channel| &channel.name))?;
        let output_names = join(self.outputs.iter().map(|channel| &channel.name))?;
        let metadata = Metadata {
            inputs: fit("inputs", shape.inputs, u16::MAX.into())?,
            outputs: fit("outputs", shape.outputs, u16::MAX.into())?,
            memory: fit("samples of memory", shape.memory, u16::MAX.into())?,
            degree: fit("cores (degree)", shape.degree, u8::MAX.into())?,
            heads: fit("heads", shape.heads, u16::MAX.into())?,
            range: self.range,
            non_finite: self.non_finite,
            input_names: input_names.as_bytes(),
            output_names: output_names.as_bytes(),
            tool: self.provenance.tool.as_bytes(),
            seed: self.provenance.seed,
            data_hash: self.provenance.data_hash,
            note: self.provenance.note.as_bytes(),
        };
        let metadata =
            postcard::to_allocvec(&metadata).map_err(|_| BuildError::Refused(ParseError::Metadata))?;

        let mut block = Vec::new();
        for channel in &self.inputs {
            block.extend([channel.offset, channel.gain, channel.low, channel.high].map(f32::to_bits));
        }
        for channel in &self.outputs {
            block.extend([channel.offset, channel.scale, channel.residual].map(f32::to_bits));
        }
        let mut needs = Needs::default();
        for (k, head) in self.heads.iter().enumerate() {
            head.write(k, &shape, &mut needs, &mut block)?;
        }
        let overflow = BuildError::Refused(ParseError::SizeOverflow);
        let capacities = needs.capacities(&shape).ok_or(overflow)?;
        let bytes = assemble(&metadata, &block, &capacities)?;
        parse_copy(&bytes, |_| ()).map_err(BuildError::Refused)?;
        Ok(bytes)
    }

    /// The model in a `.tha` file, at any address.
    ///
    /// # Errors
    /// [`ParseError`] as from [`Model::parse`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseError> {
        parse_copy(bytes, Self::from_model)
    }

    /// The owned copy of a parsed model.
    #[must_use]
    pub fn from_model(model: &Model<'_>) -> Self {
        let input = model.input_names().zip(model.inputs()).map(|(name, scaling)| {
            let InputScaling { offset, gain, low, high } = *scaling;
            InputChannel { name: name.into(), offset, gain, low, high }
        });
        let output = model.output_names().zip(model.outputs()).map(|(name, scaling)| {
            let OutputScaling { offset, scale, residual } = *scaling;
            OutputChannel { name: name.into(), offset, scale, residual }
        });
        let provenance = model.provenance();
        Self {
            inputs: input.collect(),
            outputs: output.collect(),
            memory: model.shape().memory,
            degree: model.shape().degree,
            range: model.range_policy(),
            non_finite: model.non_finite_policy(),
            heads: model.heads().map(|view| Head::read(&view)).collect(),
            provenance: Provenance {
                tool: provenance.tool.to_string(),
                seed: provenance.seed,
                data_hash: provenance.data_hash,
                note: provenance.note.to_string(),
            },
        }
    }
}

/// Header, metadata, padding, block.
fn assemble(metadata: &[u8], block: &[u32], capacities: &Capacities) -> Result<Vec<u8>, BuildError> {
    let padded = metadata.len().next_multiple_of(4);
    let length = HEADER_LEN + padded + 4 * block.len();
    let limit = u32::MAX as usize;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(MAGIC);
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend((HEADER_LEN as u16).to_le_bytes());
    for (what, number) in [
        ("bytes of file", length),
        ("checksum", 1),
        ("bytes of metadata", metadata.len()),
        ("words of block", block.len()),
        ("inputs", capacities.inputs),
        ("values of history", capacities.history),
        ("values of scratch", capacities.scratch),
    ] {
        bytes.extend(fit::<u32>(what, number, limit)?.to_le_bytes());
    }
    bytes.extend(metadata);
    bytes.resize(HEADER_LEN + padded, 0);
    for word in block {
        bytes.extend(word.to_le_bytes());
    }
    let checksum = format::checksum(&bytes).to_le_bytes();
    if let Some(place) = bytes.get_mut(12..16) {
        place.copy_from_slice(&checksum);
    }
    Ok(bytes)
}

/// Parses a copy of `bytes` at an aligned address.
fn parse_copy<T>(bytes: &[u8], with: impl FnOnce(&Model<'_>) -> T) -> Result<T, ParseError> {
    let mut words = alloc::vec![0u32; bytes.len().div_ceil(4)];
    let aligned: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let aligned = aligned.get_mut(..bytes.len()).unwrap_or_default();
    aligned.copy_from_slice(bytes);
    Model::parse(aligned).map(|model| with(&model))
}

/// A size as the format stores it: positive and within `limit`.
fn fit<T: TryFrom<usize>>(what: &'static str, found: usize, limit: usize) -> Result<T, BuildError> {
    match T::try_from(found) {
        Ok(value) if found > 0 => Ok(value),
        _ => Err(BuildError::Size { what, found, limit }),
    }
}

fn join<'n>(names: impl Iterator<Item = &'n String>) -> Result<String, BuildError> {
    let mut joined = String::new();
    for (k, name) in names.enumerate() {
        if name.contains('\n') {
            return Err(BuildError::Name(name.clone()));
        }
        if k > 0 {
            joined.push('\n');
        }
        joined.push_str(name);
    }
    Ok(joined)
}
