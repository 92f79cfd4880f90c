//! Fits that are divided among machines: a plan, its heads, and the model they make.

use crate::data::Data;
use crate::model::Model;
use crate::options::Options;
use crate::refusal;
use crate::run::{beside, told, told_of_search};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use tha_train::{Dataset, Made};

/// Data and options of a fit, and how many pieces of work it is.
#[pyclass(frozen, module = "tha._tha")]
pub struct Plan {
    plan: Arc<tha_train::Plan>,
}

#[pymethods]
impl Plan {
    /// Plans a fit in a folder, or goes on with an automatic one.
    #[new]
    fn new(py: Python<'_>, data: &Data, options: &Bound<'_, PyDict>, folder: PathBuf) -> PyResult<Self> {
        let options = Options(options);
        let set = Dataset::clone(&data.set);
        let threads = options.threads()?;
        let plan = if options.auto()? {
            let params = options.auto_params()?;
            beside(py, threads, None, move |watch| {
                tha_train::Plan::auto(params, set, &folder, watch).map_err(refusal)
            })
        } else {
            let params = options.fit_params(&data.set.inputs)?;
            beside(py, threads, None, move |watch| {
                tha_train::Plan::new(params, set, &folder, watch).map_err(refusal)
            })
        };
        Ok(Self { plan: Arc::new(plan?) })
    }

    /// Puts the plan into its folder, for those who see it.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| self.plan.write(&folder)).map_err(refusal)
    }

    /// The plan in its bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: PyReadonlyArray1<'_, u8>) -> PyResult<Self> {
        let bytes = bytes.as_slice()?;
        let plan = py.detach(|| tha_train::Plan::from_bytes(bytes));
        Ok(Self { plan: Arc::new(plan.map_err(|reason| refusal(format!("the plan: {reason}")))?) })
    }

    /// Its bytes: all of them, or the part that some heads need.
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        heads: Option<Vec<usize>>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let bytes = py.detach(|| match heads {
            None => self.plan.to_bytes(),
            Some(heads) => self.plan.part(&heads).to_bytes(),
        });
        Ok(PyArray1::from_vec(py, bytes.map_err(refusal)?))
    }

    /// A later plan for the same data, in bytes without them.
    fn renewed(&self, py: Python<'_>, bytes: PyReadonlyArray1<'_, u8>) -> PyResult<Self> {
        let later = Self::from_bytes(py, bytes)?.plan;
        Ok(Self { plan: Arc::new(self.plan.renewed(&later)) })
    }

    /// Heads that a folder has nothing of.
    fn missing(&self, folder: PathBuf) -> PyResult<Vec<usize>> {
        self.plan.missing(&folder).map_err(refusal)
    }

    /// Pieces of work.
    #[getter]
    fn heads(&self) -> usize {
        self.plan.heads()
    }

    /// Whether a head needs the columns of its own inputs alone.
    #[getter]
    fn apart(&self) -> bool {
        self.plan.apart()
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
            let data = Arc::new(plan.data().clone());
            match plan.merge(&folder, watch).map_err(refusal)?.made {
                Made::Fit(outcome) => told(outcome, data, watch),
                Made::Auto(outcome) => told_of_search(outcome, data),
            }
        })
    }
}
