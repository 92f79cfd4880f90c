//! `tha-train quantize` and `fit --numbers i16`: integers from the command line.

mod cli_common;

use cli_common::{Bench, number};
use serde_json::Value;

fn bench() -> Bench {
    Bench::synth("--kind volterra --samples 400 --test-samples 200 --out d")
}

#[test]
fn integers_are_nearly_as_good_and_smaller() {
    let bench = bench();
    bench.ok("fit d/train.csv --out m.tha --memory 4 --degree 2 -q");
    let made = bench.json("quantize m.tha d/train.csv --out m16.tha");
    assert!(number(&made, "/max_abs_error") > 0.0);
    assert!(number(&made, "/max_abs_error") <= number(&made, "/bound"));
    let (before, after) = (number(&made, "/nrmse_before/0"), number(&made, "/nrmse_after/0"));
    assert!(after < 1.05 * before, "{before} {after}");
    assert_eq!((&made["saturated"], &made["blame"]), (&0.into(), &Value::Null));
    assert_eq!(made["flash_before"], bench.read("m.tha").len());
    assert_eq!(made["flash_after"], bench.read("m16.tha").len());
    assert!(number(&made, "/flash_after") < number(&made, "/flash_before"));

    // What is evaluated and predicted is what the device gives; the bound is in the file.
    let found = bench.json("evaluate m16.tha d/train.csv");
    assert!((number(&found, "/nrmse") / after - 1.0).abs() < 1e-9);
    bench.ok("predict m16.tha d/test.csv --out p.csv -q");
    let shown = bench.json("inspect m16.tha");
    assert_eq!((&shown["numbers"], &shown["integers"]["bits"]), (&"i16".into(), &made["bits"]));
    assert!((number(&shown, "/integers/bound/0") / number(&made, "/bound") - 1.0).abs() < 1e-6);
    assert!(bench.ok("inspect m16.tha").contains("16-bit integers"));

    // In one step: the same bytes.
    let fitted = bench.json("fit d/train.csv --out n16.tha --memory 4 --degree 2 --numbers i16");
    assert_eq!(fitted["numbers"], "i16");
    assert_eq!(fitted["quantized"]["flash_after"], made["flash_after"]);
    assert_eq!(fitted["flash_bytes"], made["flash_after"]);
    assert!(bench.read("n16.tha") == bench.read("m16.tha"));
}

#[test]
fn counts_of_a_converter_are_those_given() {
    let bench = bench();
    let line =
        "quantize d/truth.tha d/train.csv --out m16.tha --counts u1=0.5:0.001 --counts u2=-1:0.0002 -q";
    bench.ok(line);
    let counts = &bench.json("inspect m16.tha")["integers"]["counts"];
    for (k, (zero, step)) in [(0.5, 0.001), (-1.0, 0.0002)].into_iter().enumerate() {
        assert!((number(&counts[k], "/zero") - zero).abs() < 1e-6);
        assert!((number(&counts[k], "/step") - step).abs() < 1e-9);
    }
}
