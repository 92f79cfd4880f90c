//! The input stage on real recordings: `cargo bench -p tha-train --bench stage -- DIR [--skip N] [NAME/BASIS/MAPS/DEGREE/RANK ...]`,
//! DIR holding NAME/train.csv and NAME/test.csv.
//!
//! Two models for each setting, one network for all outputs and one for each output; everything that a setting does not say is
//! chosen on blocks of the training file. The test file gives the last columns and nothing else, once for each policy beyond
//! the training range. `--skip N` leaves the first N rows of each record out, to compare with programs that do so.

use nalgebra::DMatrix;
use std::path::Path;
use std::time::Instant;
use tha_core::RangePolicy;
use tha_train::Silent;
use tha_train::data::{Columns, Dataset, Source, Split};
use tha_train::metrics::Metrics;
use tha_train::network::Network;
use tha_train::solve::{Problem, SolveParams, choose, fit};
use tha_train::stage::{Basis, Scaling, Stage};

/// Recording, basis, maps, degree, rank cap.
const SETTINGS: [&str; 6] = [
    "cascaded_tanks/differences:64/8/2/8",
    "bosch_engine2/levels:64/8/2/8",
    "air_quality/differences:8/8/2/8",
    "gas_turbine/differences:8/8/2/4",
    "robot_kr300/levels:4/8/2/4",
    "srs_ankle/levels:32/8/2/4",
];

fn read(path: &Path) -> Option<Dataset> {
    let columns = Columns::Patterns { inputs: vec!["u*".into()], outputs: vec!["y*".into()] };
    path.exists().then(|| Source::from_path(path).expect("a file").read(&columns).expect("data"))
}

/// Networks for some outputs each, what was chosen for them and the error on the blocks held out.
struct Fitted {
    networks: Vec<Network>,
    chosen: Vec<String>,
    held_out: f64,
}

/// Chooses and fits one network for each group of outputs.
fn networks(problem: &Problem<'_>, blocks: &[usize], groups: &[Vec<usize>], options: &SolveParams) -> Fitted {
    let mut fitted = Fitted { networks: Vec::new(), chosen: Vec::new(), held_out: 0.0 };
    let outputs = problem.y.ncols() as f64;
    for group in groups {
        let y = problem.y.select_columns(group);
        let problem = Problem { x: problem.x, y: &y };
        let chosen = choose(&problem, blocks, options, &Silent).expect("a choice");
        let s = &chosen.settings;
        let network = fit(&problem, s, chosen.start(), options, &Silent).expect("a fit").network;
        fitted.networks.push(network);
        fitted.chosen.push(format!("{:?} {:.2} {}", s.ranks, s.gamma, s.ridge));
        fitted.held_out += chosen.error * group.len() as f64 / outputs;
    }
    fitted
}

fn measure(folder: &Path, setting: &str, skip: usize) -> Option<()> {
    let parts: Vec<&str> = setting.split('/').collect();
    let &[name, basis, maps, degree, rank] = parts.as_slice() else { panic!("NAME/BASIS/MAPS/DEGREE/RANK") };
    let file = |part: &str| read(&folder.join(name).join(part));
    let (train, test) = (file("train.csv")?, file("test.csv")?);
    let basis: Basis = basis.parse().expect("a basis");
    let history = basis.bank(1).expect("filters").history().max(skip);
    let rows = train.scored_rows(history + 1);
    let blocks = Split::blocks(&train, &rows);
    let scaling = Scaling::from_rows(&train, &rows).expect("a scaling");
    let stage =
        Stage::fit(&train, &rows, &scaling, &basis, maps.parse().ok(), RangePolicy::Pass).expect("a stage");
    let samples = stage.clone().rows(&train, rows);
    let problem = Problem { x: &samples, y: &samples.y };
    let options = SolveParams {
        degree: degree.parse().expect("a degree"),
        max_rank: rank.parse().expect("a rank"),
        ..SolveParams::default()
    };
    let linear = samples.linear_part(&(0..train.inputs.len()).collect::<Vec<_>>());
    let all: Vec<usize> = (0..train.outputs.len()).collect();
    let inputs: Vec<usize> = (0..train.inputs.len()).collect();
    let each: Vec<Vec<usize>> = all.iter().map(|&output| vec![output]).collect();
    let ways = if all.len() > 1 { vec![vec![all.clone()], each] } else { vec![vec![all.clone()]] };
    for groups in ways {
        let clock = Instant::now();
        let fitted = networks(&problem, &blocks, &groups, &options);
        let seconds = clock.elapsed().as_secs_f64();
        let error = |beyond: RangePolicy| {
            let samples = stage.clone().with_policy(beyond).rows(&test, test.scored_rows(history + 1));
            let mut prediction = DMatrix::zeros(samples.rows.len(), 0);
            for network in &fitted.networks {
                let values = network.evaluate(&samples);
                let at = prediction.ncols();
                prediction = prediction.insert_columns(at, values.ncols(), 0.0);
                prediction.columns_mut(at, values.ncols()).copy_from(&values);
            }
            if beyond == RangePolicy::Extend {
                prediction += samples.extension(&linear);
            }
            scaling.restore(&mut prediction);
            Metrics::new(&test.outputs, &test.outputs_at(&samples.rows), &prediction)
        };
        let [pass, clamp, extend] = [RangePolicy::Pass, RangePolicy::Clamp, RangePolicy::Extend].map(error);
        let by_output: Vec<String> =
            extend.outputs.iter().map(|output| format!("{:.3}", output.nrmse)).collect();
        let delivered = fitted.networks.iter().map(|network| stage.deliver(network, &inputs).parameters());
        println!(
            "| {setting} | {} | {} | {} | {:.4} | {:.4} | {:.4} | {:.4} | {} | {seconds:.0} |",
            groups.len(),
            fitted.chosen.join("; "),
            4 * delivered.sum::<usize>(),
            fitted.held_out,
            pass.nrmse,
            clamp.nrmse,
            extend.nrmse,
            by_output.join(" ")
        );
    }
    Some(())
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(folder) = arguments.next() else { return };
    let mut settings: Vec<String> = arguments.collect();
    let mut skip = 0;
    if settings.first().is_some_and(|first| first == "--skip") {
        skip = settings.get(1).and_then(|rows| rows.parse().ok()).expect("a number of rows");
        settings.drain(..2);
    }
    if settings.is_empty() {
        settings = SETTINGS.map(String::from).into();
    }
    println!(
        "| recording, basis, maps, degree, rank cap | networks | ranks gamma ridge | bytes of the cores | held out | pass | clamp | extend | extend by output | seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for setting in settings {
        measure(Path::new(&folder), &setting, skip);
    }
}
