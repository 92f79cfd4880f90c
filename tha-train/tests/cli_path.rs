//! The ordinary path through the commands, and the JSON fields scripts rely on.

mod cli_common;

use cli_common::{Bench, number, text};
use ndarray::{Array1, Array2};
use serde_json::Value;

#[test]
fn synth_fit_evaluate_predict_inspect() {
    let bench = Bench::new();
    let made =
        bench.json("synth --kind volterra --memory 3 --degree 2 --samples 600 --test-samples 300 --out data");
    assert_eq!(made["files"].as_array().unwrap().len(), 4);
    let truth: Value = serde_json::from_slice(&bench.read("data/truth.json")).unwrap();
    assert_eq!(truth["options"]["memory"], 3);

    let fit = bench.json("fit data/train.csv --out m.tha --memory 3 --degree 2");
    for part in ["train", "val"] {
        assert!(number(&fit, &format!("/{part}/relative_residual")) < 0.02, "{fit}");
        assert!(number(&fit, &format!("/{part}/nrmse/0")) < 0.02);
        assert!(number(&fit, &format!("/{part}/rmse/0")) < 0.02);
    }
    assert_eq!(number(&fit, "/train/samples"), 598.0, "refitted on everything");
    assert_eq!(number(&fit, "/val/samples"), 120.0, "the last fifth");
    let head = &fit["heads"][0];
    assert_eq!(head["inputs"], serde_json::json!(["u1", "u2"]));
    assert_eq!(head["ranks"].as_array().unwrap().len(), 1);
    for field in ["weight", "train_residual", "val_residual", "sweeps", "seconds"] {
        assert!(head[field].is_number(), "{field}");
    }
    let parameters = number(&fit, "/parameters");
    assert_eq!(number(&fit, "/macs_per_sample"), parameters);
    assert_eq!(number(&fit, "/flash_bytes"), bench.read("m.tha").len() as f64);
    assert!(number(&fit, "/flash_bytes") > 4.0 * parameters);
    assert!(number(&fit, "/seconds") > 0.0);
    if cfg!(target_os = "linux") {
        assert!(number(&fit, "/peak_rss_mb") > 1.0);
    }

    let figures = bench.json("evaluate m.tha data/test.csv");
    assert!(number(&figures, "/relative_residual") < 0.01, "{figures}");
    assert_eq!(number(&figures, "/samples"), 298.0);
    for pointer in ["/rmse", "/nrmse", "/r2", "/outputs/0/rmse", "/outputs/0/nrmse", "/outputs/0/r2"] {
        number(&figures, pointer);
    }
    assert_eq!(figures["outputs"][0]["name"], "y1");

    bench.ok("predict m.tha data/test.csv --out p.csv -q");
    let prediction = text(&bench.read("p.csv"));
    let lines: Vec<&str> = prediction.lines().collect();
    assert_eq!(lines.len(), 301);
    assert_eq!(lines[..3], ["yhat_y1", "\"\"", "\"\""]);
    lines[3].parse::<f64>().unwrap();

    let shown = bench.json("inspect m.tha");
    assert_eq!(shown["memory"], 3);
    assert_eq!(number(&shown, "/macs_per_sample"), parameters);
    assert_eq!(shown["flash_bytes"], fit["flash_bytes"]);
    assert_eq!(shown["heads"][0]["ranks"], head["ranks"]);
    assert_eq!(shown["provenance"]["seed"], 0);
    assert!(bench.ok("inspect m.tha").contains("2 inputs, 1 output, memory 3, degree 2, 1 head"));
}

#[test]
fn records_warm_up_on_their_own() {
    let bench = Bench::synth("--kind volterra --memory 3 --degree 1 --samples 300 --out data");
    bench.ok("fit data/train.csv --out m.tha --memory 3 --degree 1 -q");
    bench.write("r.csv", "record,u1,u2\na,1,1\na,1,1\na,1,1\nb,2,2\nb,2,2\nc,1,1\nc,1,1\nc,1,1\nc,1,1\n");
    bench.ok("predict m.tha r.csv --out p.csv -q");
    let prediction = text(&bench.read("p.csv"));
    let empty: Vec<bool> = prediction.lines().skip(1).map(|line| line == "\"\"").collect();
    assert_eq!(empty, [true, true, false, true, true, true, true, false, false]);
    for name in ["Record", " RECORD "] {
        bench.write("r2.csv", text(&bench.read("r.csv")).replace("record", name));
        bench.ok("predict m.tha r2.csv --out p2.csv -q");
        assert_eq!(text(&bench.read("p2.csv")), prediction, "{name}");
    }
}

#[test]
fn other_ways_of_choosing() {
    let bench = Bench::synth("--kind wiener-hammerstein --memory 3 --degree 2 --samples 500 --out data");
    let fit = "fit data/train.csv --memory 3 --degree 2 --out m.tha";
    let by_file = bench.json(&format!("{fit} --val data/test.csv"));
    assert_eq!(number(&by_file, "/val/samples"), 998.0);
    assert!(number(&by_file, "/val/relative_residual") < 0.05, "{by_file}");
    let by_folds = bench.json(&format!("{fit} --folds 3"));
    assert_eq!(number(&by_folds, "/val/samples"), 498.0, "every sample is judged once");
    assert_eq!(number(&by_folds, "/train/samples"), 498.0);
    let kept = bench.json(&format!("{fit} --no-refit --val-fraction 0.4"));
    assert_eq!(number(&kept, "/train/samples"), 299.0);
    assert_eq!(number(&kept, "/val/samples"), 199.0);
}

#[test]
fn the_range_policy_is_stored_and_obeyed() {
    let bench = Bench::synth("--kind volterra --memory 1 --degree 1 --channels 1 --samples 200 --out data");
    bench.write("far.csv", "u1\n1000\n2000\n");
    for (policy, clamped) in [("pass", false), ("clamp", true)] {
        bench.ok(&format!("fit data/train.csv --memory 1 --degree 1 --out m.tha -q --range {policy}"));
        bench.ok("predict m.tha far.csv --out p.csv -q");
        let prediction = text(&bench.read("p.csv"));
        let values: Vec<&str> = prediction.lines().skip(1).collect();
        assert_eq!(values[0] == values[1], clamped, "{policy}: {values:?}");
        assert_eq!(bench.json("inspect m.tha")["range"], policy);
    }
}

#[test]
fn a_constant_input_is_a_warning() {
    let bench = Bench::new();
    let rows: String =
        (0..40).map(|t| format!("{},5,{}\n", f64::from(t).sin(), f64::from(t).cos())).collect();
    bench.write("d.csv", format!("u1,u2,y1\n{rows}"));
    let said = bench.said("fit d.csv --out m.tha --memory 2 --degree 1");
    assert!(said.contains("warning: d.csv: input 'u2' is constant"), "{said}");
}

/// The fit itself is in f64 and excellent; the device would be useless.
#[test]
fn an_offset_that_eats_the_digits_of_f32_is_a_warning() {
    let bench = Bench::new();
    let rows = |offset: f64| -> String {
        let value = |t: u32| (offset + f64::from(t).sin(), f64::from(t).cos());
        (0..40).map(value).map(|(a, b)| format!("{a:.4},{b:.4},{:.4}\n", a + b)).collect()
    };
    for (offset, count) in [(1e8, 2), (1e4, 0)] {
        bench.write("d.csv", format!("u1,u2,y1\n{}", rows(offset)));
        let said = bench.said("fit d.csv --out m.tha --memory 2 --degree 1");
        assert_eq!(said.matches("warning: d.csv: ").count(), count, "{said}");
        for channel in ["input 'u1' moves by 7.0e-1 around 1.000e8", "output 'y1' moves by"] {
            assert_eq!(said.contains(channel), count > 0, "{said}");
        }
        assert_eq!(said.matches("subtract it before, here and on the device, or send counts").count(), count);
    }
}

#[test]
fn numpy_files_work_as_csv_does() {
    let bench = Bench::synth("--kind volterra --memory 2 --degree 2 --samples 300 --out data");
    let csv = text(&bench.read("data/train.csv"));
    let rows: Vec<Vec<f64>> =
        csv.lines().skip(1).map(|line| line.split(',').map(|v| v.parse().unwrap()).collect()).collect();
    let u = Array2::from_shape_fn((rows.len(), 2), |(t, i)| rows[t][i]);
    let y = Array1::from_shape_fn(rows.len(), |t| rows[t][2]);
    ndarray_npy::write_npy(bench.path("u.npy"), &u).unwrap();
    ndarray_npy::write_npy(bench.path("y.npy"), &y).unwrap();
    let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(bench.path("d.npz")).unwrap());
    archive.add_array("u", &u).unwrap();
    archive.add_array("y", &y).unwrap();
    archive.finish().unwrap();

    let fit = "--memory 2 --degree 2 -q --out";
    bench.ok(&format!("fit data/train.csv {fit} csv.tha"));
    bench.ok(&format!("fit d.npz {fit} npz.tha"));
    bench.ok(&format!("fit --u u.npy --y y.npy {fit} npy.tha"));
    assert_eq!(bench.read("csv.tha"), bench.read("npz.tha"));
    assert_eq!(bench.read("csv.tha"), bench.read("npy.tha"));
    let expected = bench.ok("evaluate csv.tha data/train.csv --json");
    assert_eq!(bench.ok("evaluate csv.tha d.npz --json"), expected);
    assert_eq!(bench.ok("evaluate csv.tha --u u.npy --y y.npy --json"), expected);
    bench.ok("predict csv.tha --u u.npy --out p.csv -q");
    assert_eq!(text(&bench.read("p.csv")).lines().count(), 301);
}

#[test]
fn a_constant_output_does_not_leave_the_totals_in_silence() {
    let bench = Bench::new();
    let file = |constant: f64| {
        let row = |t: i32| format!("{},{},{constant}\n", f64::from(t).sin(), 2.0 * f64::from(t).sin());
        format!("u1,y1,y2\n{}", (0..60).map(row).collect::<String>())
    };
    bench.write("train.csv", file(1.0).replacen(",1\n", ",1.5\n", 20));
    bench.write("test.csv", file(1001.0));
    bench.ok("fit train.csv --out m.tha --memory 1 --degree 1 -q");
    let figures = bench.json("evaluate m.tha test.csv");
    assert_eq!(figures["without_nrmse"], serde_json::json!(["y2"]));
    assert_eq!(figures["nrmse_outputs"], 1);
    assert!(figures["outputs"][1]["nrmse"].is_null() && figures["outputs"][1]["r2"].is_null(), "{figures}");
    assert!(number(&figures, "/outputs/1/rmse") > 990.0 && number(&figures, "/rmse") > 700.0, "{figures}");
    assert!(number(&figures, "/relative_residual") > 0.9, "{figures}");
    let said = bench.ok("evaluate m.tha test.csv");
    assert!(said.contains("NRMSE and R2 over 1 of 2 outputs; constant and without them: 'y2'"), "{said}");

    // No output has a figure: the total is none, and the choice on such samples still works.
    bench.ok("fit train.csv --outputs y2 --out c.tha --memory 1 --degree 2 -q");
    assert!(bench.json("evaluate c.tha test.csv")["nrmse"].is_null());
    for judge in [
        "--val test.csv",
        "--folds 2",
        "--heads 1 --subset-size 1",
        "--val test.csv --heads 1 --subset-size 1",
    ] {
        let fit = bench.json(&format!("fit test.csv --outputs y* --out c.tha --memory 2 --degree 2 {judge}"));
        assert_eq!(fit["val"]["without_nrmse"], serde_json::json!(["y2"]), "{judge}");
        assert!(number(&fit, "/val/nrmse/0") < 1e-3, "{judge}: {fit}");
    }
}

#[test]
fn inputs_outside_of_the_training_range_are_named() {
    let bench =
        Bench::synth("--kind volterra --memory 2 --degree 2 --samples 300 --test-samples 100 --out data");
    bench.ok("fit data/train.csv --out m.tha --memory 2 --degree 2 -q");
    let (csv, none) = (text(&bench.read("data/train.csv")), serde_json::json!([]));
    assert_eq!(bench.json("evaluate m.tha data/train.csv")["out_of_range"], none, "the training data itself");
    assert_eq!(bench.said("evaluate m.tha data/train.csv"), "");
    // The second input in thousandths, but for one sample of 0.
    let row = |(t, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(',').collect();
        let other = if t == 5 { 0.0 } else { 1e3 * (5.0 + fields[1].parse::<f64>().unwrap().abs()) };
        format!("{},{other},{}\n", fields[0], fields[2])
    };
    let rows: String = csv.lines().skip(1).enumerate().map(row).collect();
    bench.write("units.csv", format!("u1,u2,y1\n{rows}"));
    for command in ["evaluate m.tha units.csv", "predict m.tha units.csv --out p.csv"] {
        let found = &bench.json(command)["out_of_range"];
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found[0]["input"], "u2");
        assert!((number(found, "/0/share") - 299.0 / 300.0).abs() < 1e-12, "{found}");
        let said = bench.said(command);
        assert!(
            said.contains("warning: units.csv: 1 input outside of the training range: 'u2' in 99.67 %")
                && said.contains("units"),
            "{said}"
        );
    }
    let fit = bench.json("fit data/train.csv --val units.csv --out v.tha --memory 2 --degree 2");
    assert_eq!(fit["out_of_range"][0]["input"], "u2");
}

#[test]
fn validating_on_the_training_data_is_a_warning() {
    let bench = Bench::synth("--kind volterra --memory 2 --degree 2 --samples 200 --out data");
    let train = text(&bench.read("data/train.csv"));
    bench.write("copy.csv", train.replace('\n', "\r\n"));
    for (file, warned) in [("data/train.csv", true), ("copy.csv", true), ("data/test.csv", false)] {
        let said = bench.said(&format!("fit data/train.csv --val {file} --out m.tha --memory 2 --degree 2"));
        let warning = format!("warning: --val {file}: these are the training samples");
        assert_eq!(said.contains(&warning), warned, "{said}");
    }
}
