//! Model files on the host: networks to a `.tha` file and back, and batch prediction from it.
//!
//! The prediction uses the file's f32 numbers in f64 arithmetic and obeys the file's range policy; it is what the
//! device's stream is measured against.

mod frame;
mod predict;

pub use frame::{Frame, HeadPart};

use crate::data::{Columns, Dataset};
use crate::host::refusal;
use crate::metrics::Metrics;
use crate::network::{Core, Network};
use crate::quantize::Integers;
use nalgebra::{DMatrix, DVectorView};
use serde::Serialize;
use std::path::Path;
use tha_core::ParseError;
pub use tha_core::build::Interval;
use tha_core::build::{self, BuildError, Head, InputChannel, ModelSpec};

/// A model file that cannot be read or written; the message is one line.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ModelError {
    /// The file cannot be opened or read.
    #[error("{path}: cannot be read: {reason}")]
    Unreadable { path: String, reason: String },
    /// The file is not a model.
    #[error("{path}: {reason}")]
    Refused { path: String, reason: ParseError },
    /// A model of integers cannot be made of one of integers.
    #[error("the model holds 16-bit integers already; quantize the f32 model it was made from")]
    Integers,
    /// Counts are given for an input that the model does not have.
    #[error(
        "`counts` names the input '{name}', which the model does not have; inspect the model for its inputs"
    )]
    Counts { name: String },
    /// The model does not fit the file format.
    #[error("the model does not fit a file: {0}")]
    Build(#[from] BuildError),
}

/// A model file, ready to predict.
///
/// ```
/// use tha_train::{Model, SynthKind, SynthParams, generate};
///
/// let made = generate(&SynthParams { samples: 50, ..SynthParams::new(SynthKind::Volterra) })?;
/// let path = std::env::temp_dir().join(format!("doc-{}.tha", std::process::id()));
/// std::fs::write(&path, made.model.expect("a network is a model").to_bytes()?)?;
/// let model = Model::read(&path)?;
/// # std::fs::remove_file(&path)?;
///
/// let memory = model.spec().memory;
/// let prediction = model.predict(&made.test, &made.test.scored_rows(memory));
/// assert_eq!(prediction.nrows(), made.test.len() - memory + 1);
/// assert!(model.evaluate(&made.test).nrmse < 1e-5);
/// for input in model.out_of_range(&made.test) {
///     println!("{} leaves its range in {:.1} % of the samples", input.input, 100.0 * input.share);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    spec: ModelSpec,
    networks: Vec<Network>,
    /// The file, where its numbers are integers: then `spec` is what they mean, and predictions are those of the device.
    integers: Option<Integers>,
}

/// An input that leaves its training range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutOfRange {
    /// Its name.
    pub input: String,
    /// The part of the samples that lies outside.
    pub share: f64,
}

impl Model {
    /// A model from its parts.
    pub fn new(spec: ModelSpec) -> Self {
        let network = |head: &Head| {
            let widen = |core: &build::Core| Core {
                left: core.left,
                q: core.q,
                right: core.right,
                data: core.data.iter().copied().map(f64::from).collect(),
            };
            Network { cores: head.cores.iter().map(widen).collect() }
        };
        Self { networks: spec.heads.iter().map(network).collect(), spec, integers: None }
    }

    /// Reads a `.tha` file.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| ModelError::Unreadable { path: name.clone(), reason: refusal(&error) })?;
        Self::read_bytes(&bytes).map_err(|reason| ModelError::Refused { path: name, reason })
    }

    /// The model in the bytes of a `.tha` file.
    pub fn read_bytes(bytes: &[u8]) -> Result<Self, ParseError> {
        match ModelSpec::from_bytes(bytes) {
            Err(ParseError::Numbers { found: 1 }) => {
                let integers = Integers::new(bytes)?;
                Ok(Self { integers: Some(integers), ..Self::new(ModelSpec::from_integers(bytes)?) })
            }
            spec => Ok(Self::new(spec?)),
        }
    }

    /// The file of integers, where it is one.
    pub fn integers(&self) -> Option<&Integers> {
        self.integers.as_ref()
    }

    /// The bytes of the `.tha` file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        match &self.integers {
            Some(integers) => Ok(integers.bytes().to_vec()),
            None => Ok(self.spec.to_bytes()?),
        }
    }

    /// The contents of the file.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// How far measured outputs may be from those of the model, where that is known.
    pub fn interval(&self) -> Option<&Interval> {
        self.spec.interval.as_ref()
    }

    /// Says how far measured outputs may be: errors for rows that were neither fitted nor chosen by tell
    /// ([`Interval::from_residuals`]).
    pub fn set_interval(&mut self, interval: Option<Interval>) {
        self.spec.interval = interval;
    }

    /// The part of the outputs at some rows that lies within the interval around the prediction, for each output.
    pub fn measured_coverage(&self, truth: &DMatrix<f64>, prediction: &DMatrix<f64>) -> Option<Vec<f64>> {
        let error = truth - prediction;
        let part = |(column, width): (DVectorView<'_, f64>, &f32)| {
            let inside = column.iter().filter(|error| error.abs() <= f64::from(*width)).count();
            inside as f64 / column.len().max(1) as f64
        };
        self.interval().map(|interval| error.column_iter().zip(interval.half_widths()).map(part).collect())
    }

    /// The model as its file holds it.
    pub(crate) fn rounded(&self) -> Self {
        Self::new(self.spec.clone())
    }

    /// The columns of a data file that this model reads, with its outputs when they are to be compared.
    pub fn columns(&self, with_outputs: bool) -> Columns {
        Columns::Named {
            inputs: self.spec.inputs.iter().map(|channel| channel.name.clone()).collect(),
            outputs: if with_outputs { self.output_names() } else { Vec::new() },
        }
    }

    /// Names of the outputs.
    pub fn output_names(&self) -> Vec<String> {
        self.spec.outputs.iter().map(|channel| channel.name.clone()).collect()
    }

    /// Coefficients in all heads, the sum of r_{k-1} q r_k.
    pub fn parameters(&self) -> usize {
        self.networks.iter().map(Network::parameters).sum()
    }

    /// Multiply-accumulates of the heads per sample: their coefficients, but of a mapped feature the two rows beside its value.
    pub fn macs(&self) -> usize {
        let features = &self.spec.stage.features;
        let read = |head: &Head| match head.features.is_empty() {
            true => head.cores[0].q,
            false => 1 + head.features.iter().map(|&k| features[k].rows().min(2)).sum::<usize>(),
        };
        let sums = |head: &Head| head.cores.iter().map(|core| core.left * core.right).sum::<usize>();
        self.spec.heads.iter().map(|head| sums(head) * read(head)).sum()
    }

    /// Compares the prediction with the outputs of the data, over all rows that have a whole window.
    pub fn evaluate(&self, data: &Dataset) -> Metrics {
        self.evaluate_at(data, &data.scored_rows(self.spec.settled()))
    }

    /// Compares the prediction with the outputs of the data at some rows.
    pub fn evaluate_at(&self, data: &Dataset, rows: &[usize]) -> Metrics {
        Metrics::new(&self.output_names(), &data.outputs_at(rows), &self.predict(data, rows))
    }

    /// The inputs of the data that leave their training range, in the model's order.
    pub fn out_of_range(&self, data: &Dataset) -> Vec<OutOfRange> {
        let outside = |channel: &InputChannel, column: &Vec<f64>| {
            // The range was rounded to f32, and so are the values: those of the training data are inside.
            let count =
                column.iter().filter(|v| !(channel.low..=channel.high).contains(&(**v as f32))).count();
            OutOfRange { input: channel.name.clone(), share: count as f64 / column.len().max(1) as f64 }
        };
        let all = self.spec.inputs.iter().zip(&data.u).map(|(channel, column)| outside(channel, column));
        all.filter(|input| input.share > 0.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::{InputMap, OutputMap, Scaling};
    use tha_core::RangePolicy;
    use tha_core::build::Stage;

    /// y = 3 + 2 (1 + x)(1 - x') with x = (u - 1) / 2 and x' one sample earlier: one input, M = 2, d = 2.
    fn product(range: RangePolicy) -> (Model, Dataset) {
        let (u, y) = (vec![1.0, 3.0, 5.0, -1.0, 2.0], vec![1.0, 2.0, 3.0, 4.0, 5.0]);
        let data = Dataset::new("test", vec![u], vec![y]);
        let scaling = Scaling {
            inputs: vec![InputMap { offset: 1.0, gain: 0.5 }],
            outputs: vec![OutputMap { offset: 3.0, scale: 2.0 }],
        };
        let core = |data: [f64; 3]| Core { left: 1, q: 3, right: 1, data: data.to_vec() };
        let network = Network { cores: vec![core([1.0, 1.0, 0.0]), core([1.0, 0.0, -1.0])] };
        let frame = Frame {
            data: &data,
            rows: &[1, 2, 3, 4],
            scaling: &scaling,
            residual: &[0.25],
            memory: 2,
            stage: Stage::default(),
            range,
            seed: 1,
            note: "test".into(),
        };
        (frame.model(&[HeadPart::of_lags(vec![0], 0..1, 1.0, &network)]), data)
    }

    #[test]
    fn prediction_by_hand() {
        let (model, data) = product(RangePolicy::Pass);
        // x = 0, 1, 2, -1, 0.5
        let expected = [3.0 + 2.0 * 2.0 * 1.0, 3.0 + 2.0 * 3.0 * 0.0, 3.0 + 2.0 * 0.0, 3.0 + 2.0 * 1.5 * 2.0];
        assert_eq!(model.predict(&data, &data.scored_rows(2)).as_slice(), expected);
        assert_eq!(model.parameters(), 6);
    }

    #[test]
    fn clamping_obeys_the_training_range() {
        for (range, expected) in [(RangePolicy::Pass, 3.0 + 2.0 * 5.0), (RangePolicy::Clamp, 3.0 + 2.0 * 3.0)]
        {
            let (model, mut data) = product(range);
            data.u[0] = vec![1.0, 9.0];
            assert_eq!(model.predict(&data, &[1]).as_slice(), [expected]);
        }
    }

    #[test]
    fn a_file_brings_the_same_model_back() {
        let (model, data) = product(RangePolicy::Clamp);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.tha");
        std::fs::write(&path, model.to_bytes().unwrap()).unwrap();
        let again = Model::read(&path).unwrap();
        assert_eq!(again.spec(), model.spec());
        assert_eq!(again.spec().outputs[0].residual, 0.25);
        assert_eq!(again.spec().provenance.data_hash, data.fingerprint());
        assert_eq!(again.evaluate(&data), model.evaluate(&data));
    }
}
