//! The automatic fit on recordings: `cargo bench -p tha-train --bench auto -- DIR [--minutes T | --trials N] [--budget-flash B] [--checkpoint DIR]
//! [--heads K] [--verbose] [--without maps|filters|gamma|records|ensembles|steps|short-fits|ways-but-K] [NAME ...]`, DIR holding NAME/train.csv and
//! NAME/test.csv. The test file is read once, at the end, for the last column.

use std::path::Path;
use std::time::Instant;
use tha_train::internals::Part;
use tha_train::{AutoParams, Columns, Dataset, Event, Progress, Source};

struct Watch(bool, Instant);

impl Progress for Watch {
    fn report(&self, event: &Event<'_>) {
        if self.0 {
            eprintln!("{:6.1} {event}", self.1.elapsed().as_secs_f64());
        }
    }
}

fn read(path: &Path) -> Dataset {
    Source::from_path(path).expect("a file").read(&Columns::default()).expect("data")
}

fn main() {
    let (mut minutes, mut trials, mut heads) = (3.0, None, None);
    let (mut verbose, mut single) = (false, false);
    let (mut flash, mut without) = (AutoParams::BUDGET_FLASH, None);
    let (mut folder, mut checkpoint, mut names) = (None, None, Vec::new());
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--minutes" => minutes = args.next().and_then(|text| text.parse().ok()).expect("minutes"),
            "--trials" => trials = args.next().and_then(|text| text.parse().ok()),
            "--heads" => heads = args.next().and_then(|text| text.parse().ok()),
            "--checkpoint" => checkpoint = args.next(),
            "--verbose" => verbose = true,
            "--budget-flash" => flash = args.next().and_then(|text| text.parse().ok()).expect("bytes"),
            "--without" => match args.next().expect("a part").as_str() {
                "ensembles" => single = true,
                "maps" => without = Some(Part::Maps),
                "filters" => without = Some(Part::Filters),
                "gamma" => without = Some(Part::Gamma),
                "records" => without = Some(Part::Records),
                "steps" => without = Some(Part::Steps),
                "short-fits" => without = Some(Part::ShortFits),
                other if other.starts_with("ways-but-") => {
                    without = Some(Part::Ways(other[9..].parse().expect("the number of a way, from 0")));
                }
                other => panic!("nothing is known of '{other}'"),
            },
            _ if folder.is_none() => folder = Some(arg),
            _ => names.push(arg),
        }
    }
    let Some(folder) = folder else {
        println!("no folder with recordings was given: nothing to measure");
        return;
    };
    let folder = Path::new(&folder);
    if names.is_empty() {
        let entries = std::fs::read_dir(folder).expect("a folder");
        names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
    }
    println!("| recording | tried | heads | flash | MACs | linear | blocks, nested | test | s |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for name in names {
        let start = Instant::now();
        let train = read(&folder.join(&name).join("train.csv"));
        let kept = checkpoint.as_ref().map(|folder| Path::new(folder).join(&name));
        let params = AutoParams::new()
            .minutes(trials.is_none().then_some(minutes))
            .trials(trials)
            .heads(heads)
            .single(single)
            .budget_flash(flash)
            .without(without)
            .checkpoint(kept);
        let made = params.fit(&train, &Watch(verbose, start)).expect("a fit");
        let seconds = start.elapsed().as_secs_f64();
        if verbose {
            for head in &made.heads {
                eprintln!("{:?} {:.2?} ridge {} {}", head.outputs, head.weights, head.ridge, head.setting);
            }
            eprintln!("{:?}", made.model.spec().range);
        }
        let linear = made.linear.as_ref().map_or(f64::NAN, |linear| linear.error);
        let bytes = made.model.to_bytes().expect("a file").len();
        let test = made.model.evaluate(&read(&folder.join(&name).join("test.csv")));
        println!(
            "| {name} | {} | {} | {bytes} | {} | {linear:.3} | {:.3} ± {:.3} | {:.4} | {seconds:.0} |",
            made.tried.len(),
            made.heads.len(),
            made.model.macs(),
            made.nested.error,
            made.nested.standard_error,
            test.nrmse,
        );
    }
}
