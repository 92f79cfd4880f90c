//! A fit needs room for the recording and for the lag windows once, not for copies of them.
#![cfg(target_os = "linux")]

mod cli_common;

use cli_common::Bench;

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
