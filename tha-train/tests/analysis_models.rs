//! Model files with different standardisation, order of channels and offsets, brought into one coordinate system.

mod analysis_common;

use analysis_common::{draw, random_network};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::RangePolicy;
use tha_train::internals::{Frame, HeadPart};
use tha_train::stage::{InputMap, OutputMap, Scaling};
use tha_train::{AnalysisError, AnalysisParams, Dataset, Model, Pair, Record, analyze};

const MEMORY: usize = 2;
const DEGREE: usize = 3;

fn data(seed: u64, inputs: &[&str], outputs: &[&str]) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut column = |offset: f64| (0..120).map(|_| offset + draw(&mut rng)).collect::<Vec<f64>>();
    let known = [("a", 1.0), ("b", -2.0), ("c", 0.5)];
    let columns: Vec<Vec<f64>> = known.iter().map(|(_, offset)| column(*offset)).collect();
    let y: Vec<Vec<f64>> = (0..2).map(|j| column(10.0 * j as f64)).collect();
    let input = |name: &&str| columns[known.iter().position(|(n, _)| n == name).expect("known")].clone();
    Dataset {
        origin: "made".into(),
        inputs: inputs.iter().map(ToString::to_string).collect(),
        outputs: outputs.iter().map(ToString::to_string).collect(),
        u: inputs.iter().map(input).collect(),
        y: outputs.iter().map(|name| y[usize::from(*name == "z")].clone()).collect(),
        records: vec![Record { id: String::new(), rows: 0..60 }, Record { id: "2".into(), rows: 60..120 }],
    }
}

fn model(seed: u64, data: &Dataset, subsets: &[(&[usize], f64)], degree: usize) -> Model {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut number = |low: f64, high: f64| rng.random_range(low..high) as f32;
    let scaling = Scaling {
        inputs: data
            .u
            .iter()
            .map(|_| InputMap { offset: number(-1.0, 1.0), gain: number(0.3, 3.0) })
            .collect(),
        outputs: data
            .y
            .iter()
            .map(|_| OutputMap { offset: number(-5.0, 5.0), scale: number(0.2, 4.0) })
            .collect(),
    };
    let networks: Vec<_> = subsets
        .iter()
        .map(|(subset, _)| {
            random_network(data.y.len(), subset.len() * MEMORY + 1, &vec![2; degree - 1], &mut rng)
        })
        .collect();
    let heads: Vec<_> = subsets
        .iter()
        .zip(&networks)
        .map(|((subset, weight), network)| {
            HeadPart::of_lags(subset.to_vec(), 0..network.outputs(), *weight, network)
        })
        .collect();
    let frame = Frame {
        data,
        rows: &data.scored_rows(MEMORY),
        scaling: &scaling,
        residual: &[],
        memory: MEMORY,
        stage: Default::default(),
        range: RangePolicy::Pass,
        seed: 0,
        note: String::new(),
    };
    frame.model(&heads)
}

#[test]
fn standardisation_order_and_offsets_do_not_matter() {
    let ours = data(1, &["a", "b", "c"], &["y", "z"]);
    let theirs = data(1, &["c", "a", "b"], &["z", "y"]);
    for (seed, weights, convex) in [(2, [0.25, 0.75], true), (3, [1.0, 1.0], false), (4, [-0.5, 2.0], false)]
    {
        let full = model(seed, &ours, &[(&[0, 1, 2], 1.0)], DEGREE);
        let heads: [(&[usize], f64); 2] = [(&[0, 1], weights[0]), (&[2], weights[1])];
        let ensemble = model(seed + 10, &theirs, &heads, DEGREE);
        let pair = Pair::from_models(&full, &ensemble, &ours).unwrap();
        assert!(pair.conversion_gap.unwrap() < 1e-12, "{:?}", pair.conversion_gap);
        assert_eq!(pair.heads[0].subset, [0, 2], "c and a");
        assert_eq!(pair.heads[1].subset, [1], "b");
        assert_eq!(pair.heads[0].ranks, [2, 2], "the constant does not count");

        let analysis = analyze(&pair, &AnalysisParams::default());
        assert!(analysis.failures().is_empty() && analysis.convex == convex);
        // Physical units, straight from the files.
        let rows = ours.scored_rows(MEMORY);
        let difference = full.predict(&ours, &rows).column(1) - ensemble.predict(&theirs, &rows).column(0);
        let rms = difference.norm() / (rows.len() as f64).sqrt();
        assert!((analysis.outputs[1].error - rms).abs() < 1e-10 * rms);
    }
}

#[test]
fn models_that_do_not_belong_together_are_refused() {
    let ours = data(1, &["a", "b"], &["y"]);
    let full = model(1, &ours, &[(&[0, 1], 1.0)], DEGREE);
    let refusal = |ensemble: &Model| Pair::from_models(&full, ensemble, &ours).unwrap_err();
    let other = data(1, &["a", "c"], &["y"]);
    let stranger = refusal(&model(1, &other, &[(&[0, 1], 1.0)], DEGREE));
    assert_eq!(stranger, AnalysisError::Channel { kind: "input", name: "c".into() });
    let flat = refusal(&model(1, &ours, &[(&[0, 1], 1.0)], 2));
    assert!(flat.to_string().contains("degree 3, the ensemble 2"), "{flat}");
    let more = data(1, &["a", "b"], &["y", "z"]);
    assert!(matches!(refusal(&model(1, &more, &[(&[0], 1.0)], DEGREE)), AnalysisError::Outputs { .. }));
}
