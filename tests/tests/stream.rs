//! The stream is the batch: tha-core in f32, sample by sample, against tha-train in f64, for models of many shapes.

mod models;

use models::files;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use tha_core::NonFinitePolicy;
use tha_firmware_sim::model_file::ModelFile;
use tha_firmware_sim::replay::{Target, run};
use tha_firmware_sim::soak::soak;
use tha_train::data::{Dataset, Record};

/// Records of 1 to 300 samples, a tenth of the values out of range.
fn recording(file: &ModelFile, random: &mut ChaCha8Rng) -> Dataset {
    let model = file.model();
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
    Dataset {
        origin: "random".into(),
        inputs: model.input_names().map(str::to_owned).collect(),
        outputs: Vec::new(),
        u: model.inputs().iter().map(|input| column(input.low, input.high)).collect(),
        y: Vec::new(),
        records,
    }
}

#[test]
fn every_output_is_within_its_bound_and_to_the_bit() {
    for (k, (spec, bytes)) in files().into_iter().enumerate() {
        let file = ModelFile::new(&bytes).unwrap();
        let data = recording(&file, &mut ChaCha8Rng::seed_from_u64(k as u64));
        let report = run(&file, &data, Target::Host).unwrap();
        assert!(report.bit_exact, "model {k}");
        assert!(report.ok(), "model {k}: {:?}", report.comparison);
        assert_eq!(report.comparison.samples, data.scored_rows(spec.memory).len());
        // A bound that allows everything would be no bound.
        for output in &report.comparison.outputs {
            assert!(output.max_abs_error > 0.0);
            assert!(output.error_bound < 2e-4 * output.spread, "{output:?}");
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
