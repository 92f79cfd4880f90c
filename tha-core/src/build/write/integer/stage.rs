//! Inputs, filters, features and nodes in integers.

use alloc::{vec, vec::Vec};

use super::{TOO_LARGE, exp2};
use crate::build::{BuildError, InputChannel, Resonator, Stage, Units};
use crate::integer::{ALPHA, FINE, FRACTION, FeatureRecord, InputCounts, LIMIT, Node, Run};
use crate::stage;

impl Units {
    /// The counts of an input, and how many of the units of x make one of the standardised input.
    pub(super) fn input(&self, index: usize, channel: &InputChannel) -> Option<(InputCounts, f64)> {
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

/// The features of a stage in integers, what a unit of each became, and the nodes of each.
pub(super) struct Features {
    pub records: Vec<FeatureRecord>,
    pub units: Vec<f64>,
    pub nodes: Vec<Vec<Node>>,
}

impl Stage {
    /// In units near those `wanted`. `inputs` are the units of the inputs, `factors` those of the values of the runs, which stand behind the
    /// window; the first `plain` features are not mapped.
    pub(super) fn integer_features(
        &self,
        records: &[stage::FeatureRecord],
        (window, plain): (usize, usize),
        wanted: &Units,
        (inputs, factors): (&[f64], &[f64]),
    ) -> Result<Features, BuildError> {
        let signal = |position: u32, input: usize| {
            let factor = (position as usize).checked_sub(window);
            let factor = factor.map_or(1.0, |value| factors.get(value).copied().unwrap_or(1.0));
            f64::from(1u32 << FRACTION) * factor * inputs.get(input).copied().unwrap_or(1.0)
        };
        let mut made = Features { records: Vec::new(), units: Vec::new(), nodes: Vec::new() };
        for (index, (record, feature)) in records.iter().zip(&self.features).enumerate() {
            let input = self.input_of(feature.plus).unwrap_or(0);
            let kappa = signal(record.plus, input);
            let subtracts = record.minus != stage::FeatureRecord::NONE;
            // What is subtracted must have the same unit.
            let other = subtracts && signal(record.minus, input) != kappa;
            let unit = wanted.features.get(index).copied().unwrap_or(0.0);
            // Mapped features are finer than their unit.
            let fine = if index < plain { 1.0 } else { exp2(FINE as u16) };
            let scale = scale(unit * fine / kappa, 47).filter(|_| !other);
            let (gain, shift) = scale.ok_or(BuildError::Unit { what: "feature", index })?;
            let unit = f64::from(gain) / exp2(shift) * kappa / fine;
            let most = if index < plain { f64::from(1u32 << wanted.bits) } else { LIMIT.into() };
            let at = |value: f32| (f64::from(value) * unit).clamp(-most, most);
            // The ends of a mapped feature are rounded outwards: no row of the training data lies beyond them.
            let [low, high] = if index < plain {
                [at(record.low), at(record.high)].map(libm::round)
            } else {
                [libm::floor(at(record.low)), libm::ceil(at(record.high))]
            };
            let position = |position: u32| {
                u16::try_from(position).map_err(|_| BuildError::Unit { what: "position of feature", index })
            };
            made.records.push(FeatureRecord {
                plus: position(record.plus)?,
                minus: if subtracts { position(record.minus)? } else { FeatureRecord::NONE },
                scale: gain << 6 | shift,
                low: low as i16,
                high: high as i16,
            });
            made.units.push(unit);
            made.nodes.push(integer_nodes(feature.nodes.iter().map(|&node| libm::round(at(node)) as i16)));
        }
        Ok(made)
    }
}

/// Sections in integers, and for every value how many of its units make one of its input.
pub(super) fn integer_runs(runs: &[stage::Run], window: usize) -> Result<(Vec<Run>, Vec<f64>), BuildError> {
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
            let resonator = Resonator::of(run);
            // So small that nothing that follows from an input of full size reaches a limit.
            let unit = exp2(0) / libm::exp2(libm::ceil(libm::log2(resonator.growth().max(1.0))));
            let gain = f64::from(resonator.gain);
            let [c11, c12, c21, c22] = resonator.state.map(f64::from);
            let [d, e1, e2] = resonator.all_pass.map(f64::from);
            let coefficients = [c11, c12, gain * unit, c21, c22, d * unit, e1, e2, unit];
            let most = coefficients.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            let fits = |shift: &u16| most * exp2(*shift) < TOO_LARGE - 1.0;
            let shift = (0..=30u16).rev().find(fits).ok_or(BuildError::Unit { what: "section", index })?;
            factors.extend(vec![from * unit; run.values()]);
            let coefficients = coefficients.map(|value| libm::round(value * exp2(shift)) as i32);
            Run { kind: run.kind as u16, shift, source: run.source, count: run.count, coefficients }
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

/// The next factor below as gain / 2^shift with a gain of ten bits, and at most so far shifted.
fn scale(factor: f64, most: u16) -> Option<(u16, u16)> {
    let gain = |shift: u16| libm::floor(factor * exp2(shift));
    let shift = (0..=most).rev().find(|&shift| gain(shift) < 1024.0)?;
    (gain(shift) >= 1.0).then(|| (gain(shift) as u16, shift))
}
