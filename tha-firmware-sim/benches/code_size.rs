//! Flash that parsing and pushing take, by processor and optimisation level (an image with them less one without), and
//! what each level costs in speed on a Cortex-M4F (8 heads of 3 inputs, M = 4, d = 3).
//!
//!     cargo bench -p tha-firmware-sim --bench code_size
//!
//! Ends with exit code 1 when no setting has parse and push in the 8 KiB that the project allows on a Cortex-M4F. The limits
//! of speed are those of the bench `cortex_m`, at level 3.

mod shapes;

use shapes::{model, samples};
use tha_firmware_sim::emulator::{Processor, Setting, build, code_bytes, replay};
use tha_firmware_sim::random::Random;

/// The most that parse and push may take on a Cortex-M4F, in bytes.
const LIMIT: usize = 8 << 10;
const RANKS: [usize; 2] = [4, 8];

const SETTINGS: [Setting; 5] = [
    Setting { level: "3", core: "3" },
    Setting { level: "2", core: "2" },
    Setting { level: "s", core: "3" },
    Setting { level: "s", core: "s" },
    Setting { level: "z", core: "z" },
];
const PROCESSORS: [Processor; 3] = [Processor::CortexM4f, Processor::CortexM3, Processor::CortexM0];

fn main() {
    let names = PROCESSORS.map(Processor::name).join(" | ");
    println!("| opt-level, of tha-core | {names} | instructions / MAC at rank 4 | at rank 8 |");
    println!("|---|---|---|---|---|---|");
    let mut met = false;
    for setting in SETTINGS {
        let sizes = PROCESSORS
            .map(|processor| code_bytes(processor, setting).unwrap_or_else(|error| panic!("{error}")));
        let speed = RANKS.map(|rank| per_mac(setting, rank));
        met |= sizes[0] <= LIMIT;
        let sizes = sizes.map(|size| size.to_string()).join(" | ");
        println!("| {}, {} | {sizes} | {:.2} | {:.2} |", setting.level, setting.core, speed[0], speed[1]);
    }
    if !met {
        eprintln!("no setting has parse and push in {LIMIT} bytes");
        std::process::exit(1);
    }
}

fn per_mac(setting: Setting, rank: usize) -> f64 {
    let image = build(Processor::CortexM4f, setting).unwrap_or_else(|error| panic!("{error}"));
    let mut random = Random::new(1);
    let file = model([8, 3, 8, 4, 3, rank], &mut random);
    let samples = samples(8, 50, &mut random);
    let board = replay(&image, &file, &samples, &[50]).unwrap_or_else(|error| panic!("{error}"));
    board.instructions[2] / board.macs as f64
}
