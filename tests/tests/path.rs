//! The whole path as a user goes it: synth, fit, analyze, export, build the C and the Rust, stream. What comes out of both
//! programs is what tha-core gives in this process, to the bit.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tha_core::{Model, State, push};
use tha_firmware_sim::model_file::ModelFile;
use tha_tests::{Bench, root, value};
use tha_train::data::Source;

const MAIN_C: &str = r#"
#include "engine.h"
#include <stdio.h>

int main(void)
{
    static engine_state state;
    float u[ENGINE_INPUTS], y[ENGINE_OUTPUTS];
    unsigned flags;
    engine_reset(&state);
    while (fread(u, sizeof u, 1, stdin) == 1) {
        if (engine_push(&state, u, y, &flags) != ENGINE_READY) continue;
        printf("%u", flags);
        for (int j = 0; j < ENGINE_OUTPUTS; j++) {
            union { float value; uint32_t bits; } b = { y[j] };
            printf(" %08lx", (unsigned long)b.bits);
        }
        printf("\n");
    }
    return 0;
}
"#;

const MAIN_RUST: &str = r#"
mod engine;

use std::io::Read;

fn main() {
    let model = engine::model().expect("the bytes of a model");
    let mut state = engine::ModelState::new(&model).expect("a state that fits");
    let mut bytes = [0u8; 4 * engine::INPUTS];
    while std::io::stdin().read_exact(&mut bytes).is_ok() {
        let u: Vec<f32> = bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        if let tha_core::Step::Ready(output) = tha_core::push(&model, &mut state, &u) {
            let f = output.flags;
            let bits = [f.out_of_range, f.window_out_of_range, f.held, f.window_held, f.overflow];
            let flags: u32 = bits.iter().enumerate().map(|(k, &set)| u32::from(set) << k).sum();
            let y: String = output.y.iter().map(|y| format!(" {:08x}", y.to_bits())).collect();
            println!("{flags}{y}");
        }
    }
}
"#;

/// Flags and bits of every output, by tha-core in this process.
fn stream(file: &ModelFile, samples: &[Vec<f32>]) -> String {
    let model: Model<'_> = file.model();
    let mut state = Box::new(State::<8, 256, 512>::new(&model).unwrap());
    let mut text = String::new();
    for u in samples {
        let step = push(&model, &mut state, u);
        let Some(output) = step.output() else { continue };
        let f = output.flags;
        let bits = [f.out_of_range, f.window_out_of_range, f.held, f.window_held, f.overflow];
        let flags: u32 = bits.iter().enumerate().map(|(k, &set)| u32::from(set) << k).sum();
        let y: String = output.y.iter().map(|y| format!(" {:08x}", y.to_bits())).collect();
        writeln!(text, "{flags}{y}").unwrap();
    }
    text
}

fn fed(program: &Path, input: &Path) -> String {
    let stdin = Stdio::from(std::fs::File::open(input).unwrap());
    let output = Command::new(program).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn from_data_to_the_same_bits_in_c_and_rust() {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    bench.ok("tha-train synth --kind array --channels 5 --outputs 2 --memory 3 --samples 800 --test-samples 400 --out d -q");
    let shape = "--memory 3 --degree 2 --max-rank 2 --restarts 1 --range clamp -q";
    bench.ok(&format!("tha-train fit d/train.csv --out full.tha {shape}"));
    bench.ok(&format!(
        "tha-train fit d/train.csv --out engine.tha --heads 4 --subset-size 3 --combine stack {shape}"
    ));
    // Exit code 1, and so a panic here, if a theorem does not hold.
    let analysis =
        bench.ok("tha-train analyze --full full.tha --ensemble engine.tha d/test.csv --json --report r.html");
    assert!(analysis.contains("\"theorem1\""));
    assert!(std::fs::read_to_string(bench.path("r.html")).unwrap().ends_with("</html>\n"));
    let replay = bench.ok("tha-firmware-sim run engine.tha d/test.csv --json");
    assert!(replay.contains("\"bit_exact\":true") && replay.contains("\"ok\":true"), "{replay}");
    bench.ok("tha-train export engine.tha --to c --out c -q");
    bench.ok("tha-train export engine.tha --to rust --out rust/src -q");

    let file = ModelFile::read(&bench.path("engine.tha")).unwrap();
    let data =
        Source::from_path(&bench.path("d/test.csv")).unwrap().read(&file.batch().columns(false)).unwrap();
    // The second half runs beyond the training range, and so through the clamp and its flags.
    let gain = |t: usize| if t < data.len() / 2 { 1.0 } else { 3.0 };
    let samples: Vec<Vec<f32>> =
        (0..data.len()).map(|t| data.u.iter().map(|u| (gain(t) * u[t]) as f32).collect()).collect();
    let input = bench.path("u.f32");
    std::fs::write(&input, samples.iter().flatten().flat_map(|u| u.to_le_bytes()).collect::<Vec<u8>>())
        .unwrap();
    let expected = stream(&file, &samples);
    assert_eq!(expected.lines().count(), data.len() - 2);
    assert!(
        expected.lines().any(|line| line.starts_with("0 "))
            && expected.lines().any(|line| !line.starts_with("0 "))
    );

    std::fs::write(bench.path("c/main.c"), MAIN_C).unwrap();
    bench.ok("cd c && gcc -std=c99 -Wall -Wextra -Werror -O2 -ffp-contract=off main.c engine.c -o main");
    assert!(fed(&bench.path("c/main"), &input) == expected, "the C program gives other bits");

    std::fs::write(bench.path("rust/src/main.rs"), MAIN_RUST).unwrap();
    let manifest = format!(
        "[package]\nname = \"exported\"\nedition = \"2024\"\n\n[dependencies]\ntha-core.path = {:?}\n\n[workspace]\n",
        root().join("tha-core")
    );
    std::fs::write(bench.path("rust/Cargo.toml"), manifest).unwrap();
    // The versions of the workspace, which are on this machine already: no network.
    std::fs::copy(root().join("Cargo.lock"), bench.path("rust/Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exported");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet"])
        .current_dir(bench.path("rust"))
        .env("CARGO_TARGET_DIR", &target)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(fed(&target.join("debug/exported"), &input) == expected, "the Rust program gives other bits");
}

/// Whatever 32-bit numbers can hold, in files, models and streams, gives the same model: units do not matter.
#[test]
fn units_do_not_matter() {
    let bench = Bench::new(env!("CARGO_BIN_EXE_tests-train"), env!("CARGO_BIN_EXE_tests-simulate"));
    bench.ok(
        "tha-train synth --kind volterra --memory 2 --degree 2 --samples 300 --test-samples 100 --out . -q",
    );
    for unit in [1e-34, 1e-30, 1e30, 1e35] {
        for file in ["train.csv", "test.csv"] {
            let text = std::fs::read_to_string(bench.path(file)).unwrap();
            let (head, rows) = text.split_once('\n').unwrap();
            let scaled = |field: &str| format!("{:e}", unit * field.parse::<f64>().unwrap());
            let row = |row: &str| row.split(',').map(scaled).collect::<Vec<_>>().join(",") + "\n";
            let rows: String = rows.lines().map(row).collect();
            std::fs::write(bench.path(&format!("unit_{file}")), format!("{head}\n{rows}")).unwrap();
        }
        bench.ok("tha-train fit unit_train.csv --memory 2 --degree 2 --out m.tha --report r.html -q");
        let json = |line: &str| serde_json::from_str::<serde_json::Value>(&bench.ok(line)).unwrap();
        let nrmse = value(&json("tha-train evaluate m.tha unit_test.csv --json -q")["nrmse"]);
        assert!(nrmse < 0.03, "{unit}: {nrmse}");
        bench.ok("tha-train predict m.tha unit_test.csv --out p.csv -q");
        let prediction = std::fs::read_to_string(bench.path("p.csv")).unwrap();
        let largest = prediction.lines().filter_map(|line| line.parse::<f64>().ok()).fold(0.0, f64::max);
        assert!((0.5..50.0).contains(&(largest / unit)), "{unit}: {largest}");
        let run = json("tha-firmware-sim run m.tha unit_test.csv --target host --json");
        assert_eq!(run["ok"], true, "{unit}: {run}");
        assert!(value(&run["max_abs_error"]) < 1e-5 * unit, "{unit}: {run}");
        let watched = bench.ok("tha-firmware-sim watch m.tha unit_test.csv --plain");
        let last: Vec<f64> =
            watched.lines().last().unwrap().split(',').filter_map(|field| field.parse().ok()).collect();
        assert!((last[1] - last[2]).abs() < 0.2 * unit && last[1] != 0.0, "{unit}: {last:?}");
    }
}
