//! Threads that start, or cannot be started, but do not end the process.
//!
//! The standard library panics in a new thread that cannot map its signal stack. So a thread is started only
//! if there is address space for it, and its starter waits until it has its stacks: otherwise the starter
//! itself, or the same check for the next thread, could take that space.

use memmap2::MmapOptions;
use std::io;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Address space of a thread: its stack, and another one for signals.
const THREAD_BYTES: usize = (2 << 20) + (256 << 10);

/// Checks that there is address space for `threads` more threads.
///
/// # Errors
/// If there is not.
pub fn room_for_threads(threads: usize) -> io::Result<()> {
    MmapOptions::new().len(threads.saturating_mul(THREAD_BYTES)).no_reserve_swap().map_anon().map(drop)
}

/// Starts a thread, and waits until it runs.
///
/// # Errors
/// If it cannot be started.
pub fn spawn<T: Send + 'static>(
    thread: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    when_running(|running| {
        thread.spawn(move || {
            drop(running);
            work()
        })
    })
}

/// Starts a thread of a scope, and waits until it runs.
///
/// # Errors
/// If it cannot be started.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    thread: Builder,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    when_running(|running| {
        thread.spawn_scoped(scope, move || {
            drop(running);
            work()
        })
    })
}

/// Waits until a new thread has dropped the sender.
fn when_running<H>(spawn: impl FnOnce(mpsc::Sender<()>) -> io::Result<H>) -> io::Result<H> {
    room_for_threads(1)?;
    let (running, runs) = mpsc::channel();
    let thread = spawn(running)?;
    // Nothing is sent: it returns when the sender is dropped.
    let _ = runs.recv();
    Ok(thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn threads_run_when_they_are_returned() {
        let ran = AtomicBool::new(false);
        let sum = thread::scope(|scope| {
            let scoped = spawn_scoped(scope, Builder::new(), || {
                ran.store(true, Ordering::Relaxed);
                1
            });
            let free = spawn(Builder::new().name("free".to_owned()), || thread::current().name().map(str::len));
            scoped.unwrap().join().unwrap() + free.unwrap().join().unwrap().unwrap()
        });
        assert!(ran.into_inner() && sum == 5);
        // A stack that no address space holds.
        assert!(spawn(Builder::new().stack_size(usize::MAX / 4), || ()).is_err());
    }
}
