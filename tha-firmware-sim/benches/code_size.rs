//! Flash of an image that parses a model and pushes samples, by processor and optimisation level, and what each level costs in
//! speed on a Cortex-M4F (8 heads of 3 inputs, M = 4, d = 3). The limits are checked by the bench `cortex_m`, for the first
//! line.
//!
//!     cargo bench -p tha-firmware-sim --bench code_size

mod shapes;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use shapes::{model, samples};
use tha_firmware_sim::emulator::{Numbers, Processor, Setting, build, code_bytes, replay};

const RANKS: [usize; 2] = [4, 8];
const LEVELS: [[&str; 2]; 5] = [["s", "3"], ["s", "s"], ["z", "z"], ["2", "2"], ["3", "3"]];
const PROCESSORS: [Processor; 4] =
    [Processor::CortexM4f, Processor::CortexM3, Processor::CortexM0, Processor::Riscv32];

fn main() {
    let names = PROCESSORS.map(Processor::name).join(" | ");
    println!("| opt-level (of tha-core) | {names} | instructions / MAC at rank 4 | at rank 8 |");
    println!("|---|---|---|---|---|---|---|");
    for [firmware, core] in LEVELS {
        let setting = Setting::Levels { firmware, core };
        let size = |processor| {
            code_bytes(processor, setting, Numbers::Float).unwrap_or_else(|error| panic!("{error}"))
        };
        let sizes = PROCESSORS.map(|processor| size(processor).to_string()).join(" | ");
        let [low, high] = RANKS.map(|rank| per_mac(setting, rank));
        println!("| {firmware} ({core}) | {sizes} | {low:.3} | {high:.3} |");
    }
}

fn per_mac(setting: Setting, rank: usize) -> f64 {
    let image =
        build(Processor::CortexM4f, setting, Numbers::Float).unwrap_or_else(|error| panic!("{error}"));
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let file = model([8, 3, 8, 4, 3, rank], &mut random);
    let samples = samples(8, 50, &mut random);
    let board = replay(&image, &file, &samples, &[50]).unwrap_or_else(|error| panic!("{error}"));
    board.instructions[2] / board.macs as f64
}
