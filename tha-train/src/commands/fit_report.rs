//! `fit --report`: the page of a fit.

use super::error::CliError;
use std::path::Path;
use std::sync::Mutex;
use tha_cli::lock;
use tha_train::data::Dataset;
use tha_train::fit::Outcome;
use tha_train::report::{self, Convergence, Report};

/// The page of a finished fit.
pub(super) fn page(
    out: &Path,
    data: &Dataset,
    outcome: &Outcome,
    bytes: usize,
    course: &Mutex<Convergence>,
) -> Result<String, CliError> {
    let mut seen = lock(course).clone();
    let name = |(k, head): (usize, &tha_train::fit::HeadReport)| {
        Some((format!("{}: {}", k + 1, head.inputs.join(" ")), head.val_residual?))
    };
    seen.heads = outcome.heads.iter().enumerate().filter_map(name).collect();
    let file = |path: &Path| path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    Ok(report::html(&Report {
        title: file(out),
        model: &outcome.model,
        bytes,
        data,
        data_name: format!("{}, the data of the fit,", file(Path::new(&data.origin))),
        convergence: Some(&seen),
        full: None,
        analysis: None,
        compared: &[],
    }))
}
