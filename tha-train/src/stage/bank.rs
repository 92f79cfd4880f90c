//! Sections and features: the filters of all inputs, computed sample by sample within each record.
//!
//! | section | recurrence | passes on |
//! |---|---|---|
//! | average | s += max(alpha, 1/n) (u - s), n samples since the start | s |
//! | resonator | w(t) = u(t) + b w(t-1) - m2 w(t-2); outputs g_0 (w(t) - c w(t-1)) and g_1 w(t-1) | the all-pass m2 w(t) - b w(t-1) + w(t-2) |
//!
//! An average starts as a running mean, so it has no transient. A resonator starts at rest: until the start has faded its rows
//! are not scored. The outputs of resonators in a row are orthonormal filters (Kautz functions). Coefficients are those of a model
//! file, f32; the arithmetic is f64.

use super::{InputMap, StageError};
use crate::data::Dataset;

/// Where a section gets its samples from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A standardised input.
    Input(usize),
    /// What an earlier section passes on.
    Section(usize),
}

/// A filter of first or second order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Section {
    /// One real pole, 1 - alpha.
    Average {
        /// Its samples.
        source: Source,
        /// 1 - exp(-1 / time constant).
        alpha: f32,
    },
    /// A pair of poles, the roots of z^2 - b z + m2.
    Resonator {
        /// Its samples.
        source: Source,
        /// Twice the real part of the poles.
        b: f32,
        /// The square of their modulus.
        m2: f32,
        /// c = b / (1 + m2).
        c: f32,
        /// sqrt(1 - m2^2) and sqrt((1 - c^2)(1 - m2^2)).
        gains: [f32; 2],
    },
}

/// A sequence of numbers that a feature is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A standardised input some samples ago.
    Lag {
        /// Which input.
        input: usize,
        /// How many samples ago.
        lag: usize,
    },
    /// An output of a section.
    Section {
        /// Which section.
        section: usize,
        /// 0, or 1 for the second output of a resonator.
        output: usize,
    },
}

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

/// The outputs of all sections over the rows of a data set.
#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    of_section: Vec<[Vec<f64>; 2]>,
}

/// The part of a start that may be left when rows begin to count.
const SETTLED: f64 = 1e-3;
/// Samples after which a resonator that has not settled is said to be unstable: no record is as long.
const ENDLESS: usize = 10_000_000;

impl Section {
    /// The average of a time constant in samples.
    pub fn average(source: Source, tau: f64) -> Self {
        Self::Average { source, alpha: -(-tau.recip()).exp_m1() as f32 }
    }

    /// The resonator with the poles re + im i and re - im i.
    pub fn resonator(source: Source, re: f64, im: f64) -> Result<Self, StageError> {
        let (b, m2) = ((2.0 * re) as f32, (re * re + im * im) as f32);
        let (wide, square) = (f64::from(b), f64::from(m2));
        // The roots are inside the unit circle exactly if both hold.
        if square >= 1.0 || wide.abs() >= 1.0 + square {
            let modulus = if square >= 1.0 { square.sqrt() } else { re.hypot(im) };
            return Err(StageError::Unstable { re, im, modulus });
        }
        let c = wide / (1.0 + square);
        let energy = 1.0 - square * square;
        let gains = [energy.sqrt() as f32, ((1.0 - c * c) * energy).sqrt() as f32];
        Ok(Self::Resonator { source, b, m2, c: c as f32, gains })
    }

    /// Where its samples come from.
    pub fn source(&self) -> Source {
        match *self {
            Self::Average { source, .. } | Self::Resonator { source, .. } => source,
        }
    }
}

/// What a section remembers.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    count: f64,
    recent: [f64; 2],
}

impl State {
    /// Takes a sample; gives the two outputs and what is passed on.
    fn step(&mut self, section: &Section, sample: f64) -> ([f64; 2], f64) {
        self.count += 1.0;
        let [last, before] = self.recent;
        match *section {
            Section::Average { alpha, .. } => {
                let s = last + f64::from(alpha).max(self.count.recip()) * (sample - last);
                self.recent[0] = s;
                ([s, 0.0], s)
            }
            Section::Resonator { b, m2, c, gains, .. } => {
                let [b, m2, c] = [b, m2, c].map(f64::from);
                let w = sample + b * last - m2 * before;
                self.recent = [w, last];
                let outputs = [f64::from(gains[0]) * (w - c * last), f64::from(gains[1]) * last];
                (outputs, m2 * w - b * last + before)
            }
        }
    }
}

impl Feature {
    /// Whether it is an input some samples ago.
    pub fn is_delay(&self) -> bool {
        matches!((self.signal, self.minus), (Signal::Lag { .. }, None))
    }
}

impl Bank {
    /// Samples at the start of a record that are history only: the longest lag, or until the resonators have settled.
    pub fn history(&self) -> usize {
        let lag = |feature: &Feature| match feature.signal {
            Signal::Lag { lag, .. } => lag,
            Signal::Section { .. } => 0,
        };
        let lags = self.features.iter().map(lag).max().unwrap_or(0);
        let settling = (0..self.sections.len()).map(|section| self.settling(section));
        lags.max(settling.max().unwrap_or(0))
    }

    /// Samples after which at most [`SETTLED`] of the impulse response of a resonator of the first input is left, as a root
    /// mean square. All inputs have the same sections.
    fn settling(&self, section: usize) -> usize {
        let mut chain = Vec::new();
        let mut next = Source::Section(section);
        while let Source::Section(at) = next {
            let section = self.sections[at];
            if matches!(section, Section::Resonator { .. }) {
                chain.push((section, State::default()));
            }
            next = section.source();
        }
        if chain.is_empty() || next != Source::Input(0) {
            return 0;
        }
        // The outputs are orthonormal: each of the two has a response of unit energy.
        let mut left = 2.0;
        for t in 0..ENDLESS {
            let mut sample = if t == 0 { 1.0 } else { 0.0 };
            let mut outputs = [0.0; 2];
            for (section, state) in chain.iter_mut().rev() {
                (outputs, sample) = state.step(section, sample);
            }
            left -= outputs.iter().map(|v| v * v).sum::<f64>();
            if left <= 2.0 * SETTLED * SETTLED {
                return t + 1;
            }
        }
        ENDLESS
    }

    /// Runs all sections over all records, each from its start.
    pub(super) fn run(&self, data: &Dataset, maps: &[InputMap]) -> Outputs {
        let column = |section: &Section| {
            let second = matches!(section, Section::Resonator { .. });
            [vec![0.0; data.len()], vec![0.0; if second { data.len() } else { 0 }]]
        };
        let mut of_section: Vec<[Vec<f64>; 2]> = self.sections.iter().map(column).collect();
        for record in &data.records {
            let mut states = vec![State::default(); self.sections.len()];
            let mut passed = vec![0.0; self.sections.len()];
            for row in record.rows.clone() {
                for (k, section) in self.sections.iter().enumerate() {
                    let sample = match section.source() {
                        Source::Input(input) => maps[input].standardise(data.u[input][row]),
                        Source::Section(earlier) => passed[earlier],
                    };
                    let outputs;
                    (outputs, passed[k]) = states[k].step(section, sample);
                    for (column, value) in of_section[k].iter_mut().zip(outputs) {
                        if let Some(entry) = column.get_mut(row) {
                            *entry = value;
                        }
                    }
                }
            }
        }
        Outputs { of_section }
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
                rows.iter().enumerate().for_each(|(t, &row)| set(t, column[row]));
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
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-6, "{a} {b}"));
    }

    #[test]
    fn an_average_is_a_running_mean_that_turns_into_an_exponential_one() {
        let (data, bank, levels) = features("levels:8");
        let (_, _, differences) = features("differences:8");
        assert_eq!((bank.features.len(), bank.history()), (10, 0));
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
        // One part in a thousand of the last responses is left when rows begin to count.
        let left = |n: usize| {
            let energy = responses[2..].iter().map(|h| h[n..].iter().map(|v| v * v).sum::<f64>());
            (energy.sum::<f64>() / 2.0).sqrt()
        };
        let history = bank.history();
        assert!(left(history) <= 1.001e-3 && left(history - 1) > 0.999e-3, "{history}");
    }

    #[test]
    fn a_lag_is_history() {
        let (data, bank, _) = features("lags:1");
        assert_eq!((bank.history(), data.scored_rows(bank.history() + 1).len()), (0, 500));
        assert_eq!("lags:7".parse::<Basis>().unwrap().bank(3).unwrap().history(), 6);
    }
}
