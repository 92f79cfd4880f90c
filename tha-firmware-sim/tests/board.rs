//! The firmware image in QEMU against the host, to the bit.
//!
//! Where QEMU or a Rust target is missing, the tests say so and pass; with THA_REQUIRE_QEMU=1 they fail.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_firmware_sim::emulator::{
    EmulatorError, Numbers, Processor, Replay, Setting, StackUse, build, build_linked, replay,
};
use tha_firmware_sim::model_file::ModelFile;
use tha_firmware_sim::replay::follows_the_format;
use tha_firmware_sim::stream::Device;
use tha_train::{
    Dataset, FitParams, QuantizeParams, RangePolicy, Record, Ridge, Silent, SynthKind as Kind, SynthParams,
    generate, quantize,
};

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
    let batch = file.batch();
    let inputs = &batch.spec().inputs;
    (0..count).flat_map(|_| inputs.iter().map(|c| value(c.low, c.high)).collect::<Vec<_>>()).collect()
}

/// Runs on the board and demands the bits of the host; `None` when the tools are not there.
fn same_bits(processor: Processor, linked: bool, records: &[usize]) -> Option<Replay> {
    same_bits_of(&model(), processor, linked, records)
}

fn same_bits_of(file: &ModelFile, processor: Processor, linked: bool, records: &[usize]) -> Option<Replay> {
    let samples = samples(file, records.iter().sum());
    let run = || -> Result<Replay, EmulatorError> {
        let image = if linked {
            build_linked(processor, file, Numbers::of(file))?
        } else {
            build(processor, Setting::default(), Numbers::of(file))?
        };
        replay(&image, file, &samples, records)
    };
    let board = match run() {
        Err(error) if error.is_missing_tool() && std::env::var_os("THA_REQUIRE_QEMU").is_none() => {
            println!("note: {error}; skipped");
            return None;
        }
        result => result.unwrap_or_else(|error| panic!("{}: {error}", processor.name())),
    };
    let host = Device::new(file).unwrap().replay(&samples, records);
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

/// Lags; and averages and a resonator with maps, whose linear part goes on beyond the range.
fn integers() -> Vec<ModelFile> {
    let made =
        generate(&SynthParams { channels: 3, outputs: 2, samples: 600, ..SynthParams::new(Kind::Volterra) });
    let data = made.unwrap().train;
    let params = FitParams::new().degree(2).max_rank(3).ridge(Ridge::Fixed(0.1)).restarts(1);
    let bases = ["lags:3", "levels:8", "kautz:0.7,0.5,2"];
    let fit = |basis: &str| {
        let params = params.clone().basis(basis.parse().unwrap());
        let params =
            if basis.starts_with("lags") { params } else { params.maps(Some(4)).range(RangePolicy::Extend) };
        let model = params.check(&data).unwrap().fit(&data, &Silent).unwrap().model;
        let made = quantize(&model, &data, &QuantizeParams::default()).unwrap();
        assert!(made.max_abs_error <= made.bound && made.saturated == 0, "{basis}: {made:?}");
        ModelFile::new(&made.model.to_bytes().unwrap()).unwrap()
    };
    bases.map(fit).into()
}

/// Every model of integers on every processor.
fn integers_on_boards(records: &[usize]) {
    for file in integers() {
        same_bits_of(&file, Processor::CortexM0, true, records);
        for processor in [Processor::CortexM3, Processor::CortexM4f, Processor::CortexM7, Processor::Riscv32]
        {
            same_bits_of(&file, processor, false, records);
        }
    }
}

#[test]
fn integers_have_the_same_bits_on_every_processor() {
    integers_on_boards(&[500, 3, 1, 800]);
}

#[test]
#[ignore = "minutes; `cargo test -p tha-firmware-sim --test board -- --ignored`"]
fn integers_have_the_same_bits_on_100_000_samples() {
    integers_on_boards(&[50_000, 3, 1, 49_996]);
}

/// An implementation that knows nothing of layouts and limits of size gives the same bits.
#[test]
fn integers_follow_the_format() {
    for file in integers() {
        let (samples, shape) = (samples(&file, 3000), file.shape());
        let stream = Device::new(&file).unwrap().replay(&samples, &[1000; 3]);
        let record = |k: usize| Record { id: k.to_string(), rows: 1000 * k..1000 * (k + 1) };
        let records = (0..3).map(record).collect();
        let data = Dataset { records, ..Dataset::new("random", vec![vec![0.0; 3000]; shape.inputs], vec![]) };
        assert!(follows_the_format(&file, &data, &samples, &stream));
        let ready = stream.status.iter().filter(|status| status.ready()).count();
        assert_eq!(ready, data.scored_rows(file.model().settled()).len());
        assert!(ready * shape.outputs > 4000);
    }
}
