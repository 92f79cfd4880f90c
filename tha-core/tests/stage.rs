//! Filters, features and maps: the stream against a plain computation, bit for bit, and what the flags and `swap` promise.

mod common;

use common::staged::{recompute, staged};
use common::{Room, flash, loaded, units};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use tha_core::build::{
    AlignedBytes, BuildError, Core, Feature, Filter, Head, ModelSpec, Resonator, Section, Signal, Source,
    Stage,
};
use tha_core::{Model, ParseError, RangePolicy, Step, Swap, SwapError, push};

proptest! {
    #[test]
    fn every_output_is_what_the_samples_make(
        seed in any::<u64>(), inputs in 1usize..4, outputs in 1usize..3, memory in 1usize..4,
    ) {
        let spec = staged(seed, inputs, outputs, memory);
        let bytes = flash(&spec);
        prop_assert_eq!(&ModelSpec::from_bytes(&bytes).unwrap(), &spec);
        let model = Model::parse(&bytes).unwrap();
        let mut state = Room::new(&model).unwrap();
        let (mut random, mut samples) = (ChaCha8Rng::seed_from_u64(seed), Vec::new());
        for t in 1..spec.settled() + 5 {
            let u = units(&mut random, inputs);
            samples.push(u.clone());
            match push(&model, &mut state, &u) {
                Step::Warming { remaining } => prop_assert_eq!(remaining, spec.settled() - t),
                Step::Ready(output) => {
                    prop_assert!(t >= spec.settled());
                    let bits = |y: &[f32]| y.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
                    prop_assert_eq!(bits(output.y), bits(&recompute(&spec, &samples)));
                }
                Step::Refused(error) => panic!("{error}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// What is accepted after a change of any byte runs, and has an owned form that writes the same model again.
    #[test]
    fn changed_files_are_refused_or_run(
        seed in 0u64..50, place in any::<prop::sample::Index>(), byte in any::<u8>(), word in any::<bool>(),
    ) {
        let bytes = staged(seed, 2, 2, 2).to_bytes().unwrap();
        let changed = common::patched(&bytes, |bytes| {
            let at = 16 + place.index(bytes.len() - 20);
            bytes[at] = byte;
            if word {
                bytes[at + 1..at + 4].fill(if byte > 127 { 255 } else { 0 });
            }
        });
        let file = AlignedBytes::new(&changed);
        let Ok(model) = Model::parse(&file) else { return Ok(()) };
        let spec = ModelSpec::from_model(&model);
        let again = spec.to_bytes().expect("an accepted model can be written");
        prop_assert_eq!(&ModelSpec::from_bytes(&again).unwrap(), &spec);
        let Ok(mut state) = Room::new(&model) else { return Ok(()) };
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..20 {
            push(&model, &mut state, &units(&mut random, 2));
        }
    }
}

/// One input, one output, the given features and a linear head over their rows.
fn linear(sections: Vec<Section>, features: Vec<Feature>, rows: Vec<f32>) -> ModelSpec {
    let mut spec = staged(1, 1, 1, 1);
    (spec.inputs[0].offset, spec.inputs[0].gain) = (0.0, 1.0);
    (spec.inputs[0].low, spec.inputs[0].high) = (-1.0, 1.0);
    (spec.outputs[0].offset, spec.outputs[0].scale) = (0.0, 1.0);
    spec.range = RangePolicy::Pass;
    let used = (0..features.len()).collect();
    spec.stage = Stage { sections, features, ..Stage::default() };
    spec.stage.settle();
    let core = Core::new(1, rows.len(), 1, rows);
    spec.heads = vec![Head { features: used, ..Head::from_cores(vec![0], 1.0, vec![core]) }];
    spec
}

fn average(alpha: f32) -> Section {
    Section { source: Source::Input(0), filter: Filter::Average { alpha } }
}

fn plain(section: usize, output: usize) -> Feature {
    Feature {
        plus: Signal::Section { section, output },
        minus: None,
        low: -1.0,
        high: 1.0,
        nodes: Vec::new(),
    }
}

fn stream(spec: &ModelSpec, samples: &[f32]) -> Vec<f32> {
    let model = loaded(spec);
    let mut state = Room::new(&model).unwrap();
    let y = |u: &f32| push(&model, &mut state, &[*u]).output().map_or(f32::NAN, |output| output.y[0]);
    samples.iter().map(y).collect()
}

#[test]
fn an_average_is_a_running_mean_until_it_is_exponential() {
    let mut spec = linear(vec![average(0.25)], vec![plain(0, 0)], vec![0.0, 1.0]);
    assert_eq!((spec.settled(), spec.felt()), (4, 29), "1 / 0.25, and 0.75^29 < 2 / 8000");
    spec.stage.settled = 0;
    let y = stream(&spec, &[4.0, 2.0, 6.0, 8.0, 0.0, 0.0]);
    let fifth = 5.0 * 0.75;
    assert_eq!(y, [4.0, 3.0, 4.0, 5.0, fifth, fifth * 0.75]);
}

/// The outputs of a chain of resonators to an impulse are orthonormal, in f32 as in theory, and no larger than they say.
#[test]
fn resonators_are_orthonormal() {
    let resonator = Resonator::new(0.5, 0.7);
    let filter = Filter::Resonator(resonator);
    assert!(resonator.pole().iter().zip([0.5, 0.7]).all(|(a, b)| (a - b).abs() < 1e-7));
    // Near the real axis, and near 1, f32 still has a pair of poles that is nearly that.
    for (re, im) in [(0.01, 1e-7), (0.99, 1e-5), (0.999, 1e-6), (-0.99, 1e-5), (0.99999, 1e-4)] {
        let near = Resonator::new(re, im);
        let [a, b] = near.pole();
        assert!(
            (a - re).abs() < 1e-6 && b > 0.0 && b < im + 3e-5 && near.growth().is_finite(),
            "{re} {im}: {a} {b}"
        );
    }
    let sections = (0..3).map(|k| match k {
        0 => Section { source: Source::Input(0), filter },
        _ => Section { source: Source::Section(k - 1), filter },
    });
    let sections: Vec<Section> = sections.collect();
    let mut impulse = vec![0.0f32; 400];
    impulse[0] = 1.0;
    let responses: Vec<Vec<f32>> = (0..6)
        .map(|k| {
            let mut spec = linear(sections.clone(), vec![plain(k / 2, k % 2)], vec![0.0, 1.0]);
            assert!((45..120).contains(&spec.settled()), "{}", spec.settled());
            spec.stage.settled = 0;
            stream(&spec, &impulse)
        })
        .collect();
    for (i, a) in responses.iter().enumerate() {
        for (j, b) in responses.iter().enumerate() {
            let product: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            assert!((product - f32::from(u8::from(i == j))).abs() < 1e-5, "{i} {j}: {product}");
        }
        // What a chain passes on is as large as what comes in, as a sum of squares.
        let most: f32 = a.iter().map(|a| a.abs()).sum();
        assert!(i > 1 || f64::from(most) <= resonator.growth(), "{most}");
    }
}

#[test]
fn maps_are_linear_between_nodes_and_constant_outside() {
    let lag = Signal::Lag { input: 0, lag: 0 };
    let feature = Feature { plus: lag, minus: None, low: -1.0, high: 2.0, nodes: vec![-1.0, 0.0, 2.0] };
    let spec = linear(vec![], vec![feature], vec![10.0, 3.0, 5.0, -1.0]);
    let y = stream(&spec, &[-9.0, -1.0, -0.5, 0.0, 1.0, 2.0, 9.0]);
    assert_eq!(y, [13.0, 13.0, 14.0, 15.0, 12.0, 9.0, 9.0]);
}

#[test]
fn policies_outside_the_range() {
    // The linear part goes on from 2 to 6, where the feature is as far outside as its range is wide.
    for (range, expected) in [
        (RangePolicy::Pass, [5.0, 10.0, -10.0]),
        (RangePolicy::Clamp, [2.0, 2.0, -2.0]),
        (RangePolicy::Extend, [2.75, 3.0, -3.0]),
    ] {
        let feature = Feature { low: -2.0, high: 2.0, ..plain(0, 0) };
        let mut spec = linear(vec![average(1.0)], vec![feature], vec![0.0, 1.0]);
        spec.range = range;
        spec.stage.linear = vec![0.25];
        for (u, expected) in [5.0, 10.0, -10.0].into_iter().zip(expected) {
            assert_eq!(stream(&spec, &[u]), [expected]);
        }
    }
}

#[test]
fn a_bad_sample_is_flagged_as_long_as_it_is_felt() {
    let spec =
        linear(vec![average(0.25)], vec![Feature { low: -1e9, high: 1e9, ..plain(0, 0) }], vec![0.0, 1.0]);
    let model = loaded(&spec);
    // 3 is just out of range; 1000 is seven doublings beyond 4, the largest that counts is 2^40: a tenth longer for each.
    for (bad, flagged) in [(3.0, 25), (f32::NAN, 25), (1000.0, 25 + 7 * 3), (f32::MAX, 25 + 38 * 3)] {
        let mut state = Room::new(&model).unwrap();
        state.prime(&model, &[0.5; 10]).unwrap();
        let mut count = 0;
        for t in 0..200 {
            let output = push(&model, &mut state, &[if t == 0 { bad } else { 0.5 }]).output().unwrap();
            assert!(output.y[0].is_finite());
            assert_eq!(output.flags.out_of_range || output.flags.held, t == 0);
            count += usize::from(output.flags.any());
            assert!(output.flags.any() || (output.y[0] - 0.5).abs() < 0.01, "{bad} at {t}: {}", output.y[0]);
        }
        assert_eq!(count, flagged, "{bad}");
    }
}

#[test]
fn swap_keeps_filters_that_are_the_same_and_says_so() {
    let spec = linear(vec![average(0.25)], vec![plain(0, 0)], vec![0.0, 1.0]);
    let mut twice = spec.clone();
    twice.heads[0].cores[0].data[1] = 2.0;
    let mut slower = spec.clone();
    slower.stage.sections = vec![average(0.125)];
    let mut rescaled = spec.clone();
    rescaled.inputs[0].gain = 2.0;
    let models = [&spec, &twice, &slower, &rescaled].map(loaded);
    let warm = || {
        let mut state = Room::new(&models[0]).unwrap();
        state.prime(&models[0], &[0.5; 5]).unwrap();
        state
    };
    let mut state = warm();
    assert_eq!(state.swap(&models[1]), Ok(Swap::Kept));
    assert_eq!(push(&models[1], &mut state, &[0.5]).output().unwrap().y, [1.0]);
    for model in &models[2..] {
        let mut state = warm();
        assert_eq!(state.swap(model), Ok(Swap::Restarted));
        assert_eq!(push(model, &mut state, &[0.5]), Step::Warming { remaining: 3 });
    }

    // Another memory is refused, and the old model goes on as if nothing had been.
    let longer = loaded(&ModelSpec { memory: spec.memory + 1, ..spec.clone() });
    let mut state = warm();
    let (what, memory) = ("samples of memory", spec.memory);
    let refused = Err(SwapError::Shape { what, state: memory, model: memory + 1 });
    assert_eq!(state.swap(&longer), refused);
    assert_eq!(push(&models[0], &mut state, &[0.5]).output().unwrap().y, [0.5]);
}

#[test]
fn what_is_not_stable_not_there_or_out_of_order_is_refused() {
    let good = || staged(3, 2, 1, 2);
    let refuse = |change: &dyn Fn(&mut ModelSpec)| {
        let mut spec = good();
        change(&mut spec);
        spec.to_bytes().unwrap_err()
    };
    let refused = |change: &dyn Fn(&mut ModelSpec)| match refuse(change) {
        BuildError::Refused(error) => error,
        other => panic!("{other}"),
    };
    let set = |k: usize, filter: Filter| move |s: &mut ModelSpec| s.stage.sections[k].filter = filter;
    for alpha in [0.0, -0.1, 1.1, f32::NAN] {
        assert!(matches!(refused(&set(0, Filter::Average { alpha })), ParseError::Section { run: 0 }));
    }
    // Poles on the circle, outside, a real one outside, and what is no number.
    for state in
        [[0.8, -0.6, 0.6, 0.8], [1.0, -0.5, 0.5, 1.0], [0.9, 0.4, 0.4, 0.9], [0.5, -0.5, f32::NAN, 0.5]]
    {
        let filter = Filter::Resonator(Resonator { state, gain: 1.0, all_pass: [1.0; 3] });
        assert!(matches!(refused(&set(4, filter)), ParseError::Section { .. }), "{state:?}");
    }
    for last in [f32::NAN, f32::INFINITY] {
        let state = Resonator::new(0.5, 0.5).state;
        let filter = Filter::Resonator(Resonator { state, gain: 1.0, all_pass: [1.0, 1.0, last] });
        assert!(matches!(refused(&set(4, filter)), ParseError::Section { .. }), "{last}");
    }
    let last = good().stage.features.len() - 1;
    for nodes in [vec![0.0], vec![0.0, 0.0], vec![1.0, 0.0], vec![f32::MIN, f32::MAX]] {
        let error = refused(&|s: &mut ModelSpec| {
            // As many rows as before, so that the cores still fit.
            let rows = s.stage.features[last].rows();
            let mut other = nodes.clone();
            other.resize(rows, other[0]);
            s.stage.features[last].nodes = other;
        });
        assert!(matches!(error, ParseError::Nodes { .. }), "{error}");
    }
    assert!(matches!(refused(&|s| s.stage.features[0].low = 2.0), ParseError::Feature { feature: 0 }));
    let other_input = |s: &mut ModelSpec| {
        s.stage.features[0].plus = Signal::Lag { input: 0, lag: 0 };
        s.stage.features[0].minus = Some(Signal::Section { section: 1, output: 0 });
    };
    assert!(matches!(refused(&other_input), ParseError::Feature { feature: 0 }));
    assert!(matches!(refused(&|s| s.heads[0].inputs = vec![0]), ParseError::HeadFeature { head: 0, .. }));
    assert!(matches!(
        refuse(&|s| s.stage.sections[0].source = Source::Section(0)),
        BuildError::Source { what: "section", index: 0 }
    ));
    assert!(matches!(
        refuse(&|s| s.stage.features[0].plus = Signal::Section { section: 0, output: 1 }),
        BuildError::Source { what: "feature", index: 0 }
    ));
    assert!(matches!(
        refuse(&|s| s.stage.features[0].plus = Signal::Lag { input: 0, lag: 2 }),
        BuildError::Source { .. }
    ));
    assert!(matches!(refuse(&|s| s.stage.features.reverse()), BuildError::FeatureOrder { .. }));
    assert!(matches!(refuse(&|s| s.stage.linear = vec![1.0]), BuildError::Linear { found: 1, .. }));
}

/// An average with alpha = 1/2 halves what bad samples have left with every sample: it is felt until that is a thousandth of an
/// eighth of the range, or of the narrowest cell.
#[test]
fn a_steep_map_feels_a_sample_longer() {
    let felt = |nodes: Vec<f32>| {
        let rows = vec![1.0; 1 + nodes.len().max(1)];
        linear(vec![average(0.5)], vec![Feature { nodes, ..plain(0, 0) }], rows).felt()
    };
    assert_eq!(felt(vec![]), 12); // 2^-12 < 2 / 8000 < 2^-11
    assert_eq!(felt(vec![-1.0, 1.0]), 12);
    assert_eq!(felt(vec![-1.0, 0.0, 1.0 / 64.0]), 16); // 2^-16 < 2^-6 / 1000 < 2^-15
}
