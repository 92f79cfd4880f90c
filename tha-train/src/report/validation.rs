//! Residual analysis, as it is usual in system identification: what a good model leaves is white, and independent of
//! the inputs.
//!
//! Correlations are normalised to one at lag zero of the auto-correlations. The 95 % bands are +-1.96 / sqrt(N) for the
//! auto-correlation of a white residual and, for inputs against residuals, +-1.96 sqrt(sum_k r_ee(k) r_uu(k) / N).
//! Products never cross a record boundary.

use crate::data::Dataset;

/// Half-width of a 95 % band in standard deviations.
const NORMAL_95: f64 = 1.96;

/// A correlation function: lags, values and the half-width of its band.
pub(crate) struct Correlation {
    pub lags: Vec<i64>,
    pub values: Vec<f64>,
    pub band: f64,
}

impl Correlation {
    /// The part of the lags (but zero, for an auto-correlation) that lies outside of the band.
    pub(crate) fn outside(&self, skip_zero: bool) -> (usize, usize) {
        let counted = || self.lags.iter().zip(&self.values).filter(|(lag, _)| !(skip_zero && **lag == 0));
        (counted().filter(|(_, value)| value.abs() > self.band).count(), counted().count())
    }

    /// Lags and values, to be drawn.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        self.lags.iter().zip(&self.values).map(|(lag, value)| (*lag as f64, *value)).collect()
    }

    pub(crate) fn largest(&self) -> f64 {
        self.values.iter().fold(0.0, |m, v| v.abs().max(m))
    }
}

/// Sum over rows of a(t) b(t - lag) inside records, for the given rows; `b` covers all rows of the data.
fn product(data: &Dataset, rows: &[usize], a: &[f64], b: &[Option<f64>], lag: i64) -> f64 {
    let mut record = data.records.iter();
    let mut current = record.next();
    let mut sum = 0.0;
    for (&row, a) in rows.iter().zip(a) {
        while current.is_some_and(|r| r.rows.end <= row) {
            current = record.next();
        }
        let Some(range) = current.map(|r| r.rows.clone()) else { break };
        let other = row as i64 - lag;
        if other >= range.start as i64
            && other < range.end as i64
            && let Some(b) = b[other as usize]
        {
            sum += a * b;
        }
    }
    sum
}

/// Values at some rows, centred, and nothing elsewhere.
fn spread(data: &Dataset, rows: &[usize], values: &[f64]) -> (Vec<f64>, Vec<Option<f64>>) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let centred: Vec<f64> = values.iter().map(|v| v - mean).collect();
    let mut all = vec![None; data.len()];
    rows.iter().zip(&centred).for_each(|(&row, v)| all[row] = Some(*v));
    (centred, all)
}

/// Auto-correlation of a residual given at some rows, lags 0 to `most`.
pub(crate) fn auto(data: &Dataset, rows: &[usize], residual: &[f64], most: i64) -> Correlation {
    let (centred, all) = spread(data, rows, residual);
    let unit = product(data, rows, &centred, &all, 0).max(f64::MIN_POSITIVE);
    let lags: Vec<i64> = (0..=most).collect();
    let values = lags.iter().map(|&lag| product(data, rows, &centred, &all, lag) / unit).collect();
    Correlation { lags, values, band: NORMAL_95 / (rows.len().max(1) as f64).sqrt() }
}

/// Correlation of a residual with an earlier (positive lag) or later input.
pub(crate) fn cross(
    data: &Dataset,
    rows: &[usize],
    residual: &[f64],
    input: usize,
    most: i64,
) -> Correlation {
    let column = &data.u[input];
    let at: Vec<f64> = rows.iter().map(|&row| column[row]).collect();
    let ((centred, _), (seen, _)) = (spread(data, rows, residual), spread(data, rows, &at));
    let mean = at.iter().sum::<f64>() / at.len().max(1) as f64;
    let all: Vec<Option<f64>> = column.iter().map(|v| Some(v - mean)).collect();
    let square = |values: &[f64]| values.iter().map(|v| v * v).sum::<f64>();
    let unit = (square(&centred) * square(&seen)).sqrt().max(f64::MIN_POSITIVE);
    let lags: Vec<i64> = (-most / 2..=most).collect();
    let values = lags.iter().map(|&lag| product(data, rows, &centred, &all, lag) / unit).collect();
    let (e, u) = (auto(data, rows, residual, most), auto(data, rows, &at, most));
    let both: f64 = e.values.iter().zip(&u.values).skip(1).map(|(a, b)| 2.0 * a * b).sum::<f64>() + 1.0;
    Correlation { lags, values, band: NORMAL_95 * (both.max(0.1) / rows.len().max(1) as f64).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::counting;

    #[test]
    fn by_hand_inside_records() {
        let data = counting(&[3, 3]);
        let rows: Vec<usize> = (0..6).collect();
        let residual = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        let r = auto(&data, &rows, &residual, 1);
        // Four neighbours inside the two records, all of opposite sign.
        assert_eq!(r.values, [1.0, -4.0 / 6.0]);
        assert!((r.band - 1.96 / 6.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(r.outside(true), (0, 1));
    }

    #[test]
    fn an_input_that_drives_the_residual_is_found_at_its_lag() {
        let mut data = counting(&[200]);
        let noise = |t: usize| ((t * t) as f64 * 0.7).sin();
        data.u[0] = (0..200).map(noise).collect();
        let rows: Vec<usize> = (3..200).collect();
        let residual: Vec<f64> = rows.iter().map(|&t| noise(t - 3)).collect();
        let r = cross(&data, &rows, &residual, 0, 6);
        let best =
            (0..r.lags.len()).max_by(|&a, &b| r.values[a].abs().total_cmp(&r.values[b].abs())).unwrap();
        assert_eq!(r.lags[best], 3);
        assert!(r.values[best] > 0.95 && r.largest() > r.band);
    }
}
