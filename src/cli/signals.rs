//! Signals: the first asks to stop, the second stops at once.

use crate::error::CliError;
use crate::output::say;
use pipeline::Exit;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGUSR1];

/// Raises the flag it returns at the first signal, and says so; ends the process at the second.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, CliError> {
    let stop = quiet_stop_flag()?;
    let mut signals = Signals::new(SIGNALS).map_err(CliError::Signals)?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            say("stopping: the unit of work at hand is finished first; once more to stop at once, safely");
        }
    });
    Ok(stop)
}

/// The same, but says nothing.
pub(crate) fn quiet_stop_flag() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        let raised = Arc::clone(&stop);
        let heed = move || {
            // One step: of two signals that two threads meet at once, one finds that the other has raised the flag.
            if raised.swap(true, Ordering::SeqCst) {
                low_level::exit(i32::from(Exit::SecondSignal.code()));
            }
        };
        // In the signal handler itself, so nothing that hangs can hold the second signal up.
        // SAFETY: a swap of an atomic and `_exit` are all that is done there, and both are allowed in a handler.
        unsafe { low_level::register(signal, heed) }.map_err(CliError::Signals)?;
    }
    Ok(stop)
}
