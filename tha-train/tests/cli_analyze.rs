//! `analyze` and the reports, by the command line.

mod cli_common;

use cli_common::{Bench, number};

fn fitted() -> Bench {
    let bench = Bench::synth("--kind array --channels 5 --samples 500 --test-samples 200 --memory 2 --out d");
    bench.ok("fit d/train.csv --out full.tha --memory 2 --degree 2 -q");
    bench.ok(
        "fit d/train.csv --out tha.tha --memory 2 --degree 2 --heads 5 --subset-size 2 -q --report fit.html",
    );
    bench
}

#[test]
fn every_field_is_there_and_the_theorems_hold() {
    let bench = fitted();
    let result = bench.json("analyze --full full.tha --ensemble tha.tha d/train.csv --measure-zero 10 -q");
    let number = |path: &str| number(&result, path);
    let (error, bias, bake, align) = (number("/error"), number("/bias"), number("/bake"), number("/align"));
    assert!((error * error - (bias * bias + bake * bake - 2.0 * align)).abs() < 1e-9 * error * error);
    assert!(number("/identity_gap") < 1e-9);
    assert!((number("/theorem1/lhs") - number("/theorem1/rhs")).abs() < 1e-9 * number("/theorem1/lhs"));
    for theorem in ["/theorem2", "/theorem3"] {
        assert!(number(&format!("{theorem}/lhs")) <= number(&format!("{theorem}/rhs")));
        assert_eq!(result.pointer(&format!("{theorem}/holds")), Some(&true.into()));
    }
    assert!(number("/lambda_max") > 0.0 && number("/tail_norm") > 0.0 && align > 0.0 && error < bias);
    let heads = result["heads"].as_array().unwrap();
    assert_eq!(result["truncation_gaps"].as_array().unwrap().len(), heads.len());
    let mut weights = 0.0;
    for (k, head) in heads.iter().enumerate() {
        let of = |field: &str| number(&format!("/heads/{k}/{field}"));
        weights += of("weight");
        assert!(of("tangent_norm") <= of("correlation_norm") && of("epsilon") > 0.0);
        assert_eq!(head["incentive"], true);
        assert_eq!(head["measure_zero"]["orthogonal"], 0);
        assert!((of("als/predicted") - of("als/realised")).abs() < 1e-8);
    }
    assert!((weights - 1.0).abs() < 1e-5);
    assert_eq!(result["coordinates"], "standardised");
    let words = bench.ok("analyze --full full.tha --ensemble tha.tha d/test.csv");
    assert!(
        words.contains("Theorem 2") && words.contains("holds") && words.contains("baking pays"),
        "{words}"
    );
}

#[test]
fn reports_are_whole_files_that_need_nothing_else() {
    let bench = fitted();
    bench.ok("analyze --full full.tha --ensemble tha.tha d/test.csv --report report.html -q");
    for (file, headings) in [
        (
            "report.html",
            &[
                "Measured and predicted",
                "added up",
                "two bounds",
                "Coverage",
                "auto-correlation",
                "Incentive",
            ][..],
        ),
        (
            "fit.html",
            &["Measured and predicted", "NRMSE", "earlier inputs", "Weights", "each head alone", "flash"][..],
        ),
    ] {
        let page = String::from_utf8(bench.read(file)).unwrap();
        for heading in headings {
            assert!(page.contains(heading), "{file}: {heading}");
        }
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(!page.contains("could not be drawn") && !page.contains("NaN"));
        for outside in ["src=", "href=", "@import", "url(", "<script"] {
            assert!(!page.contains(outside), "{file}: {outside}");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert!(page.contains("prefers-color-scheme:dark"));
    }
}
