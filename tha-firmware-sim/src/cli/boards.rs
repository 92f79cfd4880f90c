//! `tha-firmware-sim boards`: which boards a model fits.

use super::Answer;
use crate::boards::{self, BOARDS, Board, Fit};
use crate::emulator::{self, EmulatorError, Numbers, Processor};
use crate::model_file::ModelFile;
use serde_json::{Value, json};
use std::path::PathBuf;
use tha_cli::{Speech, summary, table};

/// Show common boards, and whether a model fits them: flash, RAM, samples per second.
///
/// Instructions per sample are measured in the emulator where qemu-system-arm and qemu-system-riscv32 are installed, and
/// estimated from earlier measurements otherwise; the table says which.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tha-firmware-sim boards model.tha")]
pub(super) struct Args {
    /// Model file.
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Do not run the emulator.
    #[arg(long)]
    estimate: bool,
    #[command(flatten)]
    speech: Speech,
}

/// Instructions of a push on a processor, and whether they were measured.
struct Cost {
    processor: Processor,
    instructions: f64,
    measured: bool,
}

pub(super) fn run(args: &Args) -> Answer {
    let Some(model) = &args.model else {
        summary(args.speech, &json!({ "boards": BOARDS }), || bare(&BOARDS));
        return Ok(true);
    };
    let file = ModelFile::read(model)?;
    let costs: Vec<Cost> = Processor::ALL.into_iter().map(|processor| cost(args, processor, &file)).collect();
    let of = |processor| {
        costs.iter().find(|cost| cost.processor == processor).map_or(0.0, |cost| cost.instructions)
    };
    let fits = boards::fit(&file, of);
    summary(args.speech, &object(&file, &costs, &fits), || words(&file, &costs, &fits));
    Ok(true)
}

fn cost(args: &Args, processor: Processor, file: &ModelFile) -> Cost {
    let measured = if args.estimate { None } else { measure(processor, file).ok() };
    let instructions = measured.unwrap_or_else(|| boards::estimated_instructions(processor, file));
    Cost { processor, instructions, measured: measured.is_some() }
}

/// The mean over some samples from the middle of the training range.
fn measure(processor: Processor, file: &ModelFile) -> Result<f64, EmulatorError> {
    let image = emulator::build_for(processor, file, Numbers::of(file).counted())?;
    let batch = file.batch();
    let count = batch.spec().settled() + 16;
    let value = |t: usize, low: f32, high: f32| low + (high - low) * (0.25 + 0.5 * (t % 7) as f32 / 6.0);
    let samples: Vec<f32> = (0..count)
        .flat_map(|t| batch.spec().inputs.iter().map(move |input| value(t, input.low, input.high)))
        .collect();
    Ok(emulator::replay(&image, file, &samples, &[count])?.instructions[2])
}

fn object(file: &ModelFile, costs: &[Cost], fits: &[Fit]) -> Value {
    let instructions: Vec<Value> = costs
        .iter()
        .map(|cost| {
            let source = if cost.measured { "emulator" } else { "estimate" };
            json!({ "processor": cost.processor.name(), "per_sample": cost.instructions, "source": source })
        })
        .collect();
    json!({
        "model_bytes": file.bytes().len(),
        "state_bytes": file.state_bytes(),
        "macs_per_sample": file.model().macs(),
        "instructions": instructions,
        "boards": fits,
    })
}

fn row(board: &Board) -> Vec<String> {
    let core = board.core.facts();
    vec![
        board.name.into(),
        core.name.into(),
        if core.fpu { "yes" } else { "no" }.into(),
        board.clock.to_string(),
        board.flash.to_string(),
        board.ram.to_string(),
        board.block.to_string(),
    ]
}

const HEAD: &str = "board, core, FPU, MHz, flash KiB, RAM KiB, in one block";

fn bare(boards: &[Board]) -> String {
    let rows: Vec<_> = boards.iter().map(|board| [row(board), vec![board.source.into()]].concat()).collect();
    table(&format!("{HEAD}, data sheet"), &rows)
}

fn words(file: &ModelFile, costs: &[Cost], fits: &[Fit]) -> String {
    let head = format!("{HEAD}, fits, flash left, RAM left, samples/s");
    let mut rows = Vec::new();
    for fit in fits {
        let more = [
            if fit.fits { "yes" } else { "NO" }.into(),
            fit.flash_left.to_string(),
            fit.ram_left.to_string(),
            format!("{:.0}", fit.samples_per_second),
        ];
        rows.push([row(&fit.board), more.to_vec()].concat());
    }
    let cost = |cost: &Cost| {
        let source = if cost.measured { "emulator" } else { "estimate" };
        format!("{} {:.0} ({source})", cost.processor.name(), cost.instructions)
    };
    format!(
        "{}{} bytes of model, {} of state, {} for the stack; instructions per sample: {}\n\
         samples/s is an estimate: cycles per instruction by kind of core, no flash wait states; M33 counted as M4F",
        table(&head, &rows),
        file.bytes().len(),
        file.state_bytes(),
        boards::STACK_RESERVE,
        costs.iter().map(cost).collect::<Vec<_>>().join(", ")
    )
}
