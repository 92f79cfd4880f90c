//! Flash that parsing and pushing take, by processor and optimisation level (an image with them less one without), and
//! what each level costs in speed on a Cortex-M4F (8 heads of 3 inputs, M = 4, d = 3).
//!
//!     cargo bench -p tha-firmware-sim --bench code_size
//!
//! Ends with exit code 1 when no setting is within both limits of the project: 8 KiB of flash, and 4.0 (rank 4) and 3.2
//! (rank 8) instructions per multiply-accumulate.

mod shapes;

use shapes::{model, samples};
use tha_firmware_sim::emulator::{Processor, Setting, build, code_bytes, replay};
use tha_firmware_sim::random::Random;

/// The most that parse and push may take on a Cortex-M4F, in bytes.
const LIMIT: usize = 8 << 10;
/// The most instructions per multiply-accumulate, by rank.
const SPEED: [(usize, f64); 2] = [(4, 4.0), (8, 3.2)];

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
        let speed = SPEED.map(|(rank, _)| per_mac(setting, rank));
        let fast = speed.iter().zip(SPEED).all(|(per_mac, (_, limit))| *per_mac <= limit);
        met |= fast && sizes[0] <= LIMIT;
        let sizes = sizes.map(|size| size.to_string()).join(" | ");
        println!("| {}, {} | {sizes} | {:.3} | {:.3} |", setting.level, setting.core, speed[0], speed[1]);
    }
    if !met {
        eprintln!("no setting has parse and push in {LIMIT} bytes and is fast enough");
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
