//! Exported source code: it compiles without a warning, and it gives the bits of tha-core.

mod models;

#[path = "generated/engine.rs"]
#[allow(dead_code, reason = "a firmware uses its part")]
mod engine;

use models::files;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use tha_core::build::ModelSpec;
use tha_core::{Model, State, Step, push};
use tha_train::export;

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

fn resets(t: usize) -> bool {
    t % 701 == 700
}

/// One line per sample: what came of it, flags, channel flags, outputs in bits.
fn stream(bytes: &[u8], samples: &[Vec<f32>]) -> String {
    let mut flash = Box::new(tha_core::Aligned([0u8; 1 << 16]));
    flash.0[..bytes.len()].copy_from_slice(bytes);
    let model = Model::parse(&flash.0[..bytes.len()]).unwrap();
    let mut state = State::<16, 512, 512>::new(&model).unwrap();
    let mut text = String::new();
    for (t, u) in samples.iter().enumerate() {
        if resets(t) {
            state.reset();
        }
        match push(&model, &mut state, u) {
            Step::Warming { remaining } => writeln!(text, "{remaining}").unwrap(),
            Step::Refused(_) => writeln!(text, "-1").unwrap(),
            Step::Ready(output) => {
                let f = output.flags;
                let bits = [f.out_of_range, f.window_out_of_range, f.held, f.window_held, f.overflow];
                let flags: u32 = bits.iter().enumerate().map(|(k, &set)| u32::from(set) << k).sum();
                write!(text, "0 {flags}").unwrap();
                for c in output.channels {
                    let bits = u32::from(c.below()) + 2 * u32::from(c.above()) + 4 * u32::from(c.held());
                    write!(text, " {bits}").unwrap();
                }
                for y in output.y {
                    // Which NaN it is, the arithmetic does not promise.
                    write!(text, " {:08x}", if y.is_nan() { 0x7fc0_0000 } else { y.to_bits() }).unwrap();
                }
                text.push('\n');
            }
        }
    }
    text
}

const MAIN: &str = r#"
#include "model.h"
#include <stdio.h>

int main(void)
{
    static model_state state;
    float u[MODEL_INPUTS], y[MODEL_OUTPUTS];
    unsigned flags, t = 0;
    model_reset(&state);
    for (; fread(u, sizeof u, 1, stdin) == 1; t++) {
        int step, j;
        if (t % 701 == 700) model_reset(&state);
        step = model_push(&state, u, y, &flags);
        printf("%d", step);
        if (step == MODEL_READY) {
            printf(" %u", flags);
            for (j = 0; j < MODEL_INPUTS; j++) printf(" %u", (unsigned)state.channels[j]);
            for (j = 0; j < MODEL_OUTPUTS; j++) {
                union { float value; uint32_t bits; } b;
                b.value = y[j];
                printf(" %08lx", (unsigned long)(y[j] != y[j] ? 0x7fc00000u : b.bits));
            }
        }
        printf("\n");
    }
    return 0;
}
"#;

const STRICT: [&str; 6] = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off"];

/// Whether the compiler took the files; a note and true when it is not installed.
fn compile(compiler: &str, arguments: &[&str], folder: &Path) -> bool {
    match Command::new(compiler).args(STRICT).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(_) => {
            println!("note: {compiler} is not installed; skipped");
            false
        }
    }
}

fn write_c(folder: &Path, spec: &ModelSpec) {
    for file in export::c("model", spec) {
        std::fs::write(folder.join(&file.name), &file.text).unwrap();
    }
    std::fs::write(folder.join("main.c"), MAIN).unwrap();
}

#[test]
fn c_gives_the_bits_of_tha_core() {
    for (k, (spec, bytes)) in files().into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        write_c(folder.path(), &spec);
        let samples = samples(&spec, &mut ChaCha8Rng::seed_from_u64(k as u64));
        let input: Vec<u8> = samples.iter().flatten().flat_map(|u| u.to_le_bytes()).collect();
        std::fs::write(folder.path().join("u.f32"), input).unwrap();
        for level in ["-O0", "-O3"] {
            if !compile("gcc", &[level, "model.c", "main.c", "-o", "main"], folder.path()) {
                return;
            }
            let stdin = std::fs::File::open(folder.path().join("u.f32")).unwrap();
            let output = Command::new(folder.path().join("main")).stdin(stdin).output().unwrap();
            let found = String::from_utf8(output.stdout).unwrap();
            let expected = stream(&bytes, &samples);
            assert_eq!(found.lines().count(), SAMPLES);
            for (t, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
                assert_eq!(found, expected, "model {k}, {level}, sample {t}");
            }
        }
    }
}

#[test]
fn c_compiles_for_cortex_m() {
    for (spec, _) in files() {
        let folder = tempfile::tempdir().unwrap();
        write_c(folder.path(), &spec);
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
