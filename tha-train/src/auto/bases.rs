//! Which filters are tried on a recording: as much history as it can spare decides.

use super::setting::Setting;
use crate::data::Dataset;
use crate::stage::{Basis, Poles, poles};

/// Samples of a record that may be history in any case, if that is an eighth of it at most; and the part of all rows that
/// may be.
const HISTORY: usize = 100;
const PART: f64 = 0.02;
/// States of the linear models whose poles are tried, and the inputs up to which they are.
const ORDERS: [usize; 4] = [2, 4, 8, 16];
const POLES: usize = 8;

/// Samples at the start of a record that may serve as history.
pub(super) fn history(data: &Dataset) -> usize {
    let part = (PART * data.len() as f64 / data.records.len().max(1) as f64) as usize;
    HISTORY.max(part).min(longest(data))
}

/// Samples of history that no filter may exceed.
pub(super) fn longest(data: &Dataset) -> usize {
    let mut lengths: Vec<usize> = data.records.iter().map(|record| record.rows.len()).collect();
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    (median / 8).min(1024)
}

/// The bases that fit so much history, each with a prior over its lags where there are many.
pub(super) fn bases(data: &Dataset, history: usize) -> Vec<Setting> {
    let p = data.inputs.len();
    let fits = |basis: &Basis| basis.bank(1).is_ok_and(|bank| bank.history() <= history);
    let lags = [1, 2, 3, 5, 10, 20, 50, 100, 200, 300].map(Basis::Lags);
    let averages = (1..=10).map(|k| 1 << k).flat_map(|t| [Basis::Levels(t), Basis::Differences(t)]);
    // Four digits are enough, and can be typed.
    let round = |v: f64| (v * 1e4).round() / 1e4;
    let mut resonators: Vec<Basis> = Vec::new();
    let orders = if p <= POLES && history > 0 { &ORDERS[..] } else { &[] };
    for found in poles(data, orders).unwrap_or_default() {
        let found: Vec<(f64, f64)> = found.iter().map(|pole| (round(pole.re), round(pole.im))).collect();
        if let Some(&(re, im)) = found.iter().find(|pole| pole.1 > 0.0) {
            resonators.extend([2, 4].map(|count| Basis::Kautz { re, im, count }));
        }
        // Those of noise often hardly fade.
        let fading =
            |pole: &(f64, f64)| Basis::Poles(Poles::new(&[*pole])).bank(1).map(|bank| bank.history());
        let found: Vec<(f64, f64)> =
            found.into_iter().filter(|pole| fading(pole).is_ok_and(|needed| needed <= history / 2)).collect();
        if found.len() > 1 {
            resonators.push(Basis::Poles(Poles::new(&found)));
        }
    }
    let mut known: Vec<Basis> = Vec::new();
    resonators.retain(|basis| {
        !known.contains(basis) && {
            known.push(*basis);
            true
        }
    });
    lags.into_iter().chain(averages).chain(resonators).filter(fits).map(Setting::linear).collect()
}
