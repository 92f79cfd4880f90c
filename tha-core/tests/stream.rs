//! The stream against windows computed directly, bit for bit, and from a specification to bytes and back.

mod common;

use common::staged::recompute;
use common::{Dimensions, Room, flash, loaded, random_spec, units};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::ModelSpec;
use tha_core::{NonFinitePolicy, PushError, RangePolicy, State, Step, push};

/// What `push` says, compared with the last M samples of `history` (oldest first).
fn check(step: Step<'_>, spec: &ModelSpec, history: &[Vec<f32>]) {
    if history.len() < spec.memory {
        assert_eq!(step, Step::Warming { remaining: spec.memory - history.len() });
        return;
    }
    let output = step.output().expect("warm");
    let bits = |y: &[f32]| y.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(output.y), bits(&recompute(spec, history)));
}

fn remember(history: &mut Vec<Vec<f32>>, u: Vec<f32>, memory: usize) {
    history.push(u);
    history.drain(..history.len().saturating_sub(memory));
}

proptest! {
    #[test]
    fn every_output_is_its_window(
        seed in any::<u64>(), inputs in 1usize..8, outputs in 1usize..4, memory in 1usize..6, degree in 1usize..6,
        heads in 1usize..5, max_rank in 1usize..12, clamp in any::<bool>(), note in "\\PC*",
    ) {
        let mut spec = random_spec(seed, Dimensions { inputs, outputs, memory, degree, heads, max_rank });
        spec.range = if clamp { RangePolicy::Clamp } else { RangePolicy::Pass };
        spec.provenance.note = note;
        let bytes = spec.to_bytes().unwrap();
        let back = ModelSpec::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&back, &spec);
        prop_assert_eq!(back.to_bytes().unwrap(), bytes);
        let model = loaded(&spec);
        let mut state = Room::new(&model).unwrap();
        let (mut random, mut history) = (ChaCha8Rng::seed_from_u64(seed), Vec::new());
        for _ in 0..3 * memory + 2 {
            let u = units(&mut random, inputs);
            remember(&mut history, u.clone(), memory);
            check(push(&model, &mut state, &u), &spec, &history);
        }
    }
}

/// A million samples through resets, primes and swaps between three models of one shape but other heads, ranks, scalings
/// and policies: every output equals the fresh computation from the samples themselves.
#[test]
fn a_million_samples_with_resets_and_swaps() {
    let size = Dimensions { inputs: 3, outputs: 2, memory: 3, degree: 3, heads: 2, max_rank: 3 };
    let mut specs =
        [random_spec(1, size), random_spec(2, size), random_spec(3, Dimensions { heads: 3, ..size })];
    specs[1].range = RangePolicy::Clamp;
    let models = specs.each_ref().map(loaded);
    let (mut random, mut history, mut now) = (ChaCha8Rng::seed_from_u64(4), Vec::new(), 0);
    let mut state = Room::new(&models[now]).unwrap();
    let (mut swaps, mut resets) = (0, 0);
    for _ in 0..1_000_000 {
        match random.random_range(0..1000) {
            0 => {
                state.reset();
                history.clear();
                resets += 1;
            }
            1..5 => {
                now = random.random_range(0..3);
                state.swap(&models[now]).unwrap();
                swaps += 1;
            }
            5 => {
                let rows: Vec<Vec<f32>> =
                    (0..random.random_range(0..5)).map(|_| units(&mut random, 3)).collect();
                state.prime(&models[now], &rows.concat()).unwrap();
                rows.into_iter().for_each(|row| remember(&mut history, row, 3));
            }
            _ => {}
        }
        let u = units(&mut random, 3);
        remember(&mut history, u.clone(), 3);
        check(push(&models[now], &mut state, &u), &specs[now], &history);
    }
    assert!(swaps > 3000 && resets > 800, "{swaps} swaps, {resets} resets");
}

#[test]
fn prime_leaves_what_pushing_leaves() {
    let spec =
        random_spec(7, Dimensions { inputs: 2, outputs: 1, memory: 4, degree: 3, heads: 2, max_rank: 3 });
    let model = loaded(&spec);
    let (mut primed, mut pushed) = (Room::new(&model).unwrap(), Room::new(&model).unwrap());
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let mut rows: Vec<Vec<f32>> = (0..6).map(|_| units(&mut random, 2)).collect();
    rows[4][1] = f32::NAN;
    rows[5][0] = 100.0;
    primed.prime(&model, &rows.concat()).unwrap();
    for row in &rows {
        push(&model, &mut pushed, row);
    }
    let last = units(&mut random, 2);
    let (a, b) = (push(&model, &mut primed, &last), push(&model, &mut pushed, &last));
    assert_eq!(a, b);
    let flags = a.output().unwrap().flags;
    assert!(flags.window_held && flags.window_out_of_range && !flags.held);
}

#[test]
fn wrong_samples_change_nothing() {
    let size = Dimensions { inputs: 2, outputs: 1, memory: 1, degree: 1, heads: 1, max_rank: 1 };
    let mut spec = random_spec(9, size);
    spec.non_finite = NonFinitePolicy::Refuse;
    let model = loaded(&spec);
    let mut state = Room::new(&model).unwrap();
    assert_eq!(push(&model, &mut state, &[0.0]), Step::Refused(PushError::Inputs { expected: 2, found: 1 }));
    assert_eq!(
        push(&model, &mut state, &[0.0, f32::INFINITY]),
        Step::Refused(PushError::NonFinite { channel: 1 })
    );
    assert_eq!(state.prime(&model, &[1.0, 2.0, 3.0]), Err(PushError::Inputs { expected: 2, found: 1 }));
    assert_eq!(state.warming(), 1);
    state.set_non_finite_policy(Some(NonFinitePolicy::Hold));
    assert!(push(&model, &mut state, &[0.0, f32::INFINITY]).output().is_some());

    let other = loaded(&random_spec(10, size));
    assert_eq!(push(&other, &mut state, &[0.0, 0.0]), Step::Refused(PushError::OtherModel));
}

#[test]
fn non_finite_inputs_are_held_and_flagged_for_a_memory() {
    let spec =
        random_spec(11, Dimensions { inputs: 2, outputs: 1, memory: 3, degree: 2, heads: 1, max_rank: 2 });
    let model = loaded(&spec);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut state = Room::new(&model).unwrap();
        let mut history = Vec::new();
        for (k, &(a, b)) in
            [(0.1, bad), (0.2, -0.3), (bad, 0.4), (0.5, 0.5), (0.6, 0.1), (0.7, 0.2)].iter().enumerate()
        {
            let step = push(&model, &mut state, &[a, b]);
            // What the history must hold: the training mean before the first value, the previous value after it.
            let meant = match k {
                0 => vec![a, spec.inputs[1].offset],
                2 => vec![0.2, b],
                _ => vec![a, b],
            };
            remember(&mut history, meant, 3);
            check(step, &spec, &history);
            if let Some(output) = step.output() {
                assert_eq!(output.flags.held, k == 2);
                assert_eq!(output.channels[0].held(), k == 2);
                assert_eq!(output.flags.window_held, k < 5, "sample {k}");
            }
        }
    }
}

#[test]
fn inputs_out_of_range_are_flagged_per_channel_and_clamped_if_asked() {
    let size = Dimensions { inputs: 3, outputs: 1, memory: 2, degree: 2, heads: 2, max_rank: 2 };
    let mut spec = random_spec(12, size);
    let model = loaded(&spec);
    let far = [vec![0.0, 0.0, 0.0], vec![2.0, 0.0, -3.0]];
    for policy in [None, Some(RangePolicy::Clamp)] {
        let mut state = Room::new(&model).unwrap();
        state.set_range_policy(policy);
        spec.range = policy.unwrap_or(RangePolicy::Pass);
        push(&model, &mut state, &far[0]);
        let output = push(&model, &mut state, &far[1]).output().unwrap();
        assert!(output.flags.out_of_range && output.flags.any());
        let noticed: Vec<_> = output.channels.iter().map(|c| (c.below(), c.above())).collect();
        assert_eq!(noticed, [(false, true), (false, false), (true, false)]);
        assert_eq!(output.y, recompute(&spec, &far));
        let output = push(&model, &mut state, &far[0]).output().unwrap();
        assert!(!output.flags.out_of_range && output.flags.window_out_of_range);
        let output = push(&model, &mut state, &far[0]).output().unwrap();
        assert!(!output.flags.any());
    }
}

#[test]
fn overflow_is_flagged() {
    let spec =
        random_spec(13, Dimensions { inputs: 1, outputs: 1, memory: 1, degree: 3, heads: 1, max_rank: 2 });
    let model = loaded(&spec);
    let mut state = Room::new(&model).unwrap();
    let output = push(&model, &mut state, &[1e30]).output().unwrap();
    assert!(output.flags.overflow && output.flags.out_of_range);
    assert!(
        !push(&model, &mut state, &[0.1]).output().unwrap().flags.overflow,
        "the next sample is free of it"
    );
}

#[test]
fn a_state_that_is_too_small_says_what_to_raise() {
    let size = Dimensions { inputs: 3, outputs: 1, memory: 4, degree: 2, heads: 1, max_rank: 2 };
    let spec = random_spec(14, size);
    let model = loaded(&spec);
    let needs = model.capacities();
    assert_eq!(needs, tha_core::Capacities::of(&flash(&spec)));
    let error = State::<2, 36, 100>::new(&model).unwrap_err();
    assert_eq!((error.capacity, error.found, error.needed), ("INPUTS", 2, 3));
    let error = State::<3, 35, 100>::new(&model).unwrap_err();
    assert_eq!((error.capacity, error.found, error.needed), ("HISTORY", 35, 36));
    let error = State::<3, 36, 1>::new(&model).unwrap_err();
    assert_eq!((error.capacity, error.needed), ("SCRATCH", needs.scratch));
    assert!(error.to_string().contains("raise it to"), "{error}");
}

#[test]
fn a_model_of_another_shape_is_not_swapped_in() {
    let size = Dimensions { inputs: 2, outputs: 1, memory: 2, degree: 2, heads: 1, max_rank: 2 };
    let small = random_spec(15, size);
    let model = loaded(&small);
    let mut state = State::<2, 12, 32>::new(&model).unwrap();
    for (other, message) in [
        (Dimensions { inputs: 3, ..size }, "3 inputs"),
        (Dimensions { outputs: 2, ..size }, "2 outputs"),
        (Dimensions { memory: 3, ..size }, "3 samples of memory"),
        (Dimensions { degree: 4, max_rank: 20, ..size }, "SCRATCH"),
    ] {
        let error = state.swap(&loaded(&random_spec(16, other))).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    push(&model, &mut state, &[0.0, 0.0]);
    assert!(push(&model, &mut state, &[0.0, 0.0]).output().is_some(), "the old model goes on");
}

#[test]
fn a_state_lives_in_place() {
    // What a firmware has in a `static`.
    const EMPTY: State<3, 27, 64> = State::empty();
    let size = Dimensions { inputs: 3, outputs: 2, memory: 3, degree: 2, heads: 2, max_rank: 3 };
    let [first, second] = [20, 21].map(|seed| loaded(&random_spec(seed, size)));
    let mut state = EMPTY;
    let u = [0.5, -0.25, f32::NAN];
    assert_eq!(push(&first, &mut state, &u), Step::Refused(PushError::OtherModel));
    assert!(state.prime(&first, &u).is_err() && state.swap(&first).is_err());

    // Started over with another model, it is as good as new.
    for model in [&first, &second] {
        state.init(model).unwrap();
        let mut new = State::<3, 27, 64>::new(model).unwrap();
        for _ in 0..5 {
            assert_eq!(push(model, &mut state, &u), push(model, &mut new, &u));
        }
        state.set_non_finite_policy(Some(NonFinitePolicy::Refuse));
    }

    // What does not fit changes nothing.
    let large = loaded(&random_spec(22, Dimensions { memory: 4, ..size }));
    let error = state.init(&large).unwrap_err();
    assert_eq!((error.capacity, error.needed), ("HISTORY", 36));
    state.set_non_finite_policy(None);
    assert!(push(&second, &mut state, &u).output().is_some());
}
