//! `tha-train synth`: data with a known truth.

use super::args::choice;
use super::error::CliError;
use serde_json::json;
use std::path::{Path, PathBuf};
use tha_cli::{Replace, Speech, count, summary};
use tha_train::output::{LISTING, MARK, OutputError, Staging};
use tha_train::{SynthKind as Kind, SynthParams, Synthetic};

/// Make data with a known truth: train.csv (with noise), test.csv (without) and truth.json in a directory.
///
/// volterra: a random tensor network, also written as truth.tha. wiener-hammerstein: filter, polynomial, filter.
/// array: a sensor array with cross-talk, time constants and saturation; it is not a polynomial.
/// The outputs have unit variance before noise.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-train synth --kind array --channels 16 --samples 5000 --out data")]
pub(super) struct Args {
    /// The kind of system.
    #[arg(long, value_parser = choice(&KINDS))]
    kind: Kind,
    /// Directory for the files; made when it does not exist.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Input channels p [default: 2; array 8].
    #[arg(long, visible_alias = "inputs", value_name = "P")]
    channels: Option<usize>,
    /// Outputs l [default: 1; array 2].
    #[arg(long, value_name = "L")]
    outputs: Option<usize>,
    /// Memory M in samples [default: 4].
    #[arg(long, value_name = "M")]
    memory: Option<usize>,
    /// Degree d of the system; the array has none [default: 3].
    #[arg(long, value_name = "D")]
    degree: Option<usize>,
    /// Rank of the network, volterra only [default: 2].
    #[arg(long, value_name = "R")]
    rank: Option<usize>,
    /// Training samples [default: 2000].
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Test samples [default: 1000].
    #[arg(long, value_name = "N")]
    test_samples: Option<usize>,
    /// Correlation between any two inputs, 0 to below 1 [default: 0; array 0.6].
    #[arg(long, value_name = "C")]
    correlation: Option<f64>,
    /// Noise on the training outputs, as a part of their standard deviation [default: 0.01].
    #[arg(long, value_name = "S")]
    noise: Option<f64>,
    /// Seed of everything.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    replace: Replace,
    #[command(flatten)]
    speech: Speech,
}

const KINDS: [(&str, Kind); 3] =
    [("volterra", Kind::Volterra), ("array", Kind::Array), ("wiener-hammerstein", Kind::WienerHammerstein)];

impl Args {
    fn options(&self) -> SynthParams {
        let defaults = SynthParams::new(self.kind);
        SynthParams {
            kind: defaults.kind,
            channels: self.channels.unwrap_or(defaults.channels),
            outputs: self.outputs.unwrap_or(defaults.outputs),
            memory: self.memory.unwrap_or(defaults.memory),
            degree: self.degree.unwrap_or(defaults.degree),
            rank: self.rank.unwrap_or(defaults.rank),
            samples: self.samples.unwrap_or(defaults.samples),
            test_samples: self.test_samples.unwrap_or(defaults.test_samples),
            correlation: self.correlation.unwrap_or(defaults.correlation),
            noise: self.noise.unwrap_or(defaults.noise),
            seed: self.seed,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let options = args.options();
    let data = tha_train::generate(&options)?;
    let model = data.model.as_ref().map(|model| model.to_bytes()).transpose()?;

    let mut staging = Staging::among_others(args.replace.force);
    staging.folder(&args.out)?;
    let mut files = stage(&mut staging, &args.out, &data)?.to_vec();
    if let Some(bytes) = &model {
        staging.write(&args.out.join("truth.tha"), |to| to.write_all(bytes))?;
    }
    staging.commit()?;

    files.extend(model.map(|_| "truth.tha"));
    let object = json!({ "out": args.out.display().to_string(), "files": files, "options": options });
    summary(args.speech, &object, || {
        let SynthParams { samples, test_samples, channels, outputs, .. } = options;
        let (channels, outputs) = (count(channels, "input"), count(outputs, "output"));
        let (out, files) = (args.out.display(), files.join(", "));
        format!("{out}: {files}; {samples} training and {test_samples} test samples, {channels}, {outputs}")
    });
    Ok(())
}

/// Stages the data and the truth behind it, which lists the checksums of all files so far; gives the names.
pub(super) fn stage(
    staging: &mut Staging,
    folder: &Path,
    data: &Synthetic,
) -> Result<[&'static str; 3], OutputError> {
    staging.write(&folder.join("train.csv"), |to| data.train.write_csv(to))?;
    staging.write(&folder.join("test.csv"), |to| data.test.write_csv(to))?;
    let (options, system) = (&data.truth["options"], &data.truth["system"]);
    let note = format!("{MARK}train synth`");
    let truth = json!({ "note": note, "files": staging.checksums()?, "options": options, "system": system });
    staging.write(&folder.join(LISTING), |to| Ok(serde_json::to_writer_pretty(to, &truth)?))?;
    Ok(["train.csv", "test.csv", LISTING])
}
