//! From a [`ModelSpec`] to a file of integers, in given [`Units`].

mod cores;
mod stage;

use alloc::{vec, vec::Vec};

use super::{AlignedBytes, BuildError, Tables, fit, overflow};
use crate::build::{Head, ModelSpec, Units};
use crate::description::Description;
use crate::integer::{LIMIT, Model, Needs, Run, VECTOR};
use cores::{IntegerCores, integer_cores};
use stage::{Features, integer_runs};

/// 2^31, which no sum may reach.
const TOO_LARGE: f64 = 2_147_483_648.0;

impl ModelSpec {
    /// The `.tha` file of this model in 16-bit integers, and the units that it has: near those given, or smaller where they leave no room.
    ///
    /// # Errors
    /// [`BuildError`] when the parts do not fit together or the units leave no room. The result has been through
    /// [`integer::Model::parse`](crate::integer::Model::parse), so no sum of it can overflow.
    pub fn to_integers(&self, units: &Units) -> Result<(Vec<u8>, Units), BuildError> {
        let Tables { shape, plain, runs, records, description } = self.tables(Description::I16)?;
        let mut block = vec![units.bits];
        let mut own_units = Vec::new();
        for (input, channel) in self.inputs.iter().enumerate() {
            let (counts, unit) =
                units.input(input, channel).ok_or(BuildError::Unit { what: "input", index: input })?;
            block.extend(words(&[counts]));
            own_units.push(unit);
        }
        block.extend(self.output_words());
        let units_at = block.len();
        block.extend(vec![0; 2 * shape.outputs]);
        block.extend(self.half_widths()?.iter().map(|width| width.to_bits()));

        let window = shape.inputs * shape.memory;
        let (runs, factors) = integer_runs(&runs, window)?;
        block.extend(words(&runs));
        let features =
            self.stage.integer_features(&records, (window, plain), units, (&own_units, &factors))?;
        let Features { records: own, units: feature_units, nodes } = features;
        block.extend(shorts(bytemuck::cast_slice(&own)));
        for own in nodes.iter().skip(plain) {
            block.push(fit("nodes", own.len(), u32::MAX as usize)?);
        }
        for own in &nodes {
            block.extend(words(own));
        }

        // The heads before the linear part, which takes their unit, in a block of their own.
        let mut heads = Vec::new();
        let mut needs = Needs::default();
        let mut shares: Vec<IntegerCores> = Vec::new();
        for (k, head) in self.heads.iter().enumerate() {
            let rows = self.row_units(head, units.bits, &own_units, &feature_units);
            let ranks = head.ranks(k, rows.len() + 1)?;
            let mapped = head.features.iter().filter(|&&feature| feature >= plain).count();
            let gathered = if head.features.is_empty() { rows.len() } else { head.features.len() };
            let groups = self.groups(head);
            let wanted = units.heads.get(k).ok_or(BuildError::Unit { what: "head", index: k })?;
            let moved = self.at_nodes(head, &nodes, &feature_units);
            let cores = integer_cores(&moved, &rows, &groups, wanted, units.bits)
                .ok_or(BuildError::Unit { what: "head", index: k })?;
            let sums = cores.constants.len();
            needs.gather = needs.gather.max(gathered);
            needs.mapped = needs.mapped.max(mapped);
            needs.sums = needs.sums.max(sums);
            heads.push((head, ranks, rows.len()));
            shares.push(cores);
        }
        let per_output: Vec<f64> =
            (0..shape.outputs).map(|j| self.counts_per_unit(j, &shares, &feature_units)).collect();
        if !self.stage.linear.is_empty() {
            block.extend(self.linear_words(&per_output, &feature_units)?);
        }
        for ((head, ranks, rows), cores) in heads.iter().zip(&shares) {
            block.extend(head_words(head, ranks, (*rows, records.len()), cores, &per_output));
        }
        for (j, (output, counts)) in self.outputs.iter().zip(&per_output).enumerate() {
            let factor = units.factors.get(j).copied().unwrap_or(1.0);
            let unit = (f64::from(output.scale) * factor / counts) as f32;
            let bound = units.bounds.get(j).copied().unwrap_or(0.0);
            if let Some(place) = block.get_mut(units_at + 2 * j..units_at + 2 * j + 2) {
                place.copy_from_slice(&[unit.to_bits(), bound.to_bits()]);
            }
        }
        let beyond = if self.stage.linear.is_empty() { 0 } else { records.len() };
        let signals = runs.iter().map(Run::values).sum();
        let capacities = needs
            .sized(&shape, signals, records.len(), records.len() - plain, beyond)
            .ok_or_else(overflow)?;
        let bytes = self.assemble(&description, &block, &capacities)?;
        Model::parse(&AlignedBytes::new(&bytes)).map_err(BuildError::Refused)?;
        let heads = shares.into_iter().map(|cores| cores.units).collect();
        Ok((
            bytes,
            Units { inputs: own_units, features: feature_units, heads, outputs: per_output, ..units.clone() },
        ))
    }

    /// The shifts and coefficients of what is beyond the range of the features.
    fn linear_words(&self, per_output: &[f64], features: &[f64]) -> Result<Vec<u32>, BuildError> {
        let (mut words, mut table) = (Vec::new(), Vec::new());
        for (row, counts) in self.stage.linear.chunks(self.stage.features.len().max(1)).zip(per_output) {
            let wanted: Vec<f64> =
                row.iter().zip(features).map(|(value, unit)| f64::from(*value) * counts / unit).collect();
            let sum: f64 = wanted.iter().map(|value| value.abs()).sum();
            let largest = wanted.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            let fits = |shift: &u16| {
                let factor = exp2(*shift);
                largest * factor < f64::from(LIMIT)
                    && (sum * factor + row.len() as f64) * f64::from(VECTOR) + factor < TOO_LARGE
            };
            let shift =
                (0..=30u16).rev().find(fits).ok_or(BuildError::Unit { what: "linear part", index: 0 })?;
            words.push(u32::from(shift));
            table.extend(wanted.iter().map(|value| libm::round(value * exp2(shift)) as i16));
        }
        words.extend(shorts(&table));
        Ok(words)
    }

    /// Counts per standardised unit of output `j`: as many as the weights and the sum of all heads have room for.
    fn counts_per_unit(&self, j: usize, shares: &[IntegerCores], features: &[f64]) -> f64 {
        let weights = self.heads.iter().zip(shares).filter_map(|(head, cores)| {
            let own = j.checked_sub(head.outputs.start)?;
            Some(f64::from(*head.weights.get(own)?).abs() / cores.units.first()?.get(own)?)
        });
        let (largest, sum) = weights.fold((0.0f64, 0.0), |(most, sum), share| (most.max(share), sum + share));
        let row = self.stage.linear.chunks(features.len().max(1)).nth(j).unwrap_or_default();
        let beyond: f64 = row.iter().zip(features).map(|(value, unit)| f64::from(*value).abs() / unit).sum();
        let room = TOO_LARGE / 2.1 / f64::from(VECTOR);
        // Sums of nothing may be -0.
        let limits = [(f64::from(LIMIT) - 1.0) / largest.abs(), room / sum.abs(), room / beyond.abs()];
        let counts = limits.into_iter().fold(f64::INFINITY, f64::min);
        if counts.is_finite() { counts } else { 1.0 }
    }
}

/// A head as it stands in the block.
fn head_words(
    head: &Head,
    ranks: &[u32],
    (rows, features): (usize, usize),
    cores: &IntegerCores,
    per_output: &[f64],
) -> Vec<u32> {
    let mut words = Vec::new();
    let IntegerCores { shifts, constants, coefficients, units } = cores;
    let sizes = [head.inputs.len(), head.outputs.start, head.outputs.len(), head.cores.len()];
    words.extend(sizes.map(|size| size as u32));
    words.extend([head.features.len(), constants.len(), rows].map(|size| size as u32));
    words.extend(ranks);
    words.extend(self::words(shifts));
    words.extend(shorts(&head.inputs.iter().map(|&input| input as i16).collect::<Vec<_>>()));
    let weight = |(j, (weight, unit)): (usize, (&f32, &f64))| {
        let counts = per_output.get(head.outputs.start + j).copied().unwrap_or(0.0);
        libm::round(f64::from(*weight) * counts / unit) as i16
    };
    let own = units.first().map_or(&[][..], |units| units);
    words.extend(shorts(&head.weights.iter().zip(own).enumerate().map(weight).collect::<Vec<_>>()));
    let mut chosen = vec![0u32; features.div_ceil(32)];
    for &feature in &head.features {
        if let Some(word) = chosen.get_mut(feature / 32) {
            *word |= 1 << (feature % 32);
        }
    }
    words.extend(chosen);
    words.extend(constants.iter().map(|&constant| constant as u32));
    // Blocks of four sums, then of two and of one, row by row.
    let (fours, rest) = coefficients.as_chunks::<4>();
    let blocks = fours.iter().map(|block| block.as_slice()).chain(rest.chunks(2));
    let mut list: Vec<i16> = Vec::new();
    for block in blocks {
        list.extend((0..rows).flat_map(|row| block.iter().filter_map(move |sum| sum.get(row))));
    }
    words.extend(shorts(&list));
    words
}

fn exp2(shift: u16) -> f64 {
    (1u64 << shift) as f64
}

fn words<T: bytemuck::Pod>(table: &[T]) -> Vec<u32> {
    let (words, _) = bytemuck::cast_slice::<T, u8>(table).as_chunks::<4>();
    words.iter().map(|&word| u32::from_le_bytes(word)).collect()
}

/// Padded to a word.
fn shorts(table: &[i16]) -> Vec<u32> {
    let half = |value: Option<&i16>| u32::from(value.map_or(0, |&value| value as u16));
    table.chunks(2).map(|pair| half(pair.first()) | half(pair.get(1)) << 16).collect()
}
