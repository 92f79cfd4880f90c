//! Every wrong input we can think of: exit code 2, one line on standard error that names it, and nothing written.

mod cli_common;

use cli_common::{Bench, text};

/// A folder with good data, a good model and many bad files.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.ok("synth --kind volterra --memory 2 --degree 2 --samples 200 --test-samples 50 --out data");
    bench.ok("fit data/train.csv --out good.tha --memory 2 --degree 2 -q");
    for (name, content) in [
        ("empty.csv", ""),
        ("header.csv", "u1,u2,y1\n"),
        ("nan.csv", "u1,u2,y1\n1,2,3\n1,NaN,3\n"),
        ("infinite.csv", "u1,u2,y1\n1,2,3\n1,2,inf\n"),
        ("text.csv", "u1,u2,y1\n1,2,3\n1,two,3\n"),
        ("gap.csv", "u1,u2,y1\n1,2,3\n1,,3\n"),
        ("ragged.csv", "u1,u2,y1\n1,2,3\n1,2\n"),
        ("short.csv", "u1,u2,y1\n1,2,3\n"),
        ("few.csv", "u1,u2,y1\n1,2,3\n1,2,4\n3,4,5\n"),
        ("no_outputs.csv", "u1,u2\n1,2\n"),
        ("no_inputs.csv", "y1,y2\n1,2\n"),
        ("twice.csv", "u1,u1,y1\n1,2,3\n"),
        ("semicolons.csv", "u1;u2;y1\n1;2;3\n"),
        ("returning.csv", "record,u1,u2,y1\n0,1,2,3\n1,1,2,3\n0,1,2,3\n"),
        ("others.csv", "u1,u3,y1\n1,2,3\n1,2,3\n1,2,3\n"),
        ("huge.csv", "u1,u2,y1\n1e300,2,3\n1,3,3\n1,2,4\n1,2,5\n1,2,3\n1,3,3\n1,2,4\n1,2,5\n"),
        ("data.xlsx", "PK"),
        ("junk.npz", "PK not an archive"),
        ("junk.npy", "not numpy"),
        ("junk.tha", "not a model"),
    ] {
        bench.write(name, content);
    }
    bench.write("binary.csv", [0_u8, 159, 146, 150, 0, 10, 255, 254]);
    let model = bench.read("good.tha");
    bench.write("cut.tha", &model[..model.len() / 2]);
    let mut flipped = model;
    *flipped.last_mut().unwrap() ^= 1;
    bench.write("flipped.tha", flipped);
    bench
}

#[test]
fn each_is_refused_in_one_line() {
    let bench = bench();
    let before = bench.files();
    let with = |option: &str| format!("fit data/train.csv --out m.tha {option}");
    let data = |file: &str| format!("fit {file} --out m.tha --memory 2 --degree 2");
    let cases: Vec<(String, &str)> = vec![
        (data("missing.csv"), "missing.csv: cannot be read"),
        (data("empty.csv"), "empty.csv: no samples"),
        (data("header.csv"), "header.csv: no samples"),
        (data("nan.csv"), "nan.csv, line 3, column 'u2'"),
        (data("infinite.csv"), "infinite.csv, line 3, column 'y1'"),
        (data("text.csv"), "text.csv, line 3, column 'u2': 'two'"),
        (data("gap.csv"), "gap.csv, line 3, column 'u2'"),
        (data("ragged.csv"), "ragged.csv, line 3"),
        (data("short.csv"), "fewer than the memory of 2"),
        (data("few.csv"), "no sample is left for validation"),
        (data("no_outputs.csv"), "no output column"),
        (data("no_inputs.csv"), "no input column"),
        (data("twice.csv"), "two columns are named 'u1'"),
        (data("semicolons.csv"), "separate the fields with commas"),
        (data("returning.csv"), "line 4, column 'record'"),
        (data("huge.csv"), "huge.csv, line 2, column 'u1': 1e300"),
        (data("binary.csv"), "binary.csv"),
        (data("data.xlsx"), "unknown kind of data file"),
        (data("junk.npz"), "junk.npz"),
        (data("--u junk.npy --y junk.npy"), "junk.npy"),
        (data("--u missing.npy --y junk.npy"), "missing.npy"),
        (data("."), "unknown kind of data file"),
        ("fit --out m.tha".into(), "<DATA>"),
        ("fit data/train.csv".into(), "--out"),
        (with("--memory 0"), "--memory"),
        (with("--memory 99999999"), "--memory"),
        (with("--memory 5000"), "fewer than the memory"),
        (with("--memory -1"), "-1"),
        (with("--memory many"), "many"),
        (with("--degree 0"), "degree is 0"),
        (with("--degree 999"), "degree is 999"),
        (with("--max-rank 0"), "max rank is 0"),
        (with("--max-rank 99999999999"), "max rank is 99999999999"),
        (with("--tol -1"), "-1"),
        (with("--tol nan"), "tolerance is NaN"),
        (with("--ridge -3"), "-3"),
        (with("--ridge much"), "much"),
        (with("--restarts 0"), "restarts is 0"),
        (with("--val-fraction 0"), "--val-fraction"),
        (with("--val-fraction 1.5"), "--val-fraction"),
        (with("--folds 1"), "--folds"),
        (with("--folds 900"), "--folds"),
        (with("--folds 3 --val data/test.csv"), "--folds"),
        (with("--folds 3 --no-refit"), "--no-refit"),
        (with("--val missing.csv"), "missing.csv"),
        (with("--val others.csv"), "'u2'"),
        (with("--val nan.csv"), "nan.csv, line 3"),
        (with("--threads 0"), "--threads"),
        (with("--seed x"), "--seed"),
        (with("--solver magic"), "magic"),
        (with("--range wide"), "wide"),
        (with("--inputs nothing*"), "nothing*"),
        (with("--inputs *"), "as input and as output"),
        (with("--nonsense"), "--nonsense"),
        ("fit data/train.csv --out nowhere/m.tha".into(), "nowhere/m.tha: cannot be written"),
        ("fit data/train.csv --out data".into(), "it is a directory"),
        ("evaluate missing.tha data/test.csv".into(), "missing.tha: cannot be read"),
        ("evaluate junk.tha data/test.csv".into(), "junk.tha"),
        ("evaluate cut.tha data/test.csv".into(), "cut.tha"),
        ("evaluate flipped.tha data/test.csv".into(), "flipped.tha"),
        ("evaluate data/test.csv good.tha".into(), "data/test.csv"),
        ("evaluate good.tha others.csv".into(), "'u2'"),
        ("evaluate good.tha no_outputs.csv".into(), "'y1'"),
        ("evaluate good.tha short.csv".into(), "fewer than the memory"),
        ("evaluate good.tha nan.csv".into(), "nan.csv, line 3"),
        ("predict good.tha others.csv --out p.csv".into(), "'u2'"),
        ("predict good.tha data/test.csv --out nowhere/p.csv".into(), "nowhere/p.csv"),
        ("predict good.tha data/test.csv".into(), "--out"),
        ("inspect flipped.tha".into(), "flipped.tha"),
        ("inspect".into(), "MODEL"),
        ("synth --kind fractal --out x".into(), "fractal"),
        ("synth --kind volterra --out x --memory 0".into(), "--memory"),
        ("synth --kind volterra --out x --degree 90".into(), "--degree"),
        ("synth --kind volterra --out x --correlation 1".into(), "--correlation"),
        ("synth --kind volterra --out good.tha".into(), "good.tha"),
        ("synth --out x".into(), "--kind"),
        ("".into(), "no command"),
        ("paint".into(), "paint"),
    ];
    for (line, expected) in &cases {
        let output = bench.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        assert!(said.starts_with("tha-train: ") && said.contains(expected), "{line}: {said}");
        assert!(!said.contains("internal error"), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    }
    assert!(bench.files() == before, "nothing may be written or changed");
    assert!(!bench.path("x").exists());
}

#[test]
fn with_json_a_refusal_leaves_standard_output_empty() {
    let bench = Bench::new();
    let output = bench.run("evaluate missing.tha missing.csv --json");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}
