//! `tune` finds the law of the data, and its front is what `fit` gives: repeatable, interruptible, continued.

mod cli_common;

use cli_common::{Bench, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A folder with a Volterra system of two inputs, memory 3, degree 2, rank 2, and 1 % of noise.
fn volterra() -> Bench {
    let bench = Bench::new();
    bench.ok(
        "synth --kind volterra --memory 3 --degree 2 --rank 2 --samples 900 --test-samples 300 --out data -q",
    );
    bench
}

const SEARCH: &str = "tune data/train.csv --max-memory 5 --max-rank 3";

fn front(report: &Value) -> &[Value] {
    report["front"].as_array().unwrap()
}

fn recommended(report: &Value) -> &Value {
    &front(report)[report["recommended"].as_u64().unwrap() as usize]
}

/// Runs a command of the front in a shell that finds the binary by its name; what `--json` says.
fn in_a_shell(bench: &Bench, command: &str) -> Value {
    let binary = Path::new(env!("CARGO_BIN_EXE_tha-train"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("{command} --json -q")])
        .current_dir(bench.path("."))
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_law_is_found_and_threads_do_not_change_a_byte() {
    let bench = volterra();
    let report = bench.json(&format!("{SEARCH} --threads 2 --out two"));
    assert_eq!(report["complete"], true);
    let point = recommended(&report);
    assert_eq!((&point["memory"], &point["degree"]), (&3.into(), &2.into()), "{point}");
    assert_eq!(point["ranks"], serde_json::json!([2]));
    assert!((0.005..0.02).contains(&point["nrmse"].as_f64().unwrap()), "the noise is 1 %: {point}");
    let pairs =
        |name: &str| -> Vec<f64> { front(&report).iter().map(|p| p[name].as_f64().unwrap()).collect() };
    assert!(pairs("flash_bytes").is_sorted(), "by rising flash");
    assert!(pairs("nrmse").is_sorted_by(|a, b| a > b), "a larger model on the front has less error");

    bench.ok(&format!("{SEARCH} --threads 1 --out one -q"));
    for file in ["front.json", "front.svg"] {
        assert_eq!(bench.read(&format!("one/{file}")), bench.read(&format!("two/{file}")), "{file}");
    }
    let picture = text(&bench.read("one/front.svg"));
    assert!(picture.starts_with("<svg") && picture.contains("M 3, d 2, r 2"));
}

#[test]
fn the_commands_give_the_errors_of_the_front() {
    let bench = Bench::new();
    bench.ok("synth --kind volterra --channels 5 --memory 2 --degree 2 --samples 500 --correlation 0.8 --out made -q");
    // Names that a shell would take apart.
    let made = text(&bench.read("made/train.csv")).replacen("u1,", "u$1,", 1);
    bench.write("it's data.csv", made);
    let search = |more: &[&str]| {
        let mut command =
            bench.command("tune --inputs u* --max-memory 2 --max-degree 2 --max-rank 2 --seed 3 --json -q");
        let output = command.arg("it's data.csv").args(more).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for (out, judge) in [("a", ["--val-fraction", "0.3"]), ("b", ["--folds", "3"])] {
        let report = search(&[&["--out", out][..], &judge].concat());
        let ensemble = |point: &&Value| point.get("combine").is_some();
        let all: Vec<&Value> = front(&report).iter().chain(report["others"].as_array().unwrap()).collect();
        let points = [Some(recommended(&report)), front(&report).first(), all.into_iter().find(ensemble)];
        assert!(points[2].is_some(), "five inputs: ensembles are fitted too");
        for point in points.into_iter().flatten() {
            let command = point["fit"].as_str().unwrap();
            assert!(command.contains(&judge.join(" ")) && command.contains("--seed 3"), "{command}");
            let fit = in_a_shell(&bench, command);
            let nrmse = fit["val"]["nrmse"].as_array().unwrap();
            assert_eq!(nrmse.len(), 1);
            assert_eq!(nrmse[0], point["nrmse"], "{command}");
            for field in ["flash_bytes", "macs_per_sample"] {
                assert_eq!(fit[field], point[field], "{command}");
            }
        }
    }
}

#[test]
fn budgets_are_kept() {
    let bench = volterra();
    let report = bench.json(&format!("{SEARCH} --budget-macs 14 --out small -q"));
    assert!(!front(&report).is_empty());
    assert!(front(&report).iter().all(|point| point["macs_per_sample"].as_u64().unwrap() <= 14));
    let output = bench.run(&format!("{SEARCH} --budget-flash 100 --out none -q"));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("raise --budget-flash"), "{}", text(&output.stderr));
}

#[test]
fn a_search_that_was_cut_short_goes_on() {
    let bench = volterra();
    bench.ok(&format!("{SEARCH} --out whole -q"));
    let part = bench.json(&format!("{SEARCH} --trials 10 --out part -q"));
    assert_eq!((&part["complete"], &part["fits"]), (&false.into(), &10.into()));
    assert!(part["untried"].as_u64().unwrap() > 0);
    assert_eq!(part, {
        let mut again = bench.json(&format!("{SEARCH} --trials 10 --out again -q --threads 1"));
        again["seconds"] = part["seconds"].clone();
        again
    });
    let words = bench.ok(&format!("{SEARCH} --trials 10 --out part"));
    assert!(words.contains("not tried: ") && words.contains("goes on from here"), "{words}");
    bench.ok(&format!("{SEARCH} --out part -q"));
    assert_eq!(bench.read("part/front.json"), bench.read("whole/front.json"));
    assert_eq!(bench.read("part/front.svg"), bench.read("whole/front.svg"));

    // A damaged fit is found, said and made again.
    let trials = || std::fs::read_dir(bench.path("part/trials")).unwrap().map(|entry| entry.unwrap().path());
    for round in 1..5 {
        let damaged: Vec<_> = trials().filter(|path| !path.to_str().unwrap().contains("damaged")).collect();
        for (k, path) in damaged.iter().enumerate() {
            let mut bytes = std::fs::read(path).unwrap();
            let bit = round * (k + 1) * 7919 % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path, bytes).unwrap();
        }
        let output = bench.run(&format!("{SEARCH} --out part"));
        let said = text(&output.stderr);
        for path in damaged {
            let name = path.file_name().unwrap().to_str().unwrap();
            let warned = said.lines().filter(|line| line.starts_with("warning: ") && line.contains(name));
            assert_eq!(warned.count(), 1, "{name}: {said}");
        }
        assert_eq!(bench.read("part/front.json"), bench.read("whole/front.json"));
    }

    for (option, said) in
        [("--seed 1", "--seed 0"), ("--val-fraction 0.3", "0.2"), ("--outputs u1 --inputs u2", "data")]
    {
        let output = bench.run(&format!("{SEARCH} {option} --out part"));
        assert_eq!(output.status.code(), Some(2), "{option}");
        let refusal = text(&output.stderr);
        assert!(refusal.contains("it belongs to a run with") && refusal.contains(said), "{refusal}");
        assert_eq!(refusal.lines().count(), 1, "{refusal}");
    }
}

#[test]
fn searches_and_ensembles_know_their_program_and_processor_alike() {
    let bench = volterra();
    bench.ok(&format!("{SEARCH} --trials 5 --out found -q"));
    bench.ok(
        "fit data/train.csv --out m.tha --memory 1 --degree 1 --heads 1 --subset-size 1 --checkpoint kept -q",
    );
    let run = |name: &str| serde_json::from_slice::<Value>(&bench.read(name)).unwrap();
    let (search, ensemble) = (run("found/trials/run.json"), run("kept/run.json"));
    for name in ["program", "processor", "data", "validation on"] {
        assert!(search[name].is_string(), "{search}");
        assert_eq!(search[name], ensemble[name], "{name}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_prints_and_keeps_what_is_done() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    let bench = Bench::new();
    bench.ok("synth --kind array --channels 6 --samples 4000 --out data -q");
    let mut child = bench
        .command("tune data/train.csv --out found --json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("best so far") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (mut rest, mut printed) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("stopping with what is done") && rest.contains("interrupted"), "{rest}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["complete"], false);
    assert!(!front(&report).is_empty());
    let kept: Value = serde_json::from_slice(&bench.read("found/front.json")).unwrap();
    assert_eq!(kept["front"], report["front"]);
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let bench = volterra();
    bench.write("few.csv", "u1,u2,y1\n1,2,3\n1,2,4\n");
    let before = bench.files();
    for (line, expected) in [
        ("tune", "<DATA>"),
        ("tune missing.csv", "missing.csv: cannot be read"),
        ("tune few.csv", "no sample is left for validation"),
        ("tune data/train.csv --minutes 0", "--minutes: 0"),
        ("tune data/train.csv --minutes nan", "--minutes"),
        ("tune data/train.csv --trials 0", "--trials: 0"),
        ("tune data/train.csv --max-memory 0", "--max-memory: 0"),
        ("tune data/train.csv --max-memory 901", "fewer than the memory of 901"),
        ("tune data/train.csv --max-degree 0", "--max-degree is 0"),
        ("tune data/train.csv --max-rank 0", "--max-rank is 0"),
        ("tune data/train.csv --val-fraction 2", "--val-fraction"),
        ("tune data/train.csv --folds 1", "--folds"),
        ("tune data/train.csv --folds 3 --val data/test.csv", "--folds"),
        (
            "tune data/train.csv --out data/train.csv",
            "data/train.csv: cannot be written: it is not a directory",
        ),
    ] {
        let output = bench.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
    }
    assert!(bench.files() == before && !bench.path("tune").exists());
}

#[test]
fn a_constant_output_is_named() {
    let bench = Bench::new();
    let row = |t: i32| format!("{},{}\n", f64::from(t).sin(), if t < 70 { t % 5 } else { 3 });
    let rows: String = (0..100).map(row).collect();
    bench.write("d.csv", format!("u1,y1\n{rows}"));
    let output = bench.run("tune d.csv --trials 5 --out t");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("d.csv: in the validation samples the output 'y1' is constant")
            && !said.contains("budget"),
        "{said}"
    );
    // Settings are compared on what validation leaves.
    let row = |t: i32| format!("{},{}\n", f64::from(t).sin(), if t < 80 { 3 } else { t % 5 });
    let rows: String = (0..100).map(row).collect();
    bench.write("e.csv", format!("u1,y1\n{rows}"));
    let output = bench.run("tune e.csv --trials 5 --out t");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("e.csv: in the samples held out to compare settings the output 'y1' is"), "{said}");
    // The first samples move.
    bench.ok("tune d.csv --max-degree 1 --max-memory 2 --trials 60 --folds 2 --out t -q");
}
