//! `tha-firmware-sim faults`: what the device does when things go wrong.

use super::{Answer, read};
use crate::faults::{self, Summary};
use serde_json::json;
use tha_cli::{ModelAndData, Speech, summary, table};

/// Inject faults into a recording, the power and the flash, and see what the device does.
///
/// The check fails (exit code 1) when a wrong output came without a word of the device, when the outputs were not back to
/// the bits of the clean run M samples after the end of a fault, or when anything crashed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-firmware-sim faults model.tha test.csv --seed 1 --trials 100")]
pub(super) struct Args {
    #[command(flatten)]
    files: ModelAndData,
    /// Seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Faults of every kind.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    trials: u32,
    #[command(flatten)]
    speech: Speech,
}

pub(super) fn run(args: &Args) -> Answer {
    let (file, data) = read(&args.files, false)?;
    let memory = file.shape().memory;
    let limit = faults::recovery_limit(&file);
    let summaries = faults::campaign(&file, &data, args.seed, args.trials as usize)?;
    let ok = summaries.iter().all(Summary::ok);
    let object = json!({ "seed": args.seed, "memory": memory, "kinds": summaries, "ok": ok });
    summary(args.speech, &object, || words(&summaries, limit, ok));
    Ok(ok)
}

fn words(summaries: &[Summary], memory: usize, ok: bool) -> String {
    let head = "fault, trials, reported, affected, late, recovery, silent, crashed, noticed by, device says";
    let mut rows = Vec::new();
    for s in summaries {
        let figures = [s.trials, s.reported, s.affected, s.late, s.recovery, s.silent, s.crashed];
        let figures = figures.map(|figure| figure.to_string()).to_vec();
        rows.push([vec![s.name.into()], figures, vec![s.noticed_by.into(), s.report.clone()]].concat());
    }
    let verdict = if ok {
        format!("nothing silent, nothing crashed, everything recovered within {memory} samples")
    } else {
        format!("FAILED: see silent, crashed, and recoveries longer than {memory} samples")
    };
    format!(
        "{}\
         affected: outputs missing or different from the clean run, all trials together\n\
         late: the most wrong outputs of a trial before the device could notice; recovery: samples until the last affected output\n\
         A wrong value inside the training range that moves like a signal is noticed by nobody, and not among these faults.\n\
         {verdict}",
        table(head, &rows)
    )
}
