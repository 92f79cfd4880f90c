//! `tha-train demo` as a newcomer meets it.

use tha_tests::{Bench, value};

fn bench() -> Bench {
    Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"))
}

/// Into a folder that has things in it, and then the three commands that it ends with.
#[test]
fn the_whole_path_and_the_commands_to_try_next() {
    let bench = bench();
    std::fs::create_dir(bench.path("my demo")).unwrap();
    bench.write("my demo/mine.txt", "keep");
    bench.write("my demo/full.tha", b"\x89THA of an earlier run");
    let report = bench.json("tha-train demo --out 'my demo' --quiet");

    let error = |name: &str| {
        let line = report["models"].as_array().unwrap().iter().find(|line| line["model"] == name).unwrap();
        (value(&line["val_nrmse"]), value(&line["test_nrmse"]), line["from_full"].as_f64())
    };
    let (full, average, stack, additive) =
        (error("full"), error("average"), error("stack"), error("additive"));
    assert!(full.1 < 0.25 && additive.1 < 0.25, "{full:?} {additive:?}");
    assert!(stack.0 <= average.0, "free weights are no worse where they were chosen: {stack:?} {average:?}");
    assert!(full.2.is_none() && [average, stack, additive].iter().all(|model| model.2.is_some()), "analysed");
    let chosen = report["chosen"].as_str().unwrap();
    let held_out = |line: &serde_json::Value| value(&line["held_out_nrmse"]);
    let models = report["models"].as_array().unwrap();
    let least = models.iter().map(held_out).fold(f64::INFINITY, f64::min);
    let taken = models.iter().find(|line| line["model"] == chosen).unwrap();
    assert_eq!(held_out(taken), least, "chosen on the samples that were held out to choose on");
    assert_eq!(report["stream"]["samples"], 1497);
    assert_eq!(report["stream"]["bit_exact"], true);
    assert!(value(&report["stream"]["bound_used"]) < 1.0);

    for file in report["files"].as_array().unwrap() {
        let file = bench.path("my demo").join(file.as_str().unwrap());
        assert!(std::fs::metadata(&file).unwrap().len() > 100, "{}", file.display());
    }
    assert_eq!(bench.read("my demo/mine.txt"), "keep");
    let page = bench.read("my demo/report.html");
    for part in
        ["Beside the other models", "How far from the full model", "What the model leaves", "Size and cost"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("could not be drawn"));
    bench.ok("cd 'my demo/export' && gcc -std=c99 -Wall -Werror -c *.c");

    let next = report["next"].as_array().unwrap();
    assert_eq!(next.len(), 3);
    for command in next {
        bench.ok(command.as_str().unwrap());
    }
    // It would write over its own files again.
    assert_eq!(bench.run(&interrupted("'my demo'")).status.code(), Some(130));
}

/// The demo, and Ctrl-C once the first line of progress says that it is at work.
fn interrupted(folder: &str) -> String {
    format!(
        "tha-train demo --out {folder} 2> log & id=$!; while [ ! -s log ]; do sleep 0.05; done; sleep 1; \
         kill -INT $id; wait $id"
    )
}

#[test]
fn ctrl_c_in_the_middle_leaves_nothing() {
    let bench = bench();
    let output = bench.run(&interrupted("d"));
    let said = bench.read("log");
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.lines().last().unwrap().contains("interrupted"), "{said}");
    assert!(!bench.path("d").exists());
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 1, "only the log");
}
