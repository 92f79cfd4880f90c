//! The compiled half of the Python package `tha`: arrays in, models out. The classes that people see are in `python/tha`.
//!
//! A fit runs in a thread of its own with a thread pool of its own, so that Python goes on to see Ctrl-C, and so that a process
//! may fork before or after it. Errors are `ValueError` with the sentence of the library; a panic of the library, which would be
//! a bug, comes back as `RuntimeError`.

mod data;
mod model;
mod options;
mod plan;
mod run;
mod stream;

use pyo3::prelude::*;

/// Volterra tensor networks from recordings: the compiled half of the package.
#[pymodule]
mod _tha {
    #[pymodule_export]
    use super::data::{Data, synth};
    #[pymodule_export]
    use super::model::{Model, analyze};
    #[pymodule_export]
    use super::plan::Plan;
    #[pymodule_export]
    use super::run::fit;
    #[pymodule_export]
    use super::stream::Stream;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", tha_train::VERSION)
    }
}

/// An error with the library's sentence.
fn refusal(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}
