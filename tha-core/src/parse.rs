//! The checks of the block, all of them made once, by [`Model::parse`](crate::Model::parse). Everything here is `inline`, so
//! that it is compiled with the firmware and its optimisation level, for size, and not with this crate, for speed.

mod heads;

pub(crate) use heads::{Needs, heads, increasing};

use bytemuck::Pod;

use crate::description::Description;
use crate::error::ParseError;
use crate::facts::{OutputScaling, Shape};
use crate::head::{Heads, Layout, as_floats};
use crate::model::InputScaling;
use crate::stage::{FeatureRecord, Run, Stage};

/// Reads the block from the front, knowing how far it is.
pub(crate) struct Cursor<'a> {
    pub words: &'a [u32],
    pub used: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub fn rest(&self) -> &'a [u32] {
        self.words.get(self.used..).unwrap_or(&[])
    }

    #[inline(never)]
    pub fn take(&mut self, n: usize) -> Result<&'a [u32], ParseError> {
        let needed = self.used.checked_add(n).ok_or(ParseError::SizeOverflow)?;
        let short = ParseError::BlockTooShort { needed, found: self.words.len() };
        let taken = self.words.get(self.used..needed).ok_or(short)?;
        self.used = needed;
        Ok(taken)
    }

    /// As many words as the caller has names for.
    #[inline]
    pub fn words<const N: usize>(&mut self) -> Result<[usize; N], ParseError> {
        let words = self.take(N)?.first_chunk().copied().unwrap_or([0; N]);
        Ok(words.map(|word| word as usize))
    }

    /// `n` numbers of 16 bits, padded to a word.
    #[inline]
    pub fn shorts<T: Pod>(&mut self, n: usize) -> Result<&'a [T], ParseError> {
        let words = self.take(n.div_ceil(2))?;
        Ok(bytemuck::try_cast_slice(words).unwrap_or(&[]).get(..n).unwrap_or(&[]))
    }

    /// `n` finite numbers.
    #[inline(never)]
    pub fn floats(&mut self, n: usize, part: &'static str, index: usize) -> Result<&'a [f32], ParseError> {
        let start = self.used;
        let values = as_floats(self.take(n)?);
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(ParseError::NonFinite { part, index, word: start + at }),
            None => Ok(values),
        }
    }

    /// `n` rows, at most 65535, of a table with N words each.
    #[inline]
    pub fn table<T: Pod, const N: usize>(&mut self, n: usize) -> Result<&'a [T], ParseError>
    where
        [u32; N]: Pod,
    {
        let (rows, _) = self.take(n * N)?.as_chunks::<N>();
        Ok(bytemuck::try_cast_slice(rows).unwrap_or(&[]))
    }
}

#[inline]
pub(crate) fn check_inputs(inputs: &[InputScaling]) -> Result<(), ParseError> {
    for (channel, input) in inputs.iter().enumerate() {
        let InputScaling { offset, gain, low, high } = *input;
        if !finite([offset, gain, low, high]) || gain <= 0.0 || low > high {
            return Err(ParseError::Scaling { what: "input", channel });
        }
    }
    Ok(())
}

#[inline]
pub(crate) fn check_outputs(outputs: &[OutputScaling], half_widths: &[f32]) -> Result<(), ParseError> {
    for (channel, output) in outputs.iter().enumerate() {
        let OutputScaling { offset, scale, residual } = *output;
        if !finite([offset, scale, residual]) || scale <= 0.0 || residual < 0.0 {
            return Err(ParseError::Scaling { what: "output", channel });
        }
    }
    match half_widths.iter().position(|width| *width < 0.0) {
        Some(channel) => Err(ParseError::Scaling { what: "output", channel }),
        None => Ok(()),
    }
}

/// Whether all are numbers: 0 times NaN or an infinity is NaN. Shorter than a look at the bits of each.
#[inline]
fn finite<const N: usize>(values: [f32; N]) -> bool {
    values.iter().fold(0.0, |sum, value| sum + value * 0.0) == 0.0
}

/// The tables of the stage.
#[inline]
pub(crate) fn stage<'a>(
    block: &mut Cursor<'a>,
    description: &Description,
    shape: &Shape,
) -> Result<Stage<'a>, ParseError> {
    let [runs, features, mapped] =
        [description.runs, description.features, description.mapped].map(|size| size as usize);
    let linear = description.linear > 0;
    let whole = features > 0 || (mapped == 0 && runs == 0 && !linear);
    if mapped > features || !whole {
        return Err(ParseError::Feature { feature: features });
    }
    let mut stage = Stage { runs: block.table::<_, 11>(runs)?, ..Stage::default() };
    let window = shape.inputs.checked_mul(shape.memory).ok_or(ParseError::SizeOverflow)?;
    for (index, run) in stage.runs.iter().enumerate() {
        check_run(run, &stage, index, window, shape.inputs).ok_or(ParseError::Section { run: index })?;
        let values = run.rows().checked_mul(run.count as usize);
        let sum = values.and_then(|values| values.checked_add(stage.signals));
        stage.signals = sum.filter(|&sum| sum < 1 << 28).ok_or(ParseError::SizeOverflow)?;
    }
    stage.features = block.table::<_, 4>(features)?;
    for (feature, record) in stage.features.iter().enumerate() {
        let FeatureRecord { plus, minus, low, high } = *record;
        let input = stage.input_of(plus, window, shape.inputs);
        let one_input = minus == FeatureRecord::NONE || stage.input_of(minus, window, shape.inputs) == input;
        if input.is_none() || !one_input || !(low.is_finite() && high.is_finite() && low <= high) {
            return Err(ParseError::Feature { feature });
        }
    }
    stage.counts = block.take(mapped)?;
    let mut nodes = 0usize;
    for &count in stage.counts {
        nodes = nodes.checked_add(count as usize).ok_or(ParseError::SizeOverflow)?;
    }
    stage.nodes = block.floats(nodes, "nodes", 0)?;
    let mut rest = stage.nodes;
    for (map, &count) in stage.counts.iter().enumerate() {
        let (own, later) = rest.split_at_checked(count as usize).ok_or(ParseError::SizeOverflow)?;
        let increasing = own.iter().zip(own.get(1..).unwrap_or_default()).all(|(a, b)| a < b);
        // The widths of the cells divide: they must be numbers too.
        let width = own.last().zip(own.first()).map_or(0.0, |(last, first)| last - first);
        if count < 2 || !increasing || !width.is_finite() {
            return Err(ParseError::Nodes { feature: stage.plain() + map });
        }
        rest = later;
    }
    if linear {
        let size = features.checked_mul(shape.outputs).ok_or(ParseError::SizeOverflow)?;
        stage.linear = block.floats(size, "linear part", 0)?;
    }
    Ok(stage)
}

/// Coefficients that are stable, and sources that are there before.
#[inline]
fn check_run(run: &Run, stage: &Stage<'_>, index: usize, window: usize, inputs: usize) -> Option<()> {
    let [a, b, rest @ ..] = run.coefficients;
    let stable = match run.kind {
        Run::AVERAGE => a > 0.0 && a <= 1.0 && b == 0.0 && rest == [0.0; 6],
        Run::RESONATOR | Run::FEEDING => {
            let [c, d, gain, e, f, g] = rest;
            let cross = b * c;
            // The poles are inside the unit circle: their product, and their polynomial at 1 and at -1.
            let inside =
                a * d - cross < 1.0 && (1.0 - a) * (1.0 - d) > cross && (1.0 + a) * (1.0 + d) > cross;
            inside && finite([gain, e, f, g])
        }
        _ => false,
    };
    let (source, count) = (run.source as usize, run.count as usize);
    let end = source.checked_add(count)?;
    let there = end <= inputs || stage.feeds(index, source.checked_sub(window)?, end.checked_sub(window)?);
    (stable && there && count > 0).then_some(())
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
    pub(crate) fn input_of(&self, position: u32, window: usize, inputs: usize) -> Option<usize> {
        let mut position = position as usize;
        let mut inner = false;
        while let Some(value) = position.checked_sub(window) {
            let mut first = 0;
            let mut found = None;
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

/// The heads behind `words`.
pub(crate) fn iterate<'a>(words: &'a [u32], layout: Layout) -> Heads<'a> {
    Heads { rest: words, layout }
}
