//! A model file in the hands of Python: prediction, figures, report, sources.

use crate::data::Data;
use crate::refusal;
use crate::run::caught;
use crate::stream::Stream;
use numpy::{PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Arc;
use tha_core::build::ModelSpec;
use tha_train::output::{self, Kind, check, write_folder};
use tha_train::report::Convergence;
use tha_train::{AnalysisParams, AutoOutcome, Dataset, Pair, Report};

/// What is known of a fit beside its model, for the report.
pub struct Story {
    /// The data of the fit.
    pub data: Arc<Dataset>,
    /// How an automatic fit came to the model.
    pub auto: Option<AutoOutcome>,
    /// The course of another fit.
    pub course: Option<Convergence>,
}

/// A model and the bytes of its file.
#[pyclass(frozen, module = "tha._tha")]
pub struct Model {
    model: tha_train::Model,
    bytes: Vec<u8>,
    story: Option<Story>,
}

impl Model {
    /// A model, and how it came about.
    pub fn new(model: tha_train::Model, story: Option<Story>) -> PyResult<Self> {
        let bytes = model.to_bytes().map_err(refusal)?;
        Ok(Self { model, bytes, story })
    }

    /// The columns of the data in the order of the model, as [`tha_train::Model::predict`] wants them.
    fn fitting(&self, data: &Data) -> PyResult<()> {
        let settled = self.model.spec().settled();
        data.set.check_memory(settled).map_err(refusal)
    }
}

#[pymethods]
impl Model {
    /// The model in the bytes of a `.tha` file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let spec = ModelSpec::from_bytes(bytes)
            .map_err(|reason| refusal(format!("the bytes of the model: {reason}")))?;
        Ok(Self { model: tha_train::Model::new(spec), bytes: bytes.to_vec(), story: None })
    }

    /// The model in a `.tha` file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        Self::new(tha_train::Model::read(&path).map_err(refusal)?, None)
    }

    /// The bytes of the `.tha` file.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.bytes)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.bytes(py),)))
    }

    /// Names of the inputs.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        self.model.spec().inputs.iter().map(|channel| channel.name.clone()).collect()
    }

    /// Names of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.model.output_names()
    }

    /// The number of the first sample of a record that can be predicted, from 1.
    #[getter]
    fn settled(&self) -> usize {
        self.model.spec().settled()
    }

    /// Half the widths of the intervals around the outputs, where the model has them.
    #[getter]
    fn half_widths(&self) -> Option<Vec<f32>> {
        self.model.interval().map(|interval| interval.half_widths().to_vec())
    }

    /// Predictions, one row per sample: NaN at the start of every record until the model has settled.
    fn predict<'py>(&self, py: Python<'py>, data: &Data) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let set = &data.set;
        let rows = set.scored_rows(self.model.spec().settled());
        let prediction = py.detach(|| caught(|| self.model.predict(set, &rows)))?;
        let array = PyArray2::zeros(py, [set.len(), prediction.ncols()], false);
        let mut view = array.try_readwrite()?;
        let mut view = view.as_array_mut();
        if rows.len() < set.len() {
            view.fill(f64::NAN);
        }
        for (mut to, from) in view.columns_mut().into_iter().zip(prediction.column_iter()) {
            rows.iter().zip(from.iter()).for_each(|(&row, &value)| to[row] = value);
        }
        Ok(array)
    }

    /// Figures on data, as JSON.
    fn evaluate(&self, py: Python<'_>, data: &Data) -> PyResult<String> {
        self.fitting(data)?;
        let metrics = py.detach(|| caught(|| self.model.evaluate(&data.set)))?;
        serde_json::to_string(&metrics).map_err(refusal)
    }

    /// What is in the file, as JSON.
    #[pyo3(signature = (rate=None))]
    fn inspect(&self, rate: Option<f64>) -> PyResult<String> {
        caught(|| tha_train::inspect::inspect(&self.model, &self.bytes, rate).to_string())
    }

    /// Writes the file; what is there and is no model is only replaced by `force`.
    fn save(&self, path: PathBuf, force: bool) -> PyResult<()> {
        check(&path, Kind::Model, force, []).map_err(refusal)?;
        output::write([(path.as_path(), &self.bytes[..])], force).map_err(refusal)
    }

    /// Writes a report about other data, or the data of the fit.
    #[pyo3(signature = (path, data, name, force))]
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        data: Option<&Data>,
        name: &str,
        force: bool,
    ) -> PyResult<()> {
        check(&path, Kind::Text, force, []).map_err(refusal)?;
        let story = self.story.as_ref();
        let (set, data_name) = match (data, story) {
            (Some(data), _) => (&data.set, "the data that were given"),
            (None, Some(story)) => (&story.data, "the data of the fit"),
            (None, None) => {
                let reason =
                    "this model came from a file, which has no data in it; give `U` and `Y` to report on";
                return Err(refusal(reason));
            }
        };
        set.check_memory(self.model.spec().settled()).map_err(refusal)?;
        let page = || {
            tha_train::html(&Report {
                convergence: story.and_then(|story| story.course.as_ref()),
                auto: story.and_then(|story| story.auto.as_ref()),
                ..Report::new(name, (&self.model, self.bytes.len()), set, data_name)
            })
        };
        let page = py.detach(|| caught(page))?;
        output::write([(path.as_path(), page.as_bytes())], force).map_err(refusal)
    }

    /// Writes source code into a folder; gives the names of the files.
    fn export(&self, language: &str, folder: PathBuf, name: &str, force: bool) -> PyResult<Vec<String>> {
        let name =
            tha_train::export::identifier(name).map_err(|error| refusal(format!("`name`: {error}")))?;
        let files = match language {
            "rust" => vec![tha_train::export_rust(&name, self.model.spec(), &self.bytes)],
            _ => tha_train::export_c(&name, &self.model).into(),
        };
        let files: Vec<(String, String)> = files.into_iter().map(|file| (file.name, file.text)).collect();
        write_folder(&folder, &files, force).map_err(refusal)
    }

    /// The model as a device runs it, sample by sample.
    fn stream(&self) -> PyResult<Stream> {
        Stream::new(&self.bytes)
    }
}

/// How far an ensemble is from the full model and why, as JSON; without outputs, those of the full model stand in their place.
#[pyfunction]
pub fn analyze(py: Python<'_>, full: &Model, ensemble: &Model, data: &Data) -> PyResult<String> {
    full.fitting(data)?;
    let analysis = py.detach(|| {
        caught(|| {
            let mut set = Dataset::clone(&data.set);
            if set.y.is_empty() {
                let rows = set.scored_rows(full.model.spec().settled());
                let prediction = full.model.predict(&set, &rows);
                set.outputs = full.model.output_names();
                set.y = vec![vec![0.0; set.len()]; prediction.ncols()];
                for (to, from) in set.y.iter_mut().zip(prediction.column_iter()) {
                    rows.iter().zip(from.iter()).for_each(|(&row, &value)| to[row] = value);
                }
            }
            let pair = Pair::from_models(&full.model, &ensemble.model, &set)?;
            Ok::<_, tha_train::AnalysisError>(tha_train::analyze(&pair, &AnalysisParams::default()))
        })
    })?;
    serde_json::to_string(&analysis.map_err(refusal)?).map_err(refusal)
}
