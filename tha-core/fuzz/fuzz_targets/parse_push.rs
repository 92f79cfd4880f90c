//! Any bytes through `parse`, any samples through `push`. Under the fuzzer the checksum is not compared, so that
//! mutations get past it. The last bytes of the input are the samples.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tha_core::build::ModelSpec;
use tha_core::{Aligned, Model, ParseError, RangePolicy, State, Step, integer, push};

type Room = State<16, 512, 1024>;
type IntegerRoom = integer::State<16, 512, 1024>;

fuzz_target!(|data: &[u8]| {
    let length = match data.get(8..12) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => data.len(),
    };
    let (file, samples) = data.split_at(length.min(data.len()));
    let mut flash = Aligned([0u8; 4096]);
    let Some(room) = flash.0.get_mut(..file.len()) else { return };
    room.copy_from_slice(file);
    let model = match Model::parse(room) {
        Ok(model) => model,
        Err(ParseError::Numbers { .. }) => return integers(room, samples),
        Err(_) => return,
    };

    // What is accepted has an owned form that writes the same model again, but for `extend` with nothing to extend: it clamps.
    let mut spec = ModelSpec::from_model(&model);
    if spec.stage.linear.is_empty() && spec.range == RangePolicy::Extend {
        spec.range = RangePolicy::Clamp;
    }
    let again = spec.to_bytes().expect("an accepted model can be written");
    assert_eq!(ModelSpec::from_bytes(&again).as_ref(), Ok(&spec));

    let Ok(mut state) = Room::new(&model) else { return };
    let shape = model.shape();
    let samples: Vec<f32> = samples.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let _ = state.prime(&model, samples.get(..shape.inputs).unwrap_or(&[]));
    for row in samples.chunks(shape.inputs).take(64) {
        match push(&model, &mut state, row) {
            Step::Ready(output) => assert_eq!(output.y.len(), shape.outputs),
            Step::Warming { remaining } => assert!(remaining < model.settled()),
            Step::Refused(_) => {}
        }
    }
    state.swap(&model).expect("a model can follow itself");
});

/// The same for a model of integers; the fuzzer is built with overflow checks.
fn integers(file: &[u8], samples: &[u8]) {
    let Ok(model) = integer::Model::parse(file) else { return };
    let Ok(mut state) = IntegerRoom::new(&model) else { return };
    let shape = model.shape();
    let samples: Vec<i16> = samples.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes)).collect();
    for row in samples.chunks(shape.inputs).take(64) {
        match integer::push_counts(&model, &mut state, row) {
            integer::Step::Ready(output) => assert_eq!(output.counts.len(), shape.outputs),
            integer::Step::Warming { remaining } => assert!(remaining < model.settled()),
            integer::Step::Refused(_) => {}
        }
    }
    state.swap(&model).expect("a model can follow itself");
}
