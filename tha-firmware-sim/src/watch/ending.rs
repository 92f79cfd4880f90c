//! Signals that end the process while the view has the terminal: kept until the terminal is as before.

use signal_hook::consts::TERM_SIGNALS;
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A terminal that goes away says so by a signal; not on Windows.
#[cfg(unix)]
const HANG_UP: &[i32] = &[signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const HANG_UP: &[i32] = &[];

/// The signals, each with whether it came.
pub(super) struct Ending(Vec<(i32, Arc<AtomicBool>)>);

impl Ending {
    /// Keeps the signals from now on. The second of a kind ends the process at once: a terminal may hang.
    pub(super) fn keep() -> std::io::Result<Self> {
        let keep = |&signal: &i32| {
            let came = Arc::new(AtomicBool::new(false));
            flag::register_conditional_default(signal, Arc::clone(&came))?;
            flag::register(signal, Arc::clone(&came))?;
            Ok((signal, came))
        };
        TERM_SIGNALS.iter().chain(HANG_UP).map(keep).collect::<std::io::Result<_>>().map(Self)
    }

    /// Whether one came.
    pub(super) fn came(&self) -> bool {
        self.0.iter().any(|(_, came)| came.load(Ordering::Relaxed))
    }

    /// One that came ends the process now; later ones do so as ever.
    pub(super) fn release(self) {
        for (signal, came) in self.0 {
            if came.swap(true, Ordering::Relaxed) {
                // An error would mean a signal unknown to the system: it was registered.
                let _ = low_level::emulate_default_handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_waits_for_the_terminal() -> std::io::Result<()> {
        let ending = Ending::keep()?;
        assert!(!ending.came());
        low_level::raise(signal_hook::consts::SIGTERM)?;
        assert!(ending.came());
        Ok(())
    }
}
