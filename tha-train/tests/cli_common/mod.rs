//! Running the program of a package, this one or the simulator, in a folder of its own.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const PROGRAM: &str =
    match (option_env!("CARGO_BIN_EXE_tha-train"), option_env!("CARGO_BIN_EXE_tha-firmware-sim")) {
        (Some(program), _) | (_, Some(program)) => program,
        _ => panic!("this is a test of neither"),
    };

/// A temporary folder in which commands run.
pub struct Bench {
    folder: TempDir,
}

#[allow(dead_code, reason = "each test program uses its part")]
impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A new folder in which `synth` has made data, without a word.
    pub fn synth(options: &str) -> Self {
        let bench = Self::new();
        let output = bench.run(&format!("synth {options} -q"));
        assert_eq!((text(&output.stdout), text(&output.stderr)), Default::default(), "{options}");
        assert!(output.status.success(), "{options}");
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The command with its arguments in one string.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.folder.path()).args(line.split_whitespace());
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command that must succeed; gives its standard output.
    pub fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a command that must succeed; gives its standard error.
    pub fn said(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        text(&output.stderr)
    }

    /// Runs a command that must be refused in one line; gives the line.
    pub fn refusal(&self, line: &str) -> String {
        let output = self.run(line);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
        said
    }

    /// Runs a command that must succeed and print one JSON object.
    pub fn json(&self, line: &str) -> Value {
        self.json_and(0, line)
    }

    /// Runs a command that must end with some code and print one JSON object.
    pub fn json_and(&self, code: i32, line: &str) -> Value {
        let output = self.run(&format!("{line} --json"));
        assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output.stderr));
        let printed = text(&output.stdout);
        assert_eq!(printed.lines().count(), 1, "{line}: {printed}");
        serde_json::from_str(&printed).unwrap()
    }

    /// Runs a command and presses Ctrl-C once it has said these words; gives the exit code, what was printed, and what was said.
    pub fn interrupted(&self, line: &str, words: &str) -> (Option<i32>, String, String) {
        let mut command = self.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stderr, mut said) = (BufReader::new(child.stderr.take().unwrap()), String::new());
        while !said.contains(words) {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
        }
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let mut printed = String::new();
        child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (child.wait().unwrap().code(), printed, said)
    }
}

/// The number at a path of keys, which must exist.
#[allow(dead_code, reason = "each test program uses its part")]
pub fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {pointer} in {value}"))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
