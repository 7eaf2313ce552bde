//! Signals: the first asks to stop, the second stops at once.

use crate::error::CliError;
use crate::output::say;
use pipeline::Exit;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
        // In this order: the handler of the second signal finds the flag that the first has raised. Both run in the
        // signal handler itself, so nothing that hangs can hold them up.
        let exit = i32::from(Exit::SecondSignal.code());
        flag::register_conditional_shutdown(signal, exit, Arc::clone(&stop)).map_err(CliError::Signals)?;
        flag::register(signal, Arc::clone(&stop)).map_err(CliError::Signals)?;
    }
    Ok(stop)
}
