//! How long filters take, from their impulse responses: until their start has faded, and until a bad sample is no longer felt.

use alloc::{vec, vec::Vec};

use super::stage::{Feature, Filter, Resonator, Section, Signal, Source, Stage};

/// The part of its start below which a filter has forgotten it, and the part of what a feature resolves below which it no longer
/// feels a bad sample.
const FORGOTTEN: f64 = 1e-3;
/// Samples after which a filter is taken to be as settled as it gets.
const LONGEST: usize = 1 << 20;
/// A plain feature resolves its range as a map of so many cells would.
const CELLS: f64 = 8.0;
/// No feature resolves less than the digits of an f32 near 1.
const FINEST: f64 = 1e-6;

impl Stage {
    /// Sets `settled` and `felt` by what the sections and features are.
    ///
    /// An average has settled when it has become exponential, at n = 1 / alpha, a resonator when its impulse response has decayed to a
    /// thousandth of its peak. A bad sample is felt until no feature can differ by more than a thousandth of its narrowest cell, of an eighth
    /// of its range and of 1, for each unit of the standardised input, however many samples before it were bad: a steep map makes
    /// much of little.
    pub fn settle(&mut self) {
        let resolved: Vec<f64> = self.features.iter().map(Feature::resolved).collect();
        let finest = resolved.iter().fold(1.0f64, |finest, resolved| finest.min(*resolved));
        let (mut peaks, mut last) = (vec![0.0f64; self.sections.len()], vec![0; self.sections.len()]);
        // The sizes of a response from now on, all together: the most that bad samples up to now can do, each of size 1.
        let mut tails = vec![0.0f64; self.features.len()];
        let mut felt = 0;
        // The first pass finds peaks and sums, the second when each response is below its limit for good.
        for pass in 0..2 {
            let mut response = Response::new(self.sections.len());
            for t in 0..LONGEST {
                response.step(&self.sections, t);
                let mut alive = t == 0;
                let sized = self.sections.iter().zip(&response.states);
                for (((section, &state), peak), last) in sized.zip(&mut peaks).zip(&mut last) {
                    let size = match section.filter {
                        Filter::Average { .. } => libm::fabs(state.0),
                        Filter::Resonator(resonator) => resonator.size(state),
                    };
                    if pass == 0 {
                        *peak = peak.max(size);
                    } else if size > FORGOTTEN * *peak {
                        *last = t + 1;
                    }
                    alive |= size > 1e-4 * FORGOTTEN * finest * *peak;
                }
                for ((feature, tail), resolved) in self.features.iter().zip(&mut tails).zip(&resolved) {
                    let minus = feature.minus.map_or(0.0, |minus| response.of(minus, t));
                    let size = libm::fabs(response.of(feature.plus, t) - minus);
                    if pass == 0 {
                        *tail += size;
                    } else {
                        if *tail > FORGOTTEN * *resolved {
                            felt = t + 1;
                        }
                        *tail -= size;
                    }
                }
                if !alive {
                    break;
                }
            }
        }
        let settled = self.sections.iter().zip(last).map(|(section, last)| match section.filter {
            Filter::Average { alpha } => libm::ceil(1.0 / f64::from(alpha)) as usize,
            Filter::Resonator(_) => last,
        });
        (self.settled, self.felt) = (settled.max().unwrap_or(0), felt);
    }
}

impl Feature {
    /// The difference that means something: its narrowest cell, or a part of its range, and no more than a unit of the input.
    fn resolved(&self) -> f64 {
        let widths =
            self.nodes.iter().zip(self.nodes.iter().skip(1)).map(|(a, b)| f64::from(*b) - f64::from(*a));
        let range = f64::from(self.high) - f64::from(self.low);
        // A feature that stood still in training says nothing of its size.
        let range = if range > 0.0 { range / CELLS } else { 1.0 };
        widths.fold(range.min(1.0), f64::min).max(FINEST)
    }
}

/// The sections' answer to a sample of 1 at every input.
struct Response {
    /// The average, or y1 and y2.
    states: Vec<(f64, f64)>,
    /// What others are fed.
    feeds: Vec<f64>,
}

impl Response {
    fn new(sections: usize) -> Self {
        Self { states: vec![(0.0, 0.0); sections], feeds: vec![0.0; sections] }
    }

    /// The sample `t`.
    fn step(&mut self, sections: &[Section], t: usize) {
        for (k, section) in sections.iter().enumerate() {
            let u = match section.source {
                Source::Input(_) => f64::from(u8::from(t == 0)),
                Source::Section(earlier) => self.feeds.get(earlier).copied().unwrap_or(0.0),
            };
            let Some((state, feed)) = self.states.get_mut(k).zip(self.feeds.get_mut(k)) else { continue };
            match section.filter {
                Filter::Average { alpha } => {
                    state.0 += f64::from(alpha) * (u - state.0);
                    *feed = state.0;
                }
                Filter::Resonator(Resonator { state: matrix, gain, all_pass }) => {
                    let ([a, b, c, g], [d, e1, e2]) = (matrix.map(f64::from), all_pass.map(f64::from));
                    *feed = d * u + e1 * state.0 + e2 * state.1;
                    *state = (f64::from(gain) * u + a * state.0 + b * state.1, c * state.0 + g * state.1);
                }
            }
        }
    }

    /// What a feature sees of it at the sample `t`.
    fn of(&self, signal: Signal, t: usize) -> f64 {
        let (section, output) = match signal {
            Signal::Lag { lag, .. } => return f64::from(u8::from(t == lag)),
            Signal::Section { section, output } => (section, output),
        };
        let (first, second) = self.states.get(section).copied().unwrap_or_default();
        if output == 0 { first } else { second }
    }
}
