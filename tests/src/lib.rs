//! What the tests in `tests/tests` share: the two command lines in a folder of their own.

pub mod markdown;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository is there")
}

/// A temporary folder in which shell commands run, with `tha-train` and `tha-firmware-sim` on the path.
#[derive(Debug)]
pub struct Bench {
    folder: TempDir,
    programs: TempDir,
}

impl Bench {
    /// A new folder, and the programs under the names that users know.
    pub fn new(train: &str, simulator: &str) -> Self {
        let bench = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            programs: tempfile::tempdir().expect("a temporary folder"),
        };
        for (program, name) in [(train, "tha-train"), (simulator, "tha-firmware-sim")] {
            std::os::unix::fs::symlink(program, bench.programs.path().join(name)).expect("a link");
        }
        bench
    }

    /// A file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Reads a text file in the folder.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a command line in the shell.
    pub fn run(&self, line: &str) -> Output {
        let mut path = OsString::from(self.programs.path());
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.folder.path()).env("PATH", path);
        // The programs are not run by cargo here, although this test is.
        command.env_remove("CARGO_MANIFEST_DIR").env("NO_COLOR", "1").output().expect("a shell")
    }

    /// Runs a command line that must succeed; gives its standard output.
    pub fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}: {}", output.status, said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command line that must be refused: exit code 2 and one line on standard error, which is given.
    pub fn refusal(&self, line: &str) -> String {
        let output = self.run(line);
        let said = said(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
        said
    }

    /// Runs a command line that must succeed and print one JSON object.
    pub fn json(&self, line: &str) -> serde_json::Value {
        let printed = self.ok(&format!("{line} --json"));
        assert_eq!(printed.lines().count(), 1, "{line}: {printed}");
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{line}: {error}: {printed}"))
    }
}

/// What a command said on standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A number of a JSON object.
pub fn value(json: &serde_json::Value) -> f64 {
    json.as_f64().unwrap_or_else(|| panic!("not a number: {json}"))
}
