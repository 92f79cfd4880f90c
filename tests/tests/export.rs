//! Exported source code: it compiles without a warning, and it gives the bits of tha-core.

mod bits;
mod models;

#[path = "generated/engine.rs"]
#[allow(dead_code, reason = "a firmware uses its part")]
mod engine;

use bits::{MAIN_C, compile, gives, stream, written};
use models::files;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::ModelSpec;
use tha_core::push;
use tha_train::{Model, export};

const SAMPLES: usize = 3000;

/// Samples in and out of range, with NaN, infinities and enormous values, and a reset now and then.
fn samples(spec: &ModelSpec, random: &mut ChaCha8Rng) -> Vec<Vec<f32>> {
    let value = |random: &mut ChaCha8Rng, low: f32, high: f32| match random.random_range(0..100) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::NEG_INFINITY,
        3 => 1e30 * random.random_range(-1.0..1.0),
        4..10 => low + (high - low) * 3.0 * random.random_range(-1.0..1.0),
        _ => 0.5 * (low + high) + 0.5 * (high - low) * random.random_range(-1.0..1.0),
    };
    (0..SAMPLES).map(|_| spec.inputs.iter().map(|c| value(random, c.low, c.high)).collect()).collect()
}

#[test]
fn c_gives_the_bits_of_tha_core() {
    for (k, (spec, bytes)) in files().into_iter().enumerate() {
        let folder = written(&Model::new(spec.clone()), MAIN_C);
        let samples = samples(&spec, &mut ChaCha8Rng::seed_from_u64(k as u64));
        let expected = stream(&bytes, &samples);
        for level in ["-O0", "-O3"] {
            println!("model {k}");
            gives(&[level], folder.path(), &samples, &expected);
        }
    }
}

#[test]
fn c_compiles_for_cortex_m() {
    for (spec, _) in files() {
        let folder = written(&Model::new(spec), MAIN_C);
        for cpu in [&["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"][..], &["-mcpu=cortex-m0"]] {
            // Freestanding: not even the C library is there.
            let arguments = [cpu, &["-mthumb", "-ffreestanding", "-O2", "-c", "model.c"]].concat();
            compile("arm-none-eabi-gcc", &arguments, folder.path());
        }
    }
}

/// `generated/engine.rs` is what the export writes: it is compiled into this test. THA_BLESS=1 writes it anew.
#[test]
fn rust_compiles_and_gives_the_bits_of_the_file() {
    let (spec, bytes) = files().swap_remove(1);
    let written = export::rust("engine", &spec, &bytes).text;
    if std::env::var_os("THA_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generated/engine.rs");
        std::fs::write(path, &written).unwrap();
        return;
    }
    assert!(written == include_str!("generated/engine.rs"), "run with THA_BLESS=1 if the change is meant");

    let model = engine::model().unwrap();
    let mut state = engine::ModelState::new(&model).unwrap();
    let samples = samples(&spec, &mut ChaCha8Rng::seed_from_u64(1));
    let found: Vec<Vec<f32>> = samples
        .iter()
        .filter_map(|u| push(&model, &mut state, u).output().map(|output| output.y.to_vec()))
        .collect();
    assert_eq!(found[0].len(), engine::OUTPUTS);
    assert_eq!(engine::INPUT_NAMES.to_vec(), ["u0", "u1"]);
    let own = export::rust("engine", &ModelSpec::from_model(&model), &engine::FILE.0);
    assert!(own.text == written);
}

#[test]
fn rust_carries_the_bytes_and_the_capacities() {
    for (spec, bytes) in files() {
        let file = export::rust("engine", &spec, &bytes);
        assert_eq!(file.name, "engine.rs");
        let (_, array) = file.text.split_once("tha_core::Aligned([").unwrap();
        let written: Vec<u8> = array
            .trim_end_matches(|c: char| !c.is_numeric())
            .split(',')
            .map(|number| number.trim().parse().unwrap())
            .collect();
        assert_eq!(written, bytes);
        let needs = tha_core::Capacities::of(&bytes);
        assert!(file.text.contains(&format!("HISTORY: usize = {};", needs.history)));
        assert!(file.text.contains(&format!("SCRATCH: usize = {};", needs.scratch)));
    }
}
