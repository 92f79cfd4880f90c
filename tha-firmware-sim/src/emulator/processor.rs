//! The processors that QEMU emulates, each on a board with memory enough.

/// An instruction takes two to the power of this in virtual nanoseconds.
pub(super) const ICOUNT_SHIFT: u32 = 6;

/// A processor, and the board it is on.
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
    /// RISC-V of which the firmware uses RV32IMC, no FPU, QEMU's machine `virt`.
    Riscv32,
}

/// All there is to say about a processor.
pub(crate) struct Description {
    /// On the command line.
    pub name: &'static str,
    /// The Rust target of its firmware.
    pub target: &'static str,
    /// QEMU's name of the board.
    pub machine: &'static str,
    pub emulator: &'static Emulator,
    /// Virtual nanoseconds between two ticks of the counter that the firmware reads.
    pub tick: f64,
}

/// A program of QEMU's.
#[derive(Debug)]
pub(crate) struct Emulator {
    pub program: &'static str,
    pub remedy: &'static str,
}

static ARM: Emulator = Emulator {
    program: "qemu-system-arm",
    remedy: "apt-get install qemu-system-arm (Debian, Ubuntu), dnf install qemu-system-arm (Fedora), brew install qemu (macOS)",
};
static RISCV: Emulator = Emulator {
    program: "qemu-system-riscv32",
    remedy: "apt-get install qemu-system-misc (Debian, Ubuntu), dnf install qemu-system-riscv (Fedora), brew install qemu (macOS)",
};

impl Processor {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::CortexM4f, Self::CortexM7, Self::CortexM3, Self::CortexM0, Self::Riscv32];

    pub(crate) fn description(self) -> Description {
        let (name, target, machine, emulator, tick) = match self {
            Self::CortexM4f => ("cortex-m4f", "thumbv7em-none-eabihf", "mps2-an386", &ARM, 40.0),
            Self::CortexM7 => ("cortex-m7", "thumbv7em-none-eabihf", "mps2-an500", &ARM, 40.0),
            Self::CortexM3 => ("cortex-m3", "thumbv7m-none-eabi", "mps2-an385", &ARM, 40.0),
            Self::CortexM0 => ("cortex-m0", "thumbv6m-none-eabi", "microbit", &ARM, 62.5),
            Self::Riscv32 => ("riscv32", "riscv32imc-unknown-none-elf", "virt", &RISCV, 1.0),
        };
        Description { name, target, machine, emulator, tick }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Instructions between two ticks of its counter.
    pub fn instructions_per_tick(self) -> f64 {
        self.description().tick / f64::from(1 << ICOUNT_SHIFT)
    }
}
