//! Signals: the first asks to stop, the second stops at once. Those of limits ask to stop, or become errors.

use crate::error::CliError;
use crate::terminal::say;
use disk::machine::is_signal_ignored;
use pipeline::Exit;
use signal_hook::consts::{SIGBUS, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The signals that ask to stop. `nohup` has its commands go on when their terminal is closed.
pub(crate) fn asking() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGUSR1, SIGHUP].into_iter().filter(|&signal| !(signal == SIGHUP && is_signal_ignored(SIGHUP)))
}

/// Lets through what is handled: a process can be started with any signals blocked, and a supervisor may have done so.
pub(crate) fn unblock() {
    disk::unblock(&[SIGBUS, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXCPU, SIGXFSZ]);
}

/// Lets a write beyond the limit of a file's size (`ulimit -f`) fail, where it would end the process.
pub(crate) fn catch_file_size_limit() -> Result<(), CliError> {
    // The flag means nothing: it is enough that the signal is caught.
    flag::register(SIGXFSZ, Arc::default()).map(drop).map_err(CliError::Signals)
}

/// Raises the flag it returns at the first signal, and says so; ends the process at the second.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, CliError> {
    let stop = quiet_stop_flag()?;
    let mut signals = Signals::new(asking().chain([SIGXCPU])).map_err(CliError::Signals)?;
    let tell = move || {
        if signals.forever().next().is_some() {
            say("stop requested; finishing the current step; Ctrl-C again stops immediately (safe)");
        }
    };
    thread("signals", tell)?;
    Ok(stop)
}

/// The same, but says nothing.
pub(crate) fn quiet_stop_flag() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in asking() {
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
    // Comes every second once the limit of processor time (`ulimit -t`) is reached, and does not count as a second signal.
    flag::register(SIGXCPU, Arc::clone(&stop)).map_err(CliError::Signals)?;
    Ok(stop)
}

/// Starts a thread that lasts as long as the process.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), CliError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(CliError::Thread)
}
