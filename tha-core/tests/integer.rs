//! Models of 16-bit integers: no sum can overflow whatever comes, the parser finds by one what could, the device gives what the file
//! means, averages have no dead zone, and the state behaves as that of f32.

mod common;

use common::{Dimensions, patched, random_spec};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::{
    AlignedBytes, Core, Feature, Filter, Head, ModelSpec, Section, Signal, Source, Stage, Units,
};
use tha_core::integer::{Model, State, Step, push, push_counts};
use tha_core::{NonFinitePolicy, ParseError, PushError, RangePolicy, Swap, SwapError};

type Room = State<8, 512, 1024>;

/// Units by the largest that everything can be: no vector is ever limited in the training range.
fn units(spec: &ModelSpec, bits: u32) -> Units {
    let one = f64::from(1u32 << bits);
    let staged = !spec.stage.features.is_empty();
    let input = |channel: &tha_core::build::InputChannel| {
        let end = |end: f32| f64::from((end - channel.offset) * channel.gain).abs();
        if staged { 8000.0 } else { 0.5 * one / end(channel.low).max(end(channel.high)) }
    };
    let most = |feature: &Feature| {
        let ends = [feature.low.abs(), feature.high.abs()];
        f64::from(ends.into_iter().chain(feature.nodes.iter().map(|node| node.abs())).fold(1e-3, f32::max))
    };
    let unit =
        |feature: &Feature| (if feature.nodes.is_empty() { 0.5 * one } else { 32000.0 }) / most(feature);
    let gauges = |head: &Head| {
        let mut right = vec![1.0];
        let mut all: Vec<Vec<f64>> = Vec::new();
        for core in head.cores.iter().rev() {
            let sum = |a: usize, b: usize| -> f64 {
                (0..core.q).map(|i| f64::from(core.data[(a * core.q + i) * core.right + b]).abs() * 4.0).sum()
            };
            let row = |a: usize| right.iter().enumerate().map(|(b, v)| sum(a, b) * v).sum::<f64>();
            right = (0..core.left).map(row).collect();
            all.insert(0, right.iter().map(|v| 32000.0 / v).collect());
        }
        all
    };
    Units {
        bits,
        counts: spec.inputs.iter().map(|_| (0.0, 16000.0)).collect(),
        inputs: spec.inputs.iter().map(input).collect(),
        features: spec.stage.features.iter().map(unit).collect(),
        heads: spec.heads.iter().map(gauges).collect(),
        ..Units::default()
    }
}

fn file(spec: &ModelSpec, bits: u32) -> AlignedBytes {
    AlignedBytes::new(&spec.to_integers(&units(spec, bits)).expect("the test's model is valid").0)
}

/// With filters and maps; integers have no differences of what resonators give in units of their own.
fn staged(seed: u64) -> ModelSpec {
    let mut spec = common::staged::staged(seed, 2, 2, 2);
    let sections = &spec.stage.sections;
    let resonates = |signal: Signal| match signal {
        Signal::Section { section, .. } => matches!(sections[section].filter, Filter::Resonator(_)),
        Signal::Lag { .. } => false,
    };
    for feature in &mut spec.stage.features {
        feature.minus = feature.minus.filter(|&minus| !resonates(minus) && !resonates(feature.plus));
    }
    spec
}

const SIZE: Dimensions = Dimensions { inputs: 3, outputs: 2, memory: 3, degree: 3, heads: 2, max_rank: 5 };

fn lags(seed: u64) -> ModelSpec {
    random_spec(seed, SIZE)
}

proptest! {
    // Overflow would panic here: tests are built with the checks. Counts at their ends, with signs that follow those of the coefficients of one
    // sum after the other, make every sum as large as it gets.
    #[test]
    fn no_sum_overflows_for_any_input(seed in any::<u64>(), filters in any::<bool>(), bits in 8u32..=14) {
        let spec = if filters { staged(seed) } else { lags(seed) };
        let bytes = file(&spec, bits);
        let model = Model::parse(&bytes).unwrap();
        let mut state = Room::new(&model).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let p = spec.inputs.len();
        let mut samples: Vec<Vec<i16>> = Vec::new();
        for head in model.heads().filter(|head| head.features.is_empty()) {
            for (k, ranks) in head.ranks.windows(2).enumerate() {
                for sum in 0..ranks[0] * ranks[1] {
                    let (_, own) = head.sum(k, (sum / ranks[1]) as usize, (sum % ranks[1]) as usize).unwrap();
                    let own: Vec<i16> = own.collect();
                    // Oldest first.
                    for lag in (0..spec.memory).rev() {
                        let mut row = vec![i16::MIN; p];
                        for (i, &input) in head.inputs.iter().enumerate() {
                            let positive = own[lag * head.inputs.len() + i] >= 0;
                            row[usize::from(input)] = if positive { i16::MAX } else { i16::MIN };
                        }
                        samples.push(row);
                    }
                }
            }
        }
        for _ in 0..300 {
            samples.push((0..p).map(|_| [i16::MIN, i16::MAX, random.random()][random.random_range(0..3)]).collect());
        }
        for policy in [RangePolicy::Pass, RangePolicy::Clamp, RangePolicy::Extend] {
            state.set_range_policy(Some(policy));
            for row in &samples {
                prop_assert!(!matches!(push_counts(&model, &mut state, row), Step::Refused(_)));
            }
        }
    }

    #[test]
    fn the_device_gives_what_the_file_means(seed in any::<u64>()) {
        // Of random maps some are steeper than 16 bits can follow: what filters and maps lose is tested with models of data.
        let spec = lags(seed);
        let bytes = file(&spec, 13);
        let model = Model::parse(&bytes).unwrap();
        let meaning = ModelSpec::from_integers(&bytes).unwrap();
        prop_assert_eq!((meaning.settled(), meaning.felt(), meaning.range), (spec.settled(), spec.felt(), spec.range));
        let words = common::flash(&meaning);
        let float = tha_core::Model::parse(&words).unwrap();
        let (mut state, mut other) = (Room::new(&model).unwrap(), common::Room::new(&float).unwrap());
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..spec.settled() + 40 {
            let u: Vec<f32> = spec.inputs.iter().map(|c| random.random_range(c.low..=c.high)).collect();
            let (a, b) = (push(&model, &mut state, &u), tha_core::push(&float, &mut other, &u));
            let (Some(a), Some(b)) = (a.output(), b.output()) else { continue };
            prop_assert!(!a.flags.any());
            for (j, (a, b)) in a.values().zip(b.y).enumerate() {
                // Sixteen bits of everything: a few thousandths of what the heads can say at most.
                let most: f32 = model.heads().map(|head| {
                    let own = j.checked_sub(head.outputs().start).and_then(|own| head.weights.get(own));
                    own.map_or(0.0, |weight| f32::from(*weight).abs() * 32768.0)
                }).sum::<f32>() * model.units()[j].unit;
                prop_assert!((a - b).abs() < 0.02 * most, "{a} {b} {most}");
            }
        }
    }
}

#[test]
fn what_could_overflow_by_one_is_refused() {
    let spec = lags(3);
    let bytes = file(&spec, 12);
    let model = Model::parse(&bytes).unwrap();
    let head = model.heads().next().unwrap();
    let (constant, own) = head.sum(head.shifts.len() - 1, 0, 0).unwrap();
    let size: u32 = own.map(|w| u32::from(w.unsigned_abs())).sum::<u32>() << 12;
    let at = head.constants.as_ptr() as usize - bytes.as_ptr() as usize;
    assert_eq!(bytes[at..at + 4], constant.to_le_bytes());
    let with = |constant: i32| {
        let patched = patched(&bytes, |b| b[at..at + 4].copy_from_slice(&constant.to_le_bytes()));
        Model::parse(&AlignedBytes::new(&patched)).err()
    };
    let most = (i32::MAX as u32 - size) as i32;
    assert_eq!(with(most), None);
    assert_eq!(with(-most), None);
    assert_eq!(with(most + 1), Some(ParseError::Overflow { head: 0, sum: 0 }));
    assert_eq!(with(-most - 1), Some(ParseError::Overflow { head: 0, sum: 0 }));
}

#[test]
fn weights_of_the_heads_that_could_overflow_together_are_refused() {
    let bytes = file(&lags(3), 12);
    let model = Model::parse(&bytes).unwrap();
    let base = bytes.as_ptr() as usize;
    let heads: Vec<usize> = model.heads().map(|head| head.weights.as_ptr() as usize - base).collect();
    // Two heads: 2^16 weights of 2^15 make 2^31.
    let with = |weights: [i16; 2]| {
        let patched = patched(&bytes, |bytes| {
            for (at, weight) in heads.iter().zip(weights) {
                bytes[*at..*at + 2].copy_from_slice(&weight.to_le_bytes());
            }
        });
        Model::parse(&AlignedBytes::new(&patched)).err()
    };
    assert_eq!(with([i16::MAX, i16::MIN]), None);
    assert_eq!(with([i16::MIN, i16::MIN]), Some(ParseError::Overflow { head: 2, sum: 0 }));
}

#[test]
fn readers_refuse_the_other_kind_of_numbers() {
    let spec = lags(1);
    let (integers, floats) = (file(&spec, 14), common::flash(&spec));
    assert_eq!(tha_core::Model::parse(&integers).err(), Some(ParseError::Numbers { found: 1 }));
    assert_eq!(Model::parse(&floats).err(), Some(ParseError::Numbers { found: 0 }));
}

/// An average with the time constant T as the only feature, in front of y = x.
fn average(constant: f64) -> ModelSpec {
    let mut spec = lags(0);
    spec.inputs.truncate(1);
    spec.outputs.truncate(1);
    (spec.inputs[0].offset, spec.inputs[0].gain) = (0.0, 1.0);
    (spec.memory, spec.interval) = (1, None);
    let alpha = (1.0 - (-1.0 / constant).exp()) as f32;
    let plus = Signal::Section { section: 0, output: 0 };
    spec.stage = Stage {
        sections: vec![Section { source: Source::Input(0), filter: Filter::Average { alpha } }],
        features: vec![Feature { plus, minus: None, low: -1.0, high: 1.0, nodes: Vec::new() }],
        ..Stage::default()
    };
    spec.stage.settle();
    let core = Core::new(1, 2, 1, vec![0.0, 1.0]);
    spec.heads = vec![Head { features: vec![0], ..Head::from_cores(vec![0], 1.0, vec![core]) }];
    spec
}

/// From any start an average reaches a constant input up to T / 2^16 of a unit of x, and stays.
#[test]
fn an_average_has_no_dead_zone() {
    for constant in [1.0, 30.0, 1024.0] {
        let spec = average(constant);
        let bytes = file(&spec, 14);
        let model = Model::parse(&bytes).unwrap();
        let mut state = State::<1, 16, 16>::new(&model).unwrap();
        for (from, to) in [(12000, -3), (-12000, 4000), (0, 1)] {
            let mut said = Vec::new();
            let samples = (30.0 * constant) as usize;
            for t in 0..2 * samples {
                let count = if t < samples { from } else { to };
                said.extend(
                    push_counts(&model, &mut state, &[count]).output().map(|output| output.counts[0]),
                );
            }
            // The output for this constant from the start: the running mean is exact.
            let mut fresh = State::<1, 16, 16>::new(&model).unwrap();
            let settled = (0..model.settled())
                .filter_map(|_| push_counts(&model, &mut fresh, &[to]).output().map(|o| o.counts[0]));
            let exact = settled.last().unwrap();
            // One unit of x in counts of the output.
            let unit = f64::from(model.heads().next().unwrap().weights[0]) * 4.0;
            let off = f64::from(*said.last().unwrap() - exact).abs();
            assert!(off <= unit, "T {constant}, to {to}: {off} of {unit}");
            let quiet = &said[said.len() - 20..];
            assert!(quiet.iter().all(|y| y == &quiet[0]), "T {constant}: no limit cycle");
        }
    }
}

#[test]
fn bad_samples_are_held_or_refused_and_flagged() {
    let mut spec = lags(5);
    let bytes = file(&spec, 14);
    let model = Model::parse(&bytes).unwrap();
    let (mut held, mut clean) = (Room::new(&model).unwrap(), Room::new(&model).unwrap());
    for _ in 0..4 {
        push(&model, &mut held, &[0.1, 0.2, 0.3]);
        push(&model, &mut clean, &[0.1, 0.2, 0.3]);
    }
    let output = push(&model, &mut held, &[f32::NAN, f32::INFINITY, 0.3]);
    let expected = push(&model, &mut clean, &[0.1, 0.2, 0.3]).output().unwrap();
    let output = output.output().unwrap();
    assert_eq!(output.counts, expected.counts);
    assert!(output.flags.held && output.flags.window_held && !expected.flags.any());
    assert!(output.channels[0].held() && output.channels[1].held() && !output.channels[2].held());

    // Far outside of everything: the ends of the counts, flagged as long as it is felt.
    let output = push(&model, &mut held, &[0.1, -1e30, 0.3]).output().unwrap();
    assert!(output.flags.out_of_range && output.channels[1].below());
    for age in 1..=spec.memory {
        let output = push(&model, &mut held, &[0.1, 0.2, 0.3]).output().unwrap();
        assert_eq!(output.flags.window_out_of_range, age < spec.memory);
    }
    assert_eq!(push(&model, &mut held, &[0.1]), Step::Refused(PushError::Inputs { expected: 3, found: 1 }));
    let mut empty = Room::empty();
    assert_eq!(push_counts(&model, &mut empty, &[0; 3]), Step::Refused(PushError::OtherModel));

    spec.non_finite = NonFinitePolicy::Refuse;
    let bytes = file(&spec, 14);
    let model = Model::parse(&bytes).unwrap();
    let mut state = Room::new(&model).unwrap();
    let refused = push(&model, &mut state, &[0.0, f32::NAN, 0.0]);
    assert_eq!(refused, Step::Refused(PushError::NonFinite { channel: 1 }));
}

#[test]
fn a_swap_goes_on_where_the_counts_mean_the_same() {
    for seed in 0..6 {
        let spec = if seed % 2 == 0 { lags(seed) } else { staged(seed) };
        let mut next = spec.clone();
        for weight in next.heads.iter_mut().flat_map(|head| &mut head.weights) {
            *weight *= 0.9;
        }
        let files = [file(&spec, 13), file(&next, 12)];
        let models: Vec<Model<'_>> = files.iter().map(|file| Model::parse(file).unwrap()).collect();
        let (mut state, mut always) = (Room::new(&models[0]).unwrap(), Room::new(&models[1]).unwrap());
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut sample =
            || -> Vec<i16> { (0..spec.inputs.len()).map(|_| random.random_range(-9000..9000)).collect() };
        let samples: Vec<Vec<i16>> = (0..spec.settled() + 20).map(|_| sample()).collect();
        let (first, rest) = samples.split_at(spec.settled() + 3);
        state.prime(&models[0], &first.concat()).unwrap();
        always.prime(&models[1], &first.concat()).unwrap();
        assert_eq!(state.swap(&models[1]), Ok(Swap::Kept));
        for row in rest {
            let (a, b) =
                (push_counts(&models[1], &mut state, row), push_counts(&models[1], &mut always, row));
            assert_eq!(a, b);
        }
        let mut units = units(&spec, 13);
        units.counts[0].1 = 8000.0;
        let other = AlignedBytes::new(&spec.to_integers(&units).unwrap().0);
        assert_eq!(state.swap(&Model::parse(&other).unwrap()), Ok(Swap::Restarted));
        assert!(state.warming() > 0);
        if seed % 2 == 0 {
            let other = file(&random_spec(9, Dimensions { outputs: 1, ..SIZE }), 13);
            let refused = state.swap(&Model::parse(&other).unwrap());
            assert!(matches!(refused, Err(SwapError::Shape { what: "outputs", .. })));
        }
    }
}

#[test]
fn truncations_and_flipped_bits_never_panic() {
    let bytes = file(&staged(2), 13);
    let mut random = ChaCha8Rng::seed_from_u64(0);
    for cut in 0..bytes.len() {
        assert!(Model::parse(&AlignedBytes::new(&bytes[..cut])).is_err());
    }
    let mut taken = 0;
    for _ in 0..5_000 {
        let (at, bit) = (random.random_range(16..bytes.len()), random.random_range(0..8));
        let flipped = AlignedBytes::new(&patched(&bytes, |bytes| bytes[at] ^= 1 << bit));
        let Ok(model) = Model::parse(&flipped) else { continue };
        let Ok(mut state) = Room::new(&model) else { continue };
        for _ in 0..model.settled().min(500) + 2 {
            taken += usize::from(push_counts(&model, &mut state, &[i16::MAX, i16::MIN]).output().is_some());
        }
    }
    assert!(taken > 1000);
}

/// Filters, features, maps and the linear part come back from a file as they were, up to the rounding of their numbers.
#[test]
fn the_meaning_of_a_file_has_the_same_stage() {
    for seed in 0..20 {
        let spec = staged(seed);
        let meaning = ModelSpec::from_integers(&file(&spec, 13)).unwrap();
        let (a, b) = (&meaning.stage, &spec.stage);
        assert_eq!(
            (meaning.settled(), meaning.felt(), meaning.range),
            (spec.settled(), spec.felt(), spec.range)
        );
        assert_eq!((a.sections.len(), a.linear.len()), (b.sections.len(), b.linear.len()));
        for (a, b) in a.sections.iter().zip(&b.sections) {
            assert_eq!(a.source, b.source);
            match (a.filter, b.filter) {
                (Filter::Average { alpha: a }, Filter::Average { alpha: b }) => {
                    assert!((a / b - 1.0).abs() < 1e-5)
                }
                (Filter::Resonator(a), Filter::Resonator(b)) => {
                    for (a, b) in a.state.iter().chain(&a.all_pass).zip(b.state.iter().chain(&b.all_pass)) {
                        assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{a} {b}");
                    }
                }
                filters => panic!("{filters:?}"),
            }
        }
        for (a, b) in a.features.iter().zip(&b.features) {
            assert_eq!((a.plus, a.minus, a.nodes.len()), (b.plus, b.minus, b.nodes.len()));
        }
    }
}

/// Coefficients of resonators that are far too large are refused, and no sum of the check overflows.
#[test]
fn resonators_of_any_size_are_refused_or_stable() {
    let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format4.tha")).unwrap();
    let third_run = 40 + 16 + 4 * (1 + 2 * 5 + 2 * 3 + 2 * 2 + 2 * 12);
    assert_eq!(bytes[third_run], 3);
    let parse = |at: &[usize], value: i32| {
        let change = |bytes: &mut Vec<u8>| {
            at.iter().for_each(|at| bytes[third_run + at..][..4].copy_from_slice(&value.to_le_bytes()));
        };
        Model::parse(&AlignedBytes::new(&patched(&bytes, change))).map(|_| ())
    };
    // c11, c12, c21 and c22.
    let matrix = [12, 16, 24, 28];
    assert_eq!(parse(&[], 0), Ok(()));
    for value in [i32::MIN, i32::MAX, (1 << 30) + 1, -(1 << 30) - 1] {
        for at in [&matrix[..], &matrix[..1], &matrix[3..], &[12, 28], &[16, 24]] {
            assert!(matches!(parse(at, value), Err(ParseError::Section { run: 2 })), "{value} at {at:?}");
        }
    }
    assert_eq!(parse(&matrix, 0), Ok(()), "a filter of two samples");
}

/// A file of format 4 with filters, features, maps and a linear part: it must parse, and give these outputs, for ever. THA_BLESS=1 writes it.
#[test]
fn a_file_of_integers_still_reads() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format4.tha");
    let seed = (0..).find(|&seed| staged(seed).range == RangePolicy::Extend).unwrap();
    let spec = staged(seed);
    let written = spec.to_integers(&units(&spec, 13)).unwrap().0;
    if std::env::var_os("THA_BLESS").is_some() {
        std::fs::write(path, &written).unwrap();
    }
    let flash = AlignedBytes::new(&std::fs::read(path).unwrap());
    assert_eq!(*flash, written[..]);
    let model = Model::parse(&flash).unwrap();
    let mut state = Room::new(&model).unwrap();
    let mut last = Vec::new();
    for t in 0..100i16 {
        let step = push_counts(&model, &mut state, &[160 * t, 16_000 - 320 * t]);
        last = step.output().map(|output| output.counts.to_vec()).unwrap_or_default();
    }
    assert_eq!(last, FORMAT4);
}

const FORMAT4: [i32; 2] = [398_592, 8396];
