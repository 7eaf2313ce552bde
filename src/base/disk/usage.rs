//! What some work uses of the processor and of the drive, where a process does several things at a time.
//!
//! Work is charged to an account by the threads that do it: a thread charges one account at a time, and work
//! that other threads do for it is charged by passing the account on.

use crate::traffic::{Traffic, TrafficCounter};
use rustix::thread::{Pid, gettid};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An account of processor time and of bytes read and written.
#[derive(Debug, Default)]
pub struct Usage {
    threads: Mutex<ChargedThreads>,
    traffic: TrafficCounter,
}

/// The threads that charge an account.
#[derive(Debug, Default)]
struct ChargedThreads {
    /// Nanoseconds of those that have ceased to.
    ended_nanos: u64,
    /// The others, with their nanoseconds when they began.
    charging: Vec<(Pid, u64)>,
}

thread_local! {
    static CHARGED: RefCell<Option<Arc<Usage>>> = const { RefCell::new(None) };
}

impl Usage {
    /// Returns the account that this thread charges.
    pub fn charged() -> Option<Arc<Usage>> {
        CHARGED.with_borrow(Option::clone)
    }

    /// Does some work on this thread, and charges an account instead of that which it charges now.
    pub fn charge<T>(usage: Option<Arc<Usage>>, work: impl FnOnce() -> T) -> T {
        struct FormerAccount(Option<Arc<Usage>>);
        impl Drop for FormerAccount {
            fn drop(&mut self) {
                exchange(self.0.take());
            }
        }
        let _former = FormerAccount(exchange(usage));
        work()
    }

    /// Returns processor seconds, user and system, also of threads that have not ceased to charge the account.
    pub fn cpu_seconds(&self) -> f64 {
        // A thread whose time is read cannot end meanwhile: it would first take the lock.
        let threads = self.threads();
        let charging = threads.charging.iter();
        let nanos = charging.map(|&(thread, first)| nanos_of(thread).unwrap_or(first).saturating_sub(first));
        (threads.ended_nanos + nanos.sum::<u64>()) as f64 * 1e-9
    }

    /// Returns the bytes read and written.
    pub fn traffic(&self) -> Traffic {
        self.traffic.read()
    }

    fn threads(&self) -> MutexGuard<'_, ChargedThreads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes this thread charge another account, and returns that which it charged.
fn exchange(usage: Option<Arc<Usage>>) -> Option<Arc<Usage>> {
    if usage.is_none() && CHARGED.with_borrow(Option::is_none) {
        return None;
    }
    let (thread, nanos) = (gettid(), own_nanos());
    if let Some(usage) = &usage {
        usage.threads().charging.push((thread, nanos));
    }
    let former = CHARGED.replace(usage);
    if let Some(former) = &former {
        let mut threads = former.threads();
        if let Some(at) = threads.charging.iter().rposition(|&(other, _)| other == thread) {
            let (_, first) = threads.charging.swap_remove(at);
            threads.ended_nanos += nanos.saturating_sub(first);
        }
    }
    former
}

/// Adds to the traffic of the account that this thread charges.
pub(crate) fn add(traffic: Traffic) {
    CHARGED.with_borrow(|charged| {
        if let Some(usage) = charged {
            usage.traffic.add(traffic);
        }
    });
}

/// Returns the processor time of this thread.
fn own_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the processor time of a thread of this process.
fn nanos_of(thread: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::sync::mpsc;
    use std::thread;

    fn compute(seconds: f64) {
        let first = own_nanos();
        while ((own_nanos() - first) as f64) < seconds * 1e9 {
            black_box((0..10_000u64).fold(0, |sum, number| sum ^ black_box(number)));
        }
    }

    /// Time and traffic are charged to the account of the work, also by threads that have not ended, and to
    /// one account only.
    #[test]
    fn work_is_charged() {
        let (outer, inner) = (Arc::new(Usage::default()), Arc::new(Usage::default()));
        let read = |bytes| add(Traffic { read_bytes: bytes, written_bytes: 1 });
        compute(0.05);
        read(1);
        let (end, ends) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        thread::scope(|scope| {
            Usage::charge(Some(Arc::clone(&outer)), || {
                compute(0.03);
                read(20);
                Usage::charge(Some(Arc::clone(&inner)), || {
                    compute(0.2);
                    read(300);
                });
                let charged = Usage::charged();
                scope.spawn(move || {
                    Usage::charge(charged, || {
                        compute(0.03);
                        read(4000);
                        begin.send(()).unwrap();
                        let _ = ends.recv();
                    });
                });
                begun.recv().unwrap();
            });
            let (of_outer, of_inner) = (outer.cpu_seconds(), inner.cpu_seconds());
            assert!((0.06..0.2).contains(&of_outer) && (0.2..0.3).contains(&of_inner), "{of_outer} {of_inner}");
            drop(end);
        });
        assert!(Usage::charged().is_none());
        assert!((0.06..0.2).contains(&outer.cpu_seconds()), "{}", outer.cpu_seconds());
        assert_eq!(outer.traffic(), Traffic { read_bytes: 4020, written_bytes: 2 });
        assert_eq!(inner.traffic(), Traffic { read_bytes: 300, written_bytes: 1 });
    }

    #[test]
    fn a_panic_ends_the_charge() {
        let usage = Arc::new(Usage::default());
        let panicked = std::panic::catch_unwind(|| Usage::charge(Some(Arc::clone(&usage)), || panic!("a panic")));
        assert!(panicked.is_err() && Usage::charged().is_none() && usage.threads().charging.is_empty());
    }
}
