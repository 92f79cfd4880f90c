//! `--portable`: the bytes of `fit` from heads of any processor. Others are emulated by QEMU in user mode; where that is missing the
//! test says so and passes, with THA_REQUIRE_QEMU=1 it fails.

mod cli_common;

use cli_common::{Bench, text};
use std::process::{Command, Output};

/// From 2008, without AVX and FMA; and with both.
const OLD: &str = "Nehalem";
const NEW: &str = "Haswell";
const QEMU: &str = "qemu-x86_64";

/// A folder with data of three inputs.
fn bench() -> Bench {
    Bench::synth(
        "--kind array --channels 3 --outputs 1 --samples 120 --test-samples 20 --memory 2 --out data",
    )
}

/// Runs a command on another processor; it must succeed.
fn on(processor: &str, bench: &Bench, line: &str) -> Output {
    let native = bench.command(line);
    let mut command = Command::new(QEMU);
    command.current_dir(native.get_current_dir().unwrap()).args(["-cpu", processor]);
    let output = command.arg(native.get_program()).args(native.get_args()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{processor}: {line}: {}", text(&output.stderr));
    output
}

fn emulated() -> bool {
    let there = std::env::consts::ARCH == "x86_64" && Command::new(QEMU).arg("--version").output().is_ok();
    assert!(there || std::env::var_os("THA_REQUIRE_QEMU").is_none(), "{QEMU} is missing: install qemu-user");
    if !there {
        eprintln!("skipped: there is no {QEMU} for this machine; install qemu-user");
    }
    there
}

#[test]
fn the_same_bytes_on_every_processor() {
    if !emulated() {
        return;
    }
    let bench = bench();
    let options = "--memory 2 --degree 2 --max-rank 2 --heads 3 --subset-size 2";
    bench.ok(&format!("plan data/train.csv --dir work {options} --portable -q"));
    bench.ok("head work 0 -q");
    on(OLD, &bench, "head work 1 -q");
    on(NEW, &bench, "head work 2 -q");
    let output = bench.run("merge work --out merged.tha --json");
    let progress = text(&output.stderr);
    assert!(output.status.success() && !progress.contains("warning"), "{progress}");
    let said: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(said["processors"].as_object().unwrap().len(), 1, "{}", said["processors"]);
    on(OLD, &bench, "merge work --out old.tha -q");
    bench.ok(&format!("fit data/train.csv --out fitted.tha {options} --portable -q"));
    assert_eq!(bench.read("merged.tha"), bench.read("fitted.tha"));
    assert_eq!(bench.read("merged.tha"), bench.read("old.tha"));

    for options in ["--auto --trials 1 --heads 1", "--memory 9 --degree 2 --max-rank 2 --restarts 2"] {
        let command = format!("fit data/train.csv {options} --portable -q --force");
        bench.ok(&format!("{command} --out fitted.tha"));
        on(OLD, &bench, &format!("{command} --out old.tha"));
        assert_eq!(bench.read("fitted.tha"), bench.read("old.tha"), "{options}");
    }
}

#[test]
fn processors_differ_otherwise_and_that_is_said() {
    if !emulated() {
        return;
    }
    let bench = bench();
    bench
        .ok("plan data/train.csv --dir work --memory 2 --degree 2 --max-rank 2 --heads 2 --subset-size 2 -q");
    on(NEW, &bench, "head work 0 -q");
    on(OLD, &bench, "head work 1 -q");
    let said = text(&on(NEW, &bench, "merge work --out m.tha").stderr);
    assert!(said.contains("heads come from processors whose kernels differ in the last bits"), "{said}");
    assert!(said.contains(": heads 0;") && said.contains(": heads 1;"), "{said}");
}

#[test]
fn portable_plans_are_portable_fits() {
    let bench = bench();
    for (k, options) in [
        "--memory 2 --degree 2 --max-rank 2",
        "--memory 2 --degree 2 --max-rank 2 --heads 3 --subset-size 2",
        "--basis levels:4 --maps 3 --degree 2 --heads 2 --subset-size 2 --combine additive",
        "--auto --trials 2 --heads 1",
    ]
    .into_iter()
    .enumerate()
    {
        let plan = bench.json(&format!("plan data/train.csv --dir work{k} {options} --portable"));
        assert_eq!(plan["portable"], true);
        for head in plan["missing"].as_array().unwrap() {
            bench.ok(&format!("head work{k} {head} -q --threads 1"));
        }
        let merged = bench.json(&format!("merge work{k} --out merged.tha --force"));
        let processors = merged["processors"].as_object().unwrap();
        assert!(processors.keys().all(|name| name.starts_with("portable ")), "{processors:?}");
        for threads in [1, 3] {
            let fit = format!("fit data/train.csv --out fitted.tha {options} --portable --force -q");
            bench.ok(&format!("{fit} --threads {threads}"));
            assert_eq!(bench.read("merged.tha"), bench.read("fitted.tha"), "{options}, {threads} threads");
        }
    }
    // The folder of a plan knows which kind it is.
    let said = bench.refusal("plan data/train.csv --dir work0 --memory 2 --degree 2 --max-rank 2");
    assert!(said.contains("processor"), "{said}");
    // The command that gives the same bytes again says it too.
    let said = bench.json("fit data/train.csv --out auto.tha --auto --trials 2 --portable");
    assert!(said["command"].as_str().unwrap().ends_with(" --portable"), "{}", said["command"]);
}
