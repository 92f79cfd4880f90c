//! What every command of both programs has: help with an example, one JSON object, refusals in one line; and completions, manual
//! pages and the version.

use std::process::Command;
use tha_tests::{Bench, root};

/// The programs, with their commands as `--help` lists them.
const PROGRAMS: [(&str, &str); 2] = [
    (
        "tha-train",
        "fit plan head merge tune predict evaluate analyze inspect export quantize synth demo completions man",
    ),
    ("tha-firmware-sim", "run faults boards watch soak completions man"),
];

fn bench() -> Bench {
    Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"))
}

#[test]
fn every_command_explains_itself_and_refuses_in_one_line() {
    let bench = bench();
    for (program, commands) in PROGRAMS {
        let help = bench.ok(&format!("{program} --help"));
        let list = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
        let named = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let listed: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(listed.join(" "), format!("{commands} help"));
        for name in commands.split(' ').chain([""]) {
            let command = format!("{program} {name}");
            let help = bench.ok(&format!("{command} --help"));
            let example = help.split("Example").nth(1).unwrap_or_else(|| panic!("{command}: no example"));
            assert!(example.contains(&format!("\n  {command}")), "{command}: {example}");
            assert!(example.lines().all(|line| line.len() <= 80), "a narrow terminal breaks it: {example}");
            assert!(name.is_empty() || help.contains("--json") && help.contains("--quiet"), "{command}");
            assert!(bench.ok(&format!("{command} -h")).contains("Example"), "{command}");
            let said = bench.refusal(&format!("{command} --no-such-flag"));
            let finding = format!("{program}: unexpected argument '--no-such-flag' found");
            let remedy = format!("; see {} --help", command.trim_end());
            assert!(said.starts_with(&finding) && said.trim_end().ends_with(&remedy), "{said}");
        }
    }
}

#[test]
fn every_command_prints_one_json_object() {
    let bench = bench();
    let lines = [
        "tha-train synth --kind volterra --memory 2 --degree 2 --samples 300 --test-samples 100 --out data",
        "tha-train fit data/train.csv --out full.tha --memory 2 --degree 2",
        "tha-train fit data/train.csv --out two.tha --memory 2 --degree 2 --heads 2 --subset-size 1",
        "tha-train plan data/train.csv --dir work --memory 2 --degree 2 --heads 2 --subset-size 1",
        "tha-train head work 0 1",
        "tha-train merge work --out merged.tha",
        "tha-train tune data/train.csv --trials 3",
        "tha-train predict full.tha data/test.csv --out p.csv",
        "tha-train evaluate full.tha data/test.csv",
        "tha-train analyze --full full.tha --ensemble two.tha data/train.csv",
        "tha-train inspect full.tha",
        "tha-train export full.tha --to c --out c",
        "tha-train quantize full.tha data/train.csv --out full16.tha",
        "tha-train completions zsh",
        "tha-train man",
        "tha-train man --out pages",
        "tha-firmware-sim run full.tha data/test.csv",
        "tha-firmware-sim faults full.tha data/train.csv --trials 2",
        "tha-firmware-sim boards full.tha --estimate",
        "tha-firmware-sim watch full.tha data/test.csv",
        "tha-firmware-sim soak full.tha --samples 500",
        "tha-firmware-sim completions zsh",
        "tha-firmware-sim man",
    ];
    for (program, commands) in PROGRAMS {
        // The demo takes a minute, and has a test of its own.
        for name in commands.split(' ').filter(|name| *name != "demo") {
            let start = format!("{program} {name}");
            assert!(lines.iter().any(|line| line.starts_with(&start)), "no line for {start}");
        }
    }
    for line in lines {
        assert!(bench.json(line).is_object(), "{line}");
    }
}

#[test]
fn completions_and_manual_pages() {
    let bench = bench();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.ok(&format!("tha-train completions {shell}"));
        assert!(script.contains("tune") && script.contains("budget-macs"), "{shell}");
    }
    assert!(bench.ok("tha-firmware-sim completions bash").contains("cortex-m4f"));
    for (program, commands) in PROGRAMS {
        bench.ok(&format!("{program} man --out {program} -q"));
        assert_eq!(std::fs::read_dir(bench.path(program)).unwrap().count(), 1 + commands.split(' ').count());
        let own = format!("{program}/{program}.1");
        assert_eq!(bench.ok(&format!("{program} man")).trim_end(), bench.read(&own).trim_end());
        bench.refusal(&format!("{program} man --out {own}"));
    }
    let page = bench.read("tha-train/tha-train-fit.1");
    for part in
        [".TH tha-train-fit 1", ".SH EXAMPLES\n.nf\n", "\\-\\-combine additive", "\\(aqvalve*,T_in\\(aq"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(bench.read("tha-firmware-sim/tha-firmware-sim.1").contains("tha\\-firmware\\-sim\\-faults(1)"));
}

#[test]
fn the_version_names_the_commit() {
    let git = |line: &str| {
        let output = Command::new("git").current_dir(root()).args(line.split(' ')).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git("ls-files --error-unmatch Cargo.toml").and_then(|_| git("rev-parse --short HEAD"));
    let commit = commit.unwrap_or_else(|| "unknown commit".into());
    let version = format!("{} ({commit})", env!("CARGO_PKG_VERSION"));
    for (program, _) in PROGRAMS {
        assert_eq!(bench().ok(&format!("{program} --version")).trim_end(), format!("{program} {version}"));
    }
}

#[test]
fn nothing_is_coloured_where_nobody_looks() {
    let bench = bench();
    for environment in ["env -u NO_COLOR", "env NO_COLOR=1"] {
        for line in ["--help", "fit --help", "fit --nonsense", "synth --kind volterra --samples 100 --out d"]
        {
            let output = bench.run(&format!("{environment} tha-train {line}"));
            assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{line}");
        }
    }
}
