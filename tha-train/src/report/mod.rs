//! Reports: one HTML file, without scripts, without the network, light or dark as the reader's system is.
//!
//! Measured against predicted with residuals, the validation plots of system identification, the course of the fit,
//! weights and coverage of the heads, and, where a full model is there to compare with, the theory of
//! [`crate::analysis`] on this data.

mod auto_part;
mod chart;
mod heat;
mod model_part;
mod page;
mod palette;
mod prediction_part;
mod residual_part;
mod scatter;
mod stage_part;
mod theory_part;
mod validation;

pub use chart::{Lines, Series, lines, standalone};
pub(crate) use palette::{BLUE, MUTED, ORANGE};
pub use palette::{Paint, SERIES};
pub(crate) use scatter::{Cloud, Panel, scatter};

use crate::analysis::Analysis;
use crate::auto::AutoOutcome;
use crate::data::Dataset;
use crate::fit::HeadReport;
use crate::model::Model;
use crate::progress::Event;
use page::Page;

/// What a report is made from.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// Heading.
    pub title: String,
    /// The model.
    pub model: &'a Model,
    /// Size of its file.
    pub bytes: usize,
    /// Data read with the model's columns, outputs included.
    pub data: &'a Dataset,
    /// What the data are called on the page.
    pub data_name: String,
    /// The course of the fit, where it is known.
    pub convergence: Option<&'a Convergence>,
    /// The full model to compare with, and the size of its file.
    pub full: Option<(&'a Model, usize)>,
    /// The comparison.
    pub analysis: Option<&'a Analysis>,
    /// Other models of the same data, this one among them; empty where there are none.
    pub compared: &'a [Compared],
    /// How an automatic fit came to the model.
    pub auto: Option<&'a AutoOutcome>,
}

impl<'a> Report<'a> {
    /// A model of so many bytes on some data, and nothing else.
    pub fn new(
        title: impl Into<String>,
        (model, bytes): (&'a Model, usize),
        data: &'a Dataset,
        data_name: impl Into<String>,
    ) -> Self {
        let (title, data_name) = (title.into(), data_name.into());
        let (convergence, full, analysis, compared, auto) = (None, None, None, &[], None);
        Self { title, model, bytes, data, data_name, convergence, full, analysis, compared, auto }
    }
}

/// A model in a comparison of several.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What it is called.
    pub name: String,
    /// Whether it is the one of the report.
    pub shown: bool,
    /// Its heads.
    pub heads: usize,
    /// Its NRMSE on the data of the report, mean over the outputs.
    pub nrmse: f64,
    /// Size of its file.
    pub bytes: usize,
    /// Multiply-accumulates per sample.
    pub macs: usize,
}

/// The course of a fit.
#[derive(Clone, Debug, Default)]
pub struct Convergence {
    /// Relative training residual after every step of the solver.
    pub steps: Vec<f64>,
    /// Residual on the held-out samples after every cycle and joint step over additive heads.
    pub cycles: Vec<f64>,
    /// Name and validation residual of every head.
    pub heads: Vec<(String, f64)>,
}

impl Convergence {
    /// Enters what an event says of the course.
    pub fn follow(&mut self, event: &Event<'_>) {
        match event {
            Event::Step(step) => self.steps.push(step.loss.max(0.0).sqrt()),
            Event::Cycle { error, .. } | Event::JointStep { error, .. } => self.cycles.push(*error),
            _ => {}
        }
    }

    /// The same course with the heads that came of it.
    pub fn with_heads(mut self, heads: &[HeadReport]) -> Self {
        let residual = |(k, head): (usize, &HeadReport)| {
            Some((format!("{}: {}", k + 1, head.inputs.join(" ")), head.val_residual?))
        };
        self.heads = heads.iter().enumerate().filter_map(residual).collect();
        self
    }
}

/// The page.
///
/// ```
/// use tha_train::{Report, SynthKind, SynthParams, export_c, generate, html};
///
/// let made = generate(&SynthParams { samples: 50, ..SynthParams::new(SynthKind::Volterra) })?;
/// let model = made.model.as_ref().expect("a network is a model");
/// let bytes = model.to_bytes()?.len();
/// let page = html(&Report::new("The truth", (model, bytes), &made.test, "test data"));
/// assert!(page.contains("The truth"));
///
/// let [header, source] = export_c("plant", &model);
/// assert_eq!((header.name.as_str(), source.name.as_str()), ("plant.h", "plant.c"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn html(report: &Report<'_>) -> String {
    let spec = report.model.spec();
    let subtitle = format!(
        "{} inputs, {} outputs, memory {}, degree {}. {}",
        spec.inputs.len(),
        spec.outputs.len(),
        spec.memory,
        spec.degree(),
        spec.provenance.note
    );
    let mut page = Page::new(&report.title, &subtitle);
    let parts = prediction_part::Comparison::new(report);
    prediction_part::summary(&mut page, report, &parts);
    if let Some(outcome) = report.auto {
        auto_part::auto(&mut page, outcome, report.bytes);
    }
    model_part::compared(&mut page, report);
    prediction_part::prediction(&mut page, report, &parts);
    if let Some(analysis) = report.analysis {
        theory_part::decomposition(&mut page, analysis);
    }
    residual_part::residuals(&mut page, report.data, &parts);
    if let Some(convergence) = report.convergence {
        model_part::convergence(&mut page, convergence);
    }
    stage_part::stage(&mut page, report);
    model_part::heads(&mut page, report);
    if let Some(analysis) = report.analysis {
        theory_part::baking(&mut page, analysis);
    }
    model_part::size(&mut page, report);
    page.finish(&format!(
        "{}, seed {}, data {:016x}.",
        spec.provenance.tool, spec.provenance.seed, spec.provenance.data_hash
    ))
}
