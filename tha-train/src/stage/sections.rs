//! Sections: filters of first and second order, sample by sample.
//!
//! | filter | recurrence | passes on |
//! |---|---|---|
//! | average | s += max(alpha, 1/n) (u - s), n samples since the start | s |
//! | resonator | q = p q + u, complex; outputs k_1 Re q + k_2 Im q and k_3 Im q | the all-pass d u + e_1 Re q + e_2 Im q of the q before |
//!
//! An average starts as a running mean, so it has no transient; it has settled when it is one no more, at n = 1 / alpha. A resonator
//! starts at rest and has settled when its start has faded. Rows before that are not scored: what a system does there depends on
//! what nobody has recorded. The outputs of resonators in a row are orthonormal filters (Kautz functions). Coefficients are those
//! of a model file, f32; the arithmetic is f64.

use super::StageError;

/// Where a section gets its samples from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A standardised input.
    Input(usize),
    /// What an earlier section passes on.
    Section(usize),
}

/// A filter and what it filters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section {
    /// What comes in.
    pub source: Source,
    /// What happens to it.
    pub filter: Filter,
}

/// A filter of first or second order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// One real pole, 1 - alpha.
    Average {
        /// 1 - exp(-1 / time constant).
        alpha: f32,
    },
    /// A complex pair of poles, two outputs, and an all-pass output for the next section.
    Resonator(Resonator),
}

/// The coefficients of a resonator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resonator {
    /// p, its real and its imaginary part.
    pub pole: [f32; 2],
    /// k_1, k_2, k_3.
    pub outputs: [f32; 3],
    /// d, e_1, e_2.
    pub all_pass: [f32; 3],
}

/// The part of the start of a resonator that may be left when rows begin to count.
const SETTLED: f64 = 1e-3;
/// Samples after which a resonator that has not settled never will.
const ENDLESS: usize = 1 << 20;

impl Filter {
    /// The average of a time constant in samples.
    pub fn average(tau: f64) -> Self {
        Self::Average { alpha: -(-tau.recip()).exp_m1() as f32 }
    }

    /// The resonator with the poles re + im i and re - im i.
    pub fn resonator(re: f64, im: f64) -> Result<Self, StageError> {
        let pole = [re as f32, im as f32];
        let modulus = f64::from(pole[0]).hypot(pole[1].into()) as f32;
        if modulus >= 1.0 {
            return Err(StageError::Unstable { re, im, modulus });
        }
        if pole[1] == 0.0 {
            return Err(StageError::Overdamped { re });
        }
        // With w(t) = u(t) + b w(t-1) - m2 w(t-2): w(t) = Re q + (re / im) Im q, and w(t-1) = Im q / im.
        let (b, m2) = (2.0 * re, re * re + im * im);
        let c = b / (1.0 + m2);
        let energy = 1.0 - m2 * m2;
        let (first, second) = (energy.sqrt(), ((1.0 - c * c) * energy).sqrt());
        let e1 = b * (m2 - 1.0);
        let round = |values: [f64; 3]| values.map(|value| value as f32);
        Ok(Self::Resonator(Resonator {
            pole,
            outputs: round([first, first * (re - c) / im, second / im]),
            all_pass: round([m2, e1, (e1 * re + energy) / im]),
        }))
    }
}

/// What a section remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    count: f64,
    q: [f64; 2],
}

impl State {
    /// Takes a sample; gives the two outputs and what is passed on.
    pub(super) fn step(&mut self, filter: &Filter, u: f64) -> ([f64; 2], f64) {
        self.count += 1.0;
        let [re, im] = self.q;
        match *filter {
            Filter::Average { alpha } => {
                let s = re + f64::from(alpha).max(self.count.recip()) * (u - re);
                self.q[0] = s;
                ([s, 0.0], s)
            }
            Filter::Resonator(Resonator { pole, outputs, all_pass }) => {
                let ([p, i], [k1, k2, k3]) = (pole.map(f64::from), outputs.map(f64::from));
                let [d, e1, e2] = all_pass.map(f64::from);
                let passed = d * u + e1 * re + e2 * im;
                let (re, im) = (p * re - i * im + u, i * re + p * im);
                self.q = [re, im];
                ([k1 * re + k2 * im, k3 * im], passed)
            }
        }
    }
}

/// The number of the first sample, from 1, at which the last section of a chain has settled: an average is no running mean any
/// more; of the state of a resonator after an impulse [`SETTLED`] of its peak is left.
pub(super) fn settled(chain: &[Filter]) -> usize {
    match chain.last() {
        None => return 1,
        Some(Filter::Average { alpha }) => return f64::from(*alpha).recip().ceil() as usize,
        Some(Filter::Resonator(_)) => {}
    }
    let mut states = vec![(State::default(), 0.0_f64); chain.len()];
    let mut sizes = Vec::new();
    let mut alive = true;
    while alive && sizes.len() < ENDLESS {
        let mut sample = if sizes.is_empty() { 1.0 } else { 0.0 };
        let mut size = 0.0;
        alive = false;
        for (filter, (state, peak)) in chain.iter().zip(&mut states) {
            sample = state.step(filter, sample).1;
            size = state.q[0].hypot(state.q[1]);
            *peak = peak.max(size);
            alive |= size > 1e-2 * SETTLED * *peak;
        }
        sizes.push(size);
    }
    let peak = sizes.iter().copied().fold(0.0, f64::max);
    1 + sizes.iter().rposition(|size| *size > SETTLED * peak).unwrap_or(0)
}
