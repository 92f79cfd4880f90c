//! Random models of many shapes and policies.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::{
    Core, Feature, Filter, Head, InputChannel, Interval, ModelSpec, OutputChannel, Provenance, Resonator,
    Section, Signal, Source,
};
use tha_core::{NonFinitePolicy, RangePolicy};

/// A head on `inputs` with the ranks r_0, ..., r_d.
fn head(inputs: &[usize], memory: usize, ranks: &[usize], random: &mut ChaCha8Rng) -> Head {
    let q = inputs.len() * memory + 1;
    let core = |pair: &[usize]| {
        let data = (0..pair[0] * q * pair[1]).map(|_| random.random_range(-1.0..1.0)).collect();
        Core::new(pair[0], q, pair[1], data)
    };
    let cores = ranks.windows(2).map(core).collect();
    Head::from_cores(inputs.to_vec(), random.random_range(-1.0..1.0), cores)
}

fn spec(p: usize, memory: usize, heads: &[(&[usize], &[usize])], seed: u64) -> ModelSpec {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let input = |c: usize| InputChannel {
        name: format!("u{c}"),
        offset: 0.3 * c as f32 - 0.1,
        gain: 1.0 / (1.0 + c as f32),
        low: -1.5,
        high: 1.0 + c as f32,
    };
    let outputs = heads[0].1[0];
    let output = |j: usize| OutputChannel {
        name: format!("y{j}"),
        offset: 0.7 * j as f32,
        scale: 1.3 + j as f32,
        residual: 0.01,
    };
    ModelSpec {
        inputs: (0..p).map(input).collect(),
        outputs: (0..outputs).map(output).collect(),
        memory,
        stage: Default::default(),
        range: if seed.is_multiple_of(2) { RangePolicy::Pass } else { RangePolicy::Clamp },
        non_finite: if seed % 3 == 2 { NonFinitePolicy::Refuse } else { NonFinitePolicy::Hold },
        interval: Interval::from_residuals(0.9, vec![vec![0.1; 20]; outputs]).filter(|_| seed % 2 == 1),
        heads: heads.iter().map(|(inputs, ranks)| head(inputs, memory, ranks, &mut random)).collect(),
        provenance: Provenance { tool: "test */ \\".into(), ..Provenance::default() },
    }
}

/// Three inputs, two outputs: an average and two resonators in a row for each input, lags, differences, maps; a head on everything for
/// both outputs and one on some features of two inputs for the second.
fn staged(range: RangePolicy, seed: u64) -> ModelSpec {
    let mut spec = spec(3, 2, &[(&[0, 1, 2], &[2, 1])], seed);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let stage = &mut spec.stage;
    let resonator = Filter::Resonator(Resonator::new(0.7, 0.4));
    for (k, filter) in [Filter::Average { alpha: 0.05 }, resonator, resonator].into_iter().enumerate() {
        let source = |i| if k == 2 { Source::Section(3 + i) } else { Source::Input(i) };
        stage.sections.extend((0..3).map(|i| Section { source: source(i), filter }));
    }
    stage.settle();
    let section = |section, output| Signal::Section { section, output };
    for map in [false, true] {
        for input in 0..3 {
            for (plus, minus) in [
                (Signal::Lag { input, lag: 0 }, Some(section(input, 0))),
                (Signal::Lag { input, lag: 1 }, None),
                (section(3 + input, 0), None),
                (section(6 + input, 1), Some(section(3 + input, 1))),
            ] {
                let nodes = if map { vec![-0.5, -0.2, 0.05, 0.3, 0.9] } else { Vec::new() };
                stage.features.push(Feature { plus, minus, low: -0.5, high: 0.9, nodes });
            }
        }
    }
    let all: Vec<usize> = (0..24).collect();
    let some: Vec<usize> = all.iter().copied().filter(|f| f / 4 % 3 > 0 && f % 5 > 0).collect();
    let mut head = |inputs: &[usize], features: Vec<usize>, first: usize, ranks: &[usize]| {
        let q = 1 + features.iter().map(|&f| stage.features[f].rows()).sum::<usize>();
        let core = |pair: &[usize]| {
            Core::new(
                pair[0],
                q,
                pair[1],
                (0..pair[0] * q * pair[1]).map(|_| 0.3 * random.random_range(-1.0f32..1.0)).collect(),
            )
        };
        let cores = ranks.windows(2).map(core).collect();
        let outputs = first..first + ranks[0];
        let weights = outputs.clone().map(|j| 0.5 + 0.25 * j as f32).collect();
        Head { inputs: inputs.to_vec(), outputs, weights, features, cores }
    };
    spec.heads = vec![head(&[0, 1, 2], all, 0, &[2, 5, 1]), head(&[1, 2], some, 1, &[1, 3, 2, 1])];
    spec.range = range;
    if range == RangePolicy::Extend {
        spec.stage.linear = (0..2 * 24).map(|_| random.random_range(-1.0..1.0)).collect();
    }
    spec
}

/// Models and their files: one input and no memory, linear, cubic, several outputs, heads on subsets, all policies, filters and
/// maps.
pub fn files() -> Vec<(ModelSpec, Vec<u8>)> {
    let specs = [
        spec(1, 1, &[(&[0], &[1, 1])], 0),
        spec(2, 3, &[(&[0, 1], &[2, 3, 1])], 1),
        spec(3, 2, &[(&[0, 2], &[1, 4, 5, 1]), (&[1], &[1, 2, 2, 1]), (&[0, 1, 2], &[1, 3, 3, 1])], 2),
        spec(5, 4, &[(&[0, 1, 4], &[3, 2, 8, 2, 1]), (&[1, 2, 3, 4], &[3, 4, 4, 7, 1])], 3),
        spec(4, 1, &[(&[0, 1, 2, 3], &[2, 2, 1]), (&[3], &[2, 9, 1])], 5),
        staged(RangePolicy::Pass, 6),
        staged(RangePolicy::Clamp, 7),
        staged(RangePolicy::Extend, 8),
    ];
    specs.into_iter().map(|spec| (spec.clone(), spec.to_bytes().expect("the shapes are valid"))).collect()
}
