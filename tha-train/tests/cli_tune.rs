//! `fit --auto`, and `tune`, which is its search: its commands deliver the points of its front; repeatable, interruptible, continued.

mod cli_common;

use cli_common::{Bench, number, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

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

/// A folder with a Volterra system of two inputs, memory 3, degree 2, rank 2, and 1 % of noise.
fn volterra() -> Bench {
    Bench::synth("--kind volterra --memory 3 --degree 2 --rank 2 --samples 600 --out data")
}

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
fn the_commands_deliver_the_front_and_threads_do_not_change_a_byte() {
    let bench = Bench::synth("--kind array --channels 5 --samples 500 --out made");
    // Names that a shell would take apart.
    bench.write("it's data.csv", text(&bench.read("made/train.csv")).replacen("u1,", "u$1,", 1));
    let search = |more: &str| {
        let mut command = bench.command("tune --inputs u* --trials 40 --heads 2 --seed 3 --json -q");
        let output = command.arg("it's data.csv").args(more.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let report = search("--out two --threads 2");
    search("--out one --threads 1");
    for file in ["front.json", "front.svg"] {
        assert_eq!(bench.read(&format!("one/{file}")), bench.read(&format!("two/{file}")), "{file}");
    }
    assert!(text(&bench.read("one/front.svg")).starts_with("<svg"));
    assert_eq!(report["tried"].as_array().unwrap().len(), 42);

    let numbers = |name: &str| -> Vec<f64> {
        let on_flash = front(&report).iter().filter(|point| point["on_flash_front"] == true);
        on_flash.map(|point| point[name].as_f64().unwrap()).collect()
    };
    assert!(numbers("flash_bytes").is_sorted_by(|a, b| a < b), "by rising flash");
    assert!(
        numbers("held_out_nrmse").is_sorted_by(|a, b| a > b),
        "a larger model on the front has less error"
    );
    assert!(front(&report).len() > 1 && recommended(&report)["settings"].as_array().unwrap().len() > 1);
    for point in front(&report) {
        let command = point["fit"].as_str().unwrap();
        let fit = in_a_shell(&bench, command);
        for (name, of_fit) in [("nrmse", "error"), ("standard_error", "standard_error")] {
            assert_eq!(fit["val"][of_fit], point[name], "{command}");
        }
        for field in ["flash_bytes", "macs_per_sample"] {
            assert!(fit[field].as_u64() <= point[field].as_u64(), "{command}: {}", fit[field]);
        }
        for setting in point["settings"].as_array().unwrap() {
            let same =
                |head: &Value| ["basis", "degree", "maps"].iter().all(|name| head[*name] == setting[*name]);
            assert!(fit["heads"].as_array().unwrap().iter().any(same), "{command}: {setting}");
        }
    }
    assert!(recommended(&report)["fit"].as_str().unwrap().ends_with("--seed 3 --auto --trials 40 --heads 2"));
}

#[test]
fn a_polynomial_of_lags_is_found_and_a_plain_fit_delivers_it() {
    let bench = volterra();
    let report = bench.json("tune data/train.csv --trials 90 --out found -q");
    let command = recommended(&report)["fit"].as_str().unwrap();
    assert!(command.ends_with("--memory 3 --degree 2"), "{command}");
    let fit = in_a_shell(&bench, command);
    assert_eq!(fit["flash_bytes"], recommended(&report)["flash_bytes"]);
    let said = bench.refusal("tune data/train.csv --trials 90 --out found --budget-flash 100 -q");
    assert!(said.contains("--budget-flash: 100 is out of range"), "{said}");
}

#[test]
fn budgets_are_kept() {
    let bench = volterra();
    let report = bench.json("tune data/train.csv --trials 6 --budget-macs 14 --out small -q");
    assert!(!front(&report).is_empty());
    assert!(front(&report).iter().all(|point| point["macs_per_sample"].as_u64().unwrap() <= 14));
    let said = bench.refusal("tune data/train.csv --trials 6 --budget-flash 100 --out none -q");
    assert!(said.contains("--budget-flash: 100 is out of range; expected about"), "{said}");
}

#[test]
fn a_search_that_was_cut_short_goes_on() {
    let bench = volterra();
    bench.ok("tune data/train.csv --trials 10 --out whole -q");
    let words = bench.ok("tune data/train.csv --trials 6 --out part");
    assert!(words.contains("stopped before the end") && words.contains("recommended: "), "{words}");
    assert_eq!(std::fs::read_dir(bench.path("part/trials")).unwrap().count(), 1 + 6);
    bench.ok("tune data/train.csv --trials 10 --out part -q");
    for file in ["front.json", "front.svg"] {
        assert_eq!(bench.read(&format!("part/{file}")), bench.read(&format!("whole/{file}")), "{file}");
    }
    // An automatic fit starts from what the search kept.
    bench.ok("fit data/train.csv --auto --trials 10 --checkpoint part/trials --out kept.tha -q");
    bench.ok("fit data/train.csv --auto --trials 10 --out new.tha -q");
    assert_eq!(bench.read("kept.tha"), bench.read("new.tha"));

    // A damaged file is found, said and made again.
    let trials = std::fs::read_dir(bench.path("part/trials")).unwrap().map(|entry| entry.unwrap().path());
    let damaged: Vec<_> = trials.collect();
    for (k, path) in damaged.iter().enumerate() {
        let mut bytes = std::fs::read(path).unwrap();
        let bit = (k + 1) * 7919 % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, bytes).unwrap();
    }
    let said = bench.said("tune data/train.csv --trials 10 --out part");
    for path in damaged {
        let name = path.file_name().unwrap().to_str().unwrap();
        let warned = said.lines().filter(|line| line.starts_with("warning: ") && line.contains(name));
        assert_eq!(warned.count(), 1, "{name}: {said}");
    }
    assert_eq!(bench.read("part/front.json"), bench.read("whole/front.json"));

    for (option, said) in [("--seed 1", "--seed 0"), ("--outputs u1 --inputs u2", "data")] {
        let refusal = bench.refusal(&format!("tune data/train.csv --trials 6 {option} --out part"));
        assert!(refusal.contains("it belongs to a run with") && refusal.contains(said), "{refusal}");
    }
}

#[test]
fn searches_and_ensembles_know_their_program_and_processor_alike() {
    let bench = volterra();
    bench.ok("tune data/train.csv --trials 2 --checkpoint found/kept -q");
    bench.ok(
        "fit data/train.csv --out m.tha --memory 1 --degree 1 --heads 1 --subset-size 1 --checkpoint kept -q",
    );
    let run = |name: &str| serde_json::from_slice::<Value>(&bench.read(name)).unwrap();
    let (search, ensemble) = (run("found/kept/run.json"), run("kept/run.json"));
    for name in ["program", "processor", "data"] {
        assert!(search[name].is_string(), "{search}");
        assert_eq!(search[name], ensemble[name], "{name}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_prints_and_keeps_what_is_done() {
    let bench = Bench::synth("--kind array --channels 6 --samples 4000 --out data");
    let (code, printed, said) = bench.interrupted("tune data/train.csv --out found --json", "best so far");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("stopping with what is done") && said.contains("interrupted"), "{said}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["complete"], false);
    assert!(!front(&report).is_empty());
    let kept: Value = serde_json::from_slice(&bench.read("found/front.json")).unwrap();
    assert_eq!(kept["front"], report["front"]);
}
