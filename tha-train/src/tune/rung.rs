//! One fit at one rung of the ladder: the first rungs see a part of the data and few restarts, the last one is `fit`.
//!
//! The part is the end of each record's training samples, contiguous, so that lag windows stay whole; the validation
//! samples are the same on every rung where a validation part or file is the judge.

use super::Setting;
use super::front::Size;
use crate::data::{Dataset, Record};
use crate::fit::{FitError, Validation};
use crate::progress::{OnlyStop, Progress};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Rungs of the ladder.
pub(super) const RUNGS: usize = 3;
/// The rung that is `fit` itself.
pub(super) const LAST: usize = RUNGS - 1;
const FRACTION: [f64; RUNGS] = [0.25, 0.5, 1.0];
const RESTARTS: [Option<usize>; RUNGS] = [Some(1), Some(3), None];
/// Samples below which a part is not cut down: what they say is cheap, and fewer say too little.
const ENOUGH: f64 = 1500.0;
/// Lag windows side by side that a part of a record has at least, where the record has them.
const WINDOWS: usize = 4;

/// What a fit gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Mean NRMSE of the outputs on the samples that were held out to choose on: what settings are compared by.
    pub held_out: f64,
    /// The same on the validation samples, which choose nothing.
    pub nrmse: f64,
    /// Relative residual on the validation samples.
    pub relative_residual: f64,
    /// Bytes of the model file.
    pub flash_bytes: usize,
    /// Multiply-accumulates per sample.
    pub macs_per_sample: usize,
    /// Heads of the model.
    pub heads: usize,
    /// Largest inner ranks over the heads.
    pub ranks: Vec<usize>,
}

impl Trial {
    pub(super) fn size(&self) -> Size {
        Size { error: self.held_out, flash: self.flash_bytes, macs: self.macs_per_sample }
    }

    /// The largest rank; 1 for a linear model.
    pub(super) fn rank(&self) -> usize {
        self.ranks.iter().copied().max().unwrap_or(1)
    }
}

/// Fits a setting on a rung.
pub(super) fn run(
    data: &Dataset,
    judge: Validation<'_>,
    setting: &Setting,
    rung: usize,
    options: &super::TuneParams,
    progress: &dyn Progress,
) -> Result<Trial, FitError> {
    let params = |judge| {
        let params = setting.params(options.seed).refit(rung == LAST).validation(judge);
        match (&setting.heads, RESTARTS[rung]) {
            (Some(_), _) => params.budget_flash(options.budget_flash).budget_macs(options.budget_macs),
            (None, None) => params,
            (None, Some(1)) => params.restarts(1).without_gamma(),
            (None, restarts) => params.restarts(restarts),
        }
    };
    let fit = |data: &Dataset, judge| params(judge).check(data)?.fit(data, &OnlyStop(progress));
    let outcome = if rung == LAST {
        fit(data, judge)?
    } else {
        data.check_memory(setting.memory)?;
        match (part(data, judge, setting.memory, FRACTION[rung]), judge) {
            ((part, Some(validation)), _) => fit(&part, Validation::Data(&validation))?,
            ((part, None), judge) => fit(&part, judge)?,
        }
    };
    let flash_bytes = outcome.model.to_bytes().map_err(|error| FitError::Model(error.to_string()))?.len();
    let bonds = outcome.heads.first().map_or(0, |head| head.ranks.len());
    let largest = |bond: usize| outcome.heads.iter().map(|head| head.ranks[bond]).max().unwrap_or(0);
    Ok(Trial {
        held_out: outcome.held_out.nrmse,
        nrmse: outcome.validation.nrmse,
        relative_residual: outcome.validation.relative_residual,
        flash_bytes,
        macs_per_sample: outcome.model.parameters(),
        heads: outcome.heads.len(),
        ranks: (0..bonds).map(largest).collect(),
    })
}

/// A part of the training samples, and the validation samples where the judge is the end of each record.
fn part(data: &Dataset, judge: Validation<'_>, memory: usize, fraction: f64) -> (Dataset, Option<Dataset>) {
    // The rows of a record that may be fitted, and the first that is validated.
    let boundary = |record: &Record| {
        let rows = &record.rows;
        let scored = (rows.len() + 1).saturating_sub(memory);
        match judge {
            Validation::End(held_out) => rows.end - (scored as f64 * held_out).round() as usize,
            Validation::Data(_) | Validation::Folds(_) => rows.end,
        }
    };
    let total: usize = data.records.iter().map(|record| boundary(record) - record.rows.start).sum();
    let fraction = fraction.max(ENOUGH / total as f64).min(1.0);
    let fitted = |record: &Record| {
        let end = boundary(record);
        let all = end - record.rows.start;
        let kept = ((all as f64 * fraction).ceil() as usize).max(WINDOWS * memory).min(all);
        (record.id.clone(), end - kept..end)
    };
    let validated = |record: &Record| {
        let (first, rows) = (boundary(record), &record.rows);
        let history = first.saturating_sub(memory - 1).max(rows.start);
        (first < rows.end).then(|| (record.id.clone(), history..rows.end))
    };
    let validation =
        matches!(judge, Validation::End(_)).then(|| cut(data, data.records.iter().filter_map(validated)));
    (cut(data, data.records.iter().map(fitted)), validation)
}

/// Some rows of some records, as a data set of their own.
fn cut(data: &Dataset, parts: impl Iterator<Item = (String, Range<usize>)>) -> Dataset {
    let parts: Vec<_> = parts.filter(|(_, rows)| !rows.is_empty()).collect();
    let columns = |columns: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let column =
            |column: &Vec<f64>| parts.iter().flat_map(|(_, rows)| &column[rows.clone()]).copied().collect();
        columns.iter().map(column).collect()
    };
    let mut records = Vec::with_capacity(parts.len());
    for (id, rows) in &parts {
        let start = records.last().map_or(0, |record: &Record| record.rows.end);
        records.push(Record { id: id.clone(), rows: start..start + rows.len() });
    }
    Dataset {
        origin: data.origin.clone(),
        inputs: data.inputs.clone(),
        outputs: data.outputs.clone(),
        u: columns(&data.u),
        y: columns(&data.y),
        records,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Split;
    use crate::data::tests::counting;

    #[test]
    fn parts_keep_windows_whole_and_the_validation_samples() {
        let data = counting(&[4000, 2000]);
        let (part, validation) = part(&data, Validation::End(0.2), 3, 0.25);
        let validation = validation.unwrap();
        let split = Split::by_end(&data, &data.scored_rows(3), 0.2).unwrap();
        let expected: Vec<f64> = split.validation.iter().map(|&row| data.y[0][row]).collect();
        let scored: Vec<f64> = validation.scored_rows(3).iter().map(|&row| validation.y[0][row]).collect();
        assert_eq!(scored, expected, "the same validation samples as the whole fit");
        assert_eq!(part.records.len(), 2);
        let last = part.y[0][part.records[0].rows.end - 1];
        assert_eq!(last + 1.0, expected[0], "up to where validation begins");
        // 4798 training rows, enough of them: 1500 / 4798 is more than a quarter.
        assert!((1500..1505).contains(&part.len()), "{}", part.len());
        assert!(part.u[1].windows(2).filter(|pair| pair[1] - pair[0] != 1.0).count() == 1, "contiguous");
    }

    #[test]
    fn little_data_is_not_cut() {
        let data = counting(&[300]);
        let (part, validation) = part(&data, Validation::Folds(3), 3, 0.25);
        assert_eq!((part, validation), (data, None));
    }
}
