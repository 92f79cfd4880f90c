//! The stream is the batch: tha-core in f32, sample by sample, against tha-train in f64, for models of many shapes.

mod models;

use models::files;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::NonFinitePolicy;
use tha_core::build::{Core, Feature, Filter, Head, ModelSpec, Resonator, Section, Signal, Source};
use tha_firmware_sim::model_file::ModelFile;
use tha_firmware_sim::replay::{Target, run};
use tha_firmware_sim::soak::soak;
use tha_firmware_sim::stream::Device;
use tha_train::bound::ErrorBound;
use tha_train::reference::Reference;
use tha_train::{Dataset, Record};

/// Records of 1 to 300 samples, a tenth of the values out of range.
fn recording(spec: &ModelSpec, random: &mut ChaCha8Rng) -> Dataset {
    let mut records = Vec::new();
    let mut end = 0;
    for (k, length) in [300, 1, 200, 2, 7].into_iter().enumerate() {
        records.push(Record { id: k.to_string(), rows: end..end + length });
        end += length;
    }
    let mut column = |low: f32, high: f32| -> Vec<f64> {
        // Values that are not f32: rounding the sample is part of the bound.
        let mut value = || f64::from(low) + f64::from(high - low) * random.random_range(-0.05..1.05);
        (0..end).map(|_| value()).collect()
    };
    let inputs = spec.inputs.iter().map(|input| input.name.clone()).collect();
    let u = spec.inputs.iter().map(|input| column(input.low, input.high)).collect();
    Dataset { inputs, records, ..Dataset::new("random", u, Vec::new()) }
}

#[test]
fn every_output_is_within_its_bound_and_to_the_bit() {
    for (k, (spec, bytes)) in files().into_iter().enumerate() {
        let file = ModelFile::new(&bytes).unwrap();
        let data = recording(&spec, &mut ChaCha8Rng::seed_from_u64(k as u64));
        let report = run(&file, &data, Target::Host).unwrap();
        assert!(report.bit_exact, "model {k}");
        assert!(report.ok(), "model {k}: {:?}", report.comparison);
        assert_eq!(report.comparison.samples, data.scored_rows(spec.settled()).len());
        // A bound that allows everything would be no bound.
        for output in &report.comparison.outputs {
            assert!(output.max_abs_error > 0.0);
            // Filters carry errors over from sample to sample.
            let limit = if spec.stage.sections.is_empty() { 2e-4 } else { 1e-3 };
            assert!(output.error_bound < limit * output.spread, "{output:?}");
        }
    }
}

#[test]
fn resets_swaps_and_held_values_change_nothing() {
    for (k, (spec, bytes)) in files().into_iter().enumerate() {
        let file = ModelFile::new(&bytes).unwrap();
        let other = file.variant(&mut ChaCha8Rng::seed_from_u64(7));
        let report = soak(&file, &other, 20_000, k as u64, |_| ()).unwrap();
        assert_eq!(report.broken, 0, "model {k}: {report:?}");
        assert!(report.resets > 10 && report.swaps > 10);
        assert_eq!(report.held > 0, spec.non_finite == NonFinitePolicy::Hold);
    }
}

/// f32 on the device against f64 over a million samples, through an average of 1024 samples and a resonator with a pole at
/// 0.999: every difference is within the bound, and small against what the output does.
#[test]
fn slow_filters_do_not_drift() {
    let mut spec = files().swap_remove(5).0;
    spec.stage.sections = (0..3)
        .flat_map(|input| {
            let average = Filter::Average { alpha: (1.0 - (-1.0f64 / 1024.0).exp()) as f32 };
            let resonator = Filter::Resonator(Resonator::new(0.999 * 0.1f64.cos(), 0.999 * 0.1f64.sin()));
            [average, resonator].map(|filter| Section { source: Source::Input(input), filter })
        })
        .collect();
    let feature =
        |(plus, size): (Signal, f32)| Feature { plus, minus: None, low: -size, high: size, nodes: vec![] };
    let signals = (0..3).flat_map(|i| {
        let output = |section, output| Signal::Section { section, output };
        [(output(2 * i, 0), 1.0), (output(2 * i + 1, 0), 10.0), (output(2 * i + 1, 1), 10.0)]
    });
    spec.stage.features = signals.map(feature).collect();
    spec.stage.settle();
    assert!((10_500..10_700).contains(&spec.felt()), "{}", spec.felt());
    let row: Vec<f32> = (0..10).map(|i| if i % 3 == 1 { 8.0 } else { 0.5 }).collect();
    let core = Core::new(1, 10, 1, row);
    let head = |j: usize| Head {
        inputs: vec![0, 1, 2],
        outputs: j..j + 1,
        weights: vec![1.0],
        features: (0..9).collect(),
        cores: vec![core.clone()],
    };
    spec.heads = vec![head(0), head(1)];
    let file = ModelFile::new(&spec.to_bytes().unwrap()).unwrap();
    let (mut device, mut batch) = (Device::new(&file).unwrap(), Reference::<f64>::new(&spec));
    let mut bound = ErrorBound::new(&spec);
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let (mut worst, mut used, mut sum, mut squares, mut count) = (0.0f64, 0.0f64, 0.0, 0.0, 0.0);
    let mut largest = 0.0f64;
    for _ in 0..1_000_000 {
        let u: Vec<f32> = (0..3).map(|_| random.random_range(-0.7..1.3)).collect();
        let wide: Vec<f64> = u.iter().map(|&u| u.into()).collect();
        let y = device.push(&u).y.first().map(|&y| f64::from(y));
        let (Some(y), Some(expected), Some(bound)) = (y, batch.push(&wide), bound.push(&wide)) else {
            continue;
        };
        let difference = (y - expected[0]).abs();
        assert!(difference <= bound[0], "{difference} beyond {}", bound[0]);
        worst = worst.max(difference);
        used = used.max(difference / bound[0]);
        largest = largest.max(bound[0]);
        (sum, squares, count) = (sum + expected[0], squares + expected[0] * expected[0], count + 1.0);
    }
    let deviation = (squares / count - (sum / count) * (sum / count)).sqrt();
    println!(
        "{count} outputs: error {:.1e} standard deviations, bound {:.1e}, {:.1} % of it used",
        worst / deviation,
        largest / deviation,
        100.0 * used
    );
    assert!(worst < 1e-4 * deviation && largest < 1e-2 * deviation, "{worst} {largest} {deviation}");
}
