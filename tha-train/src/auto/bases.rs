//! Which filters are tried on a recording: as much history as it can spare decides.

use super::setting::Setting;
use crate::data::Dataset;
use crate::stage::{Basis, Poles, StageError, poles};

/// Samples of a record that may be history in any case, if that is an eighth of it at most; and the part of all rows that
/// may be.
const HISTORY: usize = 100;
const PART: f64 = 0.02;
/// States of the linear models whose poles are tried, and the inputs up to which they are.
const ORDERS: [usize; 4] = [2, 4, 8, 16];
const POLES: usize = 8;
/// History of a resonator is counted until its start has faded to a thousandth. It may be an eighth of a record; that of a sharp resonance,
/// whose imaginary part is so many times its distance from the unit circle, two records, of which rows count from an eighth on all the
/// same: what is left there of its start changes its sign with every period. What is left of a start that does not tells the time, which
/// predicts the other blocks of a record and no other record (cascaded_tanks: 0.212 promised, 0.248 on the test).
const SPARED: usize = 8;
const RINGING: usize = 2;
const SHARP: f64 = 5.0;

/// Poles are near each other if they are nearer than this part of their distance from the unit circle.
const NEAR: f64 = 0.1;

/// Samples at the start of a record that may serve as history.
pub(super) fn history(data: &Dataset) -> usize {
    let part = (PART * data.len() as f64 / data.records.len().max(1) as f64) as usize;
    HISTORY.max(part).min(longest(data))
}

/// Samples of history that no filter may exceed.
pub(super) fn longest(data: &Dataset) -> usize {
    (median(data) / SPARED).min(1024)
}

/// The length of a record in the middle of all.
fn median(data: &Dataset) -> usize {
    let mut lengths: Vec<usize> = data.records.iter().map(|record| record.rows.len()).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or(0)
}

/// Samples at the start of a record that are history of a basis.
pub(super) fn warm_up(data: &Dataset, basis: &Basis) -> Result<usize, StageError> {
    let needed = basis.bank(1)?.history();
    Ok(match basis {
        Basis::Kautz { .. } | Basis::Poles(_) => needed.min(history(data).max(median(data) / SPARED)),
        _ => needed,
    })
}

/// Whether resonators fade within as much of a record as may be, each by itself.
pub(super) fn fades(data: &Dataset, basis: &Basis) -> bool {
    let most = |&(re, im): &(f64, f64)| {
        if im > SHARP * (1.0 - libm::hypot(re, im)) { RINGING * median(data) } else { median(data) / SPARED }
    };
    let most = match basis {
        Basis::Kautz { re, im, .. } => most(&(*re, *im)),
        Basis::Poles(poles) => poles.list().iter().map(most).max().unwrap_or(0),
        _ => return true,
    };
    basis.bank(1).is_ok_and(|bank| bank.history() <= most)
}

/// The bases that fit so much history.
pub(super) fn bases(data: &Dataset, history: usize) -> Vec<Setting> {
    let p = data.inputs.len();
    let fits = |basis: &Basis, most: usize| basis.bank(1).is_ok_and(|bank| bank.history() <= most);
    let lags = [1, 2, 3, 5, 10, 20, 50, 100, 200, 300].map(Basis::Lags);
    let averages = (1..=10).map(|k| 1 << k).flat_map(|t| [Basis::Levels(t), Basis::Differences(t)]);
    // Six digits are enough for what rings for thousands of samples, and can be typed.
    let round = |v: f64| (v * 1e6).round() / 1e6;
    let mut resonators: Vec<Basis> = Vec::new();
    let orders = if p <= POLES && history > 0 { &ORDERS[..] } else { &[] };
    for found in poles(data, orders).unwrap_or_default() {
        let found: Vec<(f64, f64)> = found.iter().map(|pole| (round(pole.re), round(pole.im))).collect();
        if let Some(&(re, im)) = found.iter().find(|pole| pole.1 > 0.0) {
            let kautz = [2, 4].map(|count| Basis::Kautz { re, im, count });
            resonators.extend(kautz.into_iter().filter(|basis| fades(data, basis)));
        }
        // Those of noise often hardly fade.
        let fading = |pole: &(f64, f64)| fades(data, &Basis::Poles(Poles::new(&[*pole])));
        let mut found: Vec<(f64, f64)> = found.into_iter().filter(fading).collect();
        // Sorted by their modulus: equal real poles are neighbours; of equal resonators one stands behind the other.
        found.dedup_by(|a, b| a.1 == 0.0 && a == b);
        if found.len() > 1 {
            resonators.push(Basis::Poles(Poles::new(&found)));
        }
    }
    let mut bases: Vec<Basis> =
        lags.into_iter().chain(averages).filter(|basis| fits(basis, history)).collect();
    for basis in resonators {
        if !bases.iter().any(|other| is_near(other, &basis)) {
            bases.push(basis);
        }
    }
    bases.into_iter().map(Setting::linear).collect()
}

/// Whether two bases have nearly the same resonators: linear models of several orders find the same pole again.
fn is_near(one: &Basis, other: &Basis) -> bool {
    let near = |(a, b): (&(f64, f64), &(f64, f64))| {
        libm::hypot(a.0 - b.0, a.1 - b.1) < NEAR * (1.0 - libm::hypot(a.0, a.1))
    };
    match (one, other) {
        (Basis::Kautz { re: a, im: b, count: n }, Basis::Kautz { re: c, im: d, count: m }) => {
            n == m && near((&(*a, *b), &(*c, *d)))
        }
        (Basis::Poles(one), Basis::Poles(other)) => {
            let (one, other) = (one.list(), other.list());
            one.len() == other.len() && one.iter().zip(other).all(near)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Normal;

    #[test]
    fn a_double_pole_gives_averages_that_differ() {
        // Two averages in a row: linear models find a pair of poles near the real axis.
        let mut normal = Normal::new(1);
        let (mut first, mut second) = (0.0, 0.0);
        let u: Vec<f64> = (0..3000).map(|_| normal.draw()).collect();
        let y = u.iter().map(|u| {
            first += 0.1 * (u - first);
            second += 0.1 * (first - second);
            second + 0.01 * normal.draw()
        });
        let data = Dataset::new("two averages", vec![u.clone()], vec![y.collect()]);
        let bases = bases(&data, history(&data));
        let poles = || bases.iter().filter(|setting| matches!(setting.basis, Basis::Poles(_)));
        assert!(poles().count() > 0);
        for setting in poles() {
            assert_eq!(setting.basis.to_string().parse(), Ok(setting.basis), "{}", setting.basis);
        }
    }

    #[test]
    fn poles_that_fade_alike_are_near() {
        let kautz = |re: f64, im: f64, count: usize| Basis::Kautz { re, im, count };
        assert!(is_near(&kautz(0.753, 0.551, 4), &kautz(0.758, 0.552, 4)));
        assert!(!is_near(&kautz(0.753, 0.551, 4), &kautz(0.758, 0.552, 2)));
        // Ten times as long.
        assert!(!is_near(&kautz(0.99, 0.0, 2), &kautz(0.999, 0.0, 2)));
        let poles = |list: &[(f64, f64)]| Basis::Poles(Poles::new(list));
        assert!(is_near(&poles(&[(0.972, 0.0), (0.924, 0.0)]), &poles(&[(0.973, 0.0), (0.923, 0.0)])));
        assert!(!is_near(&poles(&[(0.972, 0.0)]), &poles(&[(0.973, 0.0), (0.923, 0.0)])));
        assert!(!is_near(&Basis::Levels(4), &Basis::Levels(4)));
    }
}
