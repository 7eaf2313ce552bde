//! The guard of an engine: a process between the match and an engine, which ends with all of its processes
//! when it ends itself, when the match closes its stdin, and when the match is killed.
//!
//! ```text
//! match ── stdin ──> guard and engine     the guard only waits until stdin is closed
//! match <── stdout ── engine
//! ```
//!
//! The guard is this program with [`GUARD`] as its first argument and the command of the engine behind it.
//! The engine leads a process group of its own, so that signals of a terminal reach neither.

use disk::process;
use disk::{reason, threads};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder};
use std::time::Duration;

/// The first argument of a guard.
const GUARD: &str = "guard-engine";

/// The beginning of the line that a guard prints when the engine does not start.
pub(super) const NO_ENGINE: &str = "awari cannot start the engine: ";

/// The time in which an engine ends after the end of its stdin; then it is killed.
pub(super) const QUIT_TIME: Duration = Duration::from_millis(500);

/// The exit code of a guard that cannot start its engine, as of shells.
const NOT_STARTED: i32 = 127;

/// Returns the command that starts an engine behind a guard, with pipes.
pub(super) fn command(words: &[String]) -> Command {
    // This program, also after its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg(GUARD).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    // Ctrl-C is for the match.
    command.process_group(0);
    command
}

/// Runs this process as a guard and does not return, if its arguments say so.
pub(crate) fn run_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == GUARD) {
        let words: Vec<OsString> = arguments.collect();
        if let Some((program, arguments)) = words.split_first() {
            run(program, arguments);
        }
    }
}

fn run(program: &OsStr, arguments: &[OsString]) -> ! {
    // Without it, an orphan that left the group of the engine would stay.
    let _ = process::guard_descendants();
    let spawned = Command::new(program).args(arguments).process_group(0).spawn();
    let mut engine = match spawned.and_then(|engine| process::release_stdout().map(|()| engine)) {
        Ok(engine) => engine,
        Err(error) => {
            let _ = writeln!(std::io::stdout(), "{NO_ENGINE}{}", reason(&error));
            process::kill_descendants();
            std::process::exit(NOT_STARTED);
        }
    };
    let group = process::ProcessGroup::of(&engine);
    let has_ended = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&has_ended);
    let watch = move || {
        if process::wait_for_hang_up().is_ok() {
            thread::sleep(QUIT_TIME);
        }
        if !is_over.load(Ordering::SeqCst) {
            group.kill();
        }
    };
    if threads::spawn(Builder::new().name("hang-up".to_owned()), watch).is_err() {
        group.kill();
    }
    let status = process::wait_for_end(&engine);
    has_ended.store(true, Ordering::SeqCst);
    group.kill();
    let status = status.and_then(|()| engine.wait());
    process::kill_descendants();
    match status {
        Ok(status) => process::end_as(status),
        Err(_) => std::process::exit(NOT_STARTED),
    }
}
