//! The arithmetic of `FORMAT.md`, written down once more as plainly as possible: slow, and knows nothing of layouts, rings and
//! blocks. In f32 it is what every device must give to the bit; in f64 the batch prediction rests on it; with
//! [`bound::Approximate`](crate::bound) for numbers it says how far the two can be apart.

mod integer;

pub use integer::IntegerReference;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::{Add, Div, Mul, Sub};
use tha_core::RangePolicy;
use tha_core::build::{Core, Feature, Filter, Head, ModelSpec, OutputChannel, Resonator, Signal, Source};

/// A kind of number to compute with.
pub trait Real:
    Copy
    + From<f32>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + PartialOrd
{
    /// The nearest number from `low` to `high`.
    fn limit(self, low: f32, high: f32) -> Self {
        let (low, high) = (Self::from(low), Self::from(high));
        let above = if self < low { low } else { self };
        if above > high { high } else { above }
    }

    /// s + gain (u - s).
    fn average(s: Self, u: Self, gain: Self) -> Self {
        s + gain * (u - s)
    }

    /// The next outputs of a resonator.
    fn resonate(resonator: &Resonator, [one, two]: [Self; 2], u: Self) -> [Self; 2] {
        let [a, b, c, d] = resonator.state.map(Self::from);
        [Self::from(resonator.gain) * u + a * one + b * two, c * one + d * two]
    }

    /// Adds the map of `z` with the given values at the nodes to `sum`.
    fn map(sum: Self, nodes: &[f32], z: Self, value: &dyn Fn(usize) -> f32) -> Self {
        let inner = &nodes[1..nodes.len() - 1];
        let cell = inner.iter().filter(|node| z >= Self::from(**node)).count();
        let (from, to) = (Self::from(nodes[cell]), Self::from(nodes[cell + 1]));
        let t = ((z - from) / (to - from)).limit(0.0, 1.0);
        sum + Self::from(value(cell)) * (Self::from(1.0) - t) + Self::from(value(cell + 1)) * t
    }
}

impl Real for f32 {}
impl Real for f64 {}

/// The largest standardised input in front of filters: 2^40.
const LIMIT: f32 = 1_099_511_627_776.0;

/// A model that is given sample after sample.
#[derive(Clone, Debug)]
pub struct Reference<'s, T> {
    spec: Cow<'s, ModelSpec>,
    /// Standardised samples, newest first, at most M.
    window: VecDeque<Vec<T>>,
    sections: Vec<Values<T>>,
    taken: usize,
}

/// What a section has: its average, or its two outputs, and what feeds the next section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<T> {
    pub outputs: [T; 2],
    pub feed: T,
}

impl<T: Real> Values<T> {
    /// Before the first sample.
    pub(crate) fn at_rest() -> Self {
        let zero = T::from(0.0);
        Self { outputs: [zero; 2], feed: zero }
    }

    /// Takes a sample; `mean` is one over the number of samples since the start.
    pub(crate) fn step(&mut self, filter: Filter, u: T, mean: T) {
        match filter {
            Filter::Average { alpha } => {
                self.feed = T::average(self.feed, u, mean.limit(alpha, 1.0));
                self.outputs[0] = self.feed;
            }
            Filter::Resonator(resonator) => {
                let ([d, e1, e2], [one, two]) = (resonator.all_pass.map(T::from), self.outputs);
                self.feed = d * u + e1 * one + e2 * two;
                self.outputs = T::resonate(&resonator, self.outputs, u);
            }
        }
    }
}

impl<'s, T: Real> Reference<'s, T> {
    /// A model before its first sample.
    pub fn new(spec: &'s ModelSpec) -> Self {
        Self::from(Cow::Borrowed(spec))
    }

    /// The same for a model of its own.
    pub fn from(spec: Cow<'s, ModelSpec>) -> Self {
        let mut new = Self { spec, window: VecDeque::new(), sections: Vec::new(), taken: 0 };
        new.reset();
        new
    }

    /// Forgets everything, as between two records.
    pub fn reset(&mut self) {
        self.window.clear();
        self.sections = vec![Values::at_rest(); self.spec.stage.sections.len()];
        self.taken = 0;
    }

    /// Whether the model lists features of its own.
    pub(crate) fn has_features(&self) -> bool {
        !self.spec.stage.features.is_empty()
    }

    /// Takes a sample of p finite values, and gives the outputs once the model has settled.
    pub fn push(&mut self, u: &[T]) -> Option<Vec<T>> {
        self.take(u);
        (self.taken >= self.spec.settled()).then(|| self.outputs())
    }

    /// Takes a sample.
    pub fn take(&mut self, u: &[T]) {
        let Self { spec, window, sections, taken } = self;
        let x = u.iter().zip(&spec.inputs).map(|(&u, channel)| {
            let clamps = spec.stage.features.is_empty() && spec.range != RangePolicy::Pass;
            let u = if clamps { u.limit(channel.low, channel.high) } else { u };
            let x = (u - T::from(channel.offset)) * T::from(channel.gain);
            if spec.stage.features.is_empty() { x } else { x.limit(-LIMIT, LIMIT) }
        });
        window.push_front(x.collect());
        window.truncate(spec.memory);
        *taken += 1;
        let mean = T::from(1.0) / T::from(*taken as f32);
        for (k, section) in spec.stage.sections.iter().enumerate() {
            let u = match section.source {
                Source::Input(input) => window[0][input],
                Source::Section(earlier) => sections[earlier].feed,
            };
            sections[k].step(section.filter, u, mean);
        }
    }

    /// The outputs for the samples so far, of which there must be M.
    pub fn outputs(&self) -> Vec<T> {
        Self::outputs_of(&self.spec, &self.features())
    }

    /// The outputs for some features.
    pub(crate) fn outputs_of(spec: &ModelSpec, z: &[T]) -> Vec<T> {
        let mut s = vec![T::from(0.0); spec.outputs.len()];
        for head in &spec.heads {
            for (s, share) in s[head.outputs.clone()].iter_mut().zip(share(spec, head, z)) {
                *s = *s + share;
            }
        }
        if spec.range == RangePolicy::Extend {
            let beyond = z.iter().zip(&spec.stage.features).map(|(z, feature)| beyond(*z, feature));
            for (i, beyond) in beyond.enumerate() {
                for (j, s) in s.iter_mut().enumerate() {
                    *s = *s + T::from(spec.stage.linear[j * z.len() + i]) * beyond;
                }
            }
        }
        let restore =
            |(s, channel): (T, &OutputChannel)| T::from(channel.offset) + T::from(channel.scale) * s;
        s.into_iter().zip(&spec.outputs).map(restore).collect()
    }

    /// What each head adds to the standardised outputs that it serves: weight * v, head by head.
    pub fn shares(&self) -> Vec<Vec<T>> {
        let z = self.features();
        self.spec.heads.iter().map(|head| share(&self.spec, head, &z)).collect()
    }

    /// The features as they are, whatever the range; the lags of all inputs where the model lists none.
    pub fn features(&self) -> Vec<T> {
        if self.spec.stage.features.is_empty() {
            return self.window.iter().flatten().copied().collect();
        }
        let signal = |signal: Signal| match signal {
            Signal::Lag { input, lag } => self.window[lag][input],
            Signal::Section { section, output } => self.sections[section].outputs[output],
        };
        let feature = |feature: &Feature| match feature.minus {
            None => signal(feature.plus),
            Some(minus) => signal(feature.plus) - signal(minus),
        };
        self.spec.stage.features.iter().map(feature).collect()
    }
}

/// What a head adds: its weights times V1(x) ... Vd(x), contracted from the right.
fn share<T: Real>(spec: &ModelSpec, head: &Head, z: &[T]) -> Vec<T> {
    let features = used(spec, head, z);
    let mut v: Vec<T> = Vec::new();
    for core in head.cores.iter().rev() {
        let row = |a: usize| match v.as_slice() {
            [] => sum(core, a, 0, &features),
            v => v
                .iter()
                .enumerate()
                .fold(T::from(0.0), |total, (b, &v)| total + sum(core, a, b, &features) * v),
        };
        v = (0..core.left).map(row).collect();
    }
    v.into_iter().zip(&head.weights).map(|(v, &weight)| T::from(weight) * v).collect()
}

/// The features of a head as the network sees them, clamped where the policy says so, with their nodes.
pub(crate) fn used<'s, T: Real>(spec: &'s ModelSpec, head: &Head, z: &[T]) -> Vec<(T, &'s [f32])> {
    if spec.stage.features.is_empty() {
        let lags = z.chunks_exact(spec.inputs.len());
        return lags.flat_map(|lag| head.inputs.iter().map(|&input| (lag[input], &[][..]))).collect();
    }
    let feature = |&i: &usize| {
        let feature = &spec.stage.features[i];
        let clamps = spec.range != RangePolicy::Pass;
        (if clamps { z[i].limit(feature.low, feature.high) } else { z[i] }, feature.nodes.as_slice())
    };
    head.features.iter().map(feature).collect()
}

/// How far a feature is outside of its training range, and no farther than that is wide: what the linear part of `extend` sees.
pub(crate) fn beyond<T: Real>(z: T, feature: &Feature) -> T {
    let width = feature.high - feature.low;
    (z - z.limit(feature.low, feature.high)).limit(-width, width)
}

/// t(a, b) = V(a, 0, b) + V(a, 1, b) x_1 + ...
fn sum<T: Real>(core: &Core, a: usize, b: usize, features: &[(T, &[f32])]) -> T {
    let coefficient = |i: usize| core.data[(a * core.q + i) * core.right + b];
    let mut row = 1;
    features.iter().fold(T::from(coefficient(0)), |sum, (x, nodes)| {
        let first = row;
        row += nodes.len().max(1);
        if nodes.is_empty() {
            sum + T::from(coefficient(first)) * *x
        } else {
            T::map(sum, nodes, *x, &|node| coefficient(first + node))
        }
    })
}
