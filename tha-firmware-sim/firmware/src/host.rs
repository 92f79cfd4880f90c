//! The host behind the debugger: files, a last word, the end.

use core::ffi::CStr;
use core::fmt::{self, Arguments, Write};

use crate::processor::semihosting;

// Operations of semihosting, and the reasons of the last one.
const OPEN: usize = 0x01;
const WRITE: usize = 0x05;
const READ: usize = 0x06;
const EXIT: usize = 0x18;
const DONE: usize = 0x2_0026;
const FAILED: usize = 0x2_0023;

/// Ends the emulation.
pub fn end() -> ! {
    exit(DONE)
}

/// Says `error=...` and ends the emulation with a failure.
pub fn fail(message: Arguments<'_>) -> ! {
    say(format_args!("error={message}"));
    exit(FAILED)
}

fn exit(reason: usize) -> ! {
    // SAFETY: the argument is the reason.
    unsafe { semihosting(EXIT, reason) };
    loop {
        core::hint::spin_loop();
    }
}

/// Prints a line on the host.
pub fn say(line: Arguments<'_>) {
    if let Some(mut out) = File::with_mode(c":tt", 4) {
        let _ = writeln!(out, "{line}");
    }
}

/// A file on the host.
pub struct File(usize);

impl File {
    /// Opens a file for reading.
    pub fn open(name: &CStr) -> Self {
        Self::with_mode(name, 1).unwrap_or_else(|| fail(format_args!("cannot open {name:?}")))
    }

    /// Makes a file for writing.
    pub fn create(name: &CStr) -> Self {
        Self::with_mode(name, 5).unwrap_or_else(|| fail(format_args!("cannot make {name:?}")))
    }

    fn with_mode(name: &CStr, mode: usize) -> Option<Self> {
        let arguments = [name.as_ptr() as usize, mode, name.to_bytes().len()];
        // SAFETY: name, mode, length of the name.
        let handle = unsafe { semihosting(OPEN, arguments.as_ptr() as usize) };
        (handle != usize::MAX).then_some(Self(handle))
    }

    /// Fills `buffer` as far as the file goes.
    pub fn read(&self, buffer: &mut [u8]) -> usize {
        let arguments = [self.0, buffer.as_mut_ptr() as usize, buffer.len()];
        // SAFETY: the host writes at most `buffer.len()` bytes to where `buffer` lies.
        let missing = unsafe { semihosting(READ, arguments.as_ptr() as usize) };
        buffer.len() - missing.min(buffer.len())
    }

    /// Reads a number; `None` at the end of the file.
    pub fn read_u32(&self) -> Option<u32> {
        let mut word = [0; 4];
        (self.read(&mut word) == 4).then(|| u32::from_le_bytes(word))
    }

    /// Writes all of `bytes`.
    pub fn write(&self, bytes: &[u8]) {
        if !self.written(bytes) {
            fail(format_args!("cannot write the outputs"));
        }
    }

    fn written(&self, bytes: &[u8]) -> bool {
        let arguments = [self.0, bytes.as_ptr() as usize, bytes.len()];
        // SAFETY: the host reads `bytes.len()` bytes from where `bytes` lies.
        unsafe { semihosting(WRITE, arguments.as_ptr() as usize) == 0 }
    }
}

impl Write for File {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.written(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}
