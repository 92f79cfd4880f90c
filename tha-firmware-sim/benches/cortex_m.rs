//! The firmware as it is built by default, against the limits of the project: instructions per multiply-accumulate of `push` on an
//! emulated Cortex-M4F, the same for every sample, flash, stack, and that it gives the bits of the host; the other processors beside it.
//!
//!     cargo bench -p tha-firmware-sim --bench cortex_m [-- speed|stage|others|integers|memory]
//!
//! Ends with exit code 1 when a limit of the project is exceeded or a bit differs.

mod shapes;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use shapes::{Bank, Shape, integers_of, model, samples, staged};
use tha_firmware_sim::emulator::{
    Numbers, Processor, Setting, StackUse, build, build_for, build_linked, code_bytes, replay,
};
use tha_firmware_sim::stream::Device;

/// The most instructions per MAC where the project has a limit.
const SHAPES: [(Shape, Option<f64>); 6] = [
    ([8, 3, 8, 4, 3, 2], None),
    ([8, 3, 8, 4, 3, 4], Some(3.43)),
    ([8, 3, 8, 4, 3, 8], Some(2.6)),
    ([1, 8, 8, 4, 3, 4], None),
    ([1, 16, 16, 5, 3, 4], None),
    ([24, 4, 16, 3, 2, 4], None),
];
const SAMPLES: usize = 300;
/// The most instructions per MAC in integers, at ranks 4 and 8. ARM's own `arm_mat_vec_mult_q15` alone takes 10.3 on M0, 8.0 on M3 and 3.3 on M4.
const INTEGERS: [(Processor, [f64; 2]); 4] = [
    (Processor::CortexM0, [11.0, 8.0]),
    (Processor::CortexM3, [7.0, 5.0]),
    (Processor::CortexM4f, [4.5, 3.5]),
    (Processor::Riscv32, [8.0, 6.0]),
];
/// Bytes of stack beside the state: of any call, and of push, with the growth of its caller's frame and the step, on a Cortex-M4F and
/// elsewhere.
const STACK: usize = 1024;
const STACK_PUSH: usize = 512;
const STACK_PUSH_OTHERS: usize = 704;
/// Bytes of flash for parse and push on a Cortex-M4F.
const FLASH: usize = 12 << 10;
/// Instructions of an average and of a resonator, which has two outputs, of one of eight inputs; and how much more a mapped feature costs than a
/// plain one at rank 8.
const SECTION: f64 = 10.0;
const RESONATOR: f64 = 18.6;
const MAPPED: f64 = 2.2;

/// A part of the bench, and whether it found something over its limit.
type Part = (&'static str, fn() -> bool);

fn main() {
    // One part alone, by its name.
    let wanted = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    let parts: [Part; 5] =
        [("speed", speed), ("stage", stage), ("others", others), ("integers", integers), ("memory", memory)];
    let mut failed = false;
    for (name, part) in parts {
        if wanted.as_ref().is_none_or(|wanted| wanted == name) {
            failed |= part();
            println!();
        }
    }
    std::process::exit(i32::from(failed));
}

fn speed() -> bool {
    let image = build(Processor::CortexM4f, Setting::default(), Numbers::Float)
        .unwrap_or_else(|error| panic!("{error}"));
    println!(
        "| heads | inputs | p | M | d | rank | MACs | instructions / sample (min, max) | instructions / MAC | limit |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut failed = false;
    for (shape, limit) in SHAPES {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let file = model(shape, &mut random);
        let samples = samples(shape[2], SAMPLES, &mut random);
        let board = replay(&image, &file, &samples, &[SAMPLES]).unwrap_or_else(|error| panic!("{error}"));
        let [least, most, mean] = board.instructions;
        let per_mac = mean / board.macs as f64;
        let [heads, inputs, p, memory, degree, rank] = shape;
        let limit_text = limit.map_or("".into(), |limit| format!("{limit}"));
        println!(
            "| {heads} | {inputs} | {p} | {memory} | {degree} | {rank} | {} | {least:.0}, {most:.0} | {per_mac:.2} | {limit_text} |",
            board.macs
        );
        let mut device = Device::new(&file).expect("there is room");
        if !board.stream.same_bits(&device.replay(&samples, &[SAMPLES])) {
            eprintln!("the board's outputs differ from the host's");
            failed = true;
        }
        if limit.is_some_and(|limit| per_mac > limit) || most > 1.02 * least {
            eprintln!("over the limit");
            failed = true;
        }
    }
    failed
}

/// Filters by what another one adds for each of eight inputs, and maps by what they add to a head of rank 8.
fn stage() -> bool {
    let image = build(Processor::CortexM4f, Setting::default(), Numbers::Float)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut failed = false;
    let mut measure = |averages, resonators, features, nodes| {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let bank = Bank { p: 8, averages, resonators, features, nodes, rank: 8 };
        let file = staged(&bank, &mut random);
        let samples = samples(8, SAMPLES, &mut random);
        let board = replay(&image, &file, &samples, &[SAMPLES]).unwrap_or_else(|error| panic!("{error}"));
        let mut device = Device::new(&file).expect("there is room");
        if !board.stream.same_bits(&device.replay(&samples, &[SAMPLES])) {
            eprintln!("the board's outputs differ from the host's");
            failed = true;
        }
        let [least, most, mean] = board.instructions;
        failed |= most > 1.02 * least;
        mean
    };
    let average = (measure(6, 0, 16, 0) - measure(2, 0, 16, 0)) / (4.0 * 8.0);
    let resonator = (measure(2, 4, 16, 0) - measure(2, 0, 16, 0)) / (4.0 * 8.0);
    let feature = measure(4, 0, 32, 0) - measure(4, 0, 16, 0);
    let mapped = measure(4, 0, 32, 9) - measure(4, 0, 16, 9);
    println!("| on cortex-m4f | instructions | limit |\n|---|---|---|");
    println!("| an average, per input | {average:.1} | {SECTION:.0} |");
    println!("| a resonator, per input | {resonator:.1} | {RESONATOR} |");
    println!("| a plain feature in a head of rank 8, degree 3 | {:.1} | |", feature / 16.0);
    println!(
        "| a mapped one, 9 nodes | {:.1}, {:.2} times as many | {MAPPED} |",
        mapped / 16.0,
        mapped / feature
    );
    failed | (average > SECTION) | (resonator > RESONATOR) | (mapped > MAPPED * feature)
}

/// The other processors; without an FPU the work depends a little on the numbers.
fn others() -> bool {
    println!(
        "| processor | heads | inputs | p | rank | MACs | instructions / sample (min, max) | instructions / MAC |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut failed = false;
    for processor in [Processor::CortexM7, Processor::CortexM3, Processor::CortexM0, Processor::Riscv32] {
        for shape in [[8, 3, 8, 4, 3, 2], [8, 3, 8, 4, 3, 4], [1, 8, 8, 4, 3, 4]] {
            let mut random = ChaCha8Rng::seed_from_u64(1);
            let file = model(shape, &mut random);
            let samples = samples(shape[2], 100, &mut random);
            let image = build_for(processor, &file, Numbers::Float).unwrap_or_else(|error| panic!("{error}"));
            let board = replay(&image, &file, &samples, &[100]).unwrap_or_else(|error| panic!("{error}"));
            let ([least, most, mean], [heads, inputs, p, .., rank]) = (board.instructions, shape);
            println!(
                "| {} | {heads} | {inputs} | {p} | {rank} | {} | {least:.0}, {most:.0} | {:.2} |",
                processor.name(),
                board.macs,
                mean / board.macs as f64
            );
            let mut device = Device::new(&file).expect("there is room");
            failed |= !board.stream.same_bits(&device.replay(&samples, &[100]));
        }
    }
    failed
}

/// Integers: instructions per MAC of `push_counts` at ranks 4 and 8, the same for every sample, with the bits of the host.
fn integers() -> bool {
    println!(
        "| integers on | rank | MACs | instructions / sample (min, max) | instructions / MAC | limit | model / f32 |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut failed = false;
    for (processor, limits) in INTEGERS {
        for (rank, limit) in [4, 8].into_iter().zip(limits) {
            let mut random = ChaCha8Rng::seed_from_u64(1);
            let float = model([8, 3, 8, 4, 3, rank], &mut random);
            let samples = samples(8, SAMPLES, &mut random);
            let file = integers_of(&float, &samples);
            let image =
                build_for(processor, &file, Numbers::Counts).unwrap_or_else(|error| panic!("{error}"));
            let board = replay(&image, &file, &samples, &[SAMPLES]).unwrap_or_else(|error| panic!("{error}"));
            let [least, most, mean] = board.instructions;
            let per_mac = mean / board.macs as f64;
            println!(
                "| {} | {rank} | {} | {least:.0}, {most:.0} | {per_mac:.2} | {limit} | {:.0} % |",
                processor.name(),
                board.macs,
                100.0 * file.bytes().len() as f64 / float.bytes().len() as f64
            );
            let mut device = Device::new(&file).expect("there is room");
            if !board.stream.same_bits(&device.replay(&samples, &[SAMPLES])) {
                eprintln!("the board's outputs differ from the host's");
                failed = true;
            }
            if per_mac > limit || most > 1.01 * least {
                eprintln!("over the limit");
                failed = true;
            }
        }
    }
    failed
}

/// Flash of parse and push alone, and the stack of images with exactly the capacities of their models: one of lags, and one with
/// filters and maps; the larger counts.
fn memory() -> bool {
    println!(
        "| processor | flash | limit | state | stack of parse | of State::init | of push | limit |\n|---|---|---|---|---|---|---|---|"
    );
    let mut failed = false;
    for processor in [Processor::CortexM4f, Processor::CortexM3, Processor::CortexM0, Processor::Riscv32] {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let bank = Bank { p: 8, averages: 1, resonators: 1, features: 16, nodes: 9, rank: 4 };
        let files = [model([8, 3, 8, 4, 3, 4], &mut random), staged(&bank, &mut random)];
        let boards = files.map(|file| {
            let samples = samples(8, 100, &mut random);
            let image =
                build_linked(processor, &file, Numbers::Float).unwrap_or_else(|error| panic!("{error}"));
            replay(&image, &file, &samples, &[100]).unwrap_or_else(|error| panic!("{error}"))
        });
        let flash = code_bytes(processor, Setting::Recommended, Numbers::Float)
            .unwrap_or_else(|error| panic!("{error}"));
        let limited = processor == Processor::CortexM4f;
        let most =
            |of: fn(&StackUse) -> usize| boards.iter().map(|board| of(&board.stack)).max().unwrap_or(0);
        let (parse, init, push) =
            (most(|stack| stack.parse), most(|stack| stack.init), most(|stack| stack.push));
        let limit = if limited { STACK_PUSH } else { STACK_PUSH_OTHERS };
        println!(
            "| {} | {flash} | {} | {} | {parse} | {init} | {push} | {STACK}, {limit} of push |",
            processor.name(),
            if limited { FLASH.to_string() } else { String::new() },
            boards[0].state_bytes
        );
        failed |= parse.max(init) > STACK || push > limit || (limited && flash > FLASH);
    }
    failed
}
