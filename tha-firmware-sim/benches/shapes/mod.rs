//! Random models as files, and samples for them.

#[path = "../../../tha-core/benches/shapes/mod.rs"]
mod random;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
pub use random::Shape;
use tha_core::build::{Core, Feature, Filter, Head, Resonator, Section, Signal, Source, Stage};
use tha_firmware_sim::model_file::ModelFile;
use tha_train::{Dataset, QuantizeParams, Record, quantize};

/// The file of a model with random coefficients.
pub fn model(shape: Shape, random: &mut ChaCha8Rng) -> ModelFile {
    let bytes = random::spec(shape, random).to_bytes().expect("the shapes are valid");
    ModelFile::new(&bytes).expect("just built")
}

/// The same model in integers, by what happens in it on some samples.
#[allow(dead_code, reason = "one of the benches uses it")]
pub fn integers_of(file: &ModelFile, samples: &[f32]) -> ModelFile {
    let batch = file.batch();
    let p = batch.spec().inputs.len();
    let column = |k: usize| samples.iter().skip(k).step_by(p).map(|&u| f64::from(u)).collect();
    let mut data = Dataset {
        origin: "bench".into(),
        inputs: batch.spec().inputs.iter().map(|channel| channel.name.clone()).collect(),
        outputs: batch.output_names(),
        u: (0..p).map(column).collect(),
        y: vec![vec![0.0; samples.len() / p]; batch.spec().outputs.len()],
        records: vec![Record { id: String::new(), rows: 0..samples.len() / p }],
    };
    let rows = data.scored_rows(batch.spec().settled());
    for (k, column) in batch.predict(&data, &rows).column_iter().enumerate() {
        rows.iter().zip(column.iter()).for_each(|(&row, y)| data.y[k][row] = *y);
    }
    let made = quantize(&batch, &data, &QuantizeParams::default()).expect("the shapes are valid");
    ModelFile::new(&made.model.to_bytes().expect("it has been written before")).expect("just built")
}

/// A bank in front of a head: `p` inputs, so many averages and resonators of each, and the averages (the inputs themselves where
/// there are none) as features, mapped with so many nodes; degree 3.
#[allow(dead_code, reason = "one of the benches uses it")]
pub struct Bank {
    pub p: usize,
    pub averages: usize,
    pub resonators: usize,
    pub features: usize,
    pub nodes: usize,
    pub rank: usize,
}

/// A model with such a bank and random coefficients.
#[allow(dead_code, reason = "one of the benches uses it")]
pub fn staged(bank: &Bank, random: &mut ChaCha8Rng) -> ModelFile {
    let &Bank { p, averages, resonators, features, nodes, rank } = bank;
    let mut sections: Vec<Section> = Vec::new();
    for k in 0..averages + resonators {
        let filter = match k.checked_sub(averages) {
            None => Filter::Average { alpha: 1.0 / (2 << k) as f32 },
            Some(_) => Filter::Resonator(Resonator::new(0.6, 0.5)),
        };
        sections.extend((0..p).map(|input| Section { source: Source::Input(input), filter }));
    }
    let feature = |k: usize| Feature {
        plus: match averages {
            0 => Signal::Lag { input: k % p, lag: k / p },
            _ => Signal::Section { section: k % (p * averages), output: 0 },
        },
        minus: None,
        low: -1.0,
        high: 1.0,
        nodes: (0..nodes).map(|n| n as f32 / 4.0 - 1.0).collect(),
    };
    let memory = if averages == 0 { features.div_ceil(p) } else { 1 };
    let mut stage = Stage { sections, features: (0..features).map(feature).collect(), ..Stage::default() };
    stage.settle();
    let mut file = model([1, p, p, 1, 2, rank], random).batch().spec().clone();
    let q = 1 + features * nodes.max(1);
    let mut core = |left: usize, right: usize| {
        Core::new(
            left,
            q,
            right,
            (0..left * q * right).map(|_| 0.5 * random.random_range(-1.0..1.0)).collect(),
        )
    };
    file.heads = vec![Head {
        inputs: (0..p).collect(),
        outputs: 0..1,
        weights: vec![1.0],
        features: (0..features).collect(),
        cores: vec![core(1, rank), core(rank, rank), core(rank, 1)],
    }];
    (file.memory, file.stage) = (memory, stage);
    ModelFile::new(&file.to_bytes().expect("the shapes are valid")).expect("just built")
}

/// Samples of `p` values, some of them out of range.
pub fn samples(p: usize, count: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    (0..p * count).map(|_| 0.5 * random.random_range(-1.0..1.0)).collect()
}
