//! A folder with good things in it, and commands that must be refused there: exit code 2, one line on standard error that
//! names the place and the finding, nothing on standard output, nothing written, no panic.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tha_tests::{Bench, said};

/// Files and folders below a folder, with their contents.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut contents(&path));
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(std::fs::read(&path).unwrap()));
        }
    }
    found
}

/// The lines of a table, each split at ` => `.
pub fn table(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.trim().lines().map(|line| line.split_once(" => ").unwrap_or_else(|| panic!("no arrow: {line}")))
}

/// Runs commands that must be refused; the word is what the line must have.
pub fn refused(bench: &Bench, cases: &[(String, &str)]) {
    let before = contents(&bench.path(""));
    let mut faults = String::new();
    for (line, word) in cases {
        let output = bench.run(line);
        let (code, said) = (output.status.code(), said(&output));
        let program = line.split_whitespace().next().unwrap();
        let clear = said.lines().count() == 1 && said.starts_with(&format!("{program}: "));
        if code != Some(2) || !clear || !said.contains(word) || said.contains("internal error") {
            writeln!(faults, "{line}: expected '{word}', found code {code:?}: {said}").unwrap();
        }
        if !output.stdout.is_empty() {
            writeln!(faults, "{line}: something on standard output").unwrap();
        }
        if contents(&bench.path("")) != before {
            panic!("{faults}{line}: something was written");
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
}

/// Good data (2 inputs, 1 output), a full model `good.tha`, an ensemble `heads.tha`, another system `other.tha`.
pub fn bench() -> Bench {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    // With this seed no test sample lies outside of the training range: no command warns of it.
    bench.ok("tha-train synth --kind volterra --memory 2 --degree 2 --samples 200 --test-samples 50 --seed 1 --out . -q");
    bench.ok("tha-train fit train.csv --out good.tha --memory 2 --degree 2 --restarts 1 -q");
    bench.ok("tha-train fit train.csv --out heads.tha --memory 2 --degree 2 --heads 2 --subset-size 1 -q");
    bench.ok("tha-train synth --kind volterra --channels 3 --memory 3 --samples 60 --test-samples 20 --out other -q");
    bench
}
