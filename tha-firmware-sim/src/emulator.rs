//! Emulated boards: builds the firmware image, runs it under QEMU, reads back what it did.
//!
//! Under `-icount shift=0` an instruction takes one virtual nanosecond and SysTick counts at 25 MHz, so that a tick
//! is 40 instructions, repeatable to the tick on any host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Instructions between two SysTick ticks.
pub const INSTRUCTIONS_PER_TICK: f64 = 40.0;

/// A processor that QEMU emulates with memory enough for the replay image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// Cortex-M4 with FPU, board MPS2 AN386.
    CortexM4f,
    /// Cortex-M7 with FPU, board MPS2 AN500.
    CortexM7,
    /// Cortex-M3, no FPU, board MPS2 AN385.
    CortexM3,
}

impl Processor {
    /// The Rust target of its firmware.
    #[must_use]
    pub fn target(self) -> &'static str {
        match self {
            Self::CortexM4f | Self::CortexM7 => "thumbv7em-none-eabihf",
            Self::CortexM3 => "thumbv7m-none-eabi",
        }
    }

    fn machine(self) -> &'static str {
        match self {
            Self::CortexM4f => "mps2-an386",
            Self::CortexM7 => "mps2-an500",
            Self::CortexM3 => "mps2-an385",
        }
    }
}

/// Why a board could not be emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// A tool is not installed.
    #[error("{tool} is missing; install it with `{remedy}`")]
    Missing {
        /// The program.
        tool: &'static str,
        /// The command that installs it.
        remedy: String,
    },
    /// The firmware does not build.
    #[error("the firmware for {target} does not build (`rustup target add {target}` installs the target):\n{log}")]
    Build {
        /// The Rust target.
        target: &'static str,
        /// The compiler's words.
        log: String,
    },
    /// The image gave up, or said something else than it should.
    #[error("the firmware stopped: {0}")]
    Firmware(String),
    /// A temporary file could not be written or read.
    #[error("the exchange with the emulator failed: {0}")]
    Exchange(#[from] std::io::Error),
}

/// What the board did with a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The outputs of every sample, NaN while warming up.
    pub outputs: Vec<f32>,
    /// Samples that gave outputs.
    pub samples: usize,
    /// Multiply-accumulates per sample.
    pub macs: usize,
    /// Instructions of one push: the least, the most, the mean.
    pub instructions: [f64; 3],
}

/// Builds the replay image for `processor`.
///
/// # Errors
/// [`EmulatorError::Build`] with the compiler's words.
pub fn build(processor: Processor) -> Result<PathBuf, EmulatorError> {
    let firmware = Path::new(env!("CARGO_MANIFEST_DIR")).join("firmware");
    let target = processor.target();
    let output = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["build", "--release", "--quiet", "--features", "board", "--bin", "replay", "--target", target])
        .arg("--manifest-path")
        .arg(firmware.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(firmware.join("target"))
        .output()?;
    if !output.status.success() {
        return Err(EmulatorError::Build { target, log: String::from_utf8_lossy(&output.stderr).into_owned() });
    }
    Ok(firmware.join("target").join(target).join("release/replay"))
}

/// Runs `samples` (row by row, p values each) through `model` on the emulated board.
///
/// # Errors
/// [`EmulatorError`] when QEMU is missing or the firmware reports an error.
pub fn replay(processor: Processor, image: &Path, model: &[u8], samples: &[f32]) -> Result<Replay, EmulatorError> {
    let exchange = tempfile::tempdir()?;
    fs::write(exchange.path().join("model.tha"), model)?;
    fs::write(exchange.path().join("u.f32"), samples.iter().flat_map(|u| u.to_le_bytes()).collect::<Vec<u8>>())?;
    let output = Command::new("qemu-system-arm")
        .args(["-machine", processor.machine(), "-nographic", "-monitor", "none", "-serial", "none"])
        .args(["-icount", "shift=0", "-semihosting-config", "enable=on,target=native"])
        .arg("-kernel")
        .arg(image)
        .current_dir(exchange.path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                EmulatorError::Missing { tool: "qemu-system-arm", remedy: "apt-get install qemu-system-arm".into() }
            }
            _ => EmulatorError::Exchange(error),
        })?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |name: &str| -> Result<f64, EmulatorError> {
        let value = said.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let silent = || EmulatorError::Firmware(format!("{said}{}", String::from_utf8_lossy(&output.stderr)));
        value.and_then(|value| value.parse().ok()).ok_or_else(silent)
    };
    let samples = number("samples")?;
    let outputs = fs::read(exchange.path().join("y.f32"))?;
    let (least, most) = (number("ticks_min")?, number("ticks_max")?);
    let mean = number("ticks_total")? / samples.max(1.0);
    Ok(Replay {
        outputs: outputs.as_chunks().0.iter().map(|y| f32::from_le_bytes(*y)).collect(),
        samples: samples as usize,
        macs: number("macs")? as usize,
        instructions: [least, most, mean].map(|ticks| ticks * INSTRUCTIONS_PER_TICK),
    })
}
