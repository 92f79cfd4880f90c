//! Replays a recording through tha-core on an emulated board.
//!
//! Reads `model.tha` and `u.f32` (samples, little-endian) over semihosting, writes the outputs of every sample to
//! `y.f32` (NaN while warming up) and prints one line of `name=value` pairs: samples, the least and the most
//! SysTick ticks of one push, all ticks of the run.

#![no_std]
#![no_main]

use core::fmt::Write as _;

use cortex_m as _;
use cortex_m::peripheral::{SYST, syst::SystClkSource};
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hio, syscall};
use tha_core::{Aligned, Model, State, Step, push};

const MODEL_ROOM: usize = 1 << 20;
const MAX_INPUTS: usize = 256;
const MAX_OUTPUTS: usize = 16;

static mut MODEL: Aligned<[u8; MODEL_ROOM]> = Aligned([0; MODEL_ROOM]);

type Room = State<MAX_INPUTS, { 3 * 16 * MAX_INPUTS }, 8192>;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    fail(format_args!("{info}"))
}

fn fail(message: core::fmt::Arguments<'_>) -> ! {
    if let Ok(mut out) = hio::hstdout() {
        let _ = writeln!(out, "error={message}");
    }
    debug::exit(debug::EXIT_FAILURE);
    loop {}
}

/// A file on the host.
struct File(isize);

impl File {
    fn open(name: &core::ffi::CStr, mode: usize) -> Self {
        let handle = unsafe { syscall!(OPEN, name.as_ptr(), mode, name.to_bytes().len()) } as isize;
        if handle < 0 {
            fail(format_args!("cannot open {name:?}"));
        }
        Self(handle)
    }

    /// Fills `buffer` as far as the file goes.
    fn read(&self, buffer: &mut [u8]) -> usize {
        let missing = unsafe { syscall!(READ, self.0, buffer.as_mut_ptr(), buffer.len()) };
        buffer.len() - missing.min(buffer.len())
    }

    fn write(&self, bytes: &[u8]) {
        if unsafe { syscall!(WRITE, self.0, bytes.as_ptr(), bytes.len()) } != 0 {
            fail(format_args!("cannot write the outputs"));
        }
    }
}

#[entry]
fn main() -> ! {
    #[allow(static_mut_refs)]
    let room = unsafe { &mut MODEL.0 };
    let length = File::open(c"model.tha", 1).read(room);
    let model = match Model::parse(room.get(..length).unwrap_or(&[])) {
        Ok(model) => model,
        Err(error) => fail(format_args!("{error}")),
    };
    let shape = model.shape();
    if shape.inputs > MAX_INPUTS || shape.outputs > MAX_OUTPUTS {
        fail(format_args!("at most {MAX_INPUTS} inputs and {MAX_OUTPUTS} outputs"));
    }
    let mut state = match Room::new(&model) {
        Ok(state) => state,
        Err(error) => fail(format_args!("{error}")),
    };

    let Some(mut core) = cortex_m::Peripherals::take() else { fail(format_args!("no peripherals")) };
    core.SYST.set_clock_source(SystClkSource::Core);
    core.SYST.set_reload(0x00ff_ffff);
    core.SYST.clear_current();
    core.SYST.enable_counter();

    let input = File::open(c"u.f32", 1);
    let output = File::open(c"y.f32", 5);
    let mut bytes = [0u8; 4 * MAX_INPUTS];
    let mut u = [0.0f32; MAX_INPUTS];
    let (mut samples, mut total, mut least, mut most) = (0u32, 0u64, u32::MAX, 0u32);
    loop {
        let row = &mut bytes[..4 * shape.inputs];
        if input.read(row) < row.len() {
            break;
        }
        for (u, bytes) in u.iter_mut().zip(row.as_chunks().0) {
            *u = f32::from_le_bytes(*bytes);
        }
        let before = SYST::get_current();
        let step = push(&model, &mut state, &u[..shape.inputs]);
        let after = SYST::get_current();
        let mut line = [f32::NAN; MAX_OUTPUTS];
        if let Step::Ready(ready) = step {
            let ticks = before.wrapping_sub(after) & 0x00ff_ffff;
            total += u64::from(ticks);
            least = least.min(ticks);
            most = most.max(ticks);
            samples += 1;
            line[..shape.outputs].copy_from_slice(ready.y);
        }
        for y in &line[..shape.outputs] {
            output.write(&y.to_le_bytes());
        }
    }
    if let Ok(mut out) = hio::hstdout() {
        let _ = writeln!(
            out,
            "samples={samples} macs={} ticks_min={least} ticks_max={most} ticks_total={total}",
            model.macs()
        );
    }
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}
