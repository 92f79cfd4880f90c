//! From a [`ModelSpec`] to the bytes of its file.

mod integer;
mod stage;

use alloc::{string::String, vec, vec::Vec};

use super::{AlignedBytes, BuildError, Head, Interval, ModelSpec, OutputChannel};
use crate::description::{About, Description};
use crate::error::ParseError;
use crate::facts::Shape;
use crate::format::{Capacities, HEADER_LEN, MAGIC, RangePolicy};
use crate::head::{Layout, count_sums};
use crate::kernel;
use crate::model::Model;
use crate::parse::Needs;
use crate::stage::{FeatureRecord, Run, Stage};

/// What all kinds of numbers share.
struct Tables {
    shape: Shape,
    /// Features that are not mapped.
    plain: usize,
    runs: Vec<Run>,
    records: Vec<FeatureRecord>,
    description: Description,
}

fn overflow() -> BuildError {
    BuildError::Refused(ParseError::SizeOverflow)
}

impl ModelSpec {
    /// The `.tha` file of this model.
    ///
    /// # Errors
    /// [`BuildError`] when the parts do not fit together. The result has been through [`Model::parse`](crate::Model::parse), so
    /// a file that is written can be read.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BuildError> {
        let Tables { shape, plain, runs, records, description } = self.tables(Description::F32)?;
        let mapped = self.stage.features.get(plain..).unwrap_or_default();
        let mut block = Vec::new();
        for channel in &self.inputs {
            block.extend([channel.offset, channel.gain, channel.low, channel.high].map(f32::to_bits));
        }
        block.extend(self.output_words());
        block.extend(self.half_widths()?.iter().map(|width| width.to_bits()));
        block.extend(bytemuck::cast_slice::<Run, u32>(&runs));
        block.extend(bytemuck::cast_slice::<FeatureRecord, u32>(&records));
        for feature in mapped {
            block.push(fit("nodes", feature.nodes.len(), u32::MAX as usize)?);
        }
        block.extend(mapped.iter().flat_map(|feature| &feature.nodes).map(|node| node.to_bits()));
        block.extend(self.stage.linear.iter().map(|value| value.to_bits()));
        let mut needs = Needs::default();
        for (k, head) in self.heads.iter().enumerate() {
            self.write_head(k, head, plain, &mut needs, &mut block)?;
        }
        let counts = vec![0; mapped.len()];
        let tables = Stage {
            features: &records,
            counts: &counts,
            linear: &self.stage.linear,
            signals: runs.iter().map(Run::values).sum(),
            ..Stage::default()
        };
        let capacities = needs.capacities(&shape, &tables, Layout::Two).ok_or_else(overflow)?;
        let bytes = self.assemble(&description, &block, &capacities)?;
        Model::parse(&AlignedBytes::new(&bytes)).map_err(BuildError::Refused)?;
        Ok(bytes)
    }

    /// What comes before the block, and the tables of the stage, after the checks that all kinds of numbers share.
    fn tables(&self, numbers: u32) -> Result<Tables, BuildError> {
        let shape = Shape {
            inputs: self.inputs.len(),
            outputs: self.outputs.len(),
            memory: self.memory,
            degree: self.degree(),
            heads: self.heads.len(),
        };
        let (features, plain) = (self.stage.features.len(), self.stage.plain()?);
        if self.range == RangePolicy::Extend && self.stage.linear.is_empty() {
            return Err(BuildError::NothingToExtend);
        }
        let expected = features.saturating_mul(shape.outputs);
        if !self.stage.linear.is_empty() && self.stage.linear.len() != expected {
            return Err(BuildError::Linear { found: self.stage.linear.len(), expected });
        }
        let window = shape.inputs.checked_mul(shape.memory).ok_or_else(overflow)?;
        let (runs, places) = self.stage.runs(shape.inputs, window)?;
        let records = self.stage.records(shape, window, &places)?;
        let limit = usize::from(u16::MAX);
        let size =
            |what, found: usize| u16::try_from(found).map_err(|_| BuildError::Size { what, found, limit });
        let samples = |found: usize| {
            u32::try_from(found).map_err(|_| BuildError::Size {
                what: "samples",
                found,
                limit: u32::MAX as usize,
            })
        };
        let description = Description {
            inputs: fit::<u16>("inputs", shape.inputs, limit)?.into(),
            outputs: fit::<u16>("outputs", shape.outputs, limit)?.into(),
            memory: fit::<u16>("samples of memory", shape.memory, limit)?.into(),
            heads: fit::<u16>("heads", shape.heads, limit)?.into(),
            numbers,
            degree: 0,
            range: self.range as u32,
            non_finite: self.non_finite as u32,
            runs: size("runs of sections", runs.len())?.into(),
            features: size("features", features)?.into(),
            mapped: size("features", features - plain)?.into(),
            linear: (!self.stage.linear.is_empty()).into(),
            settled: samples(self.stage.settled)?,
            felt: samples(self.stage.felt)?,
            coverage: self.interval.as_ref().map_or(0, Interval::millionths),
        };
        Ok(Tables { shape, plain, runs, records, description })
    }

    fn output_words(&self) -> impl Iterator<Item = u32> {
        let words =
            |channel: &OutputChannel| [channel.offset, channel.scale, channel.residual].map(f32::to_bits);
        self.outputs.iter().flat_map(words)
    }

    fn half_widths(&self) -> Result<&[f32], BuildError> {
        let widths = self.interval.as_ref().map_or(&[][..], Interval::half_widths);
        match self.interval.is_some() && widths.len() != self.outputs.len() {
            true => Err(BuildError::Interval { found: widths.len(), outputs: self.outputs.len() }),
            false => Ok(widths),
        }
    }

    /// The whole file.
    fn assemble(
        &self,
        description: &Description,
        block: &[u32],
        capacities: &Capacities,
    ) -> Result<Vec<u8>, BuildError> {
        let (format, fields) = description.fields();
        // One after the other, without a length in front.
        let fields: Result<Vec<_>, _> = fields.map(|field| encode(&field)).collect();
        assemble(format, &fields?.concat(), block, &self.about()?, capacities)
    }

    /// What only a host reads.
    fn about(&self) -> Result<Vec<u8>, BuildError> {
        let input_names = join(self.inputs.iter().map(|channel| &channel.name))?;
        let output_names = join(self.outputs.iter().map(|channel| &channel.name))?;
        encode(&About {
            input_names: input_names.as_bytes(),
            output_names: output_names.as_bytes(),
            tool: self.provenance.tool.as_bytes(),
            seed: self.provenance.seed,
            data_hash: self.provenance.data_hash,
            note: self.provenance.note.as_bytes(),
        })
    }

    fn write_head(
        &self,
        k: usize,
        head: &Head,
        plain: usize,
        needs: &mut Needs,
        block: &mut Vec<u32>,
    ) -> Result<(), BuildError> {
        let all = &self.stage.features;
        let (q, gathered) = if all.is_empty() {
            let q = head.inputs.len().checked_mul(self.memory).and_then(|n| n.checked_add(1));
            let q = q.ok_or_else(overflow)?;
            (q, if head.inputs.len() == self.inputs.len() { 0 } else { q - 1 })
        } else {
            let rows = |&feature: &usize| all.get(feature).map_or(1, |feature| feature.rows());
            let used = head.features.len();
            (1 + head.features.iter().map(rows).sum::<usize>(), if used == all.len() { 0 } else { used })
        };
        let served = head.outputs.len();
        if head.weights.len() != served {
            return Err(BuildError::Weights { head: k, found: head.weights.len(), expected: served });
        }
        let ranks = head.ranks(k, q)?;
        let sums = count_sums(&ranks).ok_or_else(overflow)?;
        needs.gather = needs.gather.max(gathered);
        needs.mapped = needs.mapped.max(head.features.iter().filter(|&&feature| feature >= plain).count());
        needs.sums = needs.sums.max(sums);
        let word = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        block.push(fit("inputs of a head", head.inputs.len(), u16::MAX.into())?);
        block.push(word(head.outputs.start));
        block.push(fit("outputs of a head", served, u16::MAX.into())?);
        block.push(fit::<u8>("cores of a head (degree)", head.cores.len(), u8::MAX.into())?.into());
        block.push(word(head.features.len()));
        block.push(fit("sums of a head", sums, u32::MAX as usize)?);
        block.push(word(q));
        block.extend(&ranks);
        block.extend(head.inputs.iter().map(|&input| word(input)));
        block.extend(head.weights.iter().map(|weight| weight.to_bits()));
        block.extend(head.features.iter().map(|&feature| word(feature)));
        let mut laid_out = vec![0u32; sums * q];
        let mut first = 0;
        for core in head.cores.iter().rev() {
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
}

impl Head {
    /// r_0, ..., r_d, after checking that the cores chain.
    fn ranks(&self, head: usize, q: usize) -> Result<Vec<u32>, BuildError> {
        let mut left = self.outputs.len();
        let mut ranks = vec![fit("outputs of a head", left, u16::MAX.into())?];
        for (core, c) in self.cores.iter().enumerate() {
            let found = (c.left, c.q, c.right);
            if c.left != left || c.q != q || (core + 1 == self.cores.len() && c.right != 1) {
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
}

/// Header, description, padding, block, about.
fn assemble(
    format: u16,
    description: &[u8],
    block: &[u32],
    about: &[u8],
    capacities: &Capacities,
) -> Result<Vec<u8>, BuildError> {
    let padded = description.len().next_multiple_of(4);
    let length = HEADER_LEN + padded + 4 * block.len() + about.len();
    let limit = u32::MAX as usize;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(MAGIC);
    bytes.extend(format.to_le_bytes());
    bytes.extend((HEADER_LEN as u16).to_le_bytes());
    for (what, number) in [
        ("bytes of file", length),
        ("checksum", 1),
        ("bytes of description", description.len()),
        ("words of block", block.len()),
        ("inputs", capacities.inputs),
        ("values of history", capacities.history),
        ("values of scratch", capacities.scratch),
        ("bytes of names and provenance", about.len()),
    ] {
        bytes.extend(fit::<u32>(what, number, limit)?.to_le_bytes());
    }
    bytes.extend(description);
    bytes.resize(HEADER_LEN + padded, 0);
    for word in block {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(about);
    let checksum = crate::format::checksum(&bytes).to_le_bytes();
    if let Some(place) = bytes.get_mut(12..16) {
        place.copy_from_slice(&checksum);
    }
    Ok(bytes)
}

fn encode<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, BuildError> {
    postcard::to_allocvec(value).map_err(|_| BuildError::Refused(ParseError::Metadata))
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
