//! Ensembles through the command line: combinations, checkpoints, budgets, determinism.

// The deviates of the library, which does not export them.
#[path = "../src/network/random.rs"]
mod random;

use random::Normal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

fn tha(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tha-train")).args(arguments).current_dir(folder).output().unwrap()
}

fn json(arguments: &[&str], folder: &Path) -> Value {
    let output = tha(&[arguments, &["--json"]].concat(), folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Twelve inputs, M = 2, d = 2, 2 % noise.
fn data(correlation: &str) -> TempDir {
    synth(&format!("--channels 12 --rank 3 --samples 1500 --seed 3 --noise 0.02 --correlation {correlation}"))
}

fn synth(options: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixed = "synth --kind volterra --memory 2 --degree 2 --out . -q";
    let arguments: Vec<&str> = fixed.split(' ').chain(options.split(' ')).collect();
    assert!(tha(&arguments, folder.path()).status.success());
    folder
}

const FIT: [&str; 8] = ["fit", "train.csv", "--memory", "2", "--degree", "2", "--out", "m.tha"];

fn fit(more: &str, folder: &Path) -> Value {
    json(&[&FIT[..], &more.split(' ').collect::<Vec<_>>()].concat(), folder)
}

fn residual(folder: &Path) -> f64 {
    json(&["evaluate", "m.tha", "test.csv"], folder)["relative_residual"].as_f64().unwrap()
}

#[test]
fn covering_additive_heads_recover_the_truth() {
    for (correlation, limit) in [("0", 0.02), ("0.6", 0.05)] {
        let folder = data(correlation);
        let report = fit("--subsets covering --subset-size 4 --combine additive", folder.path());
        let heads = report["heads"].as_array().unwrap();
        assert!((10..=16).contains(&heads.len()) && heads.iter().all(|head| head["weight"] == 1.0));
        assert_eq!(report["ensemble"]["coverage"], 1.0);
        let residual = residual(folder.path());
        assert!(residual < limit, "correlation {correlation}: {residual}");
    }
}

#[test]
fn correlated_inputs_are_averaged_stacked_and_added_to_the_figures_known_for_them() {
    // On other draws no convex combination reaches this: BENCHMARKS.md.
    let folder = synth("--channels 16 --rank 4 --samples 3000 --seed 2 --noise 0.05 --correlation 0.9");
    let [average, stack, additive] = ["average", "stack", "additive"].map(|combine| {
        fit(&format!("--heads 24 --subset-size 4 --combine {combine}"), folder.path());
        residual(folder.path())
    });
    assert!(average <= 0.24 && stack <= 0.18 && additive <= 0.06, "{average} {stack} {additive}");
}

#[test]
fn combinations_rank_as_they_should() {
    let folder = data("0.9");
    let mut figures = Vec::new();
    for combine in ["average", "stack", "additive"] {
        let report = fit(&format!("--heads 18 --subset-size 4 --combine {combine}"), folder.path());
        let weights: Vec<f64> =
            report["heads"].as_array().unwrap().iter().map(|head| head["weight"].as_f64().unwrap()).collect();
        if combine == "average" {
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-6 && weights.iter().all(|&w| w >= 0.0));
            let hint = report["ensemble"]["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("full model"), "{hint}");
        }
        figures.push(residual(folder.path()));
    }
    assert!(figures[1] <= figures[0] * 1.02 && figures[2] < 0.5 * figures[0], "{figures:?}");
    let inspect = json(&["inspect", "m.tha"], folder.path());
    assert_eq!(inspect["coverage"]["inputs"].as_array().unwrap().len(), 12);
    assert!(inspect["coverage"]["pair_fraction"].as_f64().unwrap() > 0.3);
}

#[test]
fn a_validation_file_chooses_nothing_and_says_what_evaluate_says() {
    let folder = data("0.9");
    let own = std::fs::read(folder.path().join("test.csv")).unwrap();
    // Outputs that have nothing to do with the inputs: a file that took part in a choice would change it.
    let shuffled: Vec<&str> = std::str::from_utf8(&own).unwrap().lines().collect();
    let turned = |(t, line): (usize, &&str)| {
        let y = shuffled[1 + (t + 500) % (shuffled.len() - 1)].rsplit(',').next().unwrap();
        format!("{},{y}\n", line.rsplit_once(',').unwrap().0)
    };
    let text: String = shuffled[1..].iter().enumerate().map(turned).collect();
    std::fs::write(folder.path().join("other.csv"), format!("{}\n{text}", shuffled[0])).unwrap();
    for combine in ["average", "stack", "additive"] {
        let arguments = format!("--heads 4 --subset-size 3 --combine {combine}");
        let heads = |file: &str| {
            let report = fit(&format!("{arguments} --val {file}"), folder.path());
            let promised = report["val"]["relative_residual"].as_f64().unwrap();
            let found = json(&["evaluate", "m.tha", file], folder.path());
            let found = found["relative_residual"].as_f64().unwrap();
            assert!((found / promised - 1.0).abs() < 1e-4, "{combine}: {promised}, {found}");
            let heads = report["heads"].as_array().unwrap().iter();
            heads.map(|head| (head["weight"].clone(), head["train_residual"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(heads("test.csv"), heads("other.csv"), "{combine}");
    }
}

/// Seeded N(0, 1) deviates.
fn deviates(seed: u64) -> impl FnMut() -> f64 {
    let mut normal = Normal::new(seed);
    move || normal.draw()
}

/// Inputs and outputs drawn independently of each other, row by row, from a seeded generator.
fn noise(inputs: usize, samples: usize, folder: &Path) {
    let mut draw = deviates(1);
    let names: Vec<String> = (1..=inputs).map(|k| format!("u{k}")).collect();
    let mut text = format!("{},y1\n", names.join(","));
    for _ in 0..samples {
        let row: Vec<String> = (0..=inputs).map(|_| draw().to_string()).collect();
        text += &(row.join(",") + "\n");
    }
    std::fs::write(folder.join("train.csv"), text).unwrap();
}

#[test]
fn noise_is_never_promised_to_be_predictable() {
    let folder = tempfile::tempdir().unwrap();
    noise(8, 1200, folder.path());
    for more in [
        "--heads 40 --subset-size 4",
        "--heads 40 --subset-size 4 --folds 3",
        "--heads 40 --subset-size 4 --combine stack",
        "--heads 40 --subset-size 4 --combine additive --max-rank 2",
        "--heads 40 --subset-size 4 --subsets adaptive",
        "--subsets per-output --subset-size 4",
        "--subsets per-output --subset-size 4 --folds 3",
        "--seed 0",
        "--folds 5",
    ] {
        let promised = fit(more, folder.path())["val"]["nrmse"][0].as_f64().unwrap();
        assert!(promised > 0.98, "{more}: {promised}");
    }
}

#[test]
fn stacked_weights_stay_near_the_simplex_where_rows_are_few() {
    let folder = synth("--channels 8 --rank 2 --samples 200 --seed 5 --noise 0.5 --correlation 0.7");
    let report = fit("--heads 30 --subset-size 3 --combine stack --no-refit", folder.path());
    let weights: Vec<f64> =
        report["heads"].as_array().unwrap().iter().map(|head| head["weight"].as_f64().unwrap()).collect();
    let size: f64 = weights.iter().map(|weight| weight.abs()).sum();
    assert!(size < 2.0, "{weights:?}");
    let promised = report["val"]["relative_residual"].as_f64().unwrap();
    let found = residual(folder.path());
    assert!(found < 1.5 * promised, "promised {promised}, found {found}");
}

#[test]
fn the_hint_speaks_of_the_ensemble() {
    let folder = synth("--channels 6 --rank 2 --samples 1500 --seed 2 --noise 0.05 --correlation 0.7");
    let report = fit("--heads 12 --subset-size 3", folder.path());
    let hint = report["ensemble"]["hint"].as_str().expect("the full model is better");
    let words: Vec<&str> = hint.split([' ', ';']).collect();
    let said: f64 = words[words.iter().position(|word| *word == "of").unwrap() + 1].parse().unwrap();
    let ensemble = report["val"]["relative_residual"].as_f64().unwrap();
    let heads = report["heads"].as_array().unwrap();
    let alone = heads.iter().map(|head| head["val_residual"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    assert!((said / ensemble - 1.0).abs() < 0.25, "said {said}, the ensemble has {ensemble}: {hint}");
    assert!(alone > 1.25 * ensemble, "the example tells heads from the ensemble: {alone}, {ensemble}");
}

#[test]
fn the_hint_names_no_way_that_gives_the_same_model() {
    let folder = synth("--channels 8 --rank 2 --samples 200 --seed 6 --noise 0.5 --correlation 0.7");
    let [average, stack] = ["average", "stack"]
        .map(|combine| fit(&format!("--heads 30 --subset-size 3 --combine {combine}"), folder.path()));
    let residual = |report: &Value| report["val"]["relative_residual"].as_f64().unwrap();
    assert!((residual(&average) - residual(&stack)).abs() < 1e-3, "the example has the same weights twice");
    for report in [average, stack] {
        let hint = report["ensemble"]["hint"].as_str().expect("the full model is better");
        assert!(!hint.contains("--combine"), "{hint}");
    }
}

#[test]
fn the_range_policy_counts_in_every_figure() {
    let folder = synth("--channels 2 --rank 2 --samples 400 --seed 5 --noise 0");
    // Recorded at a hundredth of the amplitude, and a hundred times that for validation.
    let wide = std::fs::read_to_string(folder.path().join("train.csv")).unwrap();
    let scale = |line: &str| -> String {
        let value = |text: &str| (text.parse::<f64>().unwrap() * 0.01).to_string();
        let (u, y) = line.rsplit_once(',').unwrap();
        let u: Vec<String> = u.split(',').map(value).collect();
        format!("{},{y}\n", u.join(","))
    };
    let (head, rows) = wide.split_once('\n').unwrap();
    let narrow: String = rows.lines().map(scale).collect();
    std::fs::write(folder.path().join("narrow.csv"), format!("{head}\n{narrow}")).unwrap();
    let train = ["fit", "narrow.csv", "--memory", "2", "--degree", "2", "--out", "m.tha"];
    let clamped = [&train[..], &["--range", "clamp", "--val", "train.csv"]].concat();
    let promised = json(&clamped, folder.path())["val"]["relative_residual"].as_f64().unwrap();
    let found = json(&["evaluate", "m.tha", "train.csv"], folder.path());
    let found = found["relative_residual"].as_f64().unwrap();
    assert!(found > 0.1 && (promised / found - 1.0).abs() < 1e-4, "promised {promised}, found {found}");
}

#[test]
fn every_strategy_works_and_threads_do_not_matter() {
    let folder = data("0.5");
    std::fs::write(folder.path().join("own.json"), r#"[["u1", "u2"], [2, 3, 4]]"#).unwrap();
    for strategy in ["random", "weighted", "adaptive", "file:own.json"] {
        for combine in ["average", "additive"] {
            let arguments = format!("--heads 4 --subset-size 3 --subsets {strategy} --combine {combine}");
            fit(&format!("{arguments} --threads 1"), folder.path());
            let one = std::fs::read(folder.path().join("m.tha")).unwrap();
            fit(&format!("{arguments} --threads 2"), folder.path());
            assert_eq!(one, std::fs::read(folder.path().join("m.tha")).unwrap(), "{strategy} {combine}");
        }
    }
}

#[test]
fn budgets_are_kept() {
    let folder = data("0.9");
    let free = fit("--heads 12 --subset-size 4 --combine additive", folder.path());
    for combine in ["average", "stack", "additive"] {
        let report = fit(
            &format!("--heads 12 --subset-size 4 --combine {combine} --budget-flash 2000"),
            folder.path(),
        );
        assert!(report["flash_bytes"].as_u64().unwrap() <= 2000);
        assert!(report["flash_bytes"].as_u64() < free["flash_bytes"].as_u64());
        assert_eq!(
            std::fs::metadata(folder.path().join("m.tha")).unwrap().len(),
            report["flash_bytes"].as_u64().unwrap()
        );
        let report =
            fit(&format!("--heads 12 --subset-size 4 --combine {combine} --budget-macs 150"), folder.path());
        assert!(report["macs_per_sample"].as_u64().unwrap() <= 150);
    }
    let refused = tha(&[&FIT[..], &["--heads", "3", "--budget-flash", "10"]].concat(), folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no head fits the budget"));
}

#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_bytes() {
    let folder = data("0.5");
    for combine in ["average", "additive"] {
        let arguments = format!("--heads 8 --subset-size 4 --combine {combine} --restarts 2");
        let arguments: Vec<&str> = [&FIT[..], &arguments.split(' ').collect::<Vec<_>>()].concat();
        assert!(tha(&arguments, folder.path()).status.success());
        let expected = std::fs::read(folder.path().join("m.tha")).unwrap();
        for milliseconds in [40, 150, 400] {
            let kept = folder.path().join(format!("{combine}-{milliseconds}"));
            let with_checkpoint = [&arguments[..], &["--checkpoint", kept.to_str().unwrap()]].concat();
            std::fs::remove_file(folder.path().join("m.tha")).unwrap();
            let mut killed = Command::new(env!("CARGO_BIN_EXE_tha-train"))
                .args(&with_checkpoint)
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(milliseconds));
            killed.kill().unwrap();
            killed.wait().unwrap();
            let output = tha(&with_checkpoint, folder.path());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let found = std::fs::read(folder.path().join("m.tha")).unwrap();
            assert!(found == expected, "{combine}, killed after {milliseconds} ms");
            assert!(files(&kept).len() > 8, "the heads are kept");
        }
    }
    let kept = folder.path().join("average-40");
    let other =
        [&FIT[..], &["--heads", "8", "--max-rank", "3", "--checkpoint", kept.to_str().unwrap()]].concat();
    let refused = tha(&other, folder.path());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(message.contains("--max-rank 4, this one has 3") && message.lines().count() == 1, "{message}");
}

/// The files of a checkpoint, by name, without the damaged ones.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| !path.display().to_string().contains(".damaged-")).collect();
    files.sort();
    files
}

/// Fits with some options; the bytes of the model, and the warnings.
fn model(options: &str, folder: &Path) -> (Vec<u8>, Vec<String>) {
    let output = tha(&[&FIT[..], &options.split_whitespace().collect::<Vec<_>>()].concat(), folder);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{options}: {said}");
    let warnings = said.lines().filter(|line| line.starts_with("warning: ")).map(String::from).collect();
    (std::fs::read(folder.join("m.tha")).unwrap(), warnings)
}

#[test]
fn a_checkpoint_changes_no_byte_whatever_is_in_it() {
    let folder = synth("--channels 8 --rank 2 --samples 400 --seed 3 --noise 0.02 --correlation 0.9");
    let folder = folder.path();
    for combine in ["average", "additive"] {
        let common = format!("--heads 6 --subset-size 3 --combine {combine}");
        // Options that may differ between the runs of a folder, each after what the others left there.
        for (turn, more) in
            ["", "--budget-flash 1000", "--budget-macs 150 --no-refit", "--budget-flash 700", "--range clamp"]
                .into_iter()
                .enumerate()
        {
            let (expected, _) = model(&format!("{common} {more}"), folder);
            let kept = format!("{common} {more} --checkpoint {combine}");
            assert!(model(&kept, folder) == (expected.clone(), vec![]), "{combine} {more}");
            // Any part of the files may be what an interrupted run left.
            for (k, file) in files(&folder.join(combine)).iter().enumerate() {
                if k % (turn + 2) == 0 {
                    std::fs::remove_file(file).unwrap();
                }
            }
            assert!(model(&kept, folder) == (expected, vec![]), "{combine} {more}, continued");
        }
    }
}

#[test]
fn a_damaged_checkpoint_is_found_said_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    separate("train.csv", 300, 0.05, 17, folder);
    for (name, options) in [
        ("average", "--heads 4 --subset-size 3"),
        ("additive", "--heads 5 --subset-size 3 --combine additive --budget-flash 1300"),
        ("per-output", "--subsets per-output --subset-size 2"),
    ] {
        let (expected, _) = model(options, folder);
        let options = format!("{options} --checkpoint {name}");
        assert!(model(&options, folder) == (expected.clone(), vec![]), "{name}");
        let kept = files(&folder.join(name));
        let whole: Vec<Vec<u8>> = kept.iter().map(|file| std::fs::read(file).unwrap()).collect();
        for damage in ["empty", "cut", "another file", "a model", "a directory", "1", "2", "3", "4", "5"] {
            for (k, file) in kept.iter().enumerate() {
                std::fs::remove_file(file).unwrap();
                let mut bytes = match damage {
                    "a directory" => {
                        std::fs::create_dir(file).unwrap();
                        continue;
                    }
                    "empty" => vec![],
                    "cut" => whole[k][..whole[k].len() / 2].to_vec(),
                    "another file" => whole[(k + 1) % whole.len()].clone(),
                    "a model" => expected.clone(),
                    _ => whole[k].clone(),
                };
                if let Ok(round) = damage.parse::<usize>() {
                    let bit = round * (k + 1) * 7919 % (8 * bytes.len());
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                std::fs::write(file, bytes).unwrap();
            }
            let (found, warnings) = model(&options, folder);
            assert!(found == expected, "{name}, {damage}");
            for file in &kept {
                let named = file.file_name().unwrap().to_str().unwrap();
                let about = warnings.iter().filter(|line| line.contains(named)).count();
                assert_eq!(about, 1, "{name}, {damage}, {named}: {warnings:?}");
            }
            assert_eq!(warnings.len(), kept.len(), "{name}, {damage}");
        }
    }
}

#[test]
fn wrong_ensembles_are_refused_in_one_line() {
    let folder = data("0");
    for (more, word) in [
        ("--combine stack", "add --heads"),
        ("--heads 0", "--heads"),
        ("--heads 4 --subset-size 13", "--subset-size"),
        ("--subsets random", "--heads"),
        ("--heads 4 --subsets wild", "wild"),
        ("--heads 4 --subsets file:none.json", "none.json"),
        ("--heads 4 --subsets per-output", "--heads"),
        ("--subsets per-output --combine average", "--combine"),
        ("--subsets per-output --budget-flash 20 -q", "budget"),
    ] {
        let arguments = [&FIT[..], &more.split(' ').collect::<Vec<_>>()].concat();
        let output = tha(&arguments, folder.path());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{more}: {message}");
        assert!(message.contains(word) && message.lines().count() == 1, "{more}: {message}");
        assert!(!folder.path().join("m.tha").exists());
    }
}

/// Six inputs; y1 depends on u1 and u2, y2 on u3 and u4, y3 on u5 alone.
fn separate(name: &str, samples: usize, noise: f64, seed: u64, folder: &Path) {
    let mut draw = deviates(seed);
    let mut text = "u1,u2,u3,u4,u5,u6,y1,y2,y3\n".to_owned();
    let mut before = [0.0; 6];
    for _ in 0..samples {
        let u: [f64; 6] = std::array::from_fn(|_| draw());
        let y = [u[0] + before[1] * u[1], 5.0 + u[2] * u[3] - before[3], before[4] * u[4]];
        let y = y.map(|y| y + noise * draw());
        let row: Vec<String> = u.iter().chain(&y).map(f64::to_string).collect();
        text += &(row.join(",") + "\n");
        before = u;
    }
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn every_output_finds_its_own_inputs() {
    let folder = tempfile::tempdir().unwrap();
    separate("train.csv", 800, 0.05, 17, folder.path());
    separate("test.csv", 800, 0.0, 18, folder.path());
    let names = |report: &Value| -> Vec<String> {
        let heads = report["heads"].as_array().unwrap().iter();
        heads.map(|head| head["inputs"].to_string().replace('"', "")).collect()
    };
    for judge in ["--val-fraction 0.2", "--folds 3"] {
        let report = fit(&format!("--subsets per-output --subset-size 2 {judge}"), folder.path());
        assert_eq!(names(&report)[..2], ["[u1,u2]", "[u3,u4]"], "{judge}");
        assert!(names(&report)[2].contains("u5"), "{judge}");
        assert!(residual(folder.path()) < 0.02, "{judge}: {}", residual(folder.path()));
    }
    let expected = std::fs::read(folder.path().join("m.tha")).unwrap();
    for more in ["--threads 1", "--checkpoint kept", "--checkpoint kept"] {
        fit(&format!("--subsets per-output --subset-size 2 --folds 3 {more}"), folder.path());
        assert!(expected == std::fs::read(folder.path().join("m.tha")).unwrap(), "{more}");
    }
}

#[test]
fn every_combination_is_validated_on_folds() {
    let folder = data("0.6");
    for (more, limit) in [
        ("--heads 20 --subset-size 4 --combine stack", 0.6),
        ("--subsets covering --subset-size 4 --combine additive", 0.05),
    ] {
        let report = fit(&format!("{more} --folds 3"), folder.path());
        assert_eq!(report["val"]["samples"], 1499, "every sample is validated once");
        let (promised, found) =
            (report["val"]["relative_residual"].as_f64().unwrap(), residual(folder.path()));
        // The recording has 2 % of noise, the test file has none; a fold has seen two thirds of the rows.
        assert!(found < promised && promised < limit, "{more}: promised {promised}, found {found}");
    }
}

#[test]
fn fewer_heads_than_asked_for_are_explained() {
    let folder = synth("--channels 3 --samples 300");
    let asked = "--heads 1000 --subset-size 2";
    let report = fit(asked, folder.path());
    assert_eq!((&report["heads_asked"], &report["ensemble"]["heads_before"]), (&1000.into(), &3.into()));
    assert!(fit("--heads 3 --subset-size 2", folder.path())["heads_asked"].is_null());
    let words = tha(&[&FIT[..], &asked.split(' ').collect::<Vec<_>>()].concat(), folder.path()).stdout;
    let words = String::from_utf8_lossy(&words);
    assert!(
        words.contains("3 heads of the 1000 asked for: the inputs have no more distinct subsets"),
        "{words}"
    );
}
