//! Real recordings: `cargo bench -p tha-train --bench recordings -- DIR`, DIR holding NAME/train.csv and NAME/test.csv.
//!
//! One full model for each recording with the settings of the table below; everything else the fit chooses by itself. The test
//! file gives the last column and nothing else.

use std::path::Path;
use std::time::Instant;
use tha_core::RangePolicy;
use tha_train::{Columns, Dataset, FitParams, Silent, Source};

/// Name, memory, degree, rank cap, clamped to the training range.
const SETTINGS: [(&str, usize, usize, usize, bool); 7] = [
    ("gas_turbine", 3, 2, 4, false),
    ("air_quality", 3, 2, 4, false),
    ("robot_kr300", 1, 2, 2, true),
    ("cascaded_tanks", 100, 3, 2, false),
    ("srs_ankle", 10, 2, 4, false),
    ("bosch_engine2", 20, 2, 4, false),
    ("bosch_engine2", 60, 1, 1, false),
];

fn read(path: &Path) -> Option<Dataset> {
    path.exists().then(|| Source::from_path(path).expect("a file").read(&Columns::default()).expect("data"))
}

fn main() {
    let Some(folder) = std::env::args().skip(1).find(|a| !a.starts_with("--")) else { return };
    println!("| set | M, d, rank cap | ranks | gamma | ridge | validation NRMSE | seconds | test NRMSE |");
    println!("|---|---|---|---|---|---|---|---|");
    for (name, memory, degree, max_rank, clamped) in SETTINGS {
        let file = |part: &str| read(&Path::new(&folder).join(name).join(part));
        let (Some(train), Some(test)) = (file("train.csv"), file("test.csv")) else { continue };
        let range = if clamped { RangePolicy::Clamp } else { RangePolicy::Pass };
        let params = FitParams::new().memory(memory).degree(degree).max_rank(max_rank).range(range);
        let clock = Instant::now();
        let outcome = params.check(&train).and_then(|params| params.fit(&train, &Silent)).expect("a fit");
        let (head, seconds) = (&outcome.heads[0], clock.elapsed().as_secs_f64());
        println!(
            "| {name} | {memory}, {degree}, {max_rank} | {:?} | {:.2} | {} | {:.3} | {seconds:.1} | {:.4} |",
            head.ranks,
            head.gamma,
            head.ridge,
            outcome.validation.nrmse,
            outcome.model.evaluate(&test).nrmse
        );
    }
}
