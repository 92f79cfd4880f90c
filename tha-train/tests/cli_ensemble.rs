//! Ensembles through the command line: combinations, strategies, budgets, validation.

mod cli_common;
#[path = "cli_common/ensembles.rs"]
mod ensembles;

use cli_common::{Bench, number, text};
use ensembles::{FIT, fit, noise, residual, separate, synth};
use serde_json::Value;

/// Twelve inputs, M = 2, d = 2, 2 % noise.
fn data(correlation: &str) -> Bench {
    synth(&format!("--channels 12 --rank 3 --samples 1500 --seed 3 --noise 0.02 --correlation {correlation}"))
}

/// A figure of every head.
fn of_heads(report: &Value, field: &str) -> Vec<f64> {
    report["heads"].as_array().unwrap().iter().map(|head| head[field].as_f64().unwrap()).collect()
}

#[test]
fn covering_additive_heads_recover_the_truth() {
    for (correlation, limit) in [("0", 0.02), ("0.6", 0.05)] {
        let bench = data(correlation);
        let report = fit("--subsets covering --subset-size 4 --combine additive", &bench);
        let heads = report["heads"].as_array().unwrap();
        assert!((10..=16).contains(&heads.len()) && heads.iter().all(|head| head["weight"] == 1.0));
        assert_eq!(report["ensemble"]["coverage"], 1.0);
        let residual = residual(&bench);
        assert!(residual < limit, "correlation {correlation}: {residual}");
    }
}

#[test]
fn correlated_inputs_are_averaged_stacked_and_added_to_the_figures_known_for_them() {
    // On other draws no convex combination reaches this: BENCHMARKS.md.
    let bench = synth("--channels 16 --rank 4 --samples 3000 --seed 2 --noise 0.05 --correlation 0.9");
    let [average, stack, additive] = ["average", "stack", "additive"].map(|combine| {
        fit(&format!("--heads 24 --subset-size 4 --combine {combine}"), &bench);
        residual(&bench)
    });
    assert!(average <= 0.24 && stack <= 0.18 && additive <= 0.06, "{average} {stack} {additive}");
}

#[test]
fn combinations_rank_as_they_should() {
    let bench = data("0.9");
    let mut figures = Vec::new();
    for combine in ["average", "stack", "additive"] {
        let report = fit(&format!("--heads 18 --subset-size 4 --combine {combine}"), &bench);
        let weights = of_heads(&report, "weight");
        if combine == "average" {
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-6 && weights.iter().all(|&w| w >= 0.0));
            let hint = report["ensemble"]["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("full model"), "{hint}");
        }
        figures.push(residual(&bench));
    }
    assert!(figures[1] <= figures[0] * 1.02 && figures[2] < 0.5 * figures[0], "{figures:?}");
    let inspect = bench.json("inspect m.tha");
    assert_eq!(inspect["coverage"]["inputs"].as_array().unwrap().len(), 12);
    assert!(inspect["coverage"]["pair_fraction"].as_f64().unwrap() > 0.3);
}

#[test]
fn a_validation_file_chooses_nothing_and_says_what_evaluate_says() {
    let bench = data("0.9");
    let own = bench.read("test.csv");
    // Outputs that have nothing to do with the inputs: a file that took part in a choice would change it.
    let shuffled: Vec<&str> = std::str::from_utf8(&own).unwrap().lines().collect();
    let turned = |(t, line): (usize, &&str)| {
        let y = shuffled[1 + (t + 500) % (shuffled.len() - 1)].rsplit(',').next().unwrap();
        format!("{},{y}\n", line.rsplit_once(',').unwrap().0)
    };
    let text: String = shuffled[1..].iter().enumerate().map(turned).collect();
    bench.write("other.csv", format!("{}\n{text}", shuffled[0]));
    for combine in ["average", "stack", "additive"] {
        let arguments = format!("--heads 4 --subset-size 3 --combine {combine}");
        let heads = |file: &str| {
            let report = fit(&format!("{arguments} --val {file}"), &bench);
            let promised = number(&report, "/val/relative_residual");
            let found = number(&bench.json(&format!("evaluate m.tha {file}")), "/relative_residual");
            assert!((found / promised - 1.0).abs() < 1e-4, "{combine}: {promised}, {found}");
            let heads = report["heads"].as_array().unwrap().iter();
            heads.map(|head| (head["weight"].clone(), head["train_residual"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(heads("test.csv"), heads("other.csv"), "{combine}");
    }
}

#[test]
fn noise_is_never_promised_to_be_predictable() {
    let bench = Bench::new();
    noise(8, 1200, &bench);
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
        let promised = number(&fit(more, &bench), "/val/nrmse/0");
        assert!(promised > 0.98, "{more}: {promised}");
    }
}

#[test]
fn stacked_weights_stay_near_the_simplex_where_rows_are_few() {
    let bench = synth("--channels 8 --rank 2 --samples 200 --seed 5 --noise 0.5 --correlation 0.7");
    let report = fit("--heads 30 --subset-size 3 --combine stack --no-refit", &bench);
    let weights = of_heads(&report, "weight");
    let size: f64 = weights.iter().map(|weight| weight.abs()).sum();
    assert!(size < 2.0, "{weights:?}");
    let promised = number(&report, "/val/relative_residual");
    let found = residual(&bench);
    assert!(found < 1.5 * promised, "promised {promised}, found {found}");
}

#[test]
fn the_hint_speaks_of_the_ensemble() {
    let bench = synth("--channels 6 --rank 2 --samples 1500 --seed 2 --noise 0.05 --correlation 0.7");
    let report = fit("--heads 12 --subset-size 3", &bench);
    let hint = report["ensemble"]["hint"].as_str().expect("the full model is better");
    let words: Vec<&str> = hint.split([' ', ';']).collect();
    let said: f64 = words[words.iter().position(|word| *word == "of").unwrap() + 1].parse().unwrap();
    let ensemble = number(&report, "/val/relative_residual");
    let alone = of_heads(&report, "val_residual").into_iter().fold(f64::INFINITY, f64::min);
    assert!((said / ensemble - 1.0).abs() < 0.25, "said {said}, the ensemble has {ensemble}: {hint}");
    assert!(alone > 1.25 * ensemble, "the example tells heads from the ensemble: {alone}, {ensemble}");
}

#[test]
fn the_hint_names_no_way_that_gives_the_same_model() {
    let bench = synth("--channels 8 --rank 2 --samples 200 --seed 6 --noise 0.5 --correlation 0.7");
    let [average, stack] = ["average", "stack"]
        .map(|combine| fit(&format!("--heads 30 --subset-size 3 --combine {combine}"), &bench));
    let residual = |report: &Value| number(report, "/val/relative_residual");
    assert!((residual(&average) - residual(&stack)).abs() < 1e-3, "the example has the same weights twice");
    for report in [average, stack] {
        let hint = report["ensemble"]["hint"].as_str().expect("the full model is better");
        assert!(!hint.contains("--combine"), "{hint}");
    }
}

#[test]
fn the_range_policy_counts_in_every_figure() {
    let bench = synth("--channels 2 --rank 2 --samples 400 --seed 5 --noise 0");
    // Recorded at a hundredth of the amplitude, and a hundred times that for validation.
    let wide = text(&bench.read("train.csv"));
    let scale = |line: &str| -> String {
        let value = |text: &str| (text.parse::<f64>().unwrap() * 0.01).to_string();
        let (u, y) = line.rsplit_once(',').unwrap();
        let u: Vec<String> = u.split(',').map(value).collect();
        format!("{},{y}\n", u.join(","))
    };
    let (head, rows) = wide.split_once('\n').unwrap();
    let narrow: String = rows.lines().map(scale).collect();
    bench.write("narrow.csv", format!("{head}\n{narrow}"));
    let clamped = "fit narrow.csv --memory 2 --degree 2 --out m.tha --range clamp --val train.csv";
    let promised = number(&bench.json(clamped), "/val/relative_residual");
    let found = number(&bench.json("evaluate m.tha train.csv"), "/relative_residual");
    assert!(found > 0.1 && (promised / found - 1.0).abs() < 1e-4, "promised {promised}, found {found}");
}

#[test]
fn every_strategy_works_and_threads_do_not_matter() {
    let bench = data("0.5");
    bench.write("own.json", r#"[["u1", "u2"], [2, 3, 4]]"#);
    for strategy in ["random", "weighted", "adaptive", "file:own.json"] {
        for combine in ["average", "additive"] {
            let arguments = format!("--heads 4 --subset-size 3 --subsets {strategy} --combine {combine}");
            fit(&format!("{arguments} --threads 1"), &bench);
            let one = bench.read("m.tha");
            fit(&format!("{arguments} --threads 2"), &bench);
            assert_eq!(one, bench.read("m.tha"), "{strategy} {combine}");
        }
    }
    let heads = bench.json("inspect m.tha")["heads"].clone();
    let inputs: Vec<&Value> = heads.as_array().unwrap().iter().map(|head| &head["inputs"]).collect();
    assert_eq!(
        inputs,
        [&serde_json::json!(["u1", "u2"]), &serde_json::json!(["u3", "u4", "u5"])],
        "names or indices"
    );
}

#[test]
fn budgets_are_kept() {
    let bench = data("0.9");
    let free = fit("--heads 12 --subset-size 4 --combine additive", &bench);
    for combine in ["average", "stack", "additive"] {
        let report =
            fit(&format!("--heads 12 --subset-size 4 --combine {combine} --budget-flash 2000"), &bench);
        assert!(report["flash_bytes"].as_u64().unwrap() <= 2000);
        assert!(report["flash_bytes"].as_u64() < free["flash_bytes"].as_u64());
        assert_eq!(bench.read("m.tha").len() as u64, report["flash_bytes"].as_u64().unwrap());
        let report =
            fit(&format!("--heads 12 --subset-size 4 --combine {combine} --budget-macs 150"), &bench);
        assert!(report["macs_per_sample"].as_u64().unwrap() <= 150);
    }
    let refused = bench.run(&format!("{FIT} --heads 3 --budget-flash 10"));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no head fits the budget"));
}

#[test]
fn every_output_finds_its_own_inputs() {
    let bench = Bench::new();
    separate("train.csv", 800, 0.05, 17, &bench);
    separate("test.csv", 800, 0.0, 18, &bench);
    let names = |report: &Value| -> Vec<String> {
        let heads = report["heads"].as_array().unwrap().iter();
        heads.map(|head| head["inputs"].to_string().replace('"', "")).collect()
    };
    for judge in ["--val-fraction 0.2", "--folds 3"] {
        let report = fit(&format!("--subsets per-output --subset-size 2 {judge}"), &bench);
        assert_eq!(names(&report)[..2], ["[u1,u2]", "[u3,u4]"], "{judge}");
        assert!(names(&report)[2].contains("u5"), "{judge}");
        assert!(residual(&bench) < 0.02, "{judge}: {}", residual(&bench));
    }
    let expected = bench.read("m.tha");
    for more in ["--threads 1", "--checkpoint kept", "--checkpoint kept"] {
        fit(&format!("--subsets per-output --subset-size 2 --folds 3 {more}"), &bench);
        assert!(expected == bench.read("m.tha"), "{more}");
    }
}

#[test]
fn every_combination_is_validated_on_folds() {
    let bench = data("0.6");
    for (more, limit) in [
        ("--heads 20 --subset-size 4 --combine stack", 0.6),
        ("--subsets covering --subset-size 4 --combine additive", 0.05),
    ] {
        let report = fit(&format!("{more} --folds 3"), &bench);
        assert_eq!(report["val"]["samples"], 1499, "every sample is validated once");
        let (promised, found) = (number(&report, "/val/relative_residual"), residual(&bench));
        // The recording has 2 % of noise, the test file has none; a fold has seen two thirds of the rows.
        assert!(found < promised && promised < limit, "{more}: promised {promised}, found {found}");
    }
}

#[test]
fn fewer_heads_than_asked_for_are_explained() {
    let bench = synth("--channels 3 --samples 300");
    let asked = "--heads 1000 --subset-size 2";
    let report = fit(asked, &bench);
    assert_eq!((&report["heads_asked"], &report["ensemble"]["heads_before"]), (&1000.into(), &3.into()));
    assert!(fit("--heads 3 --subset-size 2", &bench)["heads_asked"].is_null());
    let words = bench.ok(&format!("{FIT} {asked}"));
    assert!(
        words.contains("3 heads of the 1000 asked for: the inputs have no more distinct subsets"),
        "{words}"
    );
}
