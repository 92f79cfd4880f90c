//! `fit --auto` on the command line.

mod cli_common;

use cli_common::{Bench, number, text};

#[test]
fn one_command_gives_a_model_an_honest_figure_and_the_command_that_gives_it_again() {
    // A slow, bent system of six inputs.
    let made = "--kind wiener-hammerstein --channels 6 --samples 500 --test-samples 300 --out data";
    let bench = Bench::synth(made);
    let line = "fit data/train.csv --out m.tha --auto --trials 14 --heads 3 --report m.html";
    let made = bench.json(line);
    assert!(number(&made, "/val/standard_error") > 0.0 && number(&made, "/val/error") < 1.0, "{made}");
    assert!(made["val"]["blocks"].as_array().unwrap().len() >= 2);
    for pointer in
        ["/linear/nrmse", "/linear/standard_error", "/parameters", "/macs_per_sample", "/train/samples"]
    {
        number(&made, pointer);
    }
    assert_eq!(number(&made, "/flash_bytes"), bench.read("m.tha").len() as f64);
    assert_eq!(made["tried"].as_array().unwrap().len(), 17);
    assert_eq!((made["numbers"].as_str(), made["complete"].as_bool()), (Some("f32"), Some(false)));
    for field in ["basis", "maps", "gamma", "range_policy", "budgets", "out_of_range"] {
        assert!(made.get(field).is_some(), "{field}");
    }
    let page = text(&bench.read("m.html"));
    for words in ["What was tried", "What a smaller model costs", "What the networks see"] {
        assert!(page.contains(words), "{words}");
    }
    let first = bench.read("m.tha");
    let again = made["command"].as_str().unwrap().strip_prefix("tha-train ").unwrap();
    bench.ok(&format!("{again} --force --threads 1"));
    assert_eq!(bench.read("m.tha"), first, "{again}");

    let words = bench.ok("fit data/train.csv --out s.tha --auto --trials 14 --heads 0 --single");
    assert!(words.contains("expected on new data") && words.contains("a linear model"), "{words}");
    let single = bench.json("inspect s.tha --rate 100");
    assert!(number(&single, "/stage/settled_seconds") > 0.0);
    // One head, as many times as there are outputs.
    assert_eq!(single["heads"].as_array().unwrap().len(), single["outputs"].as_array().unwrap().len());
    let figures = bench.json("evaluate m.tha data/test.csv");
    assert!(number(&figures, "/nrmse") < 1.0, "{figures}");
}
