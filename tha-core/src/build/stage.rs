//! The input stage as its maker sees it: sections, features, maps.

use alloc::vec::Vec;

use crate::stage::Run;

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

/// The coefficients of a resonator. With its outputs y of the sample before, y1 = gain u + state\[0\] y1 + state\[1\] y2, y2 = state\[2\] y1 +
/// state\[3\] y2, and a = all_pass\[0\] u + all_pass\[1\] y1 + all_pass\[2\] y2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resonator {
    /// The matrix of the state, row by row, with a complex pair of poles inside the unit circle.
    pub state: [f32; 4],
    /// Of what comes in, b.
    pub gain: f32,
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
    /// The section for the pair of poles re +- i im: orthonormal outputs (Kautz functions). A pair that f32 cannot tell from two real
    /// poles is moved a little off the real axis.
    #[must_use]
    pub fn new(re: f64, im: f64) -> Self {
        let mut im = libm::fabs(im).max(f64::MIN_POSITIVE);
        loop {
            let made = Self::rounded(re, im);
            if made.pole()[1] >= im / 2.0 || im > 1.0 {
                return made;
            }
            im *= 1.25;
        }
    }

    fn rounded(re: f64, im: f64) -> Self {
        // With w = u / ((1 - p z^-1)(1 - p* z^-1)) the outputs are y1 = b (w(t) - c w(t-1)) and y2 = b s w(t-1). So the state turns, and one part of it
        // shrinks: y1 = b u + m (c y1 - s y2), y2 = s y1 + c y2, a = m u - b (c y1 - s y2).
        let m = re * re + im * im;
        let c = 2.0 * re / (1.0 + m);
        // 1 - c^2 without cancellation.
        let s = libm::sqrt((1.0 - m) * (1.0 - m) + 4.0 * im * im) / (1.0 + m);
        let b = libm::sqrt(1.0 - m * m);
        Self {
            state: [m * c, -m * s, s, c].map(|value| value as f32),
            gain: b as f32,
            all_pass: [m, -b * c, b * s].map(|value| value as f32),
        }
    }

    /// Real and imaginary part of a pole.
    #[must_use]
    pub fn pole(&self) -> [f64; 2] {
        let [a, b, c, d] = self.state.map(f64::from);
        [(a + d) / 2.0, libm::sqrt(-(a - d) * (a - d) - 4.0 * b * c) / 2.0]
    }

    /// The size of a state, that which shrinks by the modulus of the pole in every step. A change of y1 counts what it is.
    #[must_use]
    pub fn size(&self, (y1, y2): (f64, f64)) -> f64 {
        let [a, b, c, d] = self.state.map(f64::from);
        // The area between the state and the next one, which every step scales by the determinant, the modulus squared.
        libm::sqrt(((y1 * (c * y1 + d * y2) - y2 * (a * y1 + b * y2)) / c).max(0.0))
    }

    /// The [size](Self::size) of a state with y2 alone, 1, and how large y1 and y2 can be in a state of size 1.
    #[must_use]
    pub fn measure(&self) -> (f64, [f64; 2]) {
        let [_, b, c, _] = self.state.map(f64::from);
        let ([_, im], second) = (self.pole(), libm::sqrt(-b / c));
        (second, [second * c / im, c / im])
    }

    /// How large its outputs, and what it feeds others, can be where its source is at most 1.
    #[must_use]
    pub fn growth(&self) -> f64 {
        let [re, im] = self.pole();
        let (_, [first, second]) = self.measure();
        let [d, e1, e2] = self.all_pass.map(|value| f64::from(value).abs());
        let size = f64::from(self.gain).abs() / (1.0 - libm::hypot(re, im));
        let fed = d + (e1 * first + e2 * second) * size;
        (first.max(second) * size).max(fed)
    }

    /// That of a run.
    pub(super) fn of(run: &Run) -> Self {
        let [a, b, c, d, gain, e, f, g] = run.coefficients;
        Self { state: [a, b, c, d], gain, all_pass: [e, f, g] }
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
