//! Fits that are divided among machines: a plan, its heads, and the model they make.

use crate::data::Data;
use crate::model::Model;
use crate::options::Options;
use crate::refusal;
use crate::run::{beside, told};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

/// Data and options of a fit, and how many pieces of work it is.
#[pyclass(frozen, module = "tha._tha")]
pub struct Plan {
    plan: Arc<tha_train::Plan>,
}

#[pymethods]
impl Plan {
    /// Plans a fit in a folder.
    #[new]
    fn new(py: Python<'_>, data: &Data, options: &Bound<'_, PyDict>, folder: PathBuf) -> PyResult<Self> {
        let options = Options(options);
        let params = options.fit_params(&data.set.inputs)?;
        let set = Arc::clone(&data.set);
        let plan = beside(py, options.threads()?, None, move |watch| {
            tha_train::Plan::new(params, tha_train::Dataset::clone(&set), &folder, watch).map_err(refusal)
        })?;
        Ok(Self { plan: Arc::new(plan) })
    }

    /// The plan in its bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let plan = py.detach(|| tha_train::Plan::from_bytes(bytes));
        Ok(Self { plan: Arc::new(plan.map_err(|reason| refusal(format!("the plan: {reason}")))?) })
    }

    /// Its bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.plan.to_bytes()).map_err(refusal)?))
    }

    /// Pieces of work.
    #[getter]
    fn heads(&self) -> usize {
        self.plan.heads()
    }

    /// Whether the heads of the ensemble are the pieces.
    #[getter]
    fn divided(&self) -> bool {
        self.plan.divided()
    }

    /// Fits head `k` into a folder; gives the seconds it took.
    fn fit_head(&self, py: Python<'_>, folder: PathBuf, k: usize, threads: Option<usize>) -> PyResult<f64> {
        let plan = Arc::clone(&self.plan);
        beside(py, threads, None, move |watch| {
            plan.fit_head(&folder, k, watch).map(|done| done.seconds).map_err(refusal)
        })
    }

    /// The model of all heads in a folder, and its figures as JSON.
    fn merge(&self, py: Python<'_>, folder: PathBuf, threads: Option<usize>) -> PyResult<(Model, String)> {
        let plan = Arc::clone(&self.plan);
        beside(py, threads, None, move |watch| {
            let merged = plan.merge(&folder, watch).map_err(refusal)?;
            told(merged.outcome, Arc::new(plan.data().clone()), watch)
        })
    }
}
