//! Data sets from NumPy arrays. A [`Dataset`] holds columns of f64: each value is read once, whatever the strides and the
//! byte order of the axes are, and widened on the way.

use crate::refusal;
use numpy::ndarray::{ArrayView2, s};
use numpy::{Element, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use std::sync::Arc;
use tha_train::{Dataset, SynthKind, SynthParams};

/// Columns that are copied together: of a matrix in row order, as many as a cache line has values, twice.
const TOGETHER: usize = 16;

/// Inputs, and outputs where they are needed, of one or more records.
#[pyclass(frozen, module = "tha._tha")]
pub struct Data {
    /// The columns.
    pub set: Arc<Dataset>,
}

/// A matrix of numbers, 64 or 32 bits wide.
#[derive(FromPyObject)]
pub enum Matrix<'py> {
    /// f64.
    Wide(PyReadonlyArray2<'py, f64>),
    /// f32.
    Narrow(PyReadonlyArray2<'py, f32>),
}

fn columns<T: Copy + Into<f64> + Element>(matrix: ArrayView2<'_, T>) -> Vec<Vec<f64>> {
    let (rows, width) = matrix.dim();
    let mut columns: Vec<Vec<f64>> = (0..width).map(|_| Vec::with_capacity(rows)).collect();
    for start in (0..width).step_by(TOGETHER) {
        let part = &mut columns[start..width.min(start + TOGETHER)];
        for row in matrix.slice(s![.., start..start + part.len()]).rows() {
            part.iter_mut().zip(row).for_each(|(column, value)| column.push((*value).into()));
        }
    }
    columns
}

impl Matrix<'_> {
    fn columns(&self) -> Vec<Vec<f64>> {
        match self {
            Self::Wide(matrix) => columns(matrix.as_array()),
            Self::Narrow(matrix) => columns(matrix.as_array()),
        }
    }
}

#[pymethods]
impl Data {
    /// Matrices of inputs and outputs with the names of their columns, and the record of every row, or none.
    #[new]
    #[pyo3(signature = (u, y, inputs, outputs, records, places))]
    fn new(
        u: Matrix<'_>,
        y: Option<Matrix<'_>>,
        inputs: Vec<String>,
        outputs: Vec<String>,
        records: Vec<String>,
        places: (String, String),
    ) -> PyResult<Self> {
        let named = |names: Vec<String>, columns: Vec<Vec<f64>>| names.into_iter().zip(columns).collect();
        let u = named(inputs, u.columns());
        let y = y.map_or_else(Vec::new, |y| named(outputs, y.columns()));
        let set = Dataset::checked([&places.0, &places.1], u, y, &records).map_err(refusal)?;
        Ok(Self { set: Arc::new(set) })
    }

    /// What is odd about the data, one line each.
    fn warnings(&self) -> Vec<String> {
        [self.set.warnings(), self.set.device_warnings()].concat()
    }

    /// Bytes of the inputs.
    #[getter]
    fn nbytes(&self) -> usize {
        8 * self.set.len() * self.set.u.len()
    }

    /// Rows, inputs and outputs.
    fn shape(&self) -> (usize, usize, usize) {
        (self.set.len(), self.set.u.len(), self.set.y.len())
    }
}

/// Columns as a matrix.
pub fn matrix<'py>(py: Python<'py>, columns: &[Vec<f64>]) -> Bound<'py, PyArray2<f64>> {
    let rows = columns.first().map_or(0, Vec::len);
    let array = PyArray2::zeros(py, [rows, columns.len()], false);
    // Nobody else has seen the array yet.
    if let Ok(mut array) = array.try_readwrite() {
        let mut array = array.as_array_mut();
        for (mut to, from) in array.columns_mut().into_iter().zip(columns) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
    }
    array
}

/// Matrices of inputs and of outputs.
type Pair<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);

/// Training data with noise and test data without, from a system with a known law.
#[pyfunction]
#[pyo3(signature = (kind, *, channels=None, outputs=None, memory=None, degree=None, rank=None, samples=None,
    test_samples=None, correlation=None, noise=None, seed=0))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub fn synth<'py>(
    py: Python<'py>,
    kind: &str,
    channels: Option<usize>,
    outputs: Option<usize>,
    memory: Option<usize>,
    degree: Option<usize>,
    rank: Option<usize>,
    samples: Option<usize>,
    test_samples: Option<usize>,
    correlation: Option<f64>,
    noise: Option<f64>,
    seed: u64,
) -> PyResult<(Pair<'py>, Pair<'py>)> {
    let kind = match kind {
        "volterra" => SynthKind::Volterra,
        "array" => SynthKind::Array,
        "wiener-hammerstein" => SynthKind::WienerHammerstein,
        other => {
            let expected = "expected volterra, array or wiener-hammerstein";
            return Err(refusal(format!("`kind`: there is no '{other}'; {expected}")));
        }
    };
    let usual = SynthParams::new(kind);
    let params = SynthParams {
        kind,
        channels: channels.unwrap_or(usual.channels),
        outputs: outputs.unwrap_or(usual.outputs),
        memory: memory.unwrap_or(usual.memory),
        degree: degree.unwrap_or(usual.degree),
        rank: rank.unwrap_or(usual.rank),
        samples: samples.unwrap_or(usual.samples),
        test_samples: test_samples.unwrap_or(usual.test_samples),
        correlation: correlation.unwrap_or(usual.correlation),
        noise: noise.unwrap_or(usual.noise),
        seed,
    };
    let made = py.detach(|| tha_train::generate(&params)).map_err(refusal)?;
    let pair = |data: &Dataset| (matrix(py, &data.u), matrix(py, &data.y));
    Ok((pair(&made.train), pair(&made.test)))
}
