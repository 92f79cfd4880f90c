//! Proof that `parse`, `init`, `push`, `prime`, `swap`, the monitor and the re-weighting cannot panic: the panic handler calls
//! a symbol that does not exist, so the link fails if the optimiser has left a single path to it. Never run.

#![no_std]
#![no_main]

use core::hint::black_box;

use tha_core::monitor::{Monitor, MonitorOptions};
use tha_core::reweight::{ReweightOptions, Reweighter};
use tha_core::{Model, State, Step, integer, push};

unsafe extern "C" {
    fn a_panic_path_survived() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe { a_panic_path_survived() }
}

type Room = State<32, 1024, 512>;
type IntegerRoom = integer::State<32, 1024, 512>;

/// Everything a firmware does with the crate, on bytes and samples that the compiler knows nothing of.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    let mut sample = [0.0f32; 32];
    loop {
        let Ok(model) = Model::parse(black_box(&[][..])) else { continue };
        let Ok(mut state) = Room::new(&model) else { continue };
        let Ok(()) = state.init(&model) else { continue };
        let Ok(()) = state.prime(&model, black_box(&[][..])) else { continue };
        let Ok(mut monitor) = Monitor::<4>::new(&model, black_box(MonitorOptions::default())) else {
            continue;
        };
        let Ok(mut weights) = Reweighter::<32>::new(&model, black_box(ReweightOptions::default())) else {
            continue;
        };
        loop {
            let used: usize = black_box(32);
            match push(&model, &mut state, black_box(sample.get(..used).unwrap_or(&[]))) {
                Step::Warming { remaining } => {
                    black_box(remaining);
                }
                Step::Ready(output) => {
                    black_box((output.y, output.half_widths));
                    black_box(output.channels);
                    black_box(output.flags.any());
                }
                Step::Refused(_) => break,
            }
            if let Step::Ready(output) = weights.push(&model, &mut state, black_box(&sample)) {
                black_box(monitor.update(output.y, black_box(&[][..])));
                black_box(weights.learn(&model, black_box(&[][..])));
                black_box((
                    monitor.rmse(black_box(0)),
                    monitor.nrmse(black_box(0)),
                    monitor.half_width(black_box(0)),
                    weights.weights().sum::<f32>(),
                ));
            }
            if let Ok(other) = Model::parse(black_box(&[][..])) {
                let _ = black_box(state.swap(&other));
            }
            state.reset();
            black_box(&mut sample);
        }
        integers(black_box(&sample));
    }
}

/// The same with a model of integers.
#[inline(never)]
fn integers(sample: &[f32]) {
    let Ok(model) = integer::Model::parse(black_box(&[][..])) else { return };
    let Ok(mut state) = IntegerRoom::new(&model) else { return };
    let Ok(()) = state.init(&model) else { return };
    let Ok(()) = state.prime(&model, black_box(&[][..])) else { return };
    let Ok(mut monitor) = Monitor::<4>::new(&model, black_box(MonitorOptions::default())) else { return };
    loop {
        if let integer::Step::Ready(output) = integer::push_counts(&model, &mut state, black_box(&[][..])) {
            black_box((output.counts, output.half_widths, output.channels, output.flags.any()));
        }
        match integer::push(&model, &mut state, black_box(sample)) {
            integer::Step::Ready(output) => {
                let y = [output.value(black_box(0)).unwrap_or(0.0)];
                black_box((monitor.update(&y, black_box(&[][..])), output.values().sum::<f32>()));
            }
            integer::Step::Warming { remaining } => {
                black_box(remaining);
            }
            integer::Step::Refused(_) => break,
        }
        if let Ok(other) = integer::Model::parse(black_box(&[][..])) {
            let _ = black_box(state.swap(&other));
        }
        state.reset();
    }
}
