//! Signals that end the process while the view has the terminal: kept until the terminal is as before, or for a moment
//! where the terminal is gone and whoever waits for its keys would wait for ever.

use signal_hook::consts::TERM_SIGNALS;
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two looks at the signals.
const LOOK: Duration = Duration::from_millis(100);
/// For the view to end by itself once a signal came; it looks for one twenty times a second.
const GRACE: Duration = Duration::from_secs(1);

/// A terminal that goes away says so by a signal; not on Windows.
#[cfg(unix)]
const HANG_UP: &[i32] = &[signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const HANG_UP: &[i32] = &[];

/// The signals, each with whether it came.
pub(super) struct Ending {
    signals: Vec<(i32, Arc<AtomicBool>)>,
    released: Arc<AtomicBool>,
}

impl Ending {
    /// Keeps the signals from now on. The second of a kind ends the process at once: a terminal may hang.
    pub(super) fn keep() -> std::io::Result<Self> {
        let keep = |&signal: &i32| {
            let came = Arc::new(AtomicBool::new(false));
            flag::register_conditional_default(signal, Arc::clone(&came))?;
            flag::register(signal, Arc::clone(&came))?;
            Ok((signal, came))
        };
        let signals: Vec<_> = TERM_SIGNALS.iter().chain(HANG_UP).map(keep).collect::<std::io::Result<_>>()?;
        let ending = Self { signals, released: Arc::default() };
        let (signals, released) = (ending.signals.clone(), Arc::clone(&ending.released));
        std::thread::spawn(move || {
            let came = || signals.iter().find(|(_, came)| came.load(Ordering::Relaxed));
            while !released.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
                let Some((signal, _)) = came() else { continue };
                std::thread::sleep(GRACE);
                if !released.load(Ordering::Relaxed) {
                    let _ = low_level::emulate_default_handler(*signal);
                }
            }
        });
        Ok(ending)
    }

    /// Whether one came.
    pub(super) fn came(&self) -> bool {
        self.signals.iter().any(|(_, came)| came.load(Ordering::Relaxed))
    }

    /// One that came ends the process now; later ones do so as ever.
    pub(super) fn release(self) {
        self.released.store(true, Ordering::Relaxed);
        for (signal, came) in &self.signals {
            if came.swap(true, Ordering::Relaxed) {
                // An error would mean a signal unknown to the system: it was registered.
                let _ = low_level::emulate_default_handler(*signal);
            }
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.released.store(true, Ordering::Relaxed);
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
