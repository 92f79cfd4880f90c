//! What holds for whole runs: the same bytes for any number of threads, and nothing half-written after Ctrl-C.

mod cli_common;

use cli_common::{Bench, text};

#[test]
fn threads_do_not_change_a_byte() {
    let bench = Bench::synth("--kind array --channels 4 --samples 1500 --out data");
    for threads in ["1", "2"] {
        bench.ok(&format!(
            "fit data/train.csv --memory 3 --degree 2 -q --threads {threads} --out {threads}.tha"
        ));
        bench.ok(&format!("predict 1.tha data/test.csv -q --threads {threads} --out {threads}.csv"));
    }
    assert_eq!(bench.read("1.tha"), bench.read("2.tha"));
    assert_eq!(bench.read("1.csv"), bench.read("2.csv"));
    bench.ok("synth --kind array --channels 4 --samples 1500 --out again");
    assert_eq!(bench.read("data/train.csv"), bench.read("again/train.csv"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_nothing_behind() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    let bench = Bench::synth("--kind array --channels 6 --samples 8000 --out data");
    let before = bench.files();
    let mut child = bench
        .command("fit data/train.csv --out m.tha --memory 6 --degree 5 --max-rank 8 --restarts 500")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    assert!(!first.is_empty(), "progress is the sign that it is at work");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let mut said = Vec::new();
    stderr.read_to_end(&mut said).unwrap();
    let said = text(&said);
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.lines().last().unwrap().contains("interrupted"), "{said}");
    assert_eq!(said.matches("interrupted").count(), 1, "{said}");
    assert!(bench.files() == before, "no file, whole or partial, may appear");
}
