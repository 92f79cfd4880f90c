//! What every command has: help with an example, one JSON object, refusals in one line; and completions, manual pages
//! and the version.

mod cli_common;

use cli_common::{Bench, text};
use std::process::Command;

/// The commands that `--help` lists.
fn commands(bench: &Bench) -> Vec<String> {
    let help = bench.ok("--help");
    let list = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    let named = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(String::from)
        .collect()
}

#[test]
fn every_command_explains_itself_and_refuses_in_one_line() {
    let bench = Bench::new();
    let commands = commands(&bench);
    for expected in
        ["fit", "tune", "predict", "evaluate", "analyze", "inspect", "export", "synth", "demo", "man"]
    {
        assert!(commands.iter().any(|name| name == expected), "{expected} in {commands:?}");
    }
    for name in commands.iter().map(String::as_str).chain([""]) {
        let help = bench.ok(&format!("{name} --help"));
        let example = help.split("Example").nth(1).unwrap_or_else(|| panic!("{name}: no example"));
        assert!(example.contains(&format!("\n  tha-train {name}")), "{name}: {example}");
        assert!(example.lines().all(|line| line.len() <= 80), "a narrow terminal breaks it: {example}");
        assert!(name.is_empty() || help.contains("--json") && help.contains("--quiet"), "{name}");
        assert!(bench.ok(&format!("{name} -h")).contains("Example"), "{name}");
        let said = bench.refusal(&format!("{name} --no-such-flag"));
        assert!(said.starts_with("tha-train: unexpected argument '--no-such-flag' found"), "{said}");
        let command = format!("tha-train {name}");
        assert!(said.trim_end().ends_with(&format!("; see {} --help", command.trim_end())), "{said}");
    }
}

#[test]
fn every_command_prints_one_json_object() {
    let bench = Bench::new();
    let mut lines = vec![
        ("synth", "synth --kind volterra --memory 2 --degree 2 --samples 300 --test-samples 100 --out data"),
        ("fit", "fit data/train.csv --out full.tha --memory 2 --degree 2"),
        ("fit", "fit data/train.csv --out two.tha --memory 2 --degree 2 --heads 2 --subset-size 1"),
        ("plan", "plan data/train.csv --dir work --memory 2 --degree 2 --heads 2 --subset-size 1"),
        ("head", "head work 0 1"),
        ("merge", "merge work --out merged.tha"),
        ("tune", "tune data/train.csv --trials 3"),
        ("predict", "predict full.tha data/test.csv --out p.csv"),
        ("evaluate", "evaluate full.tha data/test.csv"),
        ("analyze", "analyze --full full.tha --ensemble two.tha data/train.csv"),
        ("inspect", "inspect full.tha"),
        ("export", "export full.tha --to c --out c"),
        ("quantize", "quantize full.tha data/train.csv --out full16.tha"),
        ("completions", "completions zsh"),
        ("man", "man"),
        ("man", "man --out pages"),
    ];
    // The demo takes a minute, and has a test of its own.
    let left: Vec<String> = commands(&bench)
        .into_iter()
        .filter(|c| c != "demo" && !lines.iter().any(|(name, _)| name == c))
        .collect();
    assert!(left.is_empty(), "no line for {left:?}");
    for (name, line) in lines.drain(..) {
        let output = bench.run(&format!("{line} --json"));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(object.is_object(), "{name}");
        assert_eq!(text(&output.stdout).trim_end().lines().count(), 1, "{name}");
    }
}

#[test]
fn completions_and_manual_pages() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.ok(&format!("completions {shell}"));
        assert!(script.contains("tune") && script.contains("budget-macs"), "{shell}");
    }
    bench.ok("man --out pages -q");
    let pages = std::fs::read_dir(bench.path("pages")).unwrap().count();
    assert_eq!(pages, 1 + commands(&bench).len());
    let page = text(&bench.read("pages/tha-train-fit.1"));
    for part in
        [".TH tha-train-fit 1", ".SH EXAMPLES\n.nf\n", "\\-\\-combine additive", "\\(aqvalve*,T_in\\(aq"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(bench.ok("man").trim_end(), text(&bench.read("pages/tha-train.1")).trim_end());
    assert_eq!(bench.run("man --out pages/tha-train.1").status.code(), Some(2));
}

#[test]
fn the_version_names_the_commit() {
    let version = Bench::new().ok("--version");
    let git = |line: &str| {
        let output = Command::new("git")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(line.split(' '))
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(text(&output.stdout).trim().to_owned())
    };
    let commit = git("ls-files --error-unmatch Cargo.toml").and_then(|_| git("rev-parse --short HEAD"));
    let commit = commit.unwrap_or_else(|| "unknown commit".into());
    assert_eq!(version.trim_end(), format!("tha-train {} ({commit})", env!("CARGO_PKG_VERSION")));
}

#[test]
fn nothing_is_coloured_where_nobody_looks() {
    let bench = Bench::new();
    for variable in [None, Some(("NO_COLOR", "1"))] {
        for line in ["--help", "fit --help", "fit --nonsense", "synth --kind volterra --samples 100 --out d"]
        {
            let output = bench.command(line).envs(variable).output().unwrap();
            assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{line}");
        }
    }
}
