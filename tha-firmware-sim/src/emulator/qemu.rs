//! Running an image under QEMU: files in, files and one line of numbers out.

use super::image::{Image, Numbers, output, words};
use super::processor::{Emulator, ICOUNT_SHIFT};
use super::{EmulatorError, Processor};
use crate::model_file::{DeviceModel, ModelFile};
use crate::stream::{Status, Stream};
use serde::Serialize;
use std::fs;
use std::process::{Command, Output};
use tha_core::integer::InputCounts;

/// Stack below the main loop, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StackUse {
    /// In `Model::parse`.
    pub parse: usize,
    /// In `State::init`.
    pub init: usize,
    /// In `push`.
    pub push: usize,
}

/// What the board did with a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Status and outputs of every sample.
    pub stream: Stream,
    /// Samples that gave outputs.
    pub samples: usize,
    /// Multiply-accumulates per sample.
    pub macs: usize,
    /// Instructions of one push: the least, the most, the mean.
    pub instructions: [f64; 3],
    /// Size of the state in the image.
    pub state_bytes: usize,
    /// Stack that was used, in bytes.
    pub stack: StackUse,
}

/// The emulator, before anything is built for it in vain.
pub(super) fn find(processor: Processor) -> Result<(), EmulatorError> {
    run(processor, |qemu| qemu.arg("--version")).map(|_| ())
}

fn run(
    processor: Processor,
    with: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<Output, EmulatorError> {
    let &Emulator { program, remedy } = processor.description().emulator;
    output(with(&mut Command::new(program)), program, remedy)
}

/// Runs `samples` (row by row, p values each) through `model` on the emulated board; the state is reset between the
/// records, whose lengths are given.
pub fn replay(
    image: &Image,
    model: &ModelFile,
    samples: &[f32],
    records: &[usize],
) -> Result<Replay, EmulatorError> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    fs::write(file("model.tha"), model.bytes())?;
    match (image.numbers, model.model()) {
        (Numbers::Counts, DeviceModel::Integer(model)) => {
            // What is not a number has no counts: 0, as good as any.
            let counts = |(u, input): (&f32, &InputCounts)| input.count(u).unwrap_or(0).to_le_bytes();
            let counts = samples.iter().zip(model.inputs().iter().cycle()).flat_map(counts);
            fs::write(file("u.i16"), counts.collect::<Vec<u8>>())?;
        }
        _ => fs::write(file("u.f32"), samples.iter().flat_map(|u| u.to_le_bytes()).collect::<Vec<u8>>())?,
    }
    let lengths = records.iter().flat_map(|&length| (length as u32).to_le_bytes());
    fs::write(file("records.u32"), lengths.collect::<Vec<u8>>())?;
    let output = run(image.processor, |qemu| {
        // `-bios none`: RISC-V would start one.
        qemu.args(["-machine", image.processor.description().machine, "-bios", "none"])
            .args(["-nographic", "-monitor", "none", "-serial", "none"])
            .args(["-icount", &format!("shift={ICOUNT_SHIFT}")])
            .args(["-semihosting-config", "enable=on,target=native"])
            .arg("-kernel")
            .arg(image.path())
            .current_dir(folder.path())
    })?;
    let said = words(&output.stdout);
    let number = |name: &str| -> Result<f64, EmulatorError> {
        let value = said.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let silent = || EmulatorError::Firmware(format!("{said} {}", words(&output.stderr)));
        value.and_then(|value| value.parse().ok()).ok_or_else(silent)
    };
    let count = |name: &str| number(name).map(|value| value as usize);
    let samples = count("samples")?;
    let outputs = model.shape().outputs;
    let bytes = fs::read(file("y.bin"))?;
    let mut stream = Stream::new(outputs);
    for row in bytes.chunks_exact(4 * (outputs + 1)) {
        let (words, _) = row.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        stream.status.push(Status(words.next().unwrap_or(0)));
        stream.outputs.extend(words.map(f32::from_bits));
    }
    let instructions = |name: &str| number(name).map(|ticks| ticks * image.processor.instructions_per_tick());
    Ok(Replay {
        stream,
        samples,
        macs: count("macs")?,
        instructions: [
            instructions("ticks_min")?.round(),
            instructions("ticks_max")?.round(),
            instructions("ticks_total")? / samples.max(1) as f64,
        ],
        state_bytes: count("state")?,
        stack: StackUse {
            parse: count("stack_parse")?,
            init: count("stack_init")?,
            push: count("stack_push")?,
        },
    })
}
