//! What the demo says, as JSON and in words.

use super::stream::Streamed;
use super::{Args, Candidate, EXPORT, PAGE};
use serde::Serialize;
use tha_cli::{figure, table};

/// One line of the table.
#[derive(Serialize)]
pub(super) struct Line {
    model: &'static str,
    heads: usize,
    /// On the samples that were held out to choose on.
    held_out_nrmse: f64,
    val_nrmse: f64,
    test_nrmse: f64,
    /// Distance from the full model, and that of the truncated ensemble; standardised.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_full: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated_from_full: Option<f64>,
    flash_bytes: usize,
    macs_per_sample: usize,
    seconds: f64,
}

/// What is printed as JSON.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub models: Vec<Line>,
    pub chosen: &'a str,
    pub stream: Streamed,
    pub out: String,
    pub files: Vec<String>,
    pub next: [String; 3],
    pub seconds: f64,
}

impl From<&Candidate> for Line {
    fn from(candidate: &Candidate) -> Self {
        Self {
            model: candidate.name,
            heads: candidate.model.spec().heads.len(),
            held_out_nrmse: candidate.held_out,
            val_nrmse: candidate.validation,
            test_nrmse: candidate.test,
            from_full: candidate.analysis.as_ref().map(|analysis| analysis.error),
            truncated_from_full: candidate.analysis.as_ref().map(|analysis| analysis.bias),
            flash_bytes: candidate.bytes.len(),
            macs_per_sample: candidate.model.macs(),
            seconds: candidate.seconds,
        }
    }
}

/// The result in words.
pub(super) fn words(args: &Args, report: &Report<'_>) -> String {
    let head = "model, heads, val NRMSE, test NRMSE, from full, flash bytes, MACs, seconds";
    let mut rows = Vec::new();
    for line in &report.models {
        rows.push(vec![
            line.model.to_owned(),
            line.heads.to_string(),
            figure(line.val_nrmse),
            figure(line.test_nrmse),
            line.from_full.map_or_else(|| "-".into(), figure),
            line.flash_bytes.to_string(),
            line.macs_per_sample.to_string(),
            format!("{:.1}", line.seconds),
        ]);
    }
    let (folder, chosen, stream) = (args.out.display(), report.chosen, &report.stream);
    format!(
        "A sensor array: 16 inputs, 2 outputs, 3000 samples to learn from, 1500 to test on. Memory 4, degree 3; the\n\
         full model sees all inputs, the heads of the ensembles four neighbours each.\n\n\
         {}\n\
         NRMSE: error as a part of the output's standard deviation. From full: distance from the full model.\n\
         Chosen on held-out samples: {chosen}. Streamed through the code of the device: {} samples, every bit as specified,\n\
         at most {:.0} % of the rounding bound away from the batch.\n\n\
         In {folder}: {PAGE} (open it in a browser), {chosen}.tha, {EXPORT}/{chosen}.rs and .c, the data, the other models.\n\n\
         Try next:\n  {}",
        table(head, &rows),
        stream.samples,
        (100.0 * stream.bound_used).ceil(),
        report.next.join("\n  "),
    )
}
