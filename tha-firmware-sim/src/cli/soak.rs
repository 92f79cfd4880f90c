//! `tha-firmware-sim soak`: millions of random samples with resets and swaps.

use super::Answer;
use crate::model_file::ModelFile;
use crate::soak::{SoakReport, soak};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tha_cli::{Speech, note, summary};

/// Stream random samples with random resets, swaps and NaN, and compare every output with the batch.
///
/// The check fails (exit code 1) when an output is beyond the bound of its sample.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-firmware-sim soak model.tha --samples 10000000 --seed 1")]
pub(super) struct Args {
    /// Model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Model to swap with, of the same shape; without it a variant of MODEL.
    #[arg(long, value_name = "MODEL")]
    with: Option<PathBuf>,
    /// Samples to push.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    samples: usize,
    /// Seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    speech: Speech,
}

pub(super) fn run(args: &Args) -> Answer {
    let file = ModelFile::read(&args.model)?;
    let other = match &args.with {
        Some(path) => ModelFile::read(path)?,
        None => file.variant(&mut ChaCha8Rng::seed_from_u64(args.seed)),
    };
    let (a, b) = (file.shape(), other.shape());
    if (a.inputs, a.outputs, a.memory) != (b.inputs, b.outputs, b.memory) {
        let found =
            "--with: the models differ in inputs, outputs or memory; swap with a model of the same shape";
        return Err(found.into());
    }
    let start = Instant::now();
    let mut said = start;
    let report = soak(&file, &other, args.samples, args.seed, |done| {
        if !args.speech.quiet && said.elapsed() > Duration::from_secs(2) {
            said = Instant::now();
            note(format_args!("{done} of {} samples", args.samples));
        }
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let ok = report.broken == 0;
    let object = json!({ "report": report, "seconds": seconds, "ok": ok });
    summary(args.speech, &object, || words(&report, seconds));
    Ok(ok)
}

fn words(report: &SoakReport, seconds: f64) -> String {
    let SoakReport { samples, outputs, resets, swaps, held, .. } = report;
    let verdict = match report.broken {
        0 => "every output within the bound".into(),
        broken => format!("FAILED: {broken} outputs beyond the bound"),
    };
    format!(
        "{samples} samples, {outputs} outputs, {resets} resets, {swaps} swaps, {held} values held in {seconds:.1} s\n\
         largest difference {:.2e}, largest bound {:.2e}, at most {:.0} % of the bound of a sample used\n{verdict}",
        report.max_abs_error,
        report.error_bound,
        100.0 * report.bound_used
    )
}
