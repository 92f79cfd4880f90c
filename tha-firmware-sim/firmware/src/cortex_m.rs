//! Cortex-M: cortex-m-rt starts it, SysTick counts.

use core::arch::asm;

use cortex_m_rt::{ExceptionFrame, exception};

use crate::host::fail;

/// Control, reload and current value of SysTick.
const SYSTICK: *mut u32 = 0xe000_e010 as *mut u32;
/// It counts down with as many bits.
const LARGEST: u32 = 0x00ff_ffff;

/// Lets SysTick run at the clock of the processor, without interrupts.
pub fn start_counter() {
    // SAFETY: the three registers, which nobody else touches.
    unsafe {
        SYSTICK.add(1).write_volatile(LARGEST);
        SYSTICK.add(2).write_volatile(0);
        SYSTICK.write_volatile(0b101);
    }
}

/// What the counter shows.
#[inline(always)]
pub fn counter() -> u32 {
    // SAFETY: reading the current value changes nothing.
    unsafe { SYSTICK.add(2).read_volatile() }
}

/// Ticks between two readings.
pub fn ticks(before: u32, after: u32) -> u32 {
    before.wrapping_sub(after) & LARGEST
}

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> u32 {
    let address;
    // SAFETY: copies a register.
    unsafe { asm!("mov {}, sp", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}

/// Stops for the debugger, which does `operation`.
///
/// # Safety
/// `argument` is what the operation takes: a number, or the address of its arguments.
pub unsafe fn semihosting(operation: usize, argument: usize) -> usize {
    let result;
    // SAFETY: the caller's.
    unsafe { asm!("bkpt #0xab", inlateout("r0") operation => result, in("r1") argument, options(nostack)) };
    result
}

/// Says so instead of standing still.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    fail(format_args!("hard fault at {:#x}", frame.pc()))
}
