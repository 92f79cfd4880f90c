//! Building the firmware images with the tool chain of the machine.

use super::{EmulatorError, Processor, elf};
use crate::model_file::{DeviceModel, ModelFile};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A firmware image of its own: a later build does not change it.
#[derive(Debug)]
pub struct Image {
    folder: TempDir,
    /// The processor it is for.
    pub processor: Processor,
    /// Bytes of flash that it takes.
    pub flash: usize,
    /// What it computes with and is given.
    pub numbers: Numbers,
}

/// What an image computes with and is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// f32.
    #[default]
    Float,
    /// Integers, for samples in physical units.
    Integer,
    /// Integers, for samples in counts.
    Counts,
}

impl Numbers {
    /// Those of a model, for samples in physical units.
    pub fn of(model: &ModelFile) -> Self {
        match model.model() {
            DeviceModel::Float(_) => Self::Float,
            DeviceModel::Integer(_) => Self::Integer,
        }
    }

    /// The same for what the converter of a device gives.
    pub fn counted(self) -> Self {
        if self == Self::Integer { Self::Counts } else { self }
    }

    fn feature(self) -> &'static str {
        match self {
            Self::Float => "",
            Self::Integer => "integer",
            Self::Counts => "counts",
        }
    }
}

impl Image {
    /// The ELF file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("image.elf")
    }
}

/// How the compiler is to optimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    /// As the firmware guide of tha-core recommends and the profile of the firmware says.
    #[default]
    Recommended,
    /// Other optimisation levels, `3`, `2`, `s` or `z`.
    Levels {
        /// Of the firmware.
        firmware: &'static str,
        /// Of tha-core.
        core: &'static str,
    },
}

/// Flash the replay image takes beside the model, and RAM beside the state, with some reserve.
const IMAGE_FLASH: usize = 48 << 10;
const IMAGE_RAM: usize = 3 << 10;
const MICROBIT_FLASH: usize = 256 << 10;
const MICROBIT_RAM: usize = 16 << 10;

/// Builds the replay image that is handed its model at start.
pub fn build(processor: Processor, setting: Setting, numbers: Numbers) -> Result<Image, EmulatorError> {
    super::qemu::find(processor)?;
    make(processor, "replay", None, setting, numbers)
}

/// Builds the replay image with `model` in its flash and a state of exactly its capacities.
pub fn build_linked(
    processor: Processor,
    model: &ModelFile,
    numbers: Numbers,
) -> Result<Image, EmulatorError> {
    super::qemu::find(processor)?;
    if processor == Processor::CortexM0 {
        let board = "micro:bit";
        let needed = model.bytes().len() + IMAGE_FLASH;
        if needed > MICROBIT_FLASH {
            return Err(EmulatorError::TooLarge { board, memory: "flash", needed, room: MICROBIT_FLASH });
        }
        let needed = model.state_bytes() + 4 * model.shape().inputs + IMAGE_RAM;
        if needed > MICROBIT_RAM {
            return Err(EmulatorError::TooLarge { board, memory: "RAM", needed, room: MICROBIT_RAM });
        }
    }
    make(processor, "replay", Some(model), Setting::default(), numbers)
}

/// Builds the replay image that can run `model`: linked where the memory is small, handed at start elsewhere.
pub fn build_for(processor: Processor, model: &ModelFile, numbers: Numbers) -> Result<Image, EmulatorError> {
    match processor {
        Processor::CortexM0 => build_linked(processor, model, numbers),
        _ => build(processor, Setting::default(), numbers),
    }
}

/// Bytes of flash of an image that parses a model, pushes samples and does nothing else: all of its code and constants, with
/// the floating point in software and the memory functions that it needs.
pub fn code_bytes(processor: Processor, setting: Setting, numbers: Numbers) -> Result<usize, EmulatorError> {
    Ok(make(processor, "footprint", None, setting, numbers)?.flash)
}

fn make(
    processor: Processor,
    name: &str,
    model: Option<&ModelFile>,
    setting: Setting,
    numbers: Numbers,
) -> Result<Image, EmulatorError> {
    let target = processor.description().target;
    let firmware = Path::new(env!("CARGO_MANIFEST_DIR")).join("firmware");
    let built = firmware.join("target");
    fs::create_dir_all(&built)?;
    // One build at a time: all models make the same file, which is copied before the next one comes.
    let lock = File::create(built.join("build.lock"))?;
    lock.lock()?;

    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--release", "--quiet", "--bin", name, "--target", target]);
    let board = if name == "replay" { "board" } else { "" };
    cargo.arg("--features").arg(format!("{board} {}", numbers.feature()));
    if let Setting::Levels { firmware, core } = setting {
        for (of, level) in [("", firmware), ("package.tha-core.", core)] {
            cargo.arg("--config").arg(format!("profile.release.{of}opt-level={}", toml(level)));
        }
    }
    cargo.arg("--manifest-path").arg(firmware.join("Cargo.toml")).arg("--target-dir").arg(&built);
    // Flags and models meant for the host have no business here.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "THA_MODEL"] {
        cargo.env_remove(variable);
    }
    if let Some(model) = model {
        let path = built.join("model.tha");
        // A file that has not changed is not linked anew.
        if fs::read(&path).ok().as_deref() != Some(model.bytes()) {
            fs::write(&path, model.bytes())?;
        }
        cargo.env("THA_MODEL", path);
    }
    let output = output(&mut cargo, "cargo", "https://rustup.rs")?;
    if !output.status.success() {
        // The target is not installed here: two programs that install at once can break a tool chain.
        if words(&output.stderr).contains("can't find crate for `core`") {
            return Err(EmulatorError::Target { target });
        }
        return Err(EmulatorError::Build { target, log: error_line(&output.stderr) });
    }
    let folder = tempfile::tempdir()?;
    fs::copy(built.join(target).join("release").join(name), folder.path().join("image.elf"))?;
    let flash = elf::flash_bytes(&folder.path().join("image.elf"))
        .ok_or_else(|| EmulatorError::Build { target, log: "the result is not a 32-bit ELF file".into() })?;
    Ok(Image { folder, processor, flash, numbers })
}

/// As TOML: numbers are numbers, letters are text.
fn toml(level: &str) -> String {
    if level.parse::<u8>().is_ok() { level.into() } else { format!("'{level}'") }
}

/// The line of a log that says what went wrong.
fn error_line(log: &[u8]) -> String {
    let log = words(log);
    let line = log.lines().find(|line| line.starts_with("error")).or(log.lines().next());
    line.map_or("no reason was given", |line| line.strip_prefix("error: ").unwrap_or(line)).to_owned()
}

/// Runs a program that may not be installed.
pub(super) fn output(
    command: &mut Command,
    tool: &'static str,
    remedy: &'static str,
) -> Result<Output, EmulatorError> {
    command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => EmulatorError::Missing { tool, remedy },
        _ => EmulatorError::Exchange(error),
    })
}

pub(super) fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
