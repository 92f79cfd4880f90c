//! The commands to try next, as they can be copied from this terminal.

use super::super::shell::quoted;
use std::path::{Path, PathBuf};

/// How the two programs are called from here.
pub(super) struct Commands {
    train: String,
    /// `None` where it is not known to be there.
    simulator: Option<String>,
}

impl Commands {
    /// Through cargo where this process was started by it, by the same path otherwise.
    pub(super) fn of_this_process() -> Self {
        if std::env::var_os("CARGO_MANIFEST_DIR").is_some() {
            let run = "cargo run --release --quiet";
            return Self {
                train: format!("{run} --"),
                simulator: Some(format!("{run} --package tha-firmware-sim --")),
            };
        }
        let called = std::env::args_os().next().map_or_else(|| "tha-train".into(), PathBuf::from);
        let name = format!("tha-firmware-sim{}", std::env::consts::EXE_SUFFIX);
        let beside = std::env::current_exe().is_ok_and(|own| own.with_file_name(&name).exists());
        Self { simulator: beside.then(|| quoted(called.with_file_name(&name))), train: quoted(&called) }
    }

    /// What is in the model, a fit of one's own, and the model on a device.
    pub(super) fn next(&self, folder: &Path, chosen: &str) -> [String; 3] {
        let file = |name: &str| quoted(folder.join(name));
        let (model, train, test) = (file(&format!("{chosen}.tha")), file("train.csv"), file("test.csv"));
        let (own, page) = (file("own.tha"), file("own.html"));
        let program = &self.train;
        [
            format!("{program} inspect {model}"),
            format!("{program} fit {train} --out {own} --memory 4 --degree 2 --report {page}"),
            match &self.simulator {
                Some(simulator) => format!("{simulator} run {model} {test}"),
                None => format!("{program} evaluate {model} {test}"),
            },
        ]
    }
}
