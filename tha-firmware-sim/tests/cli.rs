//! The command line as scripts use it: JSON fields and exit codes.

use cli_common::{Bench, text};
use std::process::Command;
use tha_core::build::{Core, Feature, Filter, Head, ModelSpec, Section, Signal, Source, Stage};
use tha_train::{Dataset, SynthKind as Kind, SynthParams, generate};

#[path = "../../tha-train/tests/cli_common/mod.rs"]
mod cli_common;
#[allow(dead_code, reason = "the tests of tha-core compute the outputs too")]
#[path = "../../tha-core/tests/common/staged.rs"]
mod staged;

/// A folder with `m.tha` and `d.csv`.
fn bench() -> Bench {
    around(0.0, 0.0)
}

/// The same system with offsets added to the input `u2` and the output `y1`.
fn around(u2: f32, y1: f32) -> Bench {
    let bench = Bench::new();
    let options = SynthParams { channels: 3, outputs: 2, samples: 800, ..SynthParams::new(Kind::Volterra) };
    let mut made = generate(&options).unwrap();
    let mut spec = made.model.unwrap().spec().clone();
    let input = &mut spec.inputs[1];
    [&mut input.offset, &mut input.low, &mut input.high].into_iter().for_each(|value| *value += u2);
    made.train.u[1].iter_mut().for_each(|value| *value += f64::from(u2));
    spec.outputs[0].offset += y1;
    bench.write("m.tha", spec.to_bytes().unwrap());
    write_data(&bench, "d.csv", &made.train);
    bench
}

fn write_data(bench: &Bench, name: &str, data: &Dataset) {
    let mut text = Vec::new();
    data.write_csv(&mut text).unwrap();
    bench.write(name, text);
}

#[test]
fn run_on_the_host() {
    let bench = bench();
    let report = bench.json("run m.tha d.csv --target host");
    for field in [
        "samples",
        "max_abs_error",
        "max_rel_error",
        "error_bound",
        "bit_exact",
        "warmup",
        "flash_bytes",
        "ram_bytes",
        "stack_bytes",
        "instructions_per_sample",
        "macs_per_sample",
        "instructions_per_mac",
        "ok",
    ] {
        assert!(report.get(field).is_some(), "{field}");
    }
    assert_eq!((report["samples"].as_u64(), report["warmup"].as_u64()), (Some(797), Some(3)));
    assert_eq!((&report["ok"], &report["bit_exact"]), (&true.into(), &true.into()));
    assert!(report["max_abs_error"].as_f64() <= report["error_bound"].as_f64());
    assert!(text(&bench.run("run m.tha d.csv").stdout).contains("within the bound"));
    assert!(bench.run("run m.tha d.csv -q").stdout.is_empty());
}

/// The differences are within the bound, which grows with the offset, and as large as all that the outputs do.
#[test]
fn an_offset_that_eats_the_digits_of_f32_is_a_failure() {
    for (u2, y1, eaten) in [(1e8, 0.0, "'u2' eats"), (0.0, -1e8, "'y1' eats"), (1e8, 1e8, "'u2', 'y1' eats")]
    {
        let bench = around(u2, y1);
        let report = bench.json_and(1, "run m.tha d.csv");
        assert_eq!((&report["ok"], &report["bit_exact"]), (&false.into(), &true.into()));
        assert!(report["max_abs_error"].as_f64() <= report["error_bound"].as_f64(), "{report}");
        assert!(report["max_rel_error"].as_f64() > Some(0.1), "{report}");
        let lost = report["lost"].as_str().unwrap();
        assert!(lost.contains(eaten) && lost.contains("subtract it"), "{lost}");
        let words = text(&bench.run("run m.tha d.csv").stdout);
        assert!(words.contains(&format!("FAILED: {lost}")) && !words.contains("within the bound"), "{words}");
    }
    // f32 has digits enough for these.
    let report = around(1e3, 1e3).json("run m.tha d.csv");
    assert!(report["max_rel_error"].as_f64() < Some(1e-2) && report["lost"].is_null(), "{report}");
}

#[test]
fn an_output_that_stands_still_is_judged_by_its_size_and_one_beyond_f32_not_at_all() {
    let bench = around(0.0, 5.0);
    for (name, value, code) in [("still.csv", 0.25, 0), ("huge.csv", 1e30, 1)] {
        write_data(&bench, name, &Dataset::new(name, vec![vec![value; 20]; 3], vec![vec![0.0; 20]; 2]));
        let report = bench.json_and(code, &format!("run m.tha {name}"));
        match code {
            0 => assert!(report["max_rel_error"].as_f64() < Some(1e-5), "{report}"),
            _ => assert!(report["lost"].as_str().unwrap().contains("range of f32"), "{report}"),
        }
    }
}

/// Two programs that install a target at once can break a tool chain: only `.ci/run` installs.
#[test]
#[cfg(unix)]
fn a_missing_rust_target_is_named_and_not_installed() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench();
    // A machine with QEMU and without the targets. What cargo says is what the compiler says there.
    for (tool, script) in [
        ("rustup", "echo \"$@\" >> \"$(dirname \"$0\")/calls\""),
        ("qemu-system-arm", "exit 0"),
        ("qemu-system-riscv32", "exit 0"),
        ("cargo", "echo \"error[E0463]: can't find crate for \\`core\\`\" >&2; exit 101"),
    ] {
        bench.write(tool, format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(bench.path(tool), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bench.path("").display(), std::env::var("PATH").unwrap());
    for (name, target) in
        [("cortex-m4f", "thumbv7em-none-eabihf"), ("riscv32", "riscv32imc-unknown-none-elf")]
    {
        let mut command = bench.command(&format!("run m.tha d.csv -q --target {name}"));
        let output = command.env("PATH", &path).env("CARGO", bench.path("cargo")).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        let remedy = format!("rustup target add {target}");
        assert!(said.contains(" is missing") && said.contains(&remedy), "{said}");
    }
    assert!(!bench.path("calls").exists(), "rustup was called");
}

#[test]
fn faults_are_reported_and_repeatable() {
    let bench = bench();
    let campaign = bench.json("faults m.tha d.csv --seed 3 --trials 20");
    assert_eq!(campaign["ok"], true);
    let kinds = campaign["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), 13);
    for kind in kinds {
        assert_eq!(
            (&kind["reported"], &kind["silent"], &kind["crashed"]),
            (&20.into(), &0.into(), &0.into()),
            "{kind}"
        );
    }
    assert_eq!(campaign, bench.json("faults m.tha d.csv --seed 3 --trials 20"));
    assert_ne!(campaign, bench.json("faults m.tha d.csv --seed 4 --trials 20"));
}

#[test]
fn faults_of_a_model_with_filters_and_maps() {
    let bench = bench();
    let plain = ModelSpec::from_bytes(&bench.read("m.tha")).unwrap();
    let spec = ModelSpec { inputs: plain.inputs, outputs: plain.outputs, ..staged::staged(1, 3, 2, 3) };
    bench.write("m.tha", spec.to_bytes().unwrap());
    let campaign = bench.json("faults m.tha d.csv --seed 3 --trials 20");
    assert_eq!(campaign["ok"], true, "{campaign}");
    for kind in campaign["kinds"].as_array().unwrap() {
        assert_eq!((&kind["reported"], &kind["silent"]), (&20.into(), &0.into()), "{kind}");
    }
}

/// The slower the average and the steeper the map behind it, the longer a sample is felt: also by the last of a bank, and
/// after a fault of several samples.
#[test]
fn faults_of_a_model_with_averages_and_steep_maps() {
    let bench = bench();
    let spec = ModelSpec::from_bytes(&bench.read("m.tha")).unwrap();
    for (slow, narrow) in [(8.0, 0.05), (16.0, 0.01), (4.0, 0.002)] {
        let mut spec = ModelSpec { stage: steep(spec.inputs.len(), slow, narrow), ..spec.clone() };
        // The level itself, and a step up and down again from node to node, as a relay would make it.
        let row: Vec<f32> =
            (0..3).map(|_| 0.3).chain((0..3).flat_map(|_| [0.0, 0.0, 1.0, 1.0, 0.0, 0.0])).collect();
        let core = Core::new(1, 1 + row.len(), 1, [&[0.0][..], &row].concat());
        spec.memory = 1;
        let head = Head::from_cores(vec![0, 1, 2], 1.0, vec![core]);
        let serving = |j| Head { outputs: j..j + 1, features: (0..6).collect(), ..head.clone() };
        spec.heads = vec![serving(0), serving(1)];
        bench.write("steep.tha", spec.to_bytes().unwrap());
        let campaign = bench.json("faults steep.tha d.csv --seed 3 --trials 100");
        assert_eq!(campaign["ok"], true, "{slow} {narrow} {campaign}");
    }
}

/// For every input an average as a feature, and once more behind a map with steps of that width.
fn steep(inputs: usize, slow: f32, narrow: f32) -> Stage {
    let filter = Filter::Average { alpha: 1.0 / slow };
    let sections = (0..inputs).map(|input| Section { source: Source::Input(input), filter }).collect();
    let nodes = vec![-0.2, -0.1, -0.1 + narrow, 0.1, 0.1 + narrow, 0.2];
    let features = [vec![], nodes].into_iter().flat_map(|nodes| {
        (0..inputs).map(move |section| Feature {
            plus: Signal::Section { section, output: 0 },
            minus: None,
            low: -1.0,
            high: 1.0,
            nodes: nodes.clone(),
        })
    });
    let mut stage = Stage { sections, features: features.collect(), ..Stage::default() };
    stage.settle();
    stage
}

#[test]
fn boards_with_and_without_a_model() {
    let bench = bench();
    assert!(bench.json("boards")["boards"].as_array().unwrap().len() > 10);
    let fits = bench.json("boards m.tha --estimate");
    assert!(fits["boards"].as_array().unwrap().iter().all(|board| board["fits"] == true));
    let instructions = fits["instructions"].as_array().unwrap();
    let processors: Vec<_> = instructions.iter().map(|cost| cost["processor"].as_str().unwrap()).collect();
    assert_eq!(processors, ["cortex-m4f", "cortex-m7", "cortex-m3", "cortex-m0", "riscv32"]);
    assert!(instructions.iter().all(|cost| cost["source"] == "estimate"));
}

#[test]
fn watch_in_plain_lines() {
    let bench = bench();
    let lines = text(&bench.run("watch m.tha d.csv --plain").stdout);
    assert_eq!(lines.lines().count(), 801);
    assert!(lines.starts_with("t,y1,yhat_y1,y2,yhat_y2,device\n0,"));
    let nrmse = bench.json("watch m.tha d.csv")["outputs"][0]["nrmse"].as_f64().unwrap();
    assert!((0.005..0.02).contains(&nrmse), "the noise of the data is 1 %, not {nrmse}");
}

/// Reads what a terminal shows until a mark stands in it so many times.
#[cfg(target_os = "linux")]
fn read_to(mark: &str, times: usize, screen: &mut std::process::ChildStdout, shown: &mut Vec<u8>) {
    use std::io::Read;
    let mut bytes = [0; 4096];
    while text(shown).matches(mark).count() < times {
        let read = screen.read(&mut bytes).unwrap();
        assert!(read > 0, "no {mark:?} in {}", text(shown));
        shown.extend(&bytes[..read]);
    }
}

/// In a terminal, which `script` makes where it is installed.
#[test]
#[cfg(target_os = "linux")]
fn watch_gives_the_terminal_back() {
    use std::io::Write;
    use std::process::Stdio;
    if Command::new("script").arg("--version").output().is_err() {
        println!("note: script is not installed; skipped");
        return;
    }
    let bench = bench();
    let program = env!("CARGO_BIN_EXE_tha-firmware-sim");
    // The shell stays until what it printed is read: `script` drops what comes late once its child has ended.
    let line = format!(
        "before=$(stty -g); sh -c 'echo $$ > pid; exec \"{program}\" watch m.tha d.csv'; code=$?; \
         test \"$before\" = \"$(stty -g)\" || code=99; echo the end; read key; exit $code"
    );
    // Two keys and two signals.
    for (end, code) in [("q", 0), ("\x03", 0), ("TERM", 143), ("HUP", 129)] {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "60", "script", "-qec", &line, "/dev/null"]).env("TERM", "xterm");
        command.current_dir(bench.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().unwrap();
        let (mut keys, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let mut shown = Vec::new();
        // Ctrl-C is a key only once the terminal is the program's.
        read_to("\x1b[?1049h", 1, &mut screen, &mut shown);
        if code == 0 {
            keys.write_all(end.as_bytes()).unwrap();
        } else {
            let pid = text(&bench.read("pid"));
            assert!(Command::new("kill").args(["-s", end, pid.trim()]).status().unwrap().success());
        }
        read_to("the end", 1, &mut screen, &mut shown);
        keys.write_all(b"\n").unwrap();
        assert_eq!(script.wait().unwrap().code(), Some(code), "{end:?}");
        let shown = text(&shown);
        let given_back = |taken: &str, back: &str| shown.rfind(back) >= shown.rfind(taken);
        assert!(given_back("\x1b[?1049h", "\x1b[?1049l"), "{end:?}: {shown}");
        assert!(given_back("\x1b[?25l", "\x1b[?25h"), "{end:?}: {shown}");
    }
}

/// The window is closed: `script` takes the terminal with it.
#[test]
#[cfg(target_os = "linux")]
fn watch_ends_with_its_terminal() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    let bench = bench();
    let program = env!("CARGO_BIN_EXE_tha-firmware-sim");
    // In the place of the shell: the one process that is told.
    let line = format!("echo $$ > pid; exec \"{program}\" watch m.tha d.csv --speed 5 2> /dev/full");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").current_dir(bench.path(""));
    let Ok(mut script) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        println!("note: script is not installed; skipped");
        return;
    };
    // The cursor is hidden after every picture: by the second it has waited for keys, and now does so again.
    let mut screen = script.stdout.take().unwrap();
    read_to("\x1b[?25l", 2, &mut screen, &mut Vec::new());
    script.kill().unwrap();
    script.wait().unwrap();
    let pid = text(&bench.read("pid"));
    // Gone, or a zombie that nobody asks for.
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
    };
    let began = Instant::now();
    while runs() {
        assert!(began.elapsed() < Duration::from_secs(20), "it runs without a terminal");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn soak_runs() {
    let report = bench().json("soak m.tha --samples 30000 --seed 2");
    assert_eq!((&report["ok"], &report["report"]["broken"]), (&true.into(), &0.into()));
}
