//! How deep the stack was: paint what is free of it, run, look how much paint is left.

use crate::processor::stack_pointer;

/// No address, no small number, no float that occurs.
const PAINT: u32 = 0xCCC5_5CCC;
/// Bytes that are painted below the caller, if there are as many.
const DEPTH: u32 = 8192;

unsafe extern "C" {
    static mut _stack_end: u32;
}

/// The stack below a call.
pub struct Stack {
    top: u32,
    bottom: u32,
}

impl Stack {
    /// Measures from the stack pointer of the caller down.
    #[inline(always)]
    pub fn here() -> Self {
        let top = stack_pointer();
        let end = &raw const _stack_end as u32;
        Self { top, bottom: end.max(top.saturating_sub(DEPTH)) & !3 }
    }

    /// Runs `work` and gives its result and the bytes of stack that it used; a few dozen are always counted.
    #[inline(always)]
    pub fn of<T>(&self, work: impl FnOnce() -> T) -> (T, u32) {
        self.paint();
        let result = work();
        (result, self.used())
    }

    #[inline(never)]
    fn paint(&self) {
        let free = stack_pointer() - 32;
        let mut at = self.bottom;
        while at < free {
            // SAFETY: the words between the end of the static data and the stack pointer belong to nobody.
            unsafe { (at as *mut u32).write_volatile(PAINT) };
            at += 4;
        }
    }

    #[inline(never)]
    fn used(&self) -> u32 {
        let mut at = self.bottom;
        // SAFETY: as above, and reading changes nothing.
        while at < self.top && unsafe { (at as *const u32).read_volatile() } == PAINT {
            at += 4;
        }
        self.top - at
    }
}
