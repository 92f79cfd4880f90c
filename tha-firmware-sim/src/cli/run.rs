//! `tha-firmware-sim run`: a recording through the stream, against the batch.

use super::{Answer, read};
use crate::boards;
use crate::emulator::Processor;
use crate::model_file::ModelFile;
use crate::replay::{self, Report, Target};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde_json::{Value, json};
use std::fmt::Write;
use tha_cli::{ModelAndData, Speech, note, summary, table};

/// Replay a recording sample by sample and compare it with the f64 batch prediction.
///
/// The comparison fails (exit code 1) when an output differs from the batch by more than f32 arithmetic can explain, when
/// rounding takes more than 1 % of the spread of an output (its standard deviation over the recording), or when a board does
/// not give the bits of the host.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-firmware-sim run model.tha test.csv --target cortex-m4f --json")]
pub(super) struct Args {
    #[command(flatten)]
    files: ModelAndData,
    /// Where tha-core runs: on this machine, or on an emulated board (needs qemu-system-arm, or
    /// qemu-system-riscv32).
    #[arg(long, value_enum, default_value_t = Target::Host)]
    target: Target,
    #[command(flatten)]
    speech: Speech,
}

impl ValueEnum for Target {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

pub(super) fn run(args: &Args) -> Answer {
    let (file, data) = read(&args.files, false)?;
    let target = args.target;
    if let (Target::Board(processor), false) = (target, args.speech.quiet) {
        let (name, machine) = (processor.name(), processor.description().machine);
        note(format_args!("building and running the firmware for {name} ({machine})"));
    }
    let report = replay::run(&file, &data, target)?;
    summary(args.speech, &object(&file, target, &report), || words(&file, target, &report));
    Ok(report.ok())
}

fn flash_bytes(file: &ModelFile, target: Target) -> usize {
    let processor = match target {
        Target::Host => Processor::CortexM4f,
        Target::Board(processor) => processor,
    };
    file.bytes().len() + boards::code_bytes(processor)
}

fn worst(report: &Report, of: impl Fn(&replay::OutputComparison) -> f64) -> f64 {
    report.comparison.outputs.iter().map(of).fold(0.0, f64::max)
}

fn object(file: &ModelFile, target: Target, report: &Report) -> Value {
    let macs = file.model().macs();
    let board = report.board.as_ref();
    let stack = board.map(|board| board.stack);
    json!({
        "target": target.name(),
        "samples": report.comparison.samples,
        "max_abs_error": worst(report, |output| output.max_abs_error),
        "max_rel_error": worst(report, |output| output.max_rel_error),
        "error_bound": worst(report, |output| output.error_bound),
        "bound_used": report.comparison.bound_used,
        "model_bound": worst(report, |output| output.model_bound),
        "bit_exact": report.bit_exact,
        "warmup": report.comparison.warmup,
        "flagged": report.flagged,
        "flash_bytes": flash_bytes(file, target),
        "model_bytes": file.bytes().len(),
        "image_bytes": board.map(|board| board.image_bytes),
        "ram_bytes": file.state_bytes(),
        "stack_bytes": stack.map(|stack| stack.parse.max(stack.init).max(stack.push)),
        "stack": stack,
        "instructions_per_sample": board.map(|board| {
            let [min, max, mean] = board.instructions;
            json!({ "min": min, "max": max, "mean": mean })
        }),
        "macs_per_sample": macs,
        "instructions_per_mac": board.map(|board| board.instructions[2] / macs as f64),
        "latency_ns": report.latency,
        "samples_per_second": report.latency.as_ref().map(|latency| latency.samples_per_second),
        "outputs": report.comparison.outputs,
        "lost": report.comparison.lost,
        "ok": report.ok(),
    })
}

fn words(file: &ModelFile, target: Target, report: &Report) -> String {
    let comparison = &report.comparison;
    let head = "output, max error, RMS error, spread, relative, bound, bound in range";
    let mut rows = Vec::new();
    for output in &comparison.outputs {
        let figures = [
            output.max_abs_error,
            output.rms_error,
            output.spread,
            output.max_rel_error,
            output.error_bound,
            output.model_bound,
        ];
        rows.push([vec![output.name.clone()], figures.map(|value| format!("{value:.2e}")).to_vec()].concat());
    }
    let mut text = table(head, &rows);
    let (macs, bytes) = (file.model().macs(), file.bytes().len());
    let _ = writeln!(
        text,
        "{} samples on {}, {} for warming up, {} flagged; {:.0} % of the bound used",
        comparison.samples,
        target.name(),
        comparison.warmup,
        report.flagged,
        100.0 * comparison.bound_used
    );
    let _ = writeln!(
        text,
        "{macs} multiply-accumulates per sample; {bytes} bytes of model, {} of flash with the code, {} of state",
        flash_bytes(file, target),
        file.state_bytes()
    );
    if let Some(board) = &report.board {
        let ([least, most, mean], stack) = (board.instructions, board.stack);
        let _ = writeln!(
            text,
            "{least:.0} to {most:.0} instructions per sample, {:.2} per multiply-accumulate\n\
             stack: {} bytes in parse, {} in init, {} in push; image {} bytes",
            mean / macs as f64,
            stack.parse,
            stack.init,
            stack.push,
            board.image_bytes
        );
    }
    if let Some(latency) = &report.latency {
        let _ = writeln!(
            text,
            "{:.0} samples/s; latency {:.0} ns median, {:.0} p90, {:.0} p99, {:.0} p99.9, {:.0} max",
            latency.samples_per_second, latency.p50, latency.p90, latency.p99, latency.p999, latency.max
        );
    }
    let bits = match (target, report.bit_exact) {
        (Target::Host, true) => "bit for bit as the format prescribes",
        (Target::Host, false) => "FAILED: not the bits that the format prescribes",
        (_, true) => "bit for bit as on the host",
        (_, false) => "FAILED: not the bits of the host",
    };
    let bound = match &comparison.lost {
        _ if !comparison.within_bound => "FAILED: beyond the bound".into(),
        Some(lost) => format!("FAILED: {lost}"),
        None => "within the bound".into(),
    };
    let _ = write!(text, "{bits}; {bound}");
    text
}
