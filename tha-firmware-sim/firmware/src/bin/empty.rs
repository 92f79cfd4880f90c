//! What `footprint` is without tha-core: a firmware that copies and clears memory, as every one does. Never run.

#![no_std]
#![no_main]

use core::hint::black_box;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// As much as nothing.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    let mut words = [0u32; 256];
    let mut bytes = [1u8; 256];
    loop {
        let length = black_box(256usize).min(256);
        // SAFETY: both have room for `length`, and they do not overlap.
        unsafe {
            core::ptr::copy_nonoverlapping(black_box(bytes.as_ptr()), words.as_mut_ptr().cast(), length);
            core::ptr::write_bytes(bytes.as_mut_ptr(), 0, length);
            core::ptr::write_bytes(words.as_mut_ptr(), 0, length / 2);
            core::ptr::copy_nonoverlapping(black_box([7u32; 256].as_ptr()), words.as_mut_ptr(), length / 4);
        }
        black_box((&words, &bytes));
    }
}
