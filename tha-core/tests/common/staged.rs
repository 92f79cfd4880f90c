//! Random models with filters, lists of features and maps, and the same outputs computed another way.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::build::{
    Core, Feature, Filter, Head, InputChannel, ModelSpec, OutputChannel, Provenance, Resonator, Section,
    Signal, Source, Stage,
};
use tha_core::{NonFinitePolicy, RangePolicy};

/// `count` numbers between -1 and 1.
pub fn units(random: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.random_range(-1.0..1.0)).collect()
}

/// Two averages and two resonators in a row for every input, lags, differences, maps; heads on all and on some features.
pub fn staged(seed: u64, inputs: usize, outputs: usize, memory: usize) -> ModelSpec {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut sections = Vec::new();
    let mut bank = |filter: Filter, sources: &dyn Fn(usize) -> Source| {
        let first = sections.len();
        sections.extend((0..inputs).map(|i| Section { source: sources(i), filter }));
        first
    };
    let fast = bank(Filter::Average { alpha: 0.4 }, &Source::Input);
    let slow = bank(Filter::Average { alpha: 0.1 }, &|i| Source::Section(fast + i));
    let resonator = Filter::Resonator(Resonator::new(0.6, 0.5));
    let first = bank(resonator, &Source::Input);
    let second = bank(resonator, &|i| Source::Section(first + i));
    let section = |section: usize, output: usize| Signal::Section { section, output };
    let mut features = Vec::new();
    for input in 0..inputs {
        let lag = |lag: usize| Signal::Lag { input, lag };
        for (plus, minus) in [
            (lag(0), None),
            (lag(memory - 1), Some(section(fast + input, 0))),
            (section(fast + input, 0), Some(section(slow + input, 0))),
            (section(first + input, 1), None),
            (section(second + input, 0), Some(section(first + input, 0))),
        ] {
            let nodes = match random.random_range(0..2) {
                0 => Vec::new(),
                _ => {
                    let count = 2 + random.random_range(0..6);
                    let mut nodes = units(&mut random, count);
                    nodes.sort_by(f32::total_cmp);
                    nodes.dedup();
                    if nodes.len() < 2 { Vec::new() } else { nodes }
                }
            };
            features.push(Feature { plus, minus, low: -0.5, high: 0.6, nodes });
        }
    }
    features.sort_by_key(|feature| !feature.nodes.is_empty());
    let mut stage = Stage { sections, features, ..Stage::default() };
    stage.settle();
    let mut heads = Vec::new();
    for (k, degree) in [1, 2, 3].into_iter().enumerate() {
        let own: Vec<usize> = (0..inputs).filter(|i| k == 0 || (i + k) % 3 > 0).collect();
        let own = if own.is_empty() { vec![0] } else { own };
        let used: Vec<usize> = (0..stage.features.len())
            .filter(|&f| k == 0 || random.random_range(0..4) > 0 || f == 0)
            .filter(|&f| own.contains(&stage.input_of(stage.features[f].plus).unwrap()))
            .collect();
        if used.is_empty() {
            continue;
        }
        let served = if k == 0 { 0..outputs } else { outputs - 1..outputs };
        let q = 1 + used.iter().map(|&f| stage.features[f].rows()).sum::<usize>();
        let mut left = served.len();
        let cores = (0..degree)
            .map(|c| {
                let right = if c + 1 == degree { 1 } else { 1 + random.random_range(0..9) };
                let core = Core::new(left, q, right, units(&mut random, left * q * right));
                left = right;
                core
            })
            .collect();
        let weights = units(&mut random, served.len());
        heads.push(Head { inputs: own, outputs: served, weights, features: used, cores });
    }
    let range = [RangePolicy::Pass, RangePolicy::Clamp, RangePolicy::Extend][random.random_range(0..3)];
    if range == RangePolicy::Extend {
        stage.linear = units(&mut random, outputs * stage.features.len());
    }
    ModelSpec {
        inputs: (0..inputs)
            .map(|c| InputChannel {
                name: format!("u{c}"),
                offset: 0.5 * random.random_range(-1.0..1.0_f32),
                gain: 0.5 + random.random_range(-1.0..1.0_f32).abs(),
                low: -0.75,
                high: 0.75,
            })
            .collect(),
        outputs: (0..outputs)
            .map(|c| OutputChannel {
                name: format!("y{c}"),
                offset: random.random_range(-1.0..1.0_f32),
                scale: 1.5,
                residual: 0.0,
            })
            .collect(),
        memory,
        stage,
        range,
        non_finite: NonFinitePolicy::Hold,
        interval: None,
        heads,
        provenance: Provenance::default(),
    }
}

/// The outputs for all samples so far, oldest first, by the documented order of operations, in f32, from the cores as the builder has
/// them: no layout, no ring, no blocks, every section and every feature for itself, from the start.
pub fn recompute(spec: &ModelSpec, samples: &[Vec<f32>]) -> Vec<f32> {
    let limit = (1u64 << 40) as f32;
    // A file that lists no features has the lags of all inputs, which are clamped before they are standardised.
    let plain = spec.stage.features.is_empty();
    let one = |(u, c): (&f32, &InputChannel)| match plain {
        true if spec.range == RangePolicy::Clamp => (u.max(c.low).min(c.high) - c.offset) * c.gain,
        true => (u - c.offset) * c.gain,
        false => ((u - c.offset) * c.gain).max(-limit).min(limit),
    };
    let x: Vec<Vec<f32>> = samples.iter().map(|u| u.iter().zip(&spec.inputs).map(one).collect()).collect();
    // Of every section three series: two outputs and the feed.
    let mut series: Vec<[Vec<f32>; 3]> = Vec::new();
    for section in &spec.stage.sections {
        let source: Vec<f32> = match section.source {
            Source::Input(i) => x.iter().map(|x| x[i]).collect(),
            Source::Section(k) => series[k][2].clone(),
        };
        let mut all = [vec![], vec![], vec![]];
        let (mut s, mut one, mut two) = (0.0f32, 0.0f32, 0.0f32);
        for (t, u) in source.into_iter().enumerate() {
            let values = match section.filter {
                Filter::Average { alpha } => {
                    s += alpha.max(1.0 / (t + 1) as f32) * (u - s);
                    [s, f32::NAN, s]
                }
                Filter::Resonator(Resonator { state: [a, b, c, g], gain, all_pass: [d, e1, e2] }) => {
                    let feed = d * u + e1 * one + e2 * two;
                    (one, two) = (gain * u + a * one + b * two, c * one + g * two);
                    [one, two, feed]
                }
            };
            all.iter_mut().zip(values).for_each(|(series, value)| series.push(value));
        }
        series.push(all);
    }
    let now = samples.len() - 1;
    let signal = |signal: Signal| match signal {
        Signal::Lag { input, lag } => x[now - lag][input],
        Signal::Section { section, output } => series[section][output][now],
    };
    let (mut z, mut beyond) = (Vec::new(), Vec::new());
    for feature in &spec.stage.features {
        let value = signal(feature.plus) - feature.minus.map_or(0.0, signal);
        let clamped = value.max(feature.low).min(feature.high);
        let width = feature.high - feature.low;
        beyond.push((value - clamped).max(-width).min(width));
        z.push(if spec.range == RangePolicy::Pass { value } else { clamped });
    }
    let mut y = vec![0.0f32; spec.outputs.len()];
    for head in &spec.heads {
        // The rows that count, with their factors.
        let (mut rows, mut first) = (Vec::new(), 1);
        for lag in 0..if plain { spec.memory } else { 0 } {
            rows.extend(head.inputs.iter().zip(first..).map(|(&input, row)| (row, x[now - lag][input])));
            first += head.inputs.len();
        }
        for &f in &head.features {
            let nodes = &spec.stage.features[f].nodes;
            if nodes.is_empty() {
                rows.push((first, z[f]));
            } else {
                let cell = (1..nodes.len() - 1).filter(|&k| z[f] >= nodes[k]).count();
                let t = ((z[f] - nodes[cell]) / (nodes[cell + 1] - nodes[cell])).clamp(0.0, 1.0);
                rows.extend([(first + cell, 1.0 - t), (first + cell + 1, t)]);
            }
            first += nodes.len().max(1);
        }
        let mut v = vec![1.0f32];
        for (k, core) in head.cores.iter().enumerate().rev() {
            let at = |a: usize, i: usize, b: usize| core.data[(a * core.q + i) * core.right + b];
            let sum = |a, b| rows.iter().fold(at(a, 0, b), |sum, &(row, x)| sum + at(a, row, b) * x);
            v = match k + 1 == head.cores.len() {
                true => (0..core.left).map(|a| sum(a, 0)).collect(),
                false => (0..core.left)
                    .map(|a| v.iter().enumerate().fold(0.0, |total, (b, v)| total + sum(a, b) * v))
                    .collect(),
            };
        }
        for ((y, v), weight) in y[head.outputs.clone()].iter_mut().zip(v).zip(&head.weights) {
            *y += weight * v;
        }
    }
    if spec.range == RangePolicy::Extend {
        for (j, y) in y.iter_mut().enumerate() {
            let row = &spec.stage.linear[j * beyond.len()..];
            *y = row.iter().zip(&beyond).fold(*y, |y, (w, beyond)| y + w * beyond);
        }
    }
    y.iter().zip(&spec.outputs).map(|(y, channel)| channel.offset + channel.scale * y).collect()
}
