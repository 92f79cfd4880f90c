//! The whole path as a user goes it: synth, fit, analyze, export, build the C and the Rust, stream. What comes out of both
//! programs is what tha-core gives in this process, to the bit.

mod bits;

use bits::{MAIN_C, MAIN_RUST, fed, stream};
use std::path::Path;
use tha_firmware_sim::model_file::ModelFile;
use tha_tests::{Bench, root, value};
use tha_train::Source;

/// Filters, maps and a linear part that goes on: fitted, analysed, evaluated and streamed like lags.
#[test]
fn filters_and_maps_from_data_to_the_stream() {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    bench.ok("tha-train synth --kind array --channels 4 --outputs 2 --memory 6 --samples 900 --test-samples 400 --out d -q");
    let nrmse = |options: &str, name: &str| {
        let shape = "--degree 2 --max-rank 2 --restarts 1 -q --force";
        let fitted = bench.json(&format!("tha-train fit d/train.csv --out {name} {options} {shape}"));
        (value(&bench.json(&format!("tha-train evaluate {name} d/test.csv"))["nrmse"]), fitted)
    };
    let (now, _) = nrmse("--memory 1", "now.tha");
    for (basis, maps, range) in
        [("levels:8", "4", "extend"), ("differences:4", "none", "clamp"), ("kautz:0.6,0.3,2", "3", "pass")]
    {
        let stage = format!("--basis {basis} --maps {maps} --range {range}");
        let (full, fitted) = nrmse(&stage, "full.tha");
        assert_eq!((&fitted["basis"], &fitted["range_policy"]), (&basis.into(), &range.into()));
        assert!(full < 0.8 * now, "{basis}: {full}, without memory {now}");
        let file = ModelFile::read(&bench.path("full.tha")).unwrap();
        assert_eq!(value(&fitted["macs_per_sample"]) as usize, file.model().macs(), "as the device counts");
        let shown = bench.ok("tha-train inspect full.tha");
        assert!(shown.contains("settled from sample"), "{shown}");
        let (heads, _) = nrmse(&format!("{stage} --heads 3 --subset-size 2"), "heads.tha");
        assert!(heads < 1.0, "{basis}: {heads}");
        let analysis = bench.json("tha-train analyze --full full.tha --ensemble heads.tha d/test.csv");
        assert!(value(&analysis["identity_gap"]) < 1e-9, "{basis}: {analysis}");
        for model in ["full.tha", "heads.tha"] {
            let replay = bench.json(&format!("tha-firmware-sim run {model} d/test.csv"));
            assert!(replay["bit_exact"] == true && replay["ok"] == true, "{replay}");
        }
    }
    let said = bench.refusal("tha-train analyze --full now.tha --ensemble heads.tha d/test.csv");
    assert!(said.contains("--basis"), "{said}");
}

#[test]
fn from_data_to_the_same_bits_in_c_and_rust() {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    bench.ok("tha-train synth --kind array --channels 5 --outputs 2 --memory 3 --samples 800 --test-samples 400 --out d -q");
    let shape = "--memory 3 --degree 2 --max-rank 2 --restarts 1 --range clamp -q";
    bench.ok(&format!("tha-train fit d/train.csv --out full.tha {shape}"));
    bench.ok(&format!(
        "tha-train fit d/train.csv --out model.tha --heads 4 --subset-size 3 --combine stack {shape}"
    ));
    // Exit code 1, and so a panic here, if a theorem does not hold.
    let analysis =
        bench.ok("tha-train analyze --full full.tha --ensemble model.tha d/test.csv --json --report r.html");
    assert!(analysis.contains("\"theorem1\""));
    assert!(bench.read("r.html").ends_with("</html>\n"));
    let replay = bench.ok("tha-firmware-sim run model.tha d/test.csv --json");
    assert!(replay.contains("\"bit_exact\":true") && replay.contains("\"ok\":true"), "{replay}");
    bench.ok("tha-train export model.tha --to c --out c -q");
    bench.ok("tha-train export model.tha --to rust --out rust/src -q");

    let file = ModelFile::read(&bench.path("model.tha")).unwrap();
    let data =
        Source::from_path(&bench.path("d/test.csv")).unwrap().read(&file.batch().columns(false)).unwrap();
    // The second half runs beyond the training range, and so through the clamp and its flags.
    let gain = |t: usize| if t < data.len() / 2 { 1.0 } else { 3.0 };
    let samples: Vec<Vec<f32>> =
        (0..data.len()).map(|t| data.u.iter().map(|u| (gain(t) * u[t]) as f32).collect()).collect();
    let expected = stream(file.bytes(), &samples);
    assert_eq!(expected.lines().filter(|line| line.starts_with("0 ")).count(), data.len() - 2);
    let flagged = |line: &str| line.starts_with("0 ") && !line.starts_with("0 0 ");
    assert!(expected.lines().any(|line| line.starts_with("0 0 ")) && expected.lines().any(flagged));

    bench.write("c/main.c", MAIN_C);
    bench.ok("cd c && gcc -std=c99 -Wall -Wextra -Werror -O2 -ffp-contract=off main.c model.c -o main");
    assert!(fed(&bench.path("c/main"), &samples) == expected, "the C program gives other bits");

    bench.write("rust/src/main.rs", MAIN_RUST);
    let manifest = format!(
        "[package]\nname = \"exported\"\nedition = \"2024\"\n\n[dependencies]\ntha-core.path = {:?}\n\n[workspace]\n",
        root().join("tha-core")
    );
    bench.write("rust/Cargo.toml", manifest);
    // The versions of the workspace, which are on this machine already: no network.
    std::fs::copy(root().join("Cargo.lock"), bench.path("rust/Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exported");
    let cargo = format!("CARGO_TARGET_DIR={target:?} {:?}", env!("CARGO"));
    bench.ok(&format!("cd rust && {cargo} build --offline --quiet"));
    assert!(fed(&target.join("debug/exported"), &samples) == expected, "the Rust program gives other bits");
}

/// Whatever 32-bit numbers can hold, in files, models and streams, gives the same model: units do not matter.
#[test]
fn units_do_not_matter() {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    bench.ok(
        "tha-train synth --kind volterra --memory 2 --degree 2 --samples 300 --test-samples 100 --out . -q",
    );
    for unit in [1e-34, 1e-30, 1e30, 1e35] {
        for file in ["train.csv", "test.csv"] {
            let text = bench.read(file);
            let (head, rows) = text.split_once('\n').unwrap();
            let scaled = |field: &str| format!("{:e}", unit * field.parse::<f64>().unwrap());
            let row = |row: &str| row.split(',').map(scaled).collect::<Vec<_>>().join(",") + "\n";
            let rows: String = rows.lines().map(row).collect();
            bench.write(&format!("unit_{file}"), format!("{head}\n{rows}"));
        }
        bench.ok("tha-train fit unit_train.csv --memory 2 --degree 2 --out m.tha --report r.html -q");
        let nrmse = value(&bench.json("tha-train evaluate m.tha unit_test.csv -q")["nrmse"]);
        assert!(nrmse < 0.03, "{unit}: {nrmse}");
        bench.ok("tha-train predict m.tha unit_test.csv --out p.csv -q");
        let prediction = bench.read("p.csv");
        let largest = prediction.lines().filter_map(|line| line.parse::<f64>().ok()).fold(0.0, f64::max);
        assert!((0.5..50.0).contains(&(largest / unit)), "{unit}: {largest}");
        let run = bench.json("tha-firmware-sim run m.tha unit_test.csv --target host");
        assert_eq!(run["ok"], true, "{unit}: {run}");
        assert!(value(&run["max_abs_error"]) < 1e-5 * unit, "{unit}: {run}");
        let watched = bench.ok("tha-firmware-sim watch m.tha unit_test.csv --plain");
        let last: Vec<f64> =
            watched.lines().last().unwrap().split(',').filter_map(|field| field.parse().ok()).collect();
        assert!((last[1] - last[2]).abs() < 0.2 * unit && last[1] != 0.0, "{unit}: {last:?}");
    }
}
