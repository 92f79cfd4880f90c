//! Intervals from the fit to the prediction: their ends, what they hold, and what is said where there are none.

mod cli_common;

use cli_common::{Bench, text};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn bench() -> Bench {
    Bench::synth(
        "--kind volterra --memory 2 --degree 2 --outputs 2 --noise 0.2 --samples 1500 --test-samples 3000 --out d",
    )
}

const FIT: &str = "fit d/train.csv --memory 2 --degree 2 --max-rank 2 --restarts 1 --force -q";

#[test]
fn intervals_hold_what_they_say() {
    let bench = bench();
    for (options, coverage) in [("", 0.9), ("--coverage 0.5", 0.5), ("--folds 3 --coverage 0.8", 0.8)] {
        let fitted = bench.json(&format!("{FIT} --out m.tha {options}"));
        assert_eq!(fitted["coverage"], coverage);
        let widths = numbers(&fitted["half_widths"]);

        let shown = bench.json("inspect m.tha");
        assert_eq!(shown["interval_coverage"], coverage);
        let stored: Vec<f64> = (0..2).map(|j| shown["outputs"][j]["half_width"].as_f64().unwrap()).collect();
        assert!(stored.iter().zip(&widths).all(|(&a, &b)| a as f32 == b as f32), "{stored:?} {widths:?}");
        let words = bench.ok("inspect m.tha");
        assert!(words.contains(&format!("half-width of {} %", 100.0 * coverage)), "{words}");

        bench.ok("predict m.tha d/test.csv --out p.csv --interval --force -q");
        let written = text(&bench.read("p.csv"));
        let mut lines = written.lines();
        assert_eq!(lines.next(), Some("yhat_y1,yhat_y2,ylow_y1,yhigh_y1,ylow_y2,yhigh_y2"));
        assert_eq!(lines.next(), Some(",,,,,"), "history");
        for line in lines {
            let v: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            for (j, width) in widths.iter().enumerate() {
                let [low, high] = [v[2 + 2 * j], v[3 + 2 * j]];
                assert!((high - v[j] - width).abs() < 1e-6 && (v[j] - low - width).abs() < 1e-6, "{line}");
            }
        }
    }
    // The test data of `synth` are free of noise: what is measured is measured on noisy data.
    bench.ok(
        "synth --kind volterra --memory 2 --degree 2 --outputs 2 --noise 0.2 --samples 6000 --test-samples 10 --out e -q",
    );
    bench.ok(&format!("{FIT} --out m.tha"));
    let said = bench.json("evaluate m.tha e/train.csv");
    assert_eq!(said["coverage"]["nominal"], 0.9);
    for measured in numbers(&said["coverage"]["measured"]) {
        assert!((measured - 0.9).abs() < 0.05, "{measured}");
    }
    let words = bench.ok("evaluate m.tha e/train.csv");
    assert!(words.contains("within 90 %"), "{words}");
}

#[test]
fn where_there_are_none_it_says_so() {
    let bench = bench();
    // The truth of `synth` has no errors to tell from, and 0.999 wants 999 validation samples of 1500.
    let fitted = bench.json(&format!("{FIT} --out m.tha --coverage 0.999"));
    assert_eq!(fitted["coverage"], Value::Null);
    let said = bench.refusal("predict m.tha d/test.csv --out p.csv --interval");
    assert!(said.contains("--val-fraction"), "{said}");
    assert!(!bench.path("p.csv").exists());
    bench.ok("predict m.tha d/test.csv --out p.csv");
    assert_eq!(bench.json("evaluate m.tha d/test.csv")["coverage"], Value::Null);
    let said = bench.refusal(&format!("{FIT} --out n.tha --coverage 90"));
    assert!(said.contains("0.01 to 0.999"), "{said}");
}
