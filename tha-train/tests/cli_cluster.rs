//! `plan`, `head` and `merge`: any order, any repetition, damage and what is missing, and the bytes of `fit`.

mod cli_common;

use cli_common::{Bench, text};
use std::path::PathBuf;

/// A folder with data of six inputs and two outputs.
fn bench() -> Bench {
    Bench::synth(
        "--kind array --channels 6 --outputs 2 --samples 260 --test-samples 120 --memory 2 --out data",
    )
}

const BASE: &str = "--degree 2 --max-rank 2";

fn heads(bench: &Bench, options: &str, dir: &str) -> u64 {
    bench.json(&format!("plan data/train.csv --dir {dir} {BASE} {options}"))["heads"].as_u64().unwrap()
}

#[test]
fn merged_heads_are_the_fit_to_the_byte() {
    let bench = bench();
    for (k, (options, count)) in [
        ("", 1),
        ("--folds 3", 1),
        ("--heads 5 --subset-size 2", 5),
        ("--heads 4 --subset-size 3 --combine stack --seed 3", 4),
        ("--heads 5 --subset-size 2 --subsets weighted --no-refit", 5),
        ("--heads 4 --subset-size 2 --folds 3 --range clamp", 4),
        ("--heads 5 --subset-size 2 --subsets weighted --folds 3", 5),
        ("--heads 4 --subset-size 2 --val data/test.csv", 4),
        ("--subsets covering --subset-size 4", 3),
        ("--heads 6 --subset-size 2 --budget-flash 900", 6),
        ("--heads 6 --subset-size 2 --solver als", 6),
        ("--heads 3 --subset-size 3 --basis levels:4 --maps 3 --range extend", 3),
        ("--subsets per-output --subset-size 2", 2),
        ("--heads 3 --subset-size 2 --combine additive", 1),
        ("--heads 3 --subset-size 2 --subsets adaptive", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = format!("work{k}");
        let found = heads(&bench, options, &dir);
        assert!(found == count || options.contains("covering") && found > 1, "{options}: {found}");
        // From the last to the first, each by a program of its own, the first once more.
        for head in (0..found).rev().chain([0]) {
            bench.ok(&format!("head {dir} {head} --threads 1 -q"));
        }
        let kept = || std::fs::read_dir(bench.path(&dir)).unwrap().count();
        let before = kept();
        bench.ok(&format!("merge {dir} --out merged.tha -q"));
        let fitted = kept() - before;
        let average = options.contains("--heads")
            && !["stack", "additive", "adaptive"].iter().any(|o| options.contains(o));
        if average || options.contains("covering") {
            assert!(fitted > 0, "{options}: the merge fits the heads that have a weight");
        } else {
            assert_eq!(fitted, 0, "{options}: the merge has nothing left to fit");
        }
        bench.ok(&format!("fit data/train.csv --out fitted.tha {BASE} {options} -q"));
        assert_eq!(bench.read("merged.tha"), bench.read("fitted.tha"), "{options}");
    }
}

fn files(bench: &Bench, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(bench.path("work")).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(start);
    entries.filter(named).collect()
}

#[test]
fn what_is_missing_or_damaged_is_named_and_made_again() {
    let bench = bench();
    let count = heads(&bench, "--heads 6 --subset-size 2 --combine stack", "work");
    assert_eq!(count, 6);
    bench.ok("head work 1 4 -q");
    let said = bench.refusal("merge work --out m.tha -q");
    assert!(said.contains("work: of 6 heads missing: 0, 2-3, 5; fit these with tha-train head"), "{said}");
    assert!(!bench.path("m.tha").exists());
    bench.ok("head work 0 2 3 5 -q");
    bench.ok("merge work --out whole.tha -q");

    let damage = |path: &PathBuf, cut: bool| {
        let mut bytes = std::fs::read(path).unwrap();
        if cut {
            bytes.truncate(bytes.len() / 2);
        } else {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        std::fs::write(path, bytes).unwrap();
    };
    damage(&files(&bench, "head-00003")[0], false);
    damage(&files(&bench, "refit-00000")[0], true);
    std::fs::remove_file(&files(&bench, "fit-00005")[0]).unwrap();
    damage(&files(&bench, "done-00002")[0], false);
    let output = bench.run("merge work --out m.tha");
    let said = text(&output.stderr);
    assert!(said.contains("of 6 heads missing: 2; damaged: 0, 3, 5;"), "{said}");
    bench.ok("head work 0 2 3 5");
    bench.ok("merge work --out again.tha -q");
    assert_eq!(bench.read("again.tha"), bench.read("whole.tha"));

    // Every head reads its own columns alone.
    let list = |k: usize| bench.json(&format!("head work {k}"))["heads"][0]["files"].clone();
    assert!((0..6).all(|k| !list(k).as_array().unwrap().is_empty()));
    damage(&bench.path("work/inputs.kept"), false);
    let sound = (0..6).filter(|k| bench.run(&format!("head work {k} -q")).status.success()).count();
    assert!(0 < sound && sound < 6, "{sound} heads do not look at the damaged input");
    let said = bench.refusal("merge work --out m.tha --force -q");
    assert!(said.contains("work: inputs.kept: u4: its checksum is wrong; plan again"), "{said}");
    damage(&bench.path("work/plan.kept"), false);
    let said = bench.refusal("head work 1 -q");
    assert!(said.contains("work: plan.kept: its checksum is wrong; plan again"), "{said}");
}

/// The numbers of the heads that a plan misses.
fn missing(plan: &serde_json::Value) -> Vec<String> {
    plan["missing"].as_array().unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn an_automatic_fit_in_rounds() {
    let bench = bench();
    let options = "--auto --trials 14 --heads 3";
    let mut done = 0;
    loop {
        let plan = bench.json(&format!("plan data/train.csv --dir work {options}"));
        let missing = missing(&plan);
        assert_eq!(plan["heads"], done + missing.len());
        if missing.is_empty() {
            break;
        }
        bench.ok(&format!("head work {} -q --threads 1", missing.join(" ")));
        done += missing.len();
    }
    // All but the first setting, which the plan tries; and 3 heads.
    assert!(done >= 16, "{done}");
    let kept = || std::fs::read_dir(bench.path("work")).unwrap().count();
    let before = kept();
    let merged = bench.json("merge work --out merged.tha");
    assert_eq!(kept(), before, "the merge has nothing left to try");
    let fitted = bench.json(&format!("fit data/train.csv --out fitted.tha {options}"));
    assert_eq!(bench.read("merged.tha"), bench.read("fitted.tha"));
    assert_eq!(merged["val"], fitted["val"]);
    // One round alone: the merge tries the rest.
    bench.ok(&format!("plan data/train.csv --dir once {options} --json"));
    assert!(!bench.run("merge once --out m.tha -q").status.success());
    let said = bench.ok(&format!("plan data/train.csv --dir once {options}"));
    assert!(said.contains("tha-train head once K for each of 0-"), "{said}");
    let heads = missing(&bench.json(&format!("plan data/train.csv --dir once {options}")));
    bench.ok(&format!("head once {} -q", heads.join(" ")));
    bench.ok("merge once --out once.tha -q");
    assert_eq!(bench.read("once.tha"), bench.read("fitted.tha"));
}

#[test]
fn heads_of_other_processors_are_said() {
    let bench = bench();
    heads(&bench, "--heads 2 --subset-size 2", "work");
    bench.ok("head work 0 1 -q");
    // What another processor would have left: the same file with another name of it.
    let path = &files(&bench, "done-00001")[0];
    let bytes = std::fs::read(path).unwrap();
    let arch = std::env::consts::ARCH;
    let at = bytes.windows(arch.len()).position(|part| part == arch.as_bytes()).unwrap();
    let mut other = bytes[..bytes.len() - 8].to_vec();
    other[at + arch.len() + 1] = if other[at + arch.len() + 1] == b'0' { b'1' } else { b'0' };
    let sum = crc::Crc::<u64>::new(&crc::CRC_64_XZ).checksum(&other);
    std::fs::write(path, [other, sum.to_le_bytes().to_vec()].concat()).unwrap();
    let said = bench.said("merge work --out m.tha");
    assert!(
        said.contains("warning: heads come from processors whose kernels differ in the last bits"),
        "{said}"
    );
    assert!(said.contains(": heads 0;") && said.contains(": heads 1;"), "{said}");
}
