//! Data with a known truth, from one seed: training data with noise, and noise-free test data, so that an error on the
//! test data is the model's error and nothing else.
//!
//! Every system depends on the last M inputs only (the `array` up to a fading tail), and the recordings start in the
//! middle of a run: no sample has a hidden history of zeros.

mod array;
mod excitation;
mod volterra;
mod wiener_hammerstein;

use crate::data::Dataset;
use crate::host;
use crate::model::Model;
use crate::network::Normal;
use crate::stage::mean_and_std;
use serde::Serialize;
use serde_json::Value;

/// The kinds of systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A random tensor network: exactly what a fit with the same memory, degree and rank can represent.
    Volterra,
    /// Filter, polynomial, filter: a Volterra system of special structure.
    WienerHammerstein,
    /// A sensor array: correlated channels with cross-talk, time constants and saturation. Not a polynomial.
    Array,
}

/// Parameters of the generated system and data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SynthParams {
    /// The kind of system.
    pub kind: Kind,
    /// Inputs p.
    pub channels: usize,
    /// Outputs l.
    pub outputs: usize,
    /// Memory M.
    pub memory: usize,
    /// Degree d.
    pub degree: usize,
    /// Rank of the network (`volterra` only).
    pub rank: usize,
    /// Training samples.
    pub samples: usize,
    /// Test samples.
    pub test_samples: usize,
    /// Correlation between any two inputs, 0 to below 1.
    pub correlation: f64,
    /// Standard deviation of the noise on the training outputs, as a part of the output's.
    pub noise: f64,
    /// Seed of everything.
    pub seed: u64,
}

impl SynthParams {
    /// The defaults of a kind.
    pub fn new(kind: Kind) -> Self {
        let array = kind == Kind::Array;
        Self {
            kind,
            channels: if array { 8 } else { 2 },
            outputs: if array { 2 } else { 1 },
            memory: 4,
            degree: 3,
            rank: 2,
            samples: 2000,
            test_samples: 1000,
            correlation: if array { 0.6 } else { 0.0 },
            noise: 0.01,
            seed: 0,
        }
    }

    fn check(&self) -> Result<(), SynthError> {
        let refuse = |option, found: String, expected| Err(SynthError { option, found, expected });
        for (option, value, limit) in [
            ("channels", self.channels, 10_000),
            ("outputs", self.outputs, 10_000),
            ("memory", self.memory, 10_000),
            ("degree", self.degree, 16),
            ("rank", self.rank, 1000),
            ("samples", self.samples, 100_000_000),
            ("test_samples", self.test_samples, 100_000_000),
        ] {
            if value == 0 || value > limit {
                return refuse(option, value.to_string(), format!("1 to {limit}"));
            }
        }
        if !(0.0..1.0).contains(&self.correlation) {
            return refuse("correlation", self.correlation.to_string(), "0 to below 1".into());
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return refuse("noise", self.noise.to_string(), "0 or more".into());
        }
        self.check_size()
    }

    /// Refuses what this machine cannot hold.
    fn check_size(&self) -> Result<(), SynthError> {
        let Some(available) = host::available_bytes() else { return Ok(()) };
        let size = |numbers: &[usize]| numbers.iter().map(|&number| number as f64).product::<f64>();
        let samples = size(&[self.channels + self.outputs, self.samples + self.test_samples]);
        let network = match self.kind {
            Kind::Volterra => {
                size(&[self.degree, self.channels * self.memory + 1, self.rank, self.rank.max(self.outputs)])
            }
            _ => 0.0,
        };
        for (option, numbers) in [("samples", samples), ("rank", network)] {
            // The channels, and their copies while they are made.
            let needed = 3.0 * 8.0 * numbers;
            if needed > available as f64 {
                let found = format!("{:.0} GB of numbers", needed / 1e9);
                let expected = format!("at most the {:.0} GB that are free", available as f64 / 1e9);
                return Err(SynthError { option, found, expected });
            }
        }
        Ok(())
    }
}

/// A parameter that is out of its range.
#[derive(Debug, thiserror::Error)]
#[error("`{option}`: {found} is out of range; expected {expected}")]
pub struct SynthError {
    /// The option.
    pub option: &'static str,
    /// Its value.
    pub found: String,
    /// What would be fine.
    pub expected: String,
}

/// Data and the truth behind it.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// Training data, with noise.
    pub train: Dataset,
    /// Test data, noise free.
    pub test: Dataset,
    /// The system's parameters.
    pub truth: Value,
    /// The system as a model file, where it is one.
    pub model: Option<Model>,
}

/// Samples that every run makes before its recording starts, beyond the memory: the slowest time constant of the array
/// has died out by then.
const RUN_IN: usize = 64;

/// A system with memory M.
trait System {
    /// One column per output; the first M-1 values have no whole window and are zero or transient.
    fn respond(&self, inputs: &Dataset) -> Vec<Vec<f64>>;
    /// Multiplies each output by a factor.
    fn scale_outputs(&mut self, factors: &[f64]);
    /// The parameters, for `truth.json`.
    fn truth(&self) -> Value;
    /// The system as a model file, where it is one.
    fn model(&self, _train: &Dataset, _options: &SynthParams) -> Option<Model> {
        None
    }
}

/// Generates data; the outputs have unit variance before noise.
///
/// ```
/// use tha_train::{SynthKind, SynthParams, generate};
///
/// let params = SynthParams { channels: 3, samples: 50, ..SynthParams::new(SynthKind::Array) };
/// let data = generate(&params)?;
/// assert_eq!((data.train.inputs.len(), data.train.len()), (3, 50));
/// # Ok::<(), tha_train::SynthError>(())
/// ```
pub fn generate(options: &SynthParams) -> Result<Synthetic, SynthError> {
    options.check()?;
    let mut normal = Normal::new(options.seed);
    let mut system: Box<dyn System> = match options.kind {
        Kind::Volterra => Box::new(volterra::Volterra::random(options, &mut normal)),
        Kind::WienerHammerstein => {
            Box::new(wiener_hammerstein::WienerHammerstein::random(options, &mut normal))
        }
        Kind::Array => Box::new(array::Array::random(options, &mut normal)),
    };
    let run_in = options.memory - 1 + RUN_IN;
    let mut train = excitation::excite(options, run_in + options.samples, &mut normal);
    let mut test = excitation::excite(options, run_in + options.test_samples, &mut normal);
    let factors: Vec<f64> = system.respond(&train).iter().map(|y| unit_variance(&y[run_in..])).collect();
    system.scale_outputs(&factors);
    for data in [&mut train, &mut test] {
        data.outputs = (1..=options.outputs).map(|j| format!("y{j}")).collect();
        data.y = system.respond(data);
        for column in data.u.iter_mut().chain(&mut data.y) {
            column.drain(..run_in);
        }
        data.records[0].rows.end -= run_in;
    }
    for column in &mut train.y {
        column.iter_mut().for_each(|value| *value += options.noise * normal.draw());
    }
    let truth = serde_json::json!({ "options": options, "system": system.truth() });
    let model = system.model(&train, options);
    Ok(Synthetic { train, test, truth, model })
}

/// The factor that gives a column unit variance.
fn unit_variance(column: &[f64]) -> f64 {
    let (_, std) = mean_and_std(column.iter().copied());
    if std > 0.0 { std.recip() } else { 1.0 }
}

/// A number between two bounds, favouring the middle.
fn between(low: f64, high: f64, normal: &mut Normal) -> f64 {
    low + (high - low) * 0.5 * (1.0 + libm::tanh(normal.draw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 3] = [Kind::Volterra, Kind::WienerHammerstein, Kind::Array];

    #[test]
    fn shapes_scales_and_seeds() {
        for kind in KINDS {
            let options = SynthParams { channels: 3, outputs: 2, noise: 0.0, ..SynthParams::new(kind) };
            let a = generate(&options).unwrap();
            assert_eq!((a.train.u.len(), a.train.y.len(), a.train.len()), (3, 2, 2000));
            assert_eq!((a.test.y[1].len(), a.test.len()), (1000, 1000));
            for y in &a.train.y {
                assert!((mean_and_std(y.iter().copied()).1 - 1.0).abs() < 1e-6, "{kind:?}");
            }
            assert_eq!(a.train, generate(&options).unwrap().train, "{kind:?}: same seed, same data");
            assert_ne!(a.train, generate(&SynthParams { seed: 1, ..options }).unwrap().train);
        }
    }

    #[test]
    fn noise_is_on_the_training_outputs_only() {
        for kind in KINDS {
            let clean = generate(&SynthParams { noise: 0.0, ..SynthParams::new(kind) }).unwrap();
            let noisy = generate(&SynthParams { noise: 0.1, ..SynthParams::new(kind) }).unwrap();
            assert_eq!(clean.test, noisy.test);
            let error = clean.train.y[0].iter().zip(&noisy.train.y[0]).map(|(a, b)| a - b);
            let (_, std) = mean_and_std(error);
            assert!((std - 0.1).abs() < 0.01, "{kind:?}: {std}");
        }
    }

    #[test]
    fn inputs_are_correlated_as_asked() {
        for kind in KINDS {
            let options =
                SynthParams { channels: 3, correlation: 0.8, samples: 20_000, ..SynthParams::new(kind) };
            let data = generate(&options).unwrap().train;
            let product = data.u[0].iter().zip(&data.u[2]).map(|(a, b)| a * b).sum::<f64>() / 20_000.0;
            assert!((product - 0.8).abs() < 0.06, "{kind:?}: {product}");
        }
    }
}
