//! The firmware image in QEMU against the host, to the bit.
//!
//! Where QEMU or a Rust target is missing, the tests say so and pass; with THA_REQUIRE_QEMU=1 they fail.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_firmware_sim::emulator::{
    EmulatorError, Numbers, Processor, Replay, Setting, StackUse, build, build_linked, replay,
};
use tha_firmware_sim::model_file::ModelFile;
use tha_firmware_sim::stream::Device;
use tha_train::synth::{Kind, SynthParams, generate};

/// Two outputs, three inputs, M = 4, d = 3.
fn model() -> ModelFile {
    let options = SynthParams { channels: 3, outputs: 2, ..SynthParams::new(Kind::Volterra) };
    let truth = generate(&options).unwrap().model.unwrap();
    ModelFile::new(&truth.to_bytes().unwrap()).unwrap()
}

/// In and out of range, with NaN and infinities.
fn samples(file: &ModelFile, count: usize) -> Vec<f32> {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut value = |low: f32, high: f32| match random.random_range(0..200) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => -1e20,
        _ => 0.5 * (low + high) + 0.6 * (high - low) * random.random_range(-1.0..1.0),
    };
    let model = file.model();
    (0..count).flat_map(|_| model.inputs().iter().map(|c| value(c.low, c.high)).collect::<Vec<_>>()).collect()
}

/// Runs on the board and demands the bits of the host; `None` when the tools are not there.
fn same_bits(processor: Processor, linked: bool, records: &[usize]) -> Option<Replay> {
    let file = model();
    let samples = samples(&file, records.iter().sum());
    let run = || -> Result<Replay, EmulatorError> {
        let image = if linked {
            build_linked(processor, &file, Numbers::of(&file))?
        } else {
            build(processor, Setting::default(), Numbers::of(&file))?
        };
        replay(&image, &file, &samples, records)
    };
    let board = match run() {
        Err(error) if error.is_missing_tool() && std::env::var_os("THA_REQUIRE_QEMU").is_none() => {
            println!("note: {error}; skipped");
            return None;
        }
        result => result.unwrap_or_else(|error| panic!("{}: {error}", processor.name())),
    };
    let host = Device::new(&file).unwrap().replay(&samples, records);
    assert_eq!(board.stream.status.len(), records.iter().sum::<usize>());
    assert!(board.stream.same_bits(&host), "{}: the board's bits are not the host's", processor.name());
    assert_eq!(board.macs, file.model().macs());
    if linked {
        assert_eq!(board.state_bytes, file.state_bytes());
    }
    let StackUse { parse, init, push } = board.stack;
    assert!(parse.max(init).max(push) <= 1024, "{:?}", board.stack);
    Some(board)
}

#[test]
fn cortex_m4f_5000_samples() {
    if let Some(board) = same_bits(Processor::CortexM4f, false, &[2500, 3, 1, 2496]) {
        let [least, most, _] = board.instructions;
        assert!(most <= 1.02 * least, "{least} to {most} instructions");
    }
}

#[test]
fn cortex_m0_5000_samples() {
    same_bits(Processor::CortexM0, true, &[2500, 3, 1, 2496]);
}

#[test]
fn riscv32_5000_samples() {
    same_bits(Processor::Riscv32, false, &[2500, 3, 1, 2496]);
}

#[test]
fn cortex_m3_m7_and_the_model_linked() {
    same_bits(Processor::CortexM3, false, &[500]);
    same_bits(Processor::CortexM7, false, &[500]);
    same_bits(Processor::CortexM4f, true, &[500]);
    same_bits(Processor::Riscv32, true, &[500]);
}
