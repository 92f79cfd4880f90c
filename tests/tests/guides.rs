//! Every command of README.md and of the guides in `docs/` is executed: here, in a folder with small data, or by
//! `.ci/run`, which then has the very line.
//!
//! A block with a language and a file name (` ```c main.c `) is that file. Commands on an emulated board may find that QEMU
//! or the Rust target is missing, and others that GNU parallel is, unless THA_REQUIRE_QEMU is set.

use ndarray::Array2;
use std::path::Path;
use tha_tests::markdown::{Block, blocks, commands};
use tha_tests::{Bench, root, said};

/// Programs whose commands stand in `.ci/run`, if anywhere.
const ELSEWHERE: [&str; 5] = ["cargo", "rustup", "apt-get", "git", "pip"];

/// What a user has before the first command: recordings, and models to go on from.
fn bench() -> Bench {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    bench.ok("tha-train synth --kind array --channels 6 --outputs 2 --memory 3 --samples 500 --test-samples 200 --out .");
    bench.ok("sed '1s/u1/valve_a/; 1s/u2/valve_b/; 1s/u3/T_in/; 1s/y1/T_out/' train.csv > plant.csv");
    arrays(&bench);
    bench.ok("tha-train fit train.csv --out full.tha --memory 3 --degree 2 --max-rank 2 --restarts 1 -q");
    bench.ok("tha-train fit train.csv --out model.tha --memory 3 --degree 2 --max-rank 2 --heads 4 --subset-size 3 -q");
    bench
}

/// `u.npy` and `y.npy` with the numbers of `train.csv`: six inputs, then two outputs.
fn arrays(bench: &Bench) {
    let text = read(&bench.path("train.csv"));
    let rows: Vec<Vec<f64>> =
        text.lines().skip(1).map(|line| line.split(',').map(|v| v.parse().unwrap()).collect()).collect();
    for (name, columns) in [("u.npy", 0..6), ("y.npy", 6..8)] {
        let values = Array2::from_shape_fn((rows.len(), columns.len()), |(t, i)| rows[t][columns.start + i]);
        ndarray_npy::write_npy(bench.path(name), &values).unwrap();
    }
}

fn guides() -> Vec<(String, Vec<Block>)> {
    let folder = root();
    let mut files: Vec<String> = std::fs::read_dir(folder.join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().to_string_lossy()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    files.sort();
    files.insert(0, "README.md".into());
    files.into_iter().map(|name| (name.clone(), blocks(&read(&folder.join(name))))).collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a block of another language must not hold: it would not be executed.
fn is_command(line: &str) -> bool {
    let line = line.trim_start_matches("$ ");
    ["tha-train ", "tha-firmware-sim ", "cargo ", "rustup "].iter().any(|start| line.starts_with(start))
}

#[test]
fn every_command_is_executed() {
    let ci = read(&root().join(".ci/run"));
    // Alone on its line, but for variables before it and a pipe after it.
    let in_ci = |command: &str| {
        let rest = |line: &str| line.find(command).map(|at| line[at + command.len()..].trim().to_owned());
        let lines = ci.lines().filter(|line| !line.trim_start().starts_with('#'));
        lines.filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with('|'))
    };
    let require_qemu = std::env::var_os("THA_REQUIRE_QEMU").is_some();
    let mut executed = 0;
    for (name, blocks) in guides() {
        let bench = bench();
        for block in blocks {
            let place = format!("{name}, line {}", block.line);
            if let Some(file) = &block.file {
                bench.write(file, &block.text);
            }
            if block.language != "sh" {
                assert!(!block.language.is_empty(), "{place}: a block without a language; commands are `sh`");
                let hidden = block.text.lines().find(|line| is_command(line));
                assert_eq!(hidden, None, "{place}: a command in a block that is not `sh`");
                continue;
            }
            for command in commands(&block.text) {
                let program = command.split_whitespace().next().unwrap_or_default();
                if ELSEWHERE.contains(&program) {
                    assert!(in_ci(&command), "{place}: `{command}` is neither run here nor by .ci/run");
                } else {
                    let output = bench.run(&command);
                    let said = said(&output);
                    let missing = command.contains(" --target ") && said.contains(" is missing")
                        || command.contains("| parallel ") && said.contains("not found");
                    if missing && !require_qemu {
                        println!("note: {place}: {command}: {said}skipped");
                    } else {
                        assert!(output.status.success(), "{place}: {command}: {said}");
                    }
                    executed += 1;
                }
            }
        }
    }
    assert!(executed > 20, "only {executed} commands were found: did the guides change their form?");
}

/// `docs/theory.md`: a row of its tables ends in a file and the items in it.
#[test]
fn the_theory_is_where_its_map_says() {
    let map = read(&root().join("docs/theory.md"));
    let mut rows = 0;
    for line in map.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [file, items] = cells[cells.len() - 2..] else { panic!("too few cells: {line}") };
        let source = read(&root().join(file.trim_matches('`')));
        for item in items.split(", ").map(|item| item.trim_matches('`')) {
            let defined = ["fn ", "struct ", "pub ", "enum "].iter().any(|keyword| {
                source.match_indices(&format!("{keyword}{item}")).any(|(at, found)| {
                    // The whole word: `sum` is not `sums`.
                    source[at + found.len()..]
                        .starts_with(|next: char| !next.is_alphanumeric() && next != '_')
                })
            });
            assert!(defined, "{file} does not define `{item}`: {line}");
        }
        rows += 1;
    }
    for kind in ["Definition", "Theorem", "Lemma", "Proposition", "Assumption", "Algorithm"] {
        assert!(map.contains(&format!("| {kind}")), "no {kind}");
    }
    for (kind, count) in [("Definition", 14), ("Theorem", 6), ("Lemma", 2)] {
        let start = format!("| {kind}");
        let cells = || map.lines().filter_map(|line| line.strip_prefix(&start)?.split('|').next());
        let words = || cells().flat_map(|cell| cell.trim_start_matches('s').split([' ', ',']));
        for number in 1..=count {
            assert!(words().any(|word| word == number.to_string()), "{kind} {number} is not in the map");
        }
    }
    // Files named in the text between the tables.
    for file in map.split('`').skip(1).step_by(2).filter(|code| code.ends_with(".rs")) {
        assert!(root().join(file).exists(), "{file}");
    }
    assert!(rows > 30, "{rows}");
}

/// Links between the pages lead somewhere.
#[test]
fn links_and_pictures_exist() {
    for (name, _) in guides() {
        let folder = root().join(&name).parent().unwrap().to_path_buf();
        let text = read(&root().join(&name));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if !link.contains("://") && !link.starts_with('#') {
                let file = link.split('#').next().unwrap_or_default();
                assert!(folder.join(file).exists(), "{name}: {link} leads nowhere");
            }
        }
    }
}
