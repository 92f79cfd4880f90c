//! What holds for whole runs: the same bytes for any number of threads, nothing half-written after Ctrl-C, and no copies in memory.

mod cli_common;

use cli_common::{Bench, text};
use std::process::Command;

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
    let bench = Bench::synth("--kind array --channels 6 --samples 8000 --out data");
    // Names and checksums of all files.
    let mut list = Command::new("sh");
    list.args(["-c", "find . -type f | sort | xargs cksum"]).current_dir(bench.path(""));
    let before = text(&list.output().unwrap().stdout);
    assert!(before.contains("data/train.csv"), "{before}");
    // The first line of progress is the sign that it is at work.
    let line = "fit data/train.csv --out m.tha --memory 6 --degree 5 --max-rank 8 --restarts 500";
    let (code, _, said) = bench.interrupted(line, "\n");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.lines().last().unwrap().contains("interrupted"), "{said}");
    assert_eq!(said.matches("interrupted").count(), 1, "{said}");
    assert_eq!(text(&list.output().unwrap().stdout), before, "no file, whole or partial, may appear");
}

/// A fit needs room for the recording and for the lag windows once.
#[cfg(target_os = "linux")]
#[test]
fn lag_windows_are_in_memory_once_at_most() {
    let bench = Bench::synth(
        "--kind volterra --channels 4 --memory 2 --degree 2 --samples 150000 --test-samples 10 --out data",
    );
    let fit = bench.json("fit data/train.csv --memory 25 --degree 1 --decay none --threads 1 --out m.tha -q");
    let windows = 150_000.0 * 101.0 * 8.0 / (1024.0 * 1024.0);
    let peak = fit["peak_rss_mb"].as_f64().unwrap();
    assert!(peak < 2.0 * windows, "{peak:.0} MiB, and the lag windows are {windows:.0}");
}
