//! `fit --report`: what happened during the fit, kept for the page.

use super::error::CliError;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tha_train::data::Dataset;
use tha_train::fit::Outcome;
use tha_train::report::{self, Convergence, Report};
use tha_train::solve::Step;

/// The course of a fit while it runs.
#[derive(Default)]
pub(super) struct Course {
    seen: Mutex<Convergence>,
}

impl Course {
    /// A step of the solver of a full model.
    pub(super) fn step(&self, step: &Step) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.steps.push(step.loss.max(0.0).sqrt());
    }

    /// A cycle or joint step over additive heads.
    pub(super) fn cycle(&self, validation: f64) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).cycles.push(validation);
    }
}

/// The page of a finished fit.
pub(super) fn page(
    out: &Path,
    data: &Dataset,
    outcome: &Outcome,
    bytes: usize,
    course: &Course,
) -> Result<String, CliError> {
    let mut seen = course.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
