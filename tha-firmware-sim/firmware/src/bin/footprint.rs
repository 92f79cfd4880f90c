//! The code of `parse` and `push` and nothing else: its size less that of `empty` is what tha-core costs. Never run.

#![no_std]
#![no_main]

use core::hint::black_box;

#[cfg(feature = "integer")]
use tha_core::integer::{Model, State, Step, push_counts as push};
#[cfg(not(feature = "integer"))]
use tha_core::{Model, State, Step, push};

#[cfg(not(feature = "integer"))]
const SAMPLE: [f32; 8] = [0.0; 8];
#[cfg(feature = "integer")]
const SAMPLE: [i16; 8] = [0; 8];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

static mut STATE: State<8, 96, 64> = State::empty();

/// Parse, give the state its model, push for ever.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    loop {
        let Ok(model) = Model::parse(black_box(&[][..])) else { continue };
        // SAFETY: never run, and the only reference to it; the optimiser is to know as little of it as of any.
        #[allow(static_mut_refs, reason = "nobody else holds it")]
        let state = black_box(unsafe { &mut STATE });
        let Ok(()) = state.init(&model) else { continue };
        loop {
            match push(&model, state, black_box(&SAMPLE)) {
                Step::Warming { .. } => {}
                Step::Ready(output) => {
                    #[cfg(not(feature = "integer"))]
                    black_box(output.y);
                    #[cfg(feature = "integer")]
                    black_box(output.counts);
                    black_box((output.half_widths, output.flags.any()));
                }
                Step::Refused(_) => break,
            }
        }
    }
}
