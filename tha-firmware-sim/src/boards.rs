//! Common boards, and whether a model fits them.
//!
//! Flash, RAM, clock and FPU were checked against copies of data sheets or, where none was at hand, the vendors' and operating
//! systems' board documentation; the table names the data sheet that decides. RAM is what a program can use, and of that the
//! largest block in one piece, in which a state must lie. The rate is an estimate: the clock, divided by the
//! instructions of a push and the cycles an instruction takes on such a core with code in zero-wait-state memory.

use crate::emulator::Processor;
use crate::model_file::ModelFile;
use serde::Serialize;

/// What kind of core a board has, as far as this arithmetic cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Core {
    /// Cortex-M0 or M0+: no FPU, Thumb-1.
    M0,
    /// Cortex-M3: no FPU.
    M3,
    /// Cortex-M4F.
    M4F,
    /// Cortex-M33 with FPU.
    M33F,
    /// Cortex-M7 with FPU.
    M7F,
    /// RISC-V RV32IMC: no FPU.
    Rv32imc,
}

/// All there is to say about a core.
pub struct Facts {
    /// The name in tables.
    pub name: &'static str,
    /// Single-precision floating point in hardware.
    pub fpu: bool,
    /// The emulated processor whose instructions per sample stand for it.
    pub measured_on: Processor,
    /// Cycles per instruction, a cautious round number: loads take two cycles on the small cores, the M7 issues two instructions at
    /// once where it can.
    pub cycles_per_instruction: f64,
}

impl Core {
    /// What is known of it.
    pub fn facts(self) -> Facts {
        let (name, fpu, measured_on, cycles_per_instruction) = match self {
            Self::M0 => ("M0/M0+", false, Processor::CortexM0, 1.5),
            Self::M3 => ("M3", false, Processor::CortexM3, 1.4),
            Self::M4F => ("M4F", true, Processor::CortexM4f, 1.4),
            Self::M33F => ("M33F", true, Processor::CortexM4f, 1.3),
            Self::M7F => ("M7F", true, Processor::CortexM7, 0.8),
            Self::Rv32imc => ("RV32IMC", false, Processor::Riscv32, 1.4),
        };
        Facts { name, fpu, measured_on, cycles_per_instruction }
    }
}

/// A board.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Board {
    /// Board and chip.
    pub name: &'static str,
    /// Its core.
    pub core: Core,
    /// MHz.
    pub clock: u32,
    /// KiB of flash, on the chip or beside it.
    pub flash: usize,
    /// KiB of RAM.
    pub ram: usize,
    /// KiB of RAM in one piece.
    pub block: usize,
    /// Data sheet of the chip, and of the board where the flash is on that.
    pub source: &'static str,
}

const fn board(
    name: &'static str,
    core: Core,
    clock: u32,
    [flash, ram, block]: [usize; 3],
    source: &'static str,
) -> Board {
    Board { name, core, clock, flash, ram, block, source }
}

/// The boards.
pub const BOARDS: [Board; 17] = [
    board("Blue Pill (STM32F103C8)", Core::M3, 72, [64, 20, 20], "ST DS5319"),
    board("Nucleo-G071RB (STM32G071RB)", Core::M0, 64, [128, 36, 36], "ST DS12232"),
    board("Nucleo-F401RE (STM32F401RE)", Core::M4F, 84, [512, 96, 96], "ST DS10086"),
    board("Black Pill (STM32F411CE)", Core::M4F, 100, [512, 128, 128], "ST DS10314"),
    board("Discovery (STM32F407VG)", Core::M4F, 168, [1024, 192, 128], "ST DS8626"),
    board("Nucleo-L476RG (STM32L476RG)", Core::M4F, 80, [1024, 128, 96], "ST DS10198"),
    board("Nucleo-H743ZI2 (STM32H743ZI)", Core::M7F, 480, [2048, 1024, 512], "ST DS12110"),
    board("micro:bit v1 (nRF51822)", Core::M0, 16, [256, 16, 16], "Nordic nRF51822 PS"),
    board("micro:bit v2 (nRF52833)", Core::M4F, 64, [512, 128, 128], "Nordic nRF52833 PS"),
    board("nRF52840 DK, Nano 33 BLE (nRF52840)", Core::M4F, 64, [1024, 256, 256], "Nordic nRF52840 PS"),
    board("Pico (RP2040)", Core::M0, 133, [2048, 264, 264], "Raspberry Pi: RP2040, Pico"),
    board("Pico 2 (RP2350)", Core::M33F, 150, [4096, 520, 520], "Raspberry Pi: RP2350, Pico 2"),
    board(
        "ESP32-C3-DevKitM-1 (ESP32-C3)",
        Core::Rv32imc,
        160,
        [4096, 384, 384],
        "Espressif: ESP32-C3-MINI-1 v2.0",
    ),
    board("Uno R4 (RA4M1)", Core::M4F, 48, [256, 32, 32], "Renesas R01DS0355, Arduino UNO R4 Minima"),
    board("Zero (SAMD21G18)", Core::M0, 48, [256, 32, 32], "Microchip DS40001882"),
    board("Feather M4 (SAMD51J19)", Core::M4F, 120, [512, 192, 192], "Microchip DS60001507"),
    board("Teensy 4.1 (i.MX RT1062)", Core::M7F, 600, [7936, 1024, 512], "NXP IMXRT1060CEC, PJRC Teensy 4.1"),
];

/// Stack to leave for tha-core, in bytes.
pub const STACK_RESERVE: usize = 1024;

/// Flash that the code of tha-core takes, in bytes: parse, init and push as the firmware guide builds them, measured by
/// `cargo bench -p tha-firmware-sim --bench cortex_m` (12222, 15880, 16914 and 20890) and rounded up.
pub fn code_bytes(processor: Processor) -> usize {
    match processor {
        Processor::CortexM4f | Processor::CortexM7 => 12 << 10,
        Processor::CortexM3 => 16 << 10,
        Processor::CortexM0 => 17 << 10,
        Processor::Riscv32 => 21 << 10,
    }
}

/// Instructions of a push, without running it: a sum over the sample, its inputs, the heads and the multiply-accumulates,
/// fitted to the shapes of `cargo bench -p tha-firmware-sim --bench cortex_m`, which it meets within a tenth.
pub fn estimated_instructions(processor: Processor, file: &ModelFile) -> f64 {
    let model = file.model();
    let (sample, input, head, mac) = match processor {
        Processor::CortexM4f | Processor::CortexM7 => (555.0, 45.0, 270.0, 2.45),
        Processor::CortexM3 => (590.0, 195.0, 15.0, 131.5),
        Processor::CortexM0 => (675.0, 295.0, 185.0, 226.4),
        Processor::Riscv32 => (610.0, 132.0, 60.0, 123.2),
    };
    let shape = model.shape();
    sample + input * shape.inputs as f64 + head * shape.heads as f64 + mac * model.macs() as f64
}

/// A model on a board.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The board.
    #[serde(flatten)]
    pub board: Board,
    /// Room for code, model, state and stack.
    pub fits: bool,
    /// Bytes of flash left; negative when it does not fit.
    pub flash_left: i64,
    /// Bytes of RAM left; negative when it does not fit.
    pub ram_left: i64,
    /// Estimate.
    pub samples_per_second: f64,
}

/// The model on every board; `instructions` says what a push takes on a processor.
pub fn fit(file: &ModelFile, instructions: impl Fn(Processor) -> f64) -> Vec<Fit> {
    let fit = |board: &Board| {
        let Facts { measured_on: processor, cycles_per_instruction, .. } = board.core.facts();
        let left = |room: usize, used: usize| (room << 10) as i64 - used as i64;
        let flash_left = left(board.flash, file.bytes().len() + code_bytes(processor));
        let ram_left = left(board.ram, file.state_bytes() + STACK_RESERVE);
        let cycles = instructions(processor) * cycles_per_instruction;
        Fit {
            board: *board,
            fits: flash_left >= 0 && ram_left >= 0 && file.state_bytes() <= board.block << 10,
            flash_left,
            ram_left,
            samples_per_second: f64::from(board.clock) * 1e6 / cycles.max(1.0),
        }
    };
    BOARDS.iter().map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tha_train::{SynthKind as Kind, SynthParams, generate};

    fn file(channels: usize, memory: usize, rank: usize) -> ModelFile {
        let options = SynthParams { channels, outputs: 2, memory, rank, ..SynthParams::new(Kind::Volterra) };
        ModelFile::new(&generate(&options).unwrap().model.unwrap().to_bytes().unwrap()).unwrap()
    }

    /// What the emulator counted for this model.
    #[test]
    fn estimates_are_near_what_was_measured() {
        let file = file(3, 4, 2);
        assert_eq!(file.model().macs(), 130);
        for (processor, measured) in [
            (Processor::CortexM4f, 1287.0),
            (Processor::CortexM3, 18300.0),
            (Processor::CortexM0, 31307.0),
            (Processor::Riscv32, 17169.0),
        ] {
            let estimate = estimated_instructions(processor, &file);
            assert!((estimate / measured - 1.0_f64).abs() < 0.1, "{}: {estimate}", processor.name());
        }
    }

    #[test]
    fn a_large_model_fits_large_boards_only() {
        let file = file(200, 8, 4);
        let fits = fit(&file, |processor| estimated_instructions(processor, &file));
        let on = |name: &str| fits.iter().find(|fit| fit.board.name.starts_with(name)).unwrap();
        assert!(!on("micro:bit v1").fits && on("micro:bit v1").ram_left < 0);
        assert!(on("Teensy").fits);
        for fit in &fits {
            assert!(fit.board.block <= fit.board.ram);
            assert_eq!(fit.fits, fit.flash_left >= 0 && fit.ram_left >= 0);
            let room = (fit.board.flash << 10) as i64;
            assert_eq!(
                room - fit.flash_left,
                (file.bytes().len() + code_bytes(fit.board.core.facts().measured_on)) as i64
            );
        }
        assert!(on("Discovery").samples_per_second > 10.0 * on("Blue Pill").samples_per_second);
    }
}
