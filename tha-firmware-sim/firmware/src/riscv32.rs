//! RISC-V, machine mode, one hart: starts with the first instruction of the image, `mcycle` counts.

use core::arch::{asm, global_asm};

use crate::host::fail;

// The emulator has put everything where it belongs and the rest of the memory is zero: all that is missing is a stack, and
// where to go when an instruction cannot be done.
global_asm!(
    ".section .start, \"ax\"",
    ".global _start",
    "_start:",
    "la sp, _stack_start",
    "la t0, 1f",
    "csrw mtvec, t0",
    "call main",
    ".balign 4",
    "1: call {trap}",
    ".text",
    trap = sym trap,
);

/// Says so instead of standing still.
extern "C" fn trap() -> ! {
    let (cause, at): (u32, u32);
    // SAFETY: copies two registers.
    unsafe { asm!("csrr {}, mcause", "csrr {}, mepc", out(reg) cause, out(reg) at, options(nomem, nostack)) };
    fail(format_args!("exception {cause} at {at:#x}"))
}

/// The counter runs from the start.
pub fn start_counter() {}

/// What the counter shows: under `-icount` virtual nanoseconds, in every version of QEMU; `minstret` changed its unit.
#[inline(always)]
pub fn counter() -> u32 {
    let low;
    // SAFETY: copies a register. It does touch memory as far as the compiler knows, so that work does not move across it.
    unsafe { asm!("csrr {}, mcycle", out(reg) low, options(nostack)) };
    low
}

/// Ticks between two readings.
pub fn ticks(before: u32, after: u32) -> u32 {
    after.wrapping_sub(before)
}

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> u32 {
    let address;
    // SAFETY: copies a register.
    unsafe { asm!("mv {}, sp", out(reg) address, options(nomem, nostack)) };
    address
}

/// Stops for the debugger, which does `operation`: a breakpoint between two instructions that do nothing, on one page, none
/// of them compressed.
///
/// # Safety
/// `argument` is what the operation takes: a number, or the address of its arguments.
pub unsafe fn semihosting(operation: usize, argument: usize) -> usize {
    let result;
    // SAFETY: the caller's.
    unsafe {
        asm!(
            ".balign 16", ".option push", ".option norvc",
            "slli x0, x0, 0x1f", "ebreak", "srai x0, x0, 7",
            ".option pop",
            inlateout("a0") operation => result, in("a1") argument, options(nostack)
        )
    };
    result
}
