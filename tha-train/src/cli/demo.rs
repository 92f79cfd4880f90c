//! `tha-train demo`: the whole path on synthetic data, in under a minute.

use super::args::{Speech, Threads};
use super::error::CliError;
use super::interrupt;
use super::speak::{self, Progress, figure};
use crate::data::Dataset;
use crate::ensemble::{self, Combine, Strategy};
use crate::fit::{self, Judge};
use crate::model::Model;
use crate::output::Staging;
use crate::solve::{self, Observer};
use crate::synth::{self, Kind};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;
use tha_core::{RangePolicy, State, push};

/// Synthesise a sensor array, fit it in four ways, stream the best through the code of the device.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-train demo --out demo")]
pub(super) struct Args {
    /// Folder for data and models.
    #[arg(long, value_name = "DIR", default_value = "demo")]
    out: PathBuf,
    /// Seed of everything.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    speech: Speech,
}

/// One line of the table.
#[derive(Serialize)]
struct Line {
    model: String,
    heads: usize,
    test_nrmse: f64,
    flash_bytes: usize,
    macs_per_sample: usize,
    seconds: f64,
}

#[derive(Serialize)]
struct Report {
    models: Vec<Line>,
    chosen: String,
    streamed_samples: usize,
    /// Largest difference between stream (f32) and batch (f64), in standard deviations of the output.
    stream_difference: f64,
    seconds: f64,
}

struct Watch<'a>(&'a Progress);

impl Observer for Watch<'_> {
    fn progress(&self, step: &solve::Step) {
        self.0.now(|| step.to_string());
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}

impl ensemble::Watch for Watch<'_> {
    fn head(&self, _: usize, done: usize, of: usize, validation: f64, _: f64) {
        self.0.now(|| format!("{done} of {of} heads, validation residual {}", figure(validation)));
    }

    fn stop(&self) -> bool {
        interrupt::requested()
    }
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let start = Instant::now();
    args.threads.apply();
    let plan = synth::Options {
        channels: 16,
        outputs: 2,
        samples: 4000,
        test_samples: 2000,
        seed: args.seed,
        ..synth::Options::new(Kind::Array)
    };
    let data = synth::generate(&plan)?;
    let progress = Progress::new(args.speech, Vec::new());
    let watch = Watch(&progress);
    let options = fit::Options {
        memory: 4,
        solve: solve::Options { degree: 2, seed: args.seed, restarts: 2, ..solve::Options::default() },
        refit: true,
        range: RangePolicy::Clamp,
    };
    let judge = Judge::End(0.2);
    let mut fitted: Vec<(&str, Model, f64)> = Vec::new();
    let clock = Instant::now();
    let full = fit::fit(&data.train, judge, &options, &watch)?;
    fitted.push(("full", full.model, clock.elapsed().as_secs_f64()));
    for (name, combine) in
        [("average", Combine::Average), ("stack", Combine::Stack), ("additive", Combine::Additive)]
    {
        let plan = ensemble::Options {
            heads: Some(24),
            subset_size: 4,
            strategy: Strategy::Random,
            combine,
            ..ensemble::Options::default()
        };
        let clock = Instant::now();
        let outcome = ensemble::fit(&data.train, judge, &options, &plan, &watch)?;
        fitted.push((name, outcome.fit.model, clock.elapsed().as_secs_f64()));
    }

    std::fs::create_dir_all(&args.out)
        .map_err(|error| CliError::Usage(format!("{}: cannot be made: {error}", args.out.display())))?;
    let mut staging = Staging::new();
    staging.write(&args.out.join("train.csv"), |to| data.train.write_csv(to))?;
    staging.write(&args.out.join("test.csv"), |to| data.test.write_csv(to))?;
    let mut lines = Vec::new();
    for (name, model, seconds) in &fitted {
        let bytes = model.to_bytes()?;
        staging.write(&args.out.join(format!("{name}.tha")), |to| to.write_all(&bytes))?;
        lines.push(Line {
            model: (*name).to_owned(),
            heads: model.spec().heads.len(),
            test_nrmse: model.evaluate(&data.test).nrmse,
            flash_bytes: bytes.len(),
            macs_per_sample: model.parameters(),
            seconds: *seconds,
        });
    }
    staging.commit()?;
    let best =
        (0..lines.len()).min_by(|&a, &b| lines[a].test_nrmse.total_cmp(&lines[b].test_nrmse)).unwrap_or(0);
    let (streamed_samples, stream_difference) = stream(&fitted[best].1, &data.test)?;
    progress.done();
    let report = Report {
        chosen: lines[best].model.clone(),
        models: lines,
        streamed_samples,
        stream_difference,
        seconds: start.elapsed().as_secs_f64(),
    };
    if args.speech.json || !args.speech.quiet {
        speak::result(args.speech.json, &report, || words(args, &report));
    }
    Ok(())
}

/// Room for any model of the demo.
type Room = State<16, 192, 4096>;

/// Pushes the samples through tha-core; how many gave outputs, and how far they are from the batch prediction.
fn stream(model: &Model, data: &Dataset) -> Result<(usize, f64), CliError> {
    let refuse = |error: &dyn std::fmt::Display| CliError::Usage(format!("the stream failed: {error}"));
    let bytes = model.to_bytes()?;
    let mut words = vec![0u32; bytes.len().div_ceil(4)];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(4)) {
        *word = u32::from_ne_bytes(chunk.try_into().unwrap_or_default());
    }
    let core = tha_core::Model::parse(bytemuck::cast_slice(&words)).map_err(|error| refuse(&error))?;
    let mut state = Box::new(Room::new(&core).map_err(|error| refuse(&error))?);
    let batch = model.predict(data, &data.scored_rows(model.spec().memory));
    let (mut count, mut difference) = (0, 0.0f64);
    for t in 0..data.len() {
        let u: Vec<f32> = data.u.iter().map(|column| column[t] as f32).collect();
        if let Some(output) = push(&core, &mut state, &u).output() {
            for (j, (&y, channel)) in output.y.iter().zip(&model.spec().outputs).enumerate() {
                difference =
                    difference.max((f64::from(y) - batch[(count, j)]).abs() / f64::from(channel.scale));
            }
            count += 1;
        }
    }
    Ok((count, difference))
}

fn words(args: &Args, report: &Report) -> String {
    let head =
        ["model", "heads", "test NRMSE", "flash bytes", "MACs per sample", "seconds"].map(String::from);
    let mut rows = vec![head.to_vec()];
    for line in &report.models {
        rows.push(vec![
            line.model.clone(),
            line.heads.to_string(),
            figure(line.test_nrmse),
            line.flash_bytes.to_string(),
            line.macs_per_sample.to_string(),
            format!("{:.1}", line.seconds),
        ]);
    }
    let folder = args.out.display();
    let chosen = &report.chosen;
    format!(
        "a sensor array: 16 inputs, 2 outputs, memory 4, degree 2; models and data are in {folder}/\n\n{}\n\
         {chosen}.tha streamed through tha-core: {} samples, at most {} standard deviations from the batch\n\n\
         try next:\n  \
         tha-train inspect {folder}/{chosen}.tha\n  \
         tha-train evaluate {folder}/{chosen}.tha {folder}/test.csv\n  \
         tha-train fit {folder}/train.csv --out {folder}/own.tha --memory 4 --degree 3",
        speak::table(&rows),
        report.streamed_samples,
        figure(report.stream_difference),
    )
}
