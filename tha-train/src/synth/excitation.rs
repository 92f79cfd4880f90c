//! Excitation: unit-variance Gaussian inputs, any two of them equally correlated. White in time, or smooth for the
//! sensor array.

use super::{Kind, SynthParams};
use crate::data::Dataset;
use crate::network::Normal;

/// Correlation of a smooth input with itself one sample later.
const SMOOTHNESS: f64 = 0.7;

/// Inputs named `u1..up`, no outputs. Values have six decimals, as a recording would: the truth is computed from these.
pub(super) fn excite(options: &SynthParams, samples: usize, normal: &mut Normal) -> Dataset {
    let pole = if options.kind == Kind::Array { SMOOTHNESS } else { 0.0 };
    let mut source = || {
        let mut value = normal.draw();
        let draw = |_| {
            value = pole * value + (1.0 - pole * pole).sqrt() * normal.draw();
            value
        };
        (0..samples).map(draw).collect::<Vec<f64>>()
    };
    let common = source();
    let (shared, own) = (options.correlation.sqrt(), (1.0 - options.correlation).sqrt());
    let mut channel = |_| {
        let mixed = source().into_iter().zip(&common).map(|(a, b)| own * a + shared * b);
        mixed.map(|value| (value * 1e6).round() / 1e6).collect()
    };
    Dataset::new("synth", (0..options.channels).map(&mut channel).collect(), Vec::new())
}
