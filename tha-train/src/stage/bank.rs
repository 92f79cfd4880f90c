//! The bank: sections for every input, features made of them, and both computed over the records of a data set.

use super::InputMap;
use crate::data::Dataset;
use crate::reference::Values;
use tha_core::build::{self, Filter, Section, Signal, Source};

/// One entry of z_t: a signal or the difference of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The input it belongs to.
    pub input: usize,
    /// The signal.
    pub signal: Signal,
    /// What is subtracted from it.
    pub minus: Option<Signal>,
}

/// The filters of all inputs and the features made of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bank {
    /// p.
    pub inputs: usize,
    /// Every section comes after its source.
    pub sections: Vec<Section>,
    /// As many of each input, the first ones of all inputs first.
    pub features: Vec<Feature>,
}

/// The outputs of all sections over the rows of a data set, or over some of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs {
    of_section: Vec<[Vec<f64>; 2]>,
    /// Where the rows of the data set stand in the columns; empty where all of them do.
    places: Vec<usize>,
}

impl Feature {
    /// Whether it is an input some samples ago.
    pub fn is_delay(&self) -> bool {
        matches!((self.signal, self.minus), (Signal::Lag { .. }, None))
    }
}

impl Bank {
    /// Samples at the start of a record that are history only: the longest lag, or until all sections have settled.
    pub fn history(&self) -> usize {
        let lag = |feature: &Feature| match feature.signal {
            Signal::Lag { lag, .. } => lag,
            Signal::Section { .. } => 0,
        };
        let lags = self.features.iter().map(lag).max().unwrap_or(0);
        let mut filters = build::Stage { sections: self.sections.clone(), ..build::Stage::default() };
        filters.settle();
        lags.max(filters.settled.max(1) - 1)
    }

    /// Runs all sections over all records, each from its start.
    pub(super) fn run(&self, data: &Dataset, maps: &[InputMap]) -> Outputs {
        self.run_at(data, maps, None)
    }

    /// The same, of which some rows are kept.
    pub(super) fn run_at(&self, data: &Dataset, maps: &[InputMap], kept: Option<&[usize]>) -> Outputs {
        let mut places = Vec::new();
        if let Some(kept) = kept {
            places = vec![usize::MAX; data.len()];
            kept.iter().enumerate().for_each(|(place, &row)| places[row] = place);
        }
        let count = kept.map_or(data.len(), <[usize]>::len);
        let column = |section: &Section| {
            let second = matches!(section.filter, Filter::Resonator(_));
            [vec![0.0; count], vec![0.0; if second { count } else { 0 }]]
        };
        let mut of_section: Vec<[Vec<f64>; 2]> = self.sections.iter().map(column).collect();
        for record in &data.records {
            let mut states = vec![Values::<f64>::at_rest(); self.sections.len()];
            for (t, row) in record.rows.clone().enumerate() {
                let place = places.get(row).copied().unwrap_or(row);
                let mean = ((t + 1) as f64).recip();
                for (k, section) in self.sections.iter().enumerate() {
                    let sample = match section.source {
                        Source::Input(input) => maps[input].standardise(data.u[input][row]),
                        Source::Section(earlier) => states[earlier].feed,
                    };
                    states[k].step(section.filter, sample, mean);
                    for (column, value) in of_section[k].iter_mut().zip(states[k].outputs) {
                        if let Some(entry) = column.get_mut(place) {
                            *entry = value;
                        }
                    }
                }
            }
        }
        Outputs { of_section, places }
    }
}

impl Outputs {
    /// A feature at some rows of the data set.
    pub(super) fn read(
        &self,
        feature: &Feature,
        data: &Dataset,
        maps: &[InputMap],
        rows: &[usize],
        to: &mut [f64],
    ) {
        self.signal(feature.signal, data, maps, rows, |t, value| to[t] = value);
        if let Some(minus) = feature.minus {
            self.signal(minus, data, maps, rows, |t, value| to[t] -= value);
        }
    }

    fn signal(
        &self,
        signal: Signal,
        data: &Dataset,
        maps: &[InputMap],
        rows: &[usize],
        mut set: impl FnMut(usize, f64),
    ) {
        match signal {
            Signal::Lag { input, lag } => {
                let (column, map) = (&data.u[input], maps[input]);
                rows.iter().enumerate().for_each(|(t, &row)| set(t, map.standardise(column[row - lag])));
            }
            Signal::Section { section, output } => {
                let column = &self.of_section[section][output];
                let place = |row: usize| self.places.get(row).copied().unwrap_or(row);
                rows.iter().enumerate().for_each(|(t, &row)| set(t, column[place(row)]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Basis;
    use super::*;
    use crate::data::tests::counting;
    use crate::network::Normal;

    const UNIT: InputMap = InputMap { offset: 0.0, gain: 1.0 };

    /// Two records of noise, and the features of a basis at all of their rows.
    fn features(basis: &str) -> (Dataset, Bank, Vec<Vec<f64>>) {
        let mut data = counting(&[300, 200]);
        let mut normal = Normal::new(1);
        data.u.iter_mut().flatten().for_each(|u| *u = normal.draw());
        let bank = basis.parse::<Basis>().unwrap().bank(2).unwrap();
        let outputs = bank.run(&data, &[UNIT, UNIT]);
        let rows: Vec<usize> = (0..data.len()).collect();
        let read = |feature: &Feature| {
            let mut to = vec![0.0; rows.len()];
            outputs.read(feature, &data, &[UNIT, UNIT], &rows, &mut to);
            to
        };
        let values = bank.features.iter().map(read).collect();
        (data, bank, values)
    }

    /// The sum of h(k) u(t - k) within a record.
    fn convolved(h: &[f64], u: &[f64]) -> Vec<f64> {
        (0..u.len()).map(|t| (0..=t.min(h.len() - 1)).map(|k| h[k] * u[t - k]).sum()).collect()
    }

    fn close(a: &[f64], b: &[f64]) {
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-6 * (1.0 + b.abs()), "{a} {b}"));
    }

    #[test]
    fn an_average_is_a_running_mean_that_turns_into_an_exponential_one() {
        let (data, bank, levels) = features("levels:8");
        let (_, _, differences) = features("differences:8");
        // The last running mean is that of eight samples.
        assert_eq!((bank.features.len(), bank.history()), (10, 8));
        for (record, input) in [(0, 0), (1, 1)] {
            let rows = data.records[record].rows.clone();
            let u = &data.u[input][rows.clone()];
            let at = |k: usize, values: &[Vec<f64>]| values[2 * k + input][rows.clone()].to_vec();
            assert_eq!(at(0, &levels), u);
            // A time constant of 8: alpha = 0.1175 takes over from 1/n at n = 9.
            let slow = at(4, &levels);
            for n in 1..=8 {
                let mean = u[..n].iter().sum::<f64>() / n as f64;
                assert!((slow[n - 1] - mean).abs() < 1e-12, "{n}");
            }
            let pole = (-1.0_f64 / 8.0).exp();
            for t in 8..u.len() {
                let tail: f64 = (8..=t).map(|k| (1.0 - pole) * pole.powi((t - k) as i32) * u[k]).sum();
                let expected = pole.powi((t - 7) as i32) * slow[7] + tail;
                assert!((slow[t] - expected).abs() < 1e-6, "{t}");
            }
            for k in 0..4 {
                let (a, b) = (at(k, &levels), at(k + 1, &levels));
                let expected: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                assert_eq!(at(k, &differences), expected);
            }
            assert_eq!(at(4, &differences), slow);
        }
    }

    #[test]
    fn resonators_are_the_orthonormal_kautz_functions() {
        let (re, im) = (0.8, 0.4);
        let (data, bank, values) = features("kautz:0.8,0.4,2");
        // The impulse responses by long division of the transfer functions.
        let (b, m2): (f64, f64) = (2.0 * re, re * re + im * im);
        let c = b / (1.0 + m2);
        let divided = |numerator: [f64; 3], input: &[f64]| {
            let mut out = vec![0.0; input.len()];
            let past = |x: &[f64], t: usize, k: usize| if t >= k { x[t - k] } else { 0.0 };
            for t in 0..input.len() {
                let fed: f64 = (0..3).map(|k| numerator[k] * past(input, t, k)).sum();
                out[t] = fed + b * past(&out, t, 1) - m2 * past(&out, t, 2);
            }
            out
        };
        let mut impulse = vec![0.0; 400];
        impulse[0] = 1.0;
        let (g0, g1) = ((1.0 - m2 * m2).sqrt(), ((1.0 - c * c) * (1.0 - m2 * m2)).sqrt());
        let passed = divided([m2, -b, 1.0], &impulse);
        let responses: Vec<Vec<f64>> = [&impulse, &passed]
            .iter()
            .flat_map(|input| [divided([g0, -g0 * c, 0.0], input), divided([0.0, g1, 0.0], input)])
            .collect();
        for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let product: f64 = responses[i].iter().zip(&responses[j]).map(|(a, b)| a * b).sum();
            assert!((product - f64::from(i == j)).abs() < 1e-9, "{i} {j}: {product}");
        }
        for record in &data.records {
            for (k, input) in (0..4).flat_map(|k| [(k, 0), (k, 1)]) {
                let expected = convolved(&responses[k], &data.u[input][record.rows.clone()]);
                close(&values[2 * k + input][record.rows.clone()], &expected);
            }
        }
        // One part in a thousand of the peak is left when rows begin to count: w(t) and w(t-1) give the state.
        let w = divided([1.0, 0.0, 0.0], &passed);
        let before = |t: usize| if t > 0 { w[t - 1] } else { 0.0 };
        let size = |t: usize| (w[t] - re * before(t)).hypot(im * before(t));
        let peak = (0..400).map(size).fold(0.0, f64::max);
        let history = bank.history();
        assert!(size(history) > 1e-3 * peak, "{history}");
        assert!((history + 1..400).all(|t| size(t) <= 1e-3 * peak), "{history}");
    }

    #[test]
    fn a_lag_is_history() {
        let (data, bank, _) = features("lags:1");
        assert_eq!((bank.history(), data.scored_rows(bank.history() + 1).len()), (0, 500));
        assert_eq!("lags:7".parse::<Basis>().unwrap().bank(3).unwrap().history(), 6);
    }
}
