//! Emulated boards: builds the firmware image, runs it under QEMU, reads back what it did.
//!
//! Under `-icount shift=6` an instruction takes 64 virtual nanoseconds, and SysTick counts at the clock of the board: 40 ns
//! at 25 MHz and 62.5 ns at 16 MHz. So counts are exact to the instruction, and the same on any host.

mod elf;
mod image;
mod qemu;

pub use elf::ElfSizes;
pub use image::{Image, Setting, build, build_linked, code_bytes};
pub use qemu::{Replay, StackUse, replay};

/// An instruction takes two to the power of this in virtual nanoseconds.
const ICOUNT_SHIFT: u32 = 6;

/// A processor that QEMU emulates, on a board with memory enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// Cortex-M4 with FPU, board MPS2 AN386.
    CortexM4f,
    /// Cortex-M7 with FPU, board MPS2 AN500.
    CortexM7,
    /// Cortex-M3, no FPU, board MPS2 AN385.
    CortexM3,
    /// Cortex-M0, no FPU, board micro:bit with 256 KiB of flash and 16 KiB of RAM.
    CortexM0,
}

impl Processor {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::CortexM4f, Self::CortexM7, Self::CortexM3, Self::CortexM0];

    /// The Rust target of its firmware.
    #[must_use]
    pub fn target(self) -> &'static str {
        match self {
            Self::CortexM4f | Self::CortexM7 => "thumbv7em-none-eabihf",
            Self::CortexM3 => "thumbv7m-none-eabi",
            Self::CortexM0 => "thumbv6m-none-eabi",
        }
    }

    /// QEMU's name of the board.
    #[must_use]
    pub fn machine(self) -> &'static str {
        match self {
            Self::CortexM4f => "mps2-an386",
            Self::CortexM7 => "mps2-an500",
            Self::CortexM3 => "mps2-an385",
            Self::CortexM0 => "microbit",
        }
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CortexM4f => "cortex-m4f",
            Self::CortexM7 => "cortex-m7",
            Self::CortexM3 => "cortex-m3",
            Self::CortexM0 => "cortex-m0",
        }
    }

    /// Instructions between two SysTick ticks.
    #[must_use]
    pub fn instructions_per_tick(self) -> f64 {
        let nanoseconds = match self {
            Self::CortexM0 => 62.5,
            _ => 40.0,
        };
        nanoseconds / f64::from(1 << ICOUNT_SHIFT)
    }
}

/// Why a board could not be emulated; the first line of the message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// A tool is not installed.
    #[error("{tool} is missing; to install it: {remedy}")]
    Missing {
        /// The program.
        tool: &'static str,
        /// How to install it.
        remedy: String,
    },
    /// The Rust target is not installed.
    #[error(
        "the Rust target {target} is missing; to install it: rustup target add {target} \
         (the README of tha-firmware-sim has what to do without rustup)"
    )]
    Target {
        /// The Rust target.
        target: &'static str,
    },
    /// The firmware does not build.
    #[error("the firmware for {target} does not build: {log}")]
    Build {
        /// The Rust target.
        target: &'static str,
        /// The compiler's words.
        log: String,
    },
    /// The model is too large for the board.
    #[error(
        "the model does not fit the {board}: it needs {needed} bytes of {memory}, {room} are there; try another --target"
    )]
    TooLarge {
        /// The board.
        board: &'static str,
        /// Flash or RAM.
        memory: &'static str,
        /// Bytes for model or state, with what the image itself needs.
        needed: usize,
        /// Bytes the board has.
        room: usize,
    },
    /// The image gave up, or said something else than it should.
    #[error("the firmware stopped: {0}")]
    Firmware(String),
    /// A temporary file could not be written or read.
    #[error("the exchange with the emulator failed: {0}")]
    Exchange(#[from] std::io::Error),
}

impl EmulatorError {
    /// Whether something is not installed, as opposed to not working.
    #[must_use]
    pub fn is_missing_tool(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Target { .. })
    }
}
