//! The checks of the heads, and the capacities that follow from them.

use super::Cursor;
use crate::error::ParseError;
use crate::facts::Shape;
use crate::format::Capacities;
use crate::head::{Layout, count_sums};
use crate::stage::Stage;

/// The largest sizes over all heads, from which the capacities follow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// Features of the largest head that does not see all of them.
    pub gather: usize,
    /// Mapped features of the head that has most.
    pub mapped: usize,
    /// Sums of the largest head.
    pub sums: usize,
    /// Largest rank; counts in format 1.
    pub rank: usize,
}

impl Needs {
    /// Capacities of a model. Scratch is [features | cells | beyond | gathered | rows | sums | y], laid out in `push::contract`; in
    /// format 1 two vectors more, for readers that do not multiply out in place.
    #[inline]
    pub fn capacities(&self, shape: &Shape, stage: &Stage<'_>, layout: Layout) -> Option<Capacities> {
        let history = shape.inputs.checked_mul(shape.memory)?.checked_mul(3)?.checked_add(stage.signals)?;
        let vectors = if matches!(layout, Layout::One { .. }) { self.rank.checked_mul(2)? } else { 0 };
        let (features, mapped) = (stage.features.len(), stage.counts.len());
        let beyond = if stage.linear.is_empty() { 0 } else { features };
        let scratch = [features, mapped, beyond, self.gather, self.mapped, self.sums, vectors, shape.outputs]
            .iter()
            .try_fold(0usize, |sum, size| sum.checked_add(*size))?;
        Some(Capacities { inputs: shape.inputs, history, scratch })
    }
}

/// Checks head after head, up to the end of the block, and notes the highest degree.
#[inline]
pub(crate) fn heads(
    block: &mut Cursor<'_>,
    layout: Layout,
    shape: &mut Shape,
    stage: &Stage<'_>,
) -> Result<Needs, ParseError> {
    let mut needs = Needs::default();
    for head in 0..shape.heads {
        check_head(block, layout, head, shape, stage, &mut needs)?;
    }
    if !block.rest().is_empty() {
        return Err(ParseError::BlockTooLong { used: block.used, found: block.words.len() });
    }
    Ok(needs)
}

#[inline]
fn check_head(
    block: &mut Cursor<'_>,
    layout: Layout,
    head: usize,
    shape: &mut Shape,
    stage: &Stage<'_>,
    needs: &mut Needs,
) -> Result<(), ParseError> {
    let overflow = ParseError::SizeOverflow;
    let (size, first, outputs, degree, used, stored_sums, stored_q) = match layout {
        Layout::Two => {
            let [size, first, outputs, degree, used, sums, q] = block.words()?;
            (size, first, outputs, degree, used, sums, Some(q))
        }
        Layout::One { degree, .. } => {
            let [size] = block.words()?;
            block.floats(1, "head", head)?;
            let [sums] = block.words()?;
            (size, 0, shape.outputs, degree, 0, sums, None)
        }
    };
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
    let inputs = block.take(size)?;
    increasing(inputs.iter().copied(), head)?;
    if let Some(&input) = inputs.iter().find(|&&input| input as usize >= shape.inputs) {
        return Err(ParseError::SubsetRange { head, input: input as usize, inputs: shape.inputs });
    }
    let mut q = size.checked_mul(shape.memory).and_then(|n| n.checked_add(1)).ok_or(overflow)?;
    let mut gathered = if size == shape.inputs { 0 } else { q - 1 };
    if let Layout::Two = layout {
        block.floats(outputs, "head", head)?;
        let features = block.take(used)?;
        increasing(features.iter().copied(), head)?;
        if stage.features.is_empty() != features.is_empty() {
            return Err(ParseError::HeadFeature { head, feature: 0 });
        }
        if !features.is_empty() {
            q = 1;
            gathered = if used == stage.features.len() { 0 } else { used };
            let window = shape.inputs * shape.memory;
            let mut mapped = 0;
            for &feature in features {
                let record = stage.features.get(feature as usize);
                let input = record.and_then(|record| stage.input_of(record.plus, window, shape.inputs));
                if !input.is_some_and(|input| inputs.contains(&(input as u32))) {
                    return Err(ParseError::HeadFeature { head, feature: feature as usize });
                }
                let map = (feature as usize).checked_sub(stage.plain()).and_then(|map| stage.counts.get(map));
                mapped += usize::from(map.is_some());
                q = q.checked_add(map.map_or(1, |&count| count as usize)).ok_or(overflow)?;
            }
            needs.mapped = needs.mapped.max(mapped);
        }
    }
    let sums = count_sums(ranks).ok_or(overflow)?;
    if sums != stored_sums || stored_q.is_some_and(|stored| stored != q) {
        return Err(ParseError::Sums { head, expected: sums, found: stored_sums });
    }
    needs.gather = needs.gather.max(gathered);
    needs.sums = needs.sums.max(sums);
    needs.rank = ranks.iter().fold(needs.rank, |most, &rank| most.max(rank as usize));
    block.floats(sums.checked_mul(q).ok_or(overflow)?, "head", head)?;
    Ok(())
}

#[inline]
pub(crate) fn increasing(
    mut indices: impl Iterator<Item = u32> + Clone,
    head: usize,
) -> Result<(), ParseError> {
    let mut later = indices.clone().skip(1);
    match indices.by_ref().zip(&mut later).position(|(a, b)| a >= b) {
        Some(position) => Err(ParseError::SubsetOrder { head, position: position + 1 }),
        None => Ok(()),
    }
}
