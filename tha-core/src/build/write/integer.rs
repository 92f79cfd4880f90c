//! From a [`ModelSpec`] to a file of integers, in given [`Units`].

use alloc::{vec, vec::Vec};

use super::super::read::parse_copy;
use super::{BuildError, Tables, fit, overflow};
use crate::build::{Core, Head, ModelSpec, Units};
use crate::description::Description;
use crate::integer::{ALPHA, FRACTION, FeatureRecord, InputCounts, LIMIT, Model, Needs, Node, Run, Shifts};
use crate::stage;

/// 2^31, which no sum may reach.
const TOO_LARGE: f64 = 2_147_483_648.0;
/// The largest size of a vector.
const VECTOR: f64 = 32_768.0;

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

        let (runs, factors) = integer_runs(&runs, shape.inputs * shape.memory)?;
        block.extend(words(&runs));
        let signal = |position: u32, input: usize| {
            let factor = (position as usize).checked_sub(shape.inputs * shape.memory);
            let factor = factor.map_or(1.0, |value| factors.get(value).copied().unwrap_or(1.0));
            f64::from(1u32 << FRACTION) * factor * own_units.get(input).copied().unwrap_or(1.0)
        };
        let mut feature_units = Vec::new();
        let mut nodes = Vec::new();
        for (index, (record, feature)) in records.iter().zip(&self.stage.features).enumerate() {
            let input = self.stage.input_of(feature.plus).unwrap_or(0);
            let kappa = signal(record.plus, input);
            let other = record.minus != stage::FeatureRecord::NONE && signal(record.minus, input) != kappa;
            let wanted = units.features.get(index).copied().unwrap_or(0.0);
            let scale = scale(wanted / kappa, 47).filter(|_| !other);
            let (gain, shift) = scale.ok_or(BuildError::Unit { what: "feature", index })?;
            let unit = f64::from(gain) / exp2(shift) * kappa;
            let most = if index < plain { f64::from(1u32 << units.bits) } else { LIMIT.into() };
            let at = |value: f32| libm::round((f64::from(value) * unit).clamp(-most, most)) as i16;
            let position = |position: u32| {
                u16::try_from(position).map_err(|_| BuildError::Unit { what: "position of feature", index })
            };
            block.extend(words(&[FeatureRecord {
                plus: position(record.plus)?,
                minus: if record.minus == stage::FeatureRecord::NONE {
                    FeatureRecord::NONE
                } else {
                    position(record.minus)?
                },
                gain,
                shift,
                low: at(record.low),
                high: at(record.high),
            }]));
            feature_units.push(unit);
            nodes.push(integer_nodes(feature.nodes.iter().map(|&node| at(node))));
        }
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
            let cores = integer_cores(head, &rows, &groups, wanted, units.bits)
                .ok_or(BuildError::Unit { what: "head", index: k })?;
            let sums = cores.constants.len();
            needs.gather = needs.gather.max(gathered);
            needs.mapped = needs.mapped.max(mapped);
            needs.sums = needs.sums.max(sums.next_multiple_of(2));
            heads.push((head, ranks, rows.len()));
            shares.push(cores);
        }
        let per_output: Vec<f64> =
            (0..shape.outputs).map(|j| self.counts_per_unit(j, &shares, &feature_units)).collect();
        if !self.stage.linear.is_empty() {
            let mut table: Vec<i16> = Vec::new();
            for (row, counts) in self.stage.linear.chunks(self.stage.features.len().max(1)).zip(&per_output) {
                let wanted: Vec<f64> = row
                    .iter()
                    .zip(&feature_units)
                    .map(|(value, unit)| f64::from(*value) * counts / unit)
                    .collect();
                let sum: f64 = wanted.iter().map(|value| value.abs()).sum();
                let largest = wanted.iter().fold(0.0f64, |most, value| most.max(value.abs()));
                let fits = |shift: &u16| {
                    let factor = exp2(*shift);
                    largest * factor < f64::from(LIMIT)
                        && (sum * factor + row.len() as f64) * VECTOR + factor < TOO_LARGE
                };
                let shift =
                    (0..=30u16).rev().find(fits).ok_or(BuildError::Unit { what: "linear part", index: 0 })?;
                block.push(shift.into());
                table.extend(wanted.iter().map(|value| libm::round(value * exp2(shift)) as i16));
            }
            block.extend(shorts(&table));
        }
        for ((head, ranks, rows), cores) in heads.iter().zip(&shares) {
            let IntegerCores { shifts, constants, coefficients, units } = cores;
            let sizes = [head.inputs.len(), head.outputs.start, head.outputs.len(), head.cores.len()];
            block.extend(sizes.map(|size| size as u32));
            block.extend([head.features.len(), constants.len(), *rows].map(|size| size as u32));
            block.extend(ranks);
            block.extend(words(shifts));
            let indices =
                |list: &[usize]| shorts(&list.iter().map(|&index| index as i16).collect::<Vec<_>>());
            block.extend(indices(&head.inputs));
            let weight = |(j, (weight, unit)): (usize, (&f32, &f64))| {
                let counts = per_output.get(head.outputs.start + j).copied().unwrap_or(0.0);
                libm::round(f64::from(*weight) * counts / unit) as i16
            };
            let own = units.first().map_or(&[][..], |units| units);
            block.extend(shorts(&head.weights.iter().zip(own).enumerate().map(weight).collect::<Vec<_>>()));
            block.extend(indices(&head.features));
            block.extend(constants.iter().map(|&constant| constant as u32));
            if constants.len() % 2 == 1 {
                block.push(0);
            }
            for pair in coefficients.chunks(2) {
                for row in 0..*rows {
                    let half =
                        |own: usize| pair.get(own).and_then(|sum| sum.get(row)).map_or(0, |&w| w as u16);
                    block.push(u32::from(half(0)) | u32::from(half(1)) << 16);
                }
            }
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
        parse_copy(&bytes, |bytes| Model::parse(bytes).map(|_| ())).map_err(BuildError::Refused)?;
        let heads = shares.into_iter().map(|cores| cores.units).collect();
        Ok((
            bytes,
            Units { inputs: own_units, features: feature_units, heads, outputs: per_output, ..units.clone() },
        ))
    }

    /// What x is worth in each row of a head but the first.
    fn row_units(&self, head: &Head, bits: u32, inputs: &[f64], features: &[f64]) -> Vec<f64> {
        if head.features.is_empty() {
            let own = head.inputs.iter().map(|&input| inputs.get(input).copied().unwrap_or(1.0));
            let own: Vec<f64> = own.collect();
            return (0..self.memory).flat_map(|_| own.iter().copied()).collect();
        }
        let rows = head.features.iter().flat_map(|&k| {
            let nodes = self.stage.features.get(k).map_or(0, |feature| feature.nodes.len());
            let unit = features.get(k).copied().unwrap_or(1.0);
            let unit = if nodes == 0 { unit } else { f64::from(1u32 << bits) };
            core::iter::repeat_n(unit, nodes.max(1))
        });
        rows.collect()
    }

    /// How many rows each feature of a head has.
    fn groups(&self, head: &Head) -> Vec<usize> {
        match head.features.is_empty() {
            true => vec![1; head.inputs.len() * self.memory],
            false => head
                .features
                .iter()
                .map(|&k| self.stage.features.get(k).map_or(1, |feature| feature.rows()))
                .collect(),
        }
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
        let room = TOO_LARGE / 2.1 / VECTOR;
        // Sums of nothing may be -0.
        let limits = [(f64::from(LIMIT) - 1.0) / largest.abs(), room / sum.abs(), room / beyond.abs()];
        let counts = limits.into_iter().fold(f64::INFINITY, f64::min);
        if counts.is_finite() { counts } else { 1.0 }
    }
}

/// A head in integers: shifts of V1, ..., Vd; sum by sum, Vd first, constants and coefficients; the units of v at the left of each core.
struct IntegerCores {
    shifts: Vec<Shifts>,
    constants: Vec<i32>,
    coefficients: Vec<Vec<i16>>,
    units: Vec<Vec<f64>>,
}

/// The cores with x in `rows` units and v in the units `wanted`, or in smaller ones where those leave no room.
fn integer_cores(
    head: &Head,
    rows: &[f64],
    groups: &[usize],
    wanted: &[Vec<f64>],
    bits: u32,
) -> Option<IntegerCores> {
    let mut made = IntegerCores {
        shifts: Vec::new(),
        constants: Vec::new(),
        coefficients: Vec::new(),
        units: Vec::new(),
    };
    // The units of the vector from the right; none at the last core.
    let mut right: Vec<f64> = Vec::new();
    for (core, wanted) in head.cores.iter().zip(wanted).rev() {
        let mut left: Vec<f64> = wanted.clone();
        let sizes: Vec<f64> =
            (0..core.left * core.right).map(|sum| size(core, sum, rows, groups, bits)).collect();
        let mut product = 0;
        if !right.is_empty() {
            // The sums of a row times the largest vector must have room.
            let most = |a: usize, unit: f64| {
                let own = sizes.iter().skip(a * core.right).zip(&right).take(core.right);
                own.map(|(size, right)| size * unit / right + 2.0).sum::<f64>() * VECTOR
            };
            for (a, unit) in left.iter_mut().enumerate() {
                while most(a, *unit) + 1.0 >= TOO_LARGE {
                    *unit /= 2.0;
                    if *unit < 1e-12 {
                        return None;
                    }
                }
            }
            let fits = |shift: &u16| {
                left.iter()
                    .enumerate()
                    .all(|(a, unit)| most(a, unit * exp2(*shift)) + exp2(*shift) < TOO_LARGE)
            };
            product = (0..=30u16).rev().find(fits)?;
        }
        let unit = |sum: usize| {
            let own = left.get(sum / core.right).copied().unwrap_or(1.0);
            own * exp2(product) / right.get(sum % core.right).copied().unwrap_or(1.0)
        };
        let fits = |shift: &u16| {
            (0..sizes.len()).all(|sum| {
                let factor = unit(sum) * exp2(*shift);
                let most = sizes.get(sum).copied().unwrap_or(0.0) * factor;
                // A half of rounding in every coefficient and the constant, and the half that rounds.
                let rounding = (groups.len() as f64 + 1.0) * exp2(bits as u16) + exp2(*shift);
                let coefficients = (0..rows.len()).all(|i| {
                    let row = rows.get(i).copied().unwrap_or(1.0);
                    (coefficient(core, sum, i + 1) * factor / row).abs() < f64::from(LIMIT)
                });
                coefficients && most + rounding < TOO_LARGE
            })
        };
        let shift = (0..=30u16).rev().find(fits)?;
        for sum in 0..sizes.len() {
            let factor = unit(sum) * exp2(shift);
            let half = exp2(shift) / 2.0;
            let half = if shift == 0 { 0.0 } else { half };
            made.constants.push(libm::round(coefficient(core, sum, 0) * factor + half) as i32);
            let row =
                |(i, unit): (usize, &f64)| libm::round(coefficient(core, sum, i + 1) * factor / unit) as i16;
            made.coefficients.push(rows.iter().enumerate().map(row).collect());
        }
        made.shifts.insert(0, Shifts { sum: shift, product });
        made.units.insert(0, left.clone());
        right = left;
    }
    Some(made)
}

/// V(a, i, b) of the sum (a, b).
fn coefficient(core: &Core, sum: usize, i: usize) -> f64 {
    let at = (sum / core.right * core.q + i) * core.right + sum % core.right;
    core.data.get(at).map_or(0.0, |&value| value.into())
}

/// The most that a sum can be: of a mapped feature the largest of its nodes counts.
fn size(core: &Core, sum: usize, rows: &[f64], groups: &[usize], bits: u32) -> f64 {
    let mut i = 0;
    let mut most = coefficient(core, sum, 0).abs();
    for &rows_of in groups {
        let own = (i..i + rows_of)
            .map(|i| coefficient(core, sum, i + 1).abs() / rows.get(i).copied().unwrap_or(1.0));
        most += own.fold(0.0, f64::max) * f64::from(1u32 << bits);
        i += rows_of;
    }
    most
}

/// Sections in integers, and for every value how many of its units make one of its input.
fn integer_runs(runs: &[stage::Run], window: usize) -> Result<(Vec<Run>, Vec<f64>), BuildError> {
    let mut factors: Vec<f64> = Vec::new();
    let mut made = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let source = (run.source as usize).checked_sub(window);
        let from = source.map_or(1.0, |value| factors.get(value).copied().unwrap_or(1.0));
        let own = if run.kind == stage::Run::AVERAGE {
            let alpha = libm::round(f64::from(run.coefficients[0]) * exp2(ALPHA as u16)) as i32;
            let coefficients = core::array::from_fn(|k| if k == 0 { alpha.max(1) } else { 0 });
            factors.extend(vec![from; run.count as usize]);
            Run {
                kind: Run::AVERAGE,
                shift: ALPHA as u16,
                source: run.source,
                count: run.count,
                coefficients,
            }
        } else {
            let [p_re, p_im, k1, k2, k3, d, e1, e2] = run.coefficients.map(f64::from);
            // So small that nothing that follows from an input of full size reaches a limit.
            let left = 1.0 - libm::hypot(p_re, p_im);
            let outputs = [1.0, libm::hypot(k1, k2), k3.abs(), libm::hypot(e1, e2) + d.abs() * left];
            let growth = outputs.iter().fold(0.0f64, |most, size| most.max(*size)) / left;
            let b = exp2(0) / libm::exp2(libm::ceil(libm::log2(growth)));
            let coefficients = [p_re, p_im, b, k1, k2, k3, d * b, e1, e2];
            let most = coefficients.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            let fits = |shift: &u16| most * exp2(*shift) < TOO_LARGE - 1.0;
            let shift = (0..=30u16).rev().find(fits).ok_or(BuildError::Unit { what: "section", index })?;
            factors.extend(vec![from * b; 5 * run.count as usize]);
            let coefficients = coefficients.map(|value| libm::round(value * exp2(shift)) as i32);
            Run { kind: Run::RESONATOR, shift, source: run.source, count: run.count, coefficients }
        };
        made.push(own);
    }
    Ok((made, factors))
}

/// Nodes that increase, with the inverse of their distances.
fn integer_nodes(at: impl Iterator<Item = i16>) -> Vec<Node> {
    let mut places: Vec<i32> = Vec::new();
    for place in at {
        let least = places.last().map_or(i32::from(i16::MIN), |last| last + 1);
        places.push(i32::from(place).max(least));
    }
    // What was pushed over the end comes back.
    let mut most = LIMIT;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - 1;
    }
    let node = |k: usize, &place: &i32| {
        let width = places.get(k + 1).map_or(1, |next| next - place).max(1) as u32;
        let inverse = exp2((15 + 32 - width.leading_zeros()) as u16) / f64::from(width);
        Node { at: place as i16, inverse: libm::round(inverse).min(f64::from(u16::MAX)) as u16 }
    };
    places.iter().enumerate().map(|(k, place)| node(k, place)).collect()
}

/// A factor as gain / 2^shift with a gain of 15 bits, and at most so far shifted.
pub(crate) fn scale(factor: f64, most: u16) -> Option<(i16, u16)> {
    let gain = |shift: u16| libm::round(factor * exp2(shift));
    let shift = (0..=most).rev().find(|&shift| gain(shift) <= f64::from(LIMIT))?;
    (gain(shift) >= 1.0).then(|| (gain(shift) as i16, shift))
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

impl Units {
    /// The counts of an input, and how many of the units of x make one of the standardised input.
    fn input(&self, index: usize, channel: &crate::build::InputChannel) -> Option<(InputCounts, f64)> {
        let &(zero, rate) = self.counts.get(index)?;
        // x = unit ((zero + c / rate) - offset) gain
        let slope = f64::from(channel.gain) / f64::from(rate);
        let start = (f64::from(zero) - f64::from(channel.offset)) * f64::from(channel.gain);
        let wanted = *self.inputs.get(index)?;
        let factor = wanted * slope;
        let made = (0..=30u16).rev().find_map(|shift| {
            let gain = libm::round(factor * exp2(shift));
            let unit = gain / exp2(shift) / slope;
            let half = if shift == 0 { 0.0 } else { exp2(shift) / 2.0 };
            let offset = libm::round(unit * start * exp2(shift) + half);
            let fits = gain >= 1.0 && gain <= f64::from(LIMIT) && 32768.0 * gain + offset.abs() < TOO_LARGE;
            fits.then_some((gain as i16, shift, offset as i32, unit))
        });
        let (gain, shift, offset, unit) = made?;
        let counts = InputCounts { zero, rate, offset, gain, shift, low: 0, high: 0 };
        let [low, high] = [channel.low, channel.high].map(|end| counts.count(&end));
        Some((InputCounts { low: low?, high: high?, ..counts }, unit))
    }
}
