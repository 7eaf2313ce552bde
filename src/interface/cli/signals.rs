//! Signal handling: the first signal requests a stop, the second ends the process. Signals of resource limits request a
//! stop or become errors.

use crate::error::{CliError, Result};
use crate::text::terminal::say;
use disk::machine::is_signal_ignored;
use disk::threads;
use pipeline::Exit;
use signal_hook::consts::{SIGBUS, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

/// Returns the signals that request a stop; excludes SIGHUP under `nohup`.
pub(crate) fn stop_signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGUSR1, SIGHUP].into_iter().filter(|&signal| !(signal == SIGHUP && is_signal_ignored(SIGHUP)))
}

/// Unblocks the handled signals, which a supervisor may have blocked.
pub(crate) fn unblock() {
    disk::unblock(&[SIGBUS, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXCPU, SIGXFSZ]);
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail instead of ending the process.
pub(crate) fn catch_file_size_limit() -> Result<()> {
    // The flag is not used: it suffices to catch the signal.
    flag::register(SIGXFSZ, Arc::default()).map(drop).map_err(CliError::Signals)
}

/// Returns a flag that the first signal raises, with a message. The second signal ends the process.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = quiet_stop_flag()?;
    let mut signals = Signals::new(stop_signals().chain([SIGXCPU])).map_err(CliError::Signals)?;
    let print_message = move || {
        if signals.forever().next().is_some() {
            say("stop requested; finishing the current step; Ctrl-C again stops immediately (safe)");
        }
    };
    thread("signals", print_message)?;
    Ok(stop)
}

/// As [`stop_flag`], without messages.
pub(crate) fn quiet_stop_flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        let raised = Arc::clone(&stop);
        let handler = move || {
            // An atomic swap: of two simultaneous signals, one finds the flag raised.
            if raised.swap(true, Ordering::SeqCst) {
                low_level::exit(i32::from(Exit::SecondSignal.code()));
            }
        };
        // In the signal handler, so that a blocked thread cannot delay the second signal.
        // SAFETY: the handler only swaps an atomic and calls `_exit`, which are async-signal-safe.
        unsafe { low_level::register(signal, handler) }.map_err(CliError::Signals)?;
    }
    // Repeated every second once the limit of processor time (`ulimit -t`) is reached, so it does not end the process.
    flag::register(SIGXCPU, Arc::clone(&stop)).map_err(CliError::Signals)?;
    Ok(stop)
}

/// Starts a detached thread.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    threads::spawn(Builder::new().name(name.to_owned()), work).map(drop).map_err(CliError::Thread)
}
