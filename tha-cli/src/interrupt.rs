//! Ctrl-C. Long work asks [`requested`] and returns; what does not ask is ended after a short grace, or, where it has
//! something to say first ([`wait_for_me`]), at the second Ctrl-C. An end never comes while a file is being written.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The exit code after Ctrl-C.
pub const EXIT_CODE: u8 = 130;

const GRACE: Duration = Duration::from_millis(700);

static REQUESTED: AtomicBool = AtomicBool::new(false);
static WAITING: AtomicBool = AtomicBool::new(false);
static SAID: AtomicBool = AtomicBool::new(false);

/// Catches Ctrl-C from now on. `writing` waits until no file is half written, and keeps it so.
pub fn install(writing: fn() -> MutexGuard<'static, ()>) {
    let handler = move || {
        let first = !REQUESTED.swap(true, Ordering::Relaxed);
        if first && WAITING.load(Ordering::Relaxed) {
            super::say("stopping with what is done; Ctrl-C again to end at once");
            return;
        }
        std::thread::sleep(GRACE);
        let _not_while_writing = writing();
        say();
        std::process::exit(EXIT_CODE.into());
    };
    // Without a handler Ctrl-C still ends the process; only a temporary file may then stay behind.
    let _ = ctrlc::set_handler(handler);
}

/// From now on the first Ctrl-C only asks: the command ends by itself, with what it has.
pub fn wait_for_me() {
    WAITING.store(true, Ordering::Relaxed);
}

/// Says once that the command was interrupted: the handler and the command may both come to it.
pub fn say() {
    if !SAID.swap(true, Ordering::Relaxed) {
        super::say("interrupted; no incomplete file was left");
    }
}

/// True once Ctrl-C was pressed.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
