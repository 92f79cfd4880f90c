//! The command line as scripts use it: JSON fields and exit codes.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;
use tha_train::data::write_csv;
use tha_train::synth::{Kind, Options, generate};

struct Bench {
    folder: TempDir,
}

impl Bench {
    /// A folder with `m.tha` and `d.csv`.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { channels: 3, outputs: 2, samples: 800, ..Options::new(Kind::Volterra) };
        let made = generate(&options).unwrap();
        std::fs::write(folder.path().join("m.tha"), made.model.unwrap().to_bytes().unwrap()).unwrap();
        let names = [made.train.inputs, made.train.outputs].concat();
        let columns: Vec<&[f64]> = made.train.u.iter().chain(&made.train.y).map(Vec::as_slice).collect();
        let mut text = Vec::new();
        write_csv(&mut text, &names, &columns, || Ok(())).unwrap();
        std::fs::write(folder.path().join("d.csv"), text).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tha-firmware-sim"));
        command.current_dir(self.folder.path()).args(line.split_whitespace()).output().unwrap()
    }

    fn json(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --json"));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        let printed = text(&output.stdout);
        assert_eq!(printed.lines().count(), 1, "{line}: {printed}");
        serde_json::from_str(&printed).unwrap()
    }

    fn refused(&self, line: &str) -> String {
        let output = self.run(line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
        assert!(output.stdout.is_empty());
        said
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn run_on_the_host() {
    let bench = Bench::new();
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

#[test]
fn faults_are_reported_and_repeatable() {
    let bench = Bench::new();
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
fn boards_with_and_without_a_model() {
    let bench = Bench::new();
    assert!(bench.json("boards")["boards"].as_array().unwrap().len() > 10);
    let fits = bench.json("boards m.tha --estimate");
    assert!(fits["boards"].as_array().unwrap().iter().all(|board| board["fits"] == true));
    assert_eq!(fits["instructions"][0]["source"], "estimate");
}

#[test]
fn watch_in_plain_lines() {
    let bench = Bench::new();
    let lines = text(&bench.run("watch m.tha d.csv --plain").stdout);
    assert_eq!(lines.lines().count(), 801);
    assert!(lines.starts_with("t,y1,yhat_y1,y2,yhat_y2,device\n0,"));
    let nrmse = bench.json("watch m.tha d.csv")["outputs"][0]["nrmse"].as_f64().unwrap();
    assert!((0.005..0.02).contains(&nrmse), "the noise of the data is 1 %, not {nrmse}");
}

/// In a terminal, which `script` makes where it is installed.
#[test]
#[cfg(target_os = "linux")]
fn watch_gives_the_terminal_back() {
    use std::io::{Read, Write};
    use std::process::{ChildStdout, Stdio};
    if Command::new("script").arg("--version").output().is_err() {
        println!("note: script is not installed; skipped");
        return;
    }
    let bench = Bench::new();
    let program = env!("CARGO_BIN_EXE_tha-firmware-sim");
    // The shell stays until what it printed is read: `script` drops what comes late once its child has ended.
    let line = format!(
        "before=$(stty -g); sh -c 'echo $$ > pid; exec \"{program}\" watch m.tha d.csv'; code=$?; \
         test \"$before\" = \"$(stty -g)\" || code=99; echo the end; read key; exit $code"
    );
    let read_to = |mark: &str, screen: &mut ChildStdout, shown: &mut Vec<u8>| {
        let mut bytes = [0; 4096];
        while !text(shown).contains(mark) {
            let read = screen.read(&mut bytes).unwrap();
            assert!(read > 0, "no {mark:?} in {}", text(shown));
            shown.extend(&bytes[..read]);
        }
    };
    // Two keys and two signals.
    for (end, code) in [("q", 0), ("\x03", 0), ("TERM", 143), ("HUP", 129)] {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "60", "script", "-qec", &line, "/dev/null"]).env("TERM", "xterm");
        command.current_dir(bench.folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().unwrap();
        let (mut keys, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let mut shown = Vec::new();
        // Ctrl-C is a key only once the terminal is the program's.
        read_to("\x1b[?1049h", &mut screen, &mut shown);
        if code == 0 {
            keys.write_all(end.as_bytes()).unwrap();
        } else {
            let pid = std::fs::read_to_string(bench.path("pid")).unwrap();
            assert!(Command::new("kill").args(["-s", end, pid.trim()]).status().unwrap().success());
        }
        read_to("the end", &mut screen, &mut shown);
        keys.write_all(b"\n").unwrap();
        assert_eq!(script.wait().unwrap().code(), Some(code), "{end:?}");
        let shown = text(&shown);
        let given_back = |taken: &str, back: &str| shown.rfind(back) >= shown.rfind(taken);
        assert!(given_back("\x1b[?1049h", "\x1b[?1049l"), "{end:?}: {shown}");
        assert!(given_back("\x1b[?25l", "\x1b[?25h"), "{end:?}: {shown}");
    }
}

#[test]
fn soak_runs() {
    let report = Bench::new().json("soak m.tha --samples 30000 --seed 2");
    assert_eq!((&report["ok"], &report["report"]["broken"]), (&true.into(), &0.into()));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let bench = Bench::new();
    std::fs::write(bench.path("junk.tha"), b"junk").unwrap();
    std::fs::write(bench.path("short.csv"), "u1,u2,u3,y1,y2\n1,2,3,4,5\n").unwrap();
    std::fs::write(bench.path("nan.csv"), "u1,u2,u3,y1,y2\n1,2,NaN,4,5\n").unwrap();
    for (line, expected) in [
        ("", "no command given"),
        ("run", "MODEL"),
        ("run m.tha", "<DATA>"),
        ("run m.tha d.csv --target z80", "z80"),
        ("run no.tha d.csv", "no.tha"),
        ("run junk.tha d.csv", "junk.tha"),
        ("run m.tha no.csv", "no.csv"),
        ("run m.tha nan.csv", "nan.csv, line 2"),
        ("faults m.tha short.csv", "longest record has 1"),
        ("watch m.tha d.csv --plain --speed 0", "--speed"),
        ("soak m.tha --with junk.tha", "junk.tha"),
        ("boards junk.tha", "junk.tha"),
    ] {
        let said = bench.refused(line);
        assert!(said.contains(expected), "{line}: {said}");
    }
}
