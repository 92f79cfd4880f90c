//! What `footprint` is without tha-core: a firmware that copies and clears memory, as every one does. Never run.

#![no_std]
#![no_main]

use core::hint::black_box;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// As much as nothing.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    let mut words = [0u32; 64];
    let mut bytes = [0u8; 256];
    loop {
        let length = black_box(64usize);
        // SAFETY: never run; both have room for what is asked, and they do not overlap.
        unsafe {
            core::ptr::copy_nonoverlapping(black_box(bytes.as_ptr()), words.as_mut_ptr().cast(), 4 * length);
            core::ptr::copy_nonoverlapping(black_box(words.as_ptr()), bytes.as_mut_ptr().cast(), length);
            core::ptr::write_bytes(black_box(bytes.as_mut_ptr()), 0, length);
            core::ptr::write_bytes(black_box(words.as_mut_ptr()), 0, length);
        }
        black_box((&words, &bytes));
    }
}
