//! Emulated boards: builds the firmware image, runs it under QEMU, reads back what it did.
//!
//! Under `-icount shift=6` an instruction takes 64 virtual nanoseconds. SysTick counts at the clock of the board, every 40 ns
//! at 25 MHz and 62.5 ns at 16 MHz, `mcycle` of RISC-V every nanosecond. So counts are exact to the instruction, and the same
//! on any host.

mod elf;
mod image;
mod processor;
mod qemu;

pub use image::{Image, Numbers, Setting, build, build_for, build_linked, code_bytes};
pub use processor::Processor;
pub use qemu::{Replay, StackUse, replay};

/// Why a board could not be emulated; the first line of the message says what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum EmulatorError {
    /// A tool is not installed.
    #[error("{tool} is missing; to install it: {remedy}")]
    Missing { tool: &'static str, remedy: &'static str },
    /// The Rust target is not installed.
    #[error(
        "the Rust target {target} is missing; to install it: rustup target add {target} \
         (the README of tha-firmware-sim has what to do without rustup)"
    )]
    Target { target: &'static str },
    /// The firmware does not build.
    #[error("the firmware for {target} does not build: {log}")]
    Build { target: &'static str, log: String },
    /// The model is too large for the board.
    #[error(
        "the model does not fit the {board}: it needs {needed} bytes of {memory}, {room} are there; try another --target"
    )]
    TooLarge { board: &'static str, memory: &'static str, needed: usize, room: usize },
    /// The image gave up, or said something else than it should.
    #[error("the firmware stopped: {0}")]
    Firmware(String),
    /// A temporary file could not be written or read.
    #[error("the exchange with the emulator failed: {0}")]
    Exchange(#[from] std::io::Error),
}

impl EmulatorError {
    /// Whether something is not installed, as opposed to not working.
    pub fn is_missing_tool(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Target { .. })
    }
}
