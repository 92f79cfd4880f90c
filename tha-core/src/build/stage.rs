//! The input stage as its maker sees it: sections, features, maps.

use alloc::vec::Vec;

/// From standardised inputs to features. The default has no sections, and all lags of all inputs for features.
///
/// Neighbouring sections with equal filters and consecutive sources run in one loop: a bank is cheapest when it is listed
/// filter by filter, for all inputs each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// The filters; a source is an input or an earlier section.
    pub sections: Vec<Section>,
    /// The features, the mapped ones last. Empty: the lags of all inputs, newest first.
    pub features: Vec<Feature>,
    /// For [`RangePolicy::Extend`](crate::RangePolicy::Extend): output by output, what a feature adds for each unit that it is
    /// beyond its range, in units of the output's scale. Empty: nothing.
    pub linear: Vec<f32>,
    /// The number of the first sample that gives outputs; M where that is more. See [`Stage::settle`].
    pub settled: usize,
    /// Samples for which a bad one is felt; M where that is more. See [`Stage::settle`].
    pub felt: usize,
}

/// A filter and what it filters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section {
    /// What comes in.
    pub source: Source,
    /// What happens to it.
    pub filter: Filter,
}

/// The source of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A standardised input.
    Input(usize),
    /// An earlier section: its average, or its all-pass output.
    Section(usize),
}

/// A filter with one pole or a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// s += max(alpha, 1/n) (u - s), with the pole 1 - alpha, n samples after the start.
    Average {
        /// Above 0, at most 1; 1 - exp(-1/T) for the time constant T.
        alpha: f32,
    },
    /// A Kautz section: a complex pair of poles, two outputs, and an all-pass output for the next section.
    Resonator(Resonator),
}

/// The coefficients of a resonator: q = pole q + u with q complex, y1 = outputs\[0\] Re q + outputs\[1\] Im q,
/// y2 = outputs\[2\] Im q, and a = all_pass\[0\] u + all_pass\[1\] Re q + all_pass\[2\] Im q with the q before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resonator {
    /// Real and imaginary part, inside the unit circle, not on the real axis.
    pub pole: [f32; 2],
    /// k1, k2, k3.
    pub outputs: [f32; 3],
    /// d, e1, e2.
    pub all_pass: [f32; 3],
}

/// A signal that a feature can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A standardised input, `lag` samples ago; below M.
    Lag {
        /// Index of the input.
        input: usize,
        /// Samples ago.
        lag: usize,
    },
    /// An output of a section.
    Section {
        /// Index of the section.
        section: usize,
        /// 0; or 1 for the second output of a resonator.
        output: usize,
    },
}

/// z = plus - minus, mapped or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// The signal.
    pub plus: Signal,
    /// Subtracted from it, of the same input.
    pub minus: Option<Signal>,
    /// Smallest value in training.
    pub low: f32,
    /// Largest value in training.
    pub high: f32,
    /// Empty for a plain feature. Else at least two, increasing: the map is linear between them and constant outside.
    pub nodes: Vec<f32>,
}

impl Resonator {
    /// The section for the pair of poles re +- i im: orthonormal outputs.
    #[must_use]
    pub fn new(re: f64, im: f64) -> Self {
        // With w = u / ((1 - p z^-1)(1 - p* z^-1)): w(t) = Re q + (re / im) Im q and w(t-1) = Im q / im.
        let (b, m2) = (2.0 * re, re * re + im * im);
        let c = b / (1.0 + m2);
        let (g1, g2) = (libm::sqrt(1.0 - m2 * m2), libm::sqrt((1.0 - c * c) * (1.0 - m2 * m2)));
        // y1 = g1 (w(t) - c w(t-1)), y2 = g2 w(t-1), a = m2 u + b (m2 - 1) w(t-1) + (1 - m2^2) w(t-2) of the state before.
        let (e1, e2) = (b * (m2 - 1.0), 1.0 - m2 * m2);
        let round = |values: [f64; 3]| values.map(|value| value as f32);
        Self {
            pole: [re as f32, im as f32],
            outputs: round([g1, g1 * (re - c) / im, g2 / im]),
            all_pass: round([m2, e1, (e1 * re + e2) / im]),
        }
    }
}

impl Feature {
    /// Rows that it has in a core.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.nodes.len().max(1)
    }
}

impl Stage {
    /// The input that a signal comes from; `None` where it does not exist.
    #[must_use]
    pub fn input_of(&self, signal: Signal) -> Option<usize> {
        let mut section = match signal {
            Signal::Lag { input, .. } => return Some(input),
            Signal::Section { section, .. } => section,
        };
        loop {
            match self.sections.get(section)?.source {
                Source::Input(input) => return Some(input),
                Source::Section(earlier) if earlier < section => section = earlier,
                Source::Section(_) => return None,
            }
        }
    }
}
