//! The checks of an integer model, all of them made once, by [`Model::parse`](super::Model::parse); that no sum can overflow is in `proof`.
//! `inline`, so that it is compiled with the firmware and its optimisation level, for size.

use super::head::{Chosen, Head, Heads, cast, shorts};
use super::model::{InputCounts, Unit};
use super::proof::{TOO_LARGE, check_sums};
use super::stage::{FeatureRecord, Node, Run, Stage};
use super::{ALPHA, LIMIT};
use crate::description::Description;
use crate::error::ParseError;
use crate::facts::Shape;
use crate::format::Capacities;
use crate::head::count_sums;
use crate::parse::{Cursor, increasing};

/// The largest sizes over all heads, from which the capacities follow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// Features of the largest head.
    pub gather: usize,
    /// Mapped features of the head that has most.
    pub mapped: usize,
    /// Sums of the largest head.
    pub sums: usize,
}

impl Needs {
    /// Capacities of a model, in words of 32 bits. History is [counts, M p | window, 2 M p | signals], the first two of 16 bits; scratch is
    /// [y | sums | gathered | rows | features | cells | beyond], all but the first three of 16 bits, each beginning at a word.
    #[inline]
    pub(super) fn capacities(&self, shape: &Shape, stage: &Stage<'_>) -> Option<Capacities> {
        let features = stage.features.len();
        let beyond = if stage.linear.is_empty() { 0 } else { features };
        self.sized(shape, stage.signals, features, stage.counts.len(), beyond)
    }

    /// The same with the sizes of the stage.
    #[inline]
    pub fn sized(
        &self,
        shape: &Shape,
        signals: usize,
        features: usize,
        mapped: usize,
        beyond: usize,
    ) -> Option<Capacities> {
        let window = shape.inputs.checked_mul(shape.memory)?;
        let history = window.div_ceil(2).checked_add(window)?.checked_add(signals)?;
        let shorts = [self.mapped, features, mapped, beyond];
        let words = shape.outputs.checked_add(self.sums)?.checked_add(self.gather)?;
        let scratch = shorts.iter().try_fold(words, |sum, size| sum.checked_add(size.div_ceil(2)))?;
        Some(Capacities { inputs: shape.inputs, history, scratch })
    }
}

#[inline]
pub(super) fn check_scaling(inputs: &[InputCounts], units: &[Unit]) -> Result<(), ParseError> {
    for (channel, input) in inputs.iter().enumerate() {
        let InputCounts { zero, rate, offset, gain, shift, low, high } = *input;
        let largest = (u64::from(gain.unsigned_abs()) << 15) + u64::from(offset.unsigned_abs());
        let counts = zero.is_finite() && rate.is_finite() && rate > 0.0 && low <= high;
        if !counts || gain <= 0 || shift > 30 || largest >= TOO_LARGE {
            return Err(ParseError::Scaling { what: "input", channel });
        }
    }
    let odd = |unit: &Unit| {
        !(unit.unit.is_finite() && unit.unit > 0.0 && unit.bound.is_finite() && unit.bound >= 0.0)
    };
    match units.iter().position(odd) {
        Some(channel) => Err(ParseError::Scaling { what: "output", channel }),
        None => Ok(()),
    }
}

/// The tables of the stage.
#[inline]
pub(super) fn stage<'a>(
    block: &mut Cursor<'a>,
    description: &Description,
    shape: &Shape,
    bits: u32,
) -> Result<Stage<'a>, ParseError> {
    let [runs, features, mapped] =
        [description.runs, description.features, description.mapped].map(|size| size as usize);
    let linear = description.linear > 0;
    if mapped > features || (features == 0 && (runs > 0 || linear)) {
        return Err(ParseError::Feature { feature: features });
    }
    let mut stage = Stage { runs: block.table::<_, 12>(runs)?, ..Stage::default() };
    let window = shape.inputs.checked_mul(shape.memory).ok_or(ParseError::SizeOverflow)?;
    for (index, run) in stage.runs.iter().enumerate() {
        check_run(run, &stage, index, window, shape.inputs).ok_or(ParseError::Section { run: index })?;
        let values = run.rows().checked_mul(run.count as usize);
        let sum = values.and_then(|values| values.checked_add(stage.signals));
        stage.signals = sum.filter(|&sum| sum < 1 << 28).ok_or(ParseError::SizeOverflow)?;
    }
    // Five numbers of 16 bits each.
    let own = block.take(5usize.checked_mul(features).ok_or(ParseError::SizeOverflow)?.div_ceil(2))?;
    stage.features = cast(shorts::<u16>(own, 5 * features).map_or(&[], |(own, _)| own));
    for (feature, record) in stage.features.iter().enumerate() {
        let FeatureRecord { plus, minus, low, high, .. } = *record;
        let input = stage.input_of(plus.into(), window, shape.inputs);
        let one_input =
            minus == FeatureRecord::NONE || stage.input_of(minus.into(), window, shape.inputs) == input;
        let most = if feature < features - mapped { 1 << bits } else { LIMIT };
        let inside = low <= high && i32::from(low) >= -most && i32::from(high) <= most;
        if input.is_none() || !one_input || !inside || record.gain() == 0 || record.shift() > 47 {
            return Err(ParseError::Feature { feature });
        }
    }
    stage.counts = block.take(mapped)?;
    let mut nodes = 0usize;
    for &count in stage.counts {
        let sum = nodes.checked_add(count as usize);
        nodes = sum.filter(|&sum| sum < 1 << 28).ok_or(ParseError::SizeOverflow)?;
    }
    stage.nodes = block.table::<Node, 1>(nodes)?;
    let mut rest = stage.nodes;
    for (map, &count) in stage.counts.iter().enumerate() {
        let (own, later) = rest.split_at_checked(count as usize).ok_or(ParseError::SizeOverflow)?;
        let grows = own.iter().zip(own.get(1..).unwrap_or_default()).all(|(a, b)| a.at < b.at);
        if count < 2 || !grows {
            return Err(ParseError::Nodes { feature: stage.plain() + map });
        }
        rest = later;
    }
    if linear {
        let size = features.checked_mul(shape.outputs).ok_or(ParseError::SizeOverflow)?;
        stage.linear_shifts = block.take(shape.outputs)?;
        stage.linear = shorts(block.take(size.div_ceil(2))?, size).map_or(&[], |(linear, _)| linear);
    }
    Ok(stage)
}

/// Coefficients whose sums of products of 64 bits cannot overflow, and sources that are there before.
#[inline]
fn check_run(run: &Run, stage: &Stage<'_>, index: usize, window: usize, inputs: usize) -> Option<()> {
    let [alpha, rest @ ..] = run.coefficients;
    let sound = match run.kind {
        Run::AVERAGE => alpha > 0 && alpha <= 1 << ALPHA && rest == [0; 8] && u32::from(run.shift) == ALPHA,
        // Signals are below 2^30 and coefficients at most 2^31 in size: three products are below 2^63. The poles are inside the circle: their
        // product, and their polynomial at 1 and at -1. That of a matrix with coefficients up to 1 does not overflow either.
        Run::RESONATOR | Run::FEEDING => {
            let [b, _, c, d, .., unit] = rest;
            let one = 1i64 << run.shift.min(30);
            let [a, b, c, d] = [alpha, b, c, d].map(i64::from);
            let small = run.shift <= 30 && [a, b, c, d].iter().all(|value| value.abs() <= one);
            let outside = |cross: i64| {
                a * d - cross >= one * one || (one - a) * (one - d) <= cross || (one + a) * (one + d) <= cross
            };
            small && !outside(b * c) && unit > 0
        }
        _ => false,
    };
    let (source, count) = (run.source as usize, run.count as usize);
    let end = source.checked_add(count)?;
    let there = end <= inputs || stage.feeds(index, source.checked_sub(window)?, end.checked_sub(window)?);
    (sound && there && count > 0).then_some(())
}

impl Stage<'_> {
    /// Whether the values from `start` to `end` lie in the last row of an earlier run, and it feeds other sections.
    #[inline]
    fn feeds(&self, index: usize, start: usize, end: usize) -> bool {
        let mut first = 0;
        self.runs.iter().take(index).any(|run| {
            first += run.values();
            run.kind != Run::RESONATOR && first - run.count as usize <= start && end <= first
        })
    }

    /// The input that the signal at a position comes from, if a feature may use it.
    #[inline(never)]
    pub(super) fn input_of(&self, position: usize, window: usize, inputs: usize) -> Option<usize> {
        let (mut position, mut inner) = (position, false);
        while let Some(value) = position.checked_sub(window) {
            let (mut first, mut found) = (0, None);
            for run in self.runs {
                let (own, count) = (value.wrapping_sub(first), run.count as usize);
                if value >= first && own < run.values() {
                    let row = own / count.max(1);
                    // Features do not see what resonators feed others.
                    let seen = inner || row < 2;
                    found = seen.then_some(run.source as usize + own % count.max(1));
                }
                first += run.values();
            }
            position = found?;
            inner = true;
        }
        position.checked_rem(inputs)
    }
}

/// Checks head after head, up to the end of the block, and notes the highest degree.
#[inline]
pub(super) fn heads(
    block: &mut Cursor<'_>,
    shape: &mut Shape,
    stage: &Stage<'_>,
    bits: u32,
) -> Result<Needs, ParseError> {
    let mut needs = Needs::default();
    for head in 0..shape.heads {
        let own = check_head(block, head, shape, stage, &mut needs)?;
        check_sums(&own, stage, bits).map_err(|sum| ParseError::Overflow { head, sum })?;
    }
    if !block.rest().is_empty() {
        return Err(ParseError::BlockTooLong { used: block.used, found: block.words.len() });
    }
    Ok(needs)
}

#[inline]
fn check_head<'a>(
    block: &mut Cursor<'a>,
    head: usize,
    shape: &mut Shape,
    stage: &Stage<'_>,
    needs: &mut Needs,
) -> Result<Head<'a>, ParseError> {
    let overflow = ParseError::SizeOverflow;
    let whole = block.rest();
    let [size, first, outputs, degree, used, stored_sums, stored_rows] = block.words()?;
    if size == 0 || size > shape.inputs {
        return Err(ParseError::SubsetSize { head, found: size, inputs: shape.inputs });
    }
    if outputs == 0 || first.checked_add(outputs).is_none_or(|end| end > shape.outputs) {
        return Err(ParseError::Served { head, outputs: shape.outputs });
    }
    if degree == 0 || degree > usize::from(u8::MAX) {
        return Err(ParseError::Zero { what: "degree" });
    }
    shape.degree = shape.degree.max(degree);
    let ranks = block.take(degree + 1)?;
    if let Some(bond) = ranks.iter().position(|&rank| rank == 0) {
        return Err(ParseError::RankZero { head, bond });
    }
    for (bond, expected) in [(0, outputs), (degree, 1)] {
        let found = ranks.get(bond).map_or(0, |&rank| rank as usize);
        if found != expected {
            return Err(ParseError::RankChain { head, bond, expected, found });
        }
    }
    let shifts: &[super::Shifts] = cast(block.take(degree)?);
    if shifts.iter().any(|shifts| shifts.sum > 30 || shifts.product > 30) {
        return Err(ParseError::Metadata);
    }
    let inputs: &[u16] = block.shorts(size)?;
    increasing(inputs.iter().map(|&input| input.into()), head)?;
    if let Some(&input) = inputs.iter().find(|&&input| usize::from(input) >= shape.inputs) {
        return Err(ParseError::SubsetRange { head, input: input.into(), inputs: shape.inputs });
    }
    block.shorts::<i16>(outputs)?;
    let listed = stage.features.len();
    let chosen = Chosen::new(block.take(listed.div_ceil(32))?, used, listed);
    let features = chosen.filter(|features| features.is_empty() == stage.features.is_empty());
    let features = features.ok_or(ParseError::HeadFeature { head, feature: 0 })?;
    let mut rows = size.checked_mul(shape.memory).ok_or(overflow)?;
    let mut gathered = rows;
    if !features.is_empty() {
        (rows, gathered) = (0, used);
        let window = shape.inputs * shape.memory;
        let mut mapped = 0;
        for feature in features.iter() {
            let record = stage.features.get(feature);
            let input = record.and_then(|record| stage.input_of(record.plus.into(), window, shape.inputs));
            if !input.is_some_and(|input| inputs.contains(&(input as u16))) {
                return Err(ParseError::HeadFeature { head, feature });
            }
            let map = feature.checked_sub(stage.plain()).and_then(|map| stage.counts.get(map));
            mapped += usize::from(map.is_some());
            rows = rows.checked_add(map.map_or(1, |&count| count as usize)).ok_or(overflow)?;
        }
        needs.mapped = needs.mapped.max(mapped);
    }
    let sums = count_sums(ranks).ok_or(overflow)?;
    // Rows are named by 16 bits.
    if sums != stored_sums || rows != stored_rows || rows > usize::from(u16::MAX) {
        return Err(ParseError::Sums { head, expected: sums, found: stored_sums });
    }
    block.take(sums)?;
    block.take(sums.checked_mul(rows).ok_or(overflow)?.div_ceil(2))?;
    needs.gather = needs.gather.max(gathered);
    needs.sums = needs.sums.max(sums);
    Heads { rest: whole, features: listed }.next().ok_or(overflow)
}
