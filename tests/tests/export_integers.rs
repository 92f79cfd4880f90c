//! Exported source code of integer models: C without undefined behaviour and, where asked, without float, with the bits of tha-core.

mod bits;
mod models;

#[path = "generated/engine16.rs"]
#[allow(dead_code, reason = "a firmware uses its part")]
mod engine16;

use bits::{compile, gives, written};
use models::files;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::fmt::Write as _;
use tha_core::build::{AlignedBytes, Core, Head, ModelSpec, Signal, Units};
use tha_core::integer::{Model, Output, State, Step, push, push_counts};
use tha_core::{NonFinitePolicy, RangePolicy};
use tha_train::{Dataset, QuantizeParams, export, quantize};

const SAMPLES: usize = 100_000;

/// The models of f32, and some of them with other policies, in integers.
fn integers() -> Vec<tha_train::Model> {
    let mut specs: Vec<ModelSpec> = files().into_iter().map(|(spec, _)| spec).collect();
    // Resonators in a row have different units, so integers take differences within one only.
    for feature in specs.iter_mut().flat_map(|spec| &mut spec.stage.features) {
        if let Signal::Section { section, output: 1 } = feature.plus {
            feature.minus = Some(Signal::Section { section, output: 0 });
        }
    }
    let other = |spec: &ModelSpec, range, non_finite| ModelSpec { range, non_finite, ..spec.clone() };
    specs.push(other(&specs[3], RangePolicy::Pass, NonFinitePolicy::Hold));
    specs.push(other(&specs[2], RangePolicy::Clamp, NonFinitePolicy::Hold));
    specs.push(other(&specs[7], RangePolicy::Extend, NonFinitePolicy::Refuse));
    specs.push(all_mapped(&specs[6]));
    specs.iter().map(in_integers).collect()
}

/// The mapped ones of the features only, and one head on them.
fn all_mapped(spec: &ModelSpec) -> ModelSpec {
    let mut spec = spec.clone();
    spec.stage.features.retain(|feature| !feature.nodes.is_empty());
    let features: Vec<usize> = (0..spec.stage.features.len()).collect();
    let q = 1 + spec.stage.features.iter().map(|feature| feature.nodes.len()).sum::<usize>();
    let core = |left: usize, right: usize| {
        let value = |k: usize| (k * k % 17) as f32 / 17.0 - 0.5;
        Core::new(left, q, right, (0..left * q * right).map(value).collect())
    };
    let cores = vec![core(2, 3), core(3, 1)];
    spec.heads =
        vec![Head { inputs: vec![0, 1, 2], outputs: 0..2, weights: vec![0.7, -1.2], features, cores }];
    spec
}

fn in_integers(spec: &ModelSpec) -> tha_train::Model {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut column = |low: f32, high: f32| {
        (0..600).map(|_| f64::from(low) + f64::from(high - low) * random.random::<f64>()).collect()
    };
    let u = spec.inputs.iter().map(|channel| column(channel.low, channel.high)).collect();
    let y = spec.outputs.iter().map(|_| column(-1.0, 1.0)).collect();
    let model = tha_train::Model::new(spec.clone());
    quantize(&model, &Dataset::new("random", u, y), &QuantizeParams::default()).expect("room for it").model
}

/// Physical units and counts in turn: in and out of range, NaN, infinities, enormous values, the ends of the counts, and now and then a square
/// wave from end to end, in the rhythm of the resonators.
fn samples(spec: &ModelSpec, random: &mut ChaCha8Rng) -> Vec<Vec<f32>> {
    let physical = |random: &mut ChaCha8Rng, low: f32, high: f32| match random.random_range(0..100) {
        0 => f32::NAN,
        1 => [f32::INFINITY, f32::NEG_INFINITY][random.random_range(0..2)],
        2 => [f32::MAX, f32::MIN, -0.0, 1e-45][random.random_range(0..4)],
        3 => 1e30 * random.random_range(-1.0..1.0),
        4..10 => low + (high - low) * 3.0 * random.random_range(-1.0..1.0),
        _ => low + (high - low) * random.random_range(0.0..1.0),
    };
    let counts = |random: &mut ChaCha8Rng| match random.random_range(0..20) {
        0 => [i16::MIN, i16::MAX, -i16::MAX, 0][random.random_range(0..4)],
        1..3 => random.random(),
        _ => random.random_range(-16000..16000),
    };
    let sample = |t: usize| {
        let wave = if t % 12 < 6 { 1 } else { -1 };
        let value = |channel: &tha_core::build::InputChannel| match (t / 400 % 4, by_counts(t)) {
            (3, true) => f32::from(if wave > 0 { i16::MAX } else { i16::MIN }),
            (3, false) => 1e9 * wave as f32,
            (_, true) => f32::from(counts(random)),
            (_, false) => physical(random, channel.low, channel.high),
        };
        spec.inputs.iter().map(value).collect()
    };
    (0..SAMPLES).map(sample).collect()
}

/// Ten samples in counts follow on ten in physical units.
fn by_counts(t: usize) -> bool {
    t / 10 % 2 == 1
}

/// Every flag that an output can have.
const ALL: u32 = 31;

fn flags(output: &Output<'_>) -> u32 {
    let f = output.flags;
    let bits = [f.out_of_range, f.window_out_of_range, f.held, f.window_held, f.overflow];
    bits.iter().enumerate().map(|(k, &set)| u32::from(set) << k).sum()
}

/// One line per sample, by tha-core: what came of it, flags, channel flags, outputs in counts or in bits. And the flags that were seen.
fn stream(model: &Model<'_>, samples: &[Vec<f32>]) -> (String, u32) {
    let mut state = State::<16, 512, 512>::new(model).unwrap();
    let (mut text, mut seen) = (String::new(), 0);
    for (t, u) in samples.iter().enumerate() {
        if t % 701 == 700 {
            state.reset();
        }
        let counts: Vec<i16> = u.iter().map(|&count| count as i16).collect();
        let step = match by_counts(t) {
            true => push_counts(model, &mut state, &counts),
            false => push(model, &mut state, u),
        };
        match step {
            Step::Warming { remaining } => writeln!(text, "{remaining}").unwrap(),
            Step::Refused(_) => writeln!(text, "-1").unwrap(),
            Step::Ready(output) => {
                seen |= flags(&output);
                write!(text, "0 {}", flags(&output)).unwrap();
                for c in output.channels {
                    let bits = u32::from(c.below()) + 2 * u32::from(c.above()) + 4 * u32::from(c.held());
                    write!(text, " {bits}").unwrap();
                }
                match by_counts(t) {
                    true => output.counts.iter().for_each(|y| write!(text, " {y}").unwrap()),
                    false => output.values().for_each(|y| write!(text, " {:08x}", y.to_bits()).unwrap()),
                }
                text.push('\n');
            }
        }
    }
    (text, seen)
}

/// The same by the exported C.
const MAIN_C: &str = r#"
#include "model.h"
#include <stdio.h>

int main(void)
{
    static model_state state;
    float u[MODEL_INPUTS], y[MODEL_OUTPUTS];
    int16_t counts[MODEL_INPUTS];
    int32_t z[MODEL_OUTPUTS];
    unsigned flags, t = 0;
    model_reset(&state);
    for (; fread(u, sizeof u, 1, stdin) == 1; t++) {
        int step, j, by_counts = t / 10 % 2 == 1;
        if (t % 701 == 700) model_reset(&state);
        for (j = 0; by_counts && j < MODEL_INPUTS; j++) counts[j] = (int16_t)u[j];
        step = by_counts ? model_push_counts(&state, counts, z, &flags) : model_push(&state, u, y, &flags);
        printf("%d", step);
        if (step == MODEL_READY) {
            printf(" %u", flags);
            for (j = 0; j < MODEL_INPUTS; j++) printf(" %u", (unsigned)state.channels[j]);
            for (j = 0; j < MODEL_OUTPUTS; j++) {
                union { float value; uint32_t bits; } b;
                b.value = y[j];
                if (by_counts) printf(" %ld", (long)z[j]);
                else printf(" %08lx", (unsigned long)b.bits);
            }
        }
        printf("\n");
    }
    return 0;
}
"#;

/// What C leaves undefined ends the program: overflows, shifts, conversions, and places outside of the tables.
const SANITIZED: [&str; 3] =
    ["-O1", "-fsanitize=undefined,float-cast-overflow,address", "-fno-sanitize-recover=all"];

#[test]
fn c_gives_the_bits_of_tha_core() {
    let mut seen = 0;
    for (k, model) in integers().iter().enumerate() {
        let folder = written(model, MAIN_C);
        let file = model.integers().expect("of integers");
        let samples = samples(model.spec(), &mut ChaCha8Rng::seed_from_u64(k as u64));
        let (expected, own) = stream(&file.model(), &samples);
        seen |= own;
        for options in [&SANITIZED[..], &["-O3"]] {
            println!("model {k}");
            if !gives(options, folder.path(), &samples, &expected) {
                return;
            }
        }
        // Without registers for floats a compiler refuses them.
        if cfg!(target_arch = "x86_64") {
            let none = ["-O2", "-mgeneral-regs-only", "-ffreestanding", "-DMODEL_NO_FLOAT", "-c", "model.c"];
            compile("cc", &none, folder.path());
        }
        let cortex = ["-mcpu=cortex-m0", "-mthumb", "-ffreestanding", "-O2", "-c", "model.c"];
        compile("arm-none-eabi-gcc", &cortex, folder.path());
    }
    assert_eq!(seen, ALL, "flags that no sample has tried");
}

/// `generated/engine16.rs` is what the export writes: it is compiled into this test. THA_BLESS=1 writes it anew.
#[test]
fn rust_compiles_and_takes_counts() {
    let units = Units {
        bits: 13,
        counts: vec![(0.0, 16000.0); 2],
        inputs: vec![1000.0; 2],
        heads: vec![vec![vec![100.0; 2], vec![1000.0; 3]]],
        ..Units::default()
    };
    let bytes = AlignedBytes::new(&files()[1].0.to_integers(&units).unwrap().0);
    let spec = ModelSpec::from_integers(&bytes).unwrap();
    let written = export::rust("engine16", &spec, &bytes).text;
    if std::env::var_os("THA_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generated/engine16.rs");
        std::fs::write(path, &written).unwrap();
        return;
    }
    assert!(written == include_str!("generated/engine16.rs"), "run with THA_BLESS=1 if the change is meant");

    let (model, expected) = (engine16::model().unwrap(), Model::parse(&bytes).unwrap());
    let mut state = engine16::ModelState::new(&model).unwrap();
    let mut other = State::<16, 512, 512>::new(&expected).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut outputs = 0;
    for _ in 0..1000 {
        let counts: [i16; engine16::INPUTS] = random.random();
        let found = push_counts(&model, &mut state, &counts).output();
        let expected = push_counts(&expected, &mut other, &counts).output();
        assert_eq!(found.map(|output| output.counts), expected.map(|output| output.counts));
        outputs += found.map_or(0, |output| output.counts.len());
    }
    assert!(outputs > 900 * engine16::OUTPUTS);
}
