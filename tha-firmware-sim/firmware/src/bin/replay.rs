//! Replays a recording through tha-core on an emulated board.
//!
//! The model is linked in when the image was built with `THA_MODEL`, then with exactly its capacities; otherwise it
//! is read from `model.tha` over semihosting. Samples come from `u.f32`, or
//! `u.i16` where they are counts, the lengths of the records, between which the
//! state is reset, from `records.u32`. For every sample a status word and l outputs (NaN where there are none) go to
//! `y.bin`; the last line that is printed consists of `name=value` pairs.

#![no_std]
#![no_main]

use numbers::{Input, Model, SAMPLES, State, Step, push, value};
use tha_core::{Capacities, CapacityError, ParseError};
use tha_firmware::host::{File, end, fail, say};
use tha_firmware::processor::{counter, start_counter, ticks};
use tha_firmware::stack::Stack;

/// What the model computes with, and what it is given: f32, or 16-bit integers and with them f32 or counts.
#[cfg(not(feature = "integer"))]
mod numbers {
    pub use tha_core::{Model, Output, State, Step, push};

    pub type Input = f32;
    pub const SAMPLES: &core::ffi::CStr = c"u.f32";

    pub fn value(output: Output<'_>, j: usize) -> Option<f32> {
        output.y.get(j).copied()
    }
}

#[cfg(feature = "integer")]
mod numbers {
    #[cfg(not(feature = "counts"))]
    pub use tha_core::integer::push;
    #[cfg(feature = "counts")]
    pub use tha_core::integer::push_counts as push;
    pub use tha_core::integer::{Model, Output, State, Step};

    #[cfg(not(feature = "counts"))]
    pub type Input = f32;
    #[cfg(feature = "counts")]
    pub type Input = i16;
    pub const SAMPLES: &core::ffi::CStr = if cfg!(feature = "counts") { c"u.i16" } else { c"u.f32" };

    pub fn value(output: Output<'_>, j: usize) -> Option<f32> {
        output.value(j)
    }
}

#[cfg(linked)]
mod given {
    use super::Capacities;

    const MODEL: &[u8] = tha_core::include_model!(concat!(env!("OUT_DIR"), "/model.tha"));
    pub const ROOM: Capacities = Capacities::of(MODEL);

    pub fn model() -> &'static [u8] {
        core::hint::black_box(MODEL)
    }
}

#[cfg(not(linked))]
mod given {
    use super::{Capacities, File};

    const BYTES: usize = 1 << 20;
    pub const ROOM: Capacities = Capacities { inputs: 1024, history: 1 << 17, scratch: 1 << 15 };

    static mut MODEL: tha_core::Aligned<[u8; BYTES]> = tha_core::Aligned([0; BYTES]);

    pub fn model() -> &'static [u8] {
        // SAFETY: called once, before anything else.
        #[allow(static_mut_refs, reason = "one thread, no interrupts: nobody else holds it")]
        let room = unsafe { &mut MODEL.0 };
        let length = File::open(c"model.tha").read(room);
        room.get(..length).unwrap_or(&[])
    }
}

use given::ROOM;

type Room = State<{ ROOM.inputs }, { ROOM.history }, { ROOM.scratch }>;

const WARMING: u32 = 1 << 8;
const REFUSED: u32 = 1 << 9;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    fail(format_args!("{info}"))
}

/// In its own frame, which then counts.
#[inline(never)]
fn parse(bytes: &'static [u8]) -> Result<Model<'static>, ParseError> {
    Model::parse(bytes)
}

/// In its own frame, as above.
#[inline(never)]
fn init(state: &mut Room, model: &Model<'_>) -> Result<(), CapacityError> {
    state.init(model)
}

/// A step, as a firmware would make it: `push` may be inlined here, and then makes this frame larger.
#[inline(never)]
fn step<'s>(model: &Model<'s>, state: &'s mut Room, sample: &[Input], used: &mut u32) -> Step<'s> {
    let before = counter();
    let step = push(model, state, sample);
    *used = ticks(before, counter());
    step
}

/// A step, its ticks and its stack: all of the frame above, and the step itself, which lies with the caller. In its own frame, so
/// that the registers of the main loop cost nothing.
#[inline(never)]
fn measured<'s>(model: &Model<'s>, state: &'s mut Room, sample: &[Input]) -> (Step<'s>, u32, u32) {
    let mut ticks = 0;
    let (step, stack) = Stack::here().of(|| step(model, state, sample, &mut ticks));
    (step, ticks, stack + size_of::<Step<'_>>() as u32)
}

static mut STATE: Room = Room::empty();
static mut SAMPLE: [Input; ROOM.inputs] = [0 as Input; ROOM.inputs];

/// Where the start-up code goes.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: `main` is entered once.
    #[allow(static_mut_refs, reason = "one thread, no interrupts: nobody else holds them")]
    let (state, sample) = unsafe { (&mut STATE, &mut SAMPLE) };
    let bytes = given::model();
    let stack = Stack::here();
    let (model, stack_parse) = stack.of(|| parse(bytes));
    let model = match model {
        Ok(model) => model,
        Err(error) => fail(format_args!("{error}")),
    };
    let (started, stack_init) = stack.of(|| init(state, &model));
    if let Err(error) = started {
        fail(format_args!("{error}"));
    }
    let shape = model.shape();

    start_counter();

    let (input, records, output) = (File::open(SAMPLES), File::open(c"records.u32"), File::create(c"y.bin"));
    let sample = sample.get_mut(..shape.inputs).unwrap_or_default();
    let (mut samples, mut total, mut least, mut most, mut stack_push) = (0u32, 0u64, u32::MAX, 0u32, 0u32);
    while let Some(length) = records.read_u32() {
        state.reset();
        for _ in 0..length {
            // SAFETY: every pattern of bits is a number, and this processor is little-endian as the file is.
            let row =
                unsafe { core::slice::from_raw_parts_mut(sample.as_mut_ptr().cast(), size_of_val(sample)) };
            if input.read(row) < row.len() {
                fail(format_args!("the samples end before the records do"));
            }
            let (step, ticks, used) = measured(&model, state, sample);
            let mut status = REFUSED;
            if let Step::Ready(ready) = step {
                samples += 1;
                total += u64::from(ticks);
                least = least.min(ticks);
                most = most.max(ticks);
                stack_push = stack_push.max(used);
                let flags = ready.flags;
                status = u32::from(flags.out_of_range)
                    | u32::from(flags.window_out_of_range) << 1
                    | u32::from(flags.held) << 2
                    | u32::from(flags.window_held) << 3
                    | u32::from(flags.overflow) << 4;
            } else if let Step::Warming { .. } = step {
                status = WARMING;
            }
            output.write(&status.to_le_bytes());
            for j in 0..shape.outputs {
                let y = step.output().and_then(|ready| value(ready, j)).unwrap_or(f32::NAN);
                output.write(&y.to_le_bytes());
            }
        }
    }
    say(format_args!(
        "samples={samples} macs={} ticks_min={least} ticks_max={most} ticks_total={total} state={} \
         stack_parse={stack_parse} stack_init={stack_init} stack_push={stack_push}",
        model.macs(),
        size_of::<Room>(),
    ));
    end()
}
