//! Model files on the host: trains to a `.tha` file and back, and batch prediction from it.
//!
//! The prediction uses the file's f32 numbers in f64 arithmetic and obeys the file's range policy; it is what the
//! device's stream is measured against.

use crate::data::{Columns, Dataset};
use crate::host::refusal;
use crate::metrics::Metrics;
use crate::network::{Core, Network};
use crate::quantize::Integers;
use crate::reference::{Real, Reference, used};
use crate::stage::{InputMap, OutputMap, Scaling};
use nalgebra::{DMatrix, DVectorView};
use serde::Serialize;
use std::ops::Range;
use std::path::Path;
pub use tha_core::build::Interval;
use tha_core::build::{self, BuildError, Head, InputChannel, ModelSpec, OutputChannel, Provenance, Stage};
use tha_core::{NonFinitePolicy, ParseError, RangePolicy};

/// A model file that cannot be read or written; the message is one line.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be opened or read.
    #[error("{path}: cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The operating system's words.
        reason: String,
    },
    /// The file is not a model.
    #[error("{path}: {reason}")]
    Refused {
        /// The file.
        path: String,
        /// What the decoder found.
        reason: ParseError,
    },
    /// A model of integers cannot be made of one of integers.
    #[error("the model holds 16-bit integers already; quantize the f32 model it was made from")]
    Integers,
    /// Counts are given for an input that the model does not have.
    #[error(
        "`counts` names the input '{name}', which the model does not have; inspect the model for its inputs"
    )]
    Counts {
        /// The name.
        name: String,
    },
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
    trains: Vec<Network>,
    /// The file, where its numbers are integers: then `spec` is what they mean, and predictions are those of the device.
    integers: Option<Integers>,
}

/// Rows that are predicted together: their lag windows fit a cache. Wide windows come in fewer rows, of so many entries in all.
const BLOCK: usize = 4096;
const ENTRIES: usize = 1 << 23;

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
        let train = |head: &Head| {
            let widen = |core: &build::Core| Core {
                left: core.left,
                q: core.q,
                right: core.right,
                data: core.data.iter().copied().map(f64::from).collect(),
            };
            Network { cores: head.cores.iter().map(widen).collect() }
        };
        Self { trains: spec.heads.iter().map(train).collect(), spec, integers: None }
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
        self.trains.iter().map(Network::parameters).sum()
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

    /// Predicts the outputs at the given rows, physical units, N x l. The data must have been read with
    /// [`Model::columns`], the rows must increase, and the model must have settled on the rows of their record before them.
    pub fn predict(&self, data: &Dataset, rows: &[usize]) -> DMatrix<f64> {
        if let Some(integers) = &self.integers {
            return integers.outputs(data, rows).y;
        }
        let mut prediction = DMatrix::zeros(rows.len(), self.spec.outputs.len());
        let widest = self.spec.heads.iter().map(|head| head.cores[0].q).max().unwrap_or(1);
        let size = (ENTRIES / widest.max(self.spec.stage.features.len())).clamp(1, BLOCK);
        let mut stream = Stream::new(&self.spec, data);
        for (block, rows) in rows.chunks(size).enumerate() {
            let features = stream.features(rows);
            let mut sum = self.beyond(&features, rows.len());
            for (head, train) in self.spec.heads.iter().zip(&self.trains) {
                let x = match self.spec.stage.features.as_slice() {
                    [] => self.windows(data, &head.inputs, rows),
                    _ => self.rows(head, &features),
                };
                for ((mut column, v), weight) in sum
                    .columns_range_mut(head.outputs.clone())
                    .column_iter_mut()
                    .zip(train.evaluate(&x).column_iter())
                    .zip(&head.weights)
                {
                    column.axpy(f64::from(*weight), &v, 1.0);
                }
            }
            for (mut column, channel) in sum.column_iter_mut().zip(&self.spec.outputs) {
                let map = OutputMap { offset: channel.offset, scale: channel.scale };
                column.apply(|value| *value = map.restore(*value));
            }
            prediction.rows_mut(block * size, rows.len()).copy_from(&sum);
        }
        prediction
    }

    /// What the linear part of the model adds outside the training range.
    fn beyond(&self, features: &[Vec<f64>], rows: usize) -> DMatrix<f64> {
        let mut sum = DMatrix::zeros(rows, self.spec.outputs.len());
        if self.spec.range == RangePolicy::Extend {
            for (row, z) in features.iter().enumerate() {
                for (i, (z, feature)) in z.iter().zip(&self.spec.stage.features).enumerate() {
                    let beyond = z - z.limit(feature.low, feature.high);
                    for j in 0..sum.ncols() {
                        sum[(row, j)] +=
                            f64::from(self.spec.stage.linear[j * features[row].len() + i]) * beyond;
                    }
                }
            }
        }
        sum
    }

    /// x of a head: 1, the plain features, and for each mapped one the hat functions of its nodes.
    fn rows(&self, head: &Head, features: &[Vec<f64>]) -> DMatrix<f64> {
        let mut x = DMatrix::zeros(features.len(), head.cores[0].q);
        x.column_mut(0).fill(1.0);
        for (row, z) in features.iter().enumerate() {
            let mut column = 1;
            for (z, nodes) in used(&self.spec, head, z) {
                if nodes.is_empty() {
                    x[(row, column)] = z;
                } else {
                    let cell = nodes[1..nodes.len() - 1].iter().filter(|node| z >= f64::from(**node)).count();
                    let [from, to] = [nodes[cell], nodes[cell + 1]].map(f64::from);
                    let t = ((z - from) / (to - from)).clamp(0.0, 1.0);
                    x[(row, column + cell)] = 1.0 - t;
                    x[(row, column + cell + 1)] = t;
                }
                column += nodes.len().max(1);
            }
        }
        x
    }

    /// x of every head at some rows.
    pub(crate) fn features_of_heads(&self, data: &Dataset, rows: &[usize]) -> Vec<DMatrix<f64>> {
        let features = Stream::new(&self.spec, data).features(rows);
        let x = |head: &Head| match self.spec.stage.features.as_slice() {
            [] => self.windows(data, &head.inputs, rows),
            _ => self.rows(head, &features),
        };
        self.spec.heads.iter().map(x).collect()
    }

    /// x at some rows with the columns of all features that the file lists, in its order.
    pub(crate) fn features_at(&self, data: &Dataset, rows: &[usize]) -> DMatrix<f64> {
        let inputs: Vec<usize> = (0..self.spec.inputs.len()).collect();
        let listed = &self.spec.stage.features;
        let q = 1 + listed.iter().map(build::Feature::rows).sum::<usize>();
        let core = build::Core::new(1, q, 1, Vec::new());
        let all = Head { features: (0..listed.len()).collect(), ..Head::from_cores(inputs, 1.0, vec![core]) };
        self.rows(&all, &Stream::new(&self.spec, data).features(rows))
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

    /// Standardised lag windows of a head's inputs, clamped where the model says so.
    fn windows(&self, data: &Dataset, inputs: &[usize], rows: &[usize]) -> DMatrix<f64> {
        let mut x = DMatrix::from_element(rows.len(), inputs.len() * self.spec.memory + 1, 1.0);
        for (k, &input) in inputs.iter().enumerate() {
            let channel = &self.spec.inputs[input];
            let map = InputMap { offset: channel.offset, gain: channel.gain };
            let (low, high) = match self.spec.range {
                RangePolicy::Pass => (f64::NEG_INFINITY, f64::INFINITY),
                _ => (f64::from(channel.low), f64::from(channel.high)),
            };
            let column = &data.u[input];
            for lag in 0..self.spec.memory {
                for (value, &row) in x.column_mut(1 + lag * inputs.len() + k).iter_mut().zip(rows) {
                    *value = map.standardise(column[row - lag].clamp(low, high));
                }
            }
        }
        x
    }
}

/// The features of a data set, record by record, in the order of the rows that are asked for.
struct Stream<'m> {
    data: &'m Dataset,
    model: Reference<'m, f64>,
    /// The next row to take, and the end of its record.
    next: usize,
    end: usize,
}

impl<'m> Stream<'m> {
    fn new(spec: &'m ModelSpec, data: &'m Dataset) -> Self {
        Self { data, model: Reference::new(spec), next: 0, end: 0 }
    }

    /// The features at some rows, behind those of the call before; nothing where they are lags.
    fn features(&mut self, rows: &[usize]) -> Vec<Vec<f64>> {
        if !self.model.has_features() {
            return Vec::new();
        }
        let at = |&row: &usize| {
            if row < self.next || row >= self.end {
                let record = self.data.records.iter().find(|record| record.rows.contains(&row));
                let record = record.map_or(row..row + 1, |record| record.rows.clone());
                (self.next, self.end) = (record.start, record.end);
                self.model.reset();
            }
            while self.next <= row {
                let u: Vec<f64> = self.data.u.iter().map(|column| column[self.next]).collect();
                self.model.take(&u);
                self.next += 1;
            }
            self.model.features()
        };
        rows.iter().map(at).collect()
    }
}

/// What a model file says beside its heads.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Names of the channels come from here.
    pub data: &'a Dataset,
    /// The rows that were fitted, in order; their windows give the training range of the inputs.
    pub rows: &'a [usize],
    /// The standardisation the heads were fitted with.
    pub scaling: &'a Scaling,
    /// RMS residual of each output on data the model was not fitted to.
    pub residual: &'a [f64],
    /// M.
    pub memory: usize,
    /// Filters, features and maps; the default: all lags of all inputs.
    pub stage: Stage,
    /// What to do outside the training range.
    pub range: RangePolicy,
    /// Seed of all randomness.
    pub seed: u64,
    /// Anything worth keeping with the model.
    pub note: String,
}

/// A head to put into a model.
#[derive(Clone, Debug)]
pub struct HeadPart<'a> {
    /// Indices of its inputs, increasing.
    pub inputs: Vec<usize>,
    /// The outputs it serves.
    pub outputs: Range<usize>,
    /// Its weight in each of these.
    pub weights: Vec<f64>,
    /// Indices of the features it uses, increasing; empty where the stage lists none.
    pub features: Vec<usize>,
    /// Its network, in standardised units: of the outputs it serves, or of all, of which only those are taken.
    pub train: &'a Network,
}

impl<'a> HeadPart<'a> {
    /// A head on all lags of its inputs, with one weight.
    pub fn of_lags(inputs: Vec<usize>, outputs: Range<usize>, weight: f64, train: &'a Network) -> Self {
        Self { inputs, weights: vec![weight; outputs.len()], outputs, features: Vec::new(), train }
    }

    /// The network of the outputs it serves alone.
    fn network(&self) -> Network {
        let mut network = self.train.clone();
        let first = &mut network.cores[0];
        if first.left > self.outputs.len() {
            let row = first.q * first.right;
            first.data = first.data[self.outputs.start * row..self.outputs.end * row].to_vec();
            first.left = self.outputs.len();
        }
        network
    }
}

impl Frame<'_> {
    /// A model of the given heads; their coefficients are rounded to f32.
    pub fn model(&self, heads: &[HeadPart<'_>]) -> Model {
        self.unrounded(heads).rounded()
    }

    /// The same before rounding: how good the fit is, not what the file loses.
    pub(crate) fn unrounded(&self, heads: &[HeadPart<'_>]) -> Model {
        let trains: Vec<Network> = heads.iter().map(HeadPart::network).collect();
        Model { spec: self.spec(heads, &trains), trains, integers: None }
    }

    fn spec(&self, heads: &[HeadPart<'_>], trains: &[Network]) -> ModelSpec {
        let input = |((name, column), map): ((&String, &Vec<f64>), &InputMap)| {
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            let mut next = 0;
            for &row in self.rows {
                for value in &column[next.max(row + 1 - self.memory)..=row] {
                    (low, high) = (low.min(*value), high.max(*value));
                }
                next = row + 1;
            }
            InputChannel {
                name: name.clone(),
                offset: map.offset,
                gain: map.gain,
                low: low as f32,
                high: high as f32,
            }
        };
        let output = |(j, (name, map)): (usize, (&String, &OutputMap))| OutputChannel {
            name: name.clone(),
            offset: map.offset,
            scale: map.scale,
            residual: self.residual.get(j).copied().unwrap_or(0.0) as f32,
        };
        let narrow = |core: &Core| {
            build::Core::new(core.left, core.q, core.right, core.data.iter().map(|&v| v as f32).collect())
        };
        ModelSpec {
            inputs: self.data.inputs.iter().zip(&self.data.u).zip(&self.scaling.inputs).map(input).collect(),
            outputs: self.data.outputs.iter().zip(&self.scaling.outputs).enumerate().map(output).collect(),
            memory: self.memory,
            stage: self.stage.clone(),
            range: self.range,
            non_finite: NonFinitePolicy::default(),
            interval: None,
            heads: heads
                .iter()
                .zip(trains)
                .map(|(part, train)| Head {
                    inputs: part.inputs.clone(),
                    outputs: part.outputs.clone(),
                    weights: part.weights.iter().map(|&weight| weight as f32).collect(),
                    features: part.features.clone(),
                    cores: train.cores.iter().map(narrow).collect(),
                })
                .collect(),
            provenance: Provenance {
                tool: concat!("tha-train ", env!("CARGO_PKG_VERSION")).into(),
                seed: self.seed,
                data_hash: self.data.fingerprint(),
                note: self.note.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Record;

    /// y = 3 + 2 (1 + x)(1 - x') with x = (u - 1) / 2 and x' one sample earlier: one input, M = 2, d = 2.
    fn product(range: RangePolicy) -> (Model, Dataset) {
        let u = vec![1.0, 3.0, 5.0, -1.0, 2.0];
        let data = Dataset {
            origin: "test".into(),
            inputs: vec!["u".into()],
            outputs: vec!["y".into()],
            y: vec![vec![1.0, 2.0, 3.0, 4.0, 5.0]],
            u: vec![u],
            records: vec![Record { id: String::new(), rows: 0..5 }],
        };
        let scaling = Scaling {
            inputs: vec![InputMap { offset: 1.0, gain: 0.5 }],
            outputs: vec![OutputMap { offset: 3.0, scale: 2.0 }],
        };
        let core = |data: [f64; 3]| Core { left: 1, q: 3, right: 1, data: data.to_vec() };
        let train = Network { cores: vec![core([1.0, 1.0, 0.0]), core([1.0, 0.0, -1.0])] };
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
        (frame.model(&[HeadPart::of_lags(vec![0], 0..1, 1.0, &train)]), data)
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

        std::fs::write(&path, b"junk").unwrap();
        let message = Model::read(&path).unwrap_err().to_string();
        assert!(message.contains("m.tha") && !message.contains('\n'), "{message}");
    }
}
