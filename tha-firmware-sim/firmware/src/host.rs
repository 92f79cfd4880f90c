//! The host behind the debugger: files, a last word, the end.

use core::ffi::CStr;
use core::fmt::{Arguments, Write as _};

use cortex_m_semihosting::{debug, hio, syscall};

/// Says `error=...` and ends the emulation with a failure.
pub fn fail(message: Arguments<'_>) -> ! {
    say(format_args!("error={message}"));
    debug::exit(debug::EXIT_FAILURE);
    loop {
        core::hint::spin_loop();
    }
}

/// Prints a line on the host.
pub fn say(line: Arguments<'_>) {
    if let Ok(mut out) = hio::hstdout() {
        let _ = writeln!(out, "{line}");
    }
}

/// A file on the host.
pub struct File(isize);

impl File {
    /// Opens a file for reading.
    pub fn open(name: &CStr) -> Self {
        Self::with_mode(name, 1)
    }

    /// Makes a file for writing.
    pub fn create(name: &CStr) -> Self {
        Self::with_mode(name, 5)
    }

    fn with_mode(name: &CStr, mode: usize) -> Self {
        // SAFETY: the three arguments of SYS_OPEN: name, mode, length of the name.
        let handle = unsafe { syscall!(OPEN, name.as_ptr(), mode, name.to_bytes().len()) } as isize;
        if handle < 0 {
            fail(format_args!("cannot open {name:?}"));
        }
        Self(handle)
    }

    /// Fills `buffer` as far as the file goes.
    pub fn read(&self, buffer: &mut [u8]) -> usize {
        // SAFETY: the host writes at most `buffer.len()` bytes to where `buffer` lies.
        let missing = unsafe { syscall!(READ, self.0, buffer.as_mut_ptr(), buffer.len()) };
        buffer.len() - missing.min(buffer.len())
    }

    /// Reads a number; `None` at the end of the file.
    pub fn read_u32(&self) -> Option<u32> {
        let mut word = [0; 4];
        (self.read(&mut word) == 4).then(|| u32::from_le_bytes(word))
    }

    /// Writes all of `bytes`.
    pub fn write(&self, bytes: &[u8]) {
        // SAFETY: the host reads `bytes.len()` bytes from where `bytes` lies.
        if unsafe { syscall!(WRITE, self.0, bytes.as_ptr(), bytes.len()) } != 0 {
            fail(format_args!("cannot write the outputs"));
        }
    }
}
