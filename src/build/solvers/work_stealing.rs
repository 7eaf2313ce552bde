//! Work stealing with affinity, on a pool whose threads spin between phases instead of sleeping.
//!
//! An idle thread of a rayon pool sleeps after some ten microseconds, and waking it takes twenty. A sweep has thousands
//! of phases of some hundred microseconds.

use rayon::Yield;
use std::cell::Cell;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Spins of an idle thread before it yields its processor.
const SPINS: usize = 32;

thread_local! {
    /// Number of nested drivers on this thread.
    static DRIVERS: Cell<usize> = const { Cell::new(0) };
}

/// Runs a driver on this thread while the other threads of the current pool spin for its work.
pub(crate) fn with_spinning_pool<T>(driver: impl FnOnce() -> T) -> T {
    if rayon::current_num_threads() == 1 {
        return driver();
    }
    let is_done = AtomicBool::new(false);
    rayon::in_place_scope(|scope| {
        scope.spawn_broadcast(|_, _| {
            // A driver that waits for its own work may execute this job: spinning for another driver here could
            // deadlock.
            if DRIVERS.get() == 0 {
                help_until(|| is_done.load(Ordering::Acquire));
            }
        });
        let _driving = DriverGuard::begin(&is_done);
        driver()
    })
}

/// Runs `work` on each piece, on the idle threads of the current pool.
///
/// Each thread starts with a contiguous part of the pieces, which is the same for the same number of pieces: data that
/// it left in its cache is there for the next phase.
pub(crate) fn for_each_piece<T: Send>(pieces: &mut [T], work: impl Fn(&mut T) + Sync) {
    let threads = rayon::current_num_threads();
    let mut rest = pieces;
    let parts = (1..=threads).rev().map(|left| {
        let count = rest.len().div_ceil(left);
        let (part, others) = std::mem::take(&mut rest).split_at_mut(count);
        rest = others;
        part
    });
    for_each_part(parts, work);
}

/// As [`for_each_piece`], given the part of each thread. A thread works through its part in order, then steals from the
/// end of other parts.
pub(crate) fn for_each_part<'t, T: Send + 't>(parts: impl Iterator<Item = &'t mut [T]>, work: impl Fn(&mut T) + Sync) {
    let parts: Vec<_> = parts.collect();
    let pieces: usize = parts.iter().map(|part| part.len()).sum();
    let others = (rayon::current_num_threads() - 1).min(pieces.saturating_sub(1));
    if others == 0 {
        return parts.into_iter().flatten().for_each(work);
    }
    let parts: Vec<_> = parts.into_iter().map(|part| Mutex::new(part.iter_mut())).collect();
    let part = |at: usize| parts[at].lock().unwrap_or_else(PoisonError::into_inner);
    let take_all = || {
        let own = rayon::current_thread_index().unwrap_or(0) % parts.len();
        // No lock is held during the work.
        let first = || part(own).next();
        while let Some(piece) = first() {
            work(piece);
        }
        for other in (own + 1..parts.len()).chain(0..own) {
            let last = || part(other).next_back();
            while let Some(piece) = last() {
                work(piece);
            }
        }
    };
    let working = AtomicUsize::new(others);
    rayon::in_place_scope(|scope| {
        for _ in 0..others {
            scope.spawn(|_| {
                let _less = CountDown(&working);
                take_all();
            });
        }
        take_all();
        // Spins: at the end of the scope this thread would sleep.
        if rayon::current_thread_index().is_some() {
            help_until(|| working.load(Ordering::Acquire) == 0);
        }
    });
}

/// Executes jobs of the pool until `is_done`.
fn help_until(is_done: impl Fn() -> bool) {
    let mut spins = 0;
    while !is_done() {
        if rayon::yield_now() == Some(Yield::Executed) {
            spins = 0;
            continue;
        }
        spins += 1;
        if spins % SPINS == 0 {
            thread::yield_now();
        } else {
            hint::spin_loop();
        }
    }
}

/// Marks a driver as running on this thread until dropped, also by a panic.
struct DriverGuard<'a> {
    is_done: &'a AtomicBool,
}

impl DriverGuard<'_> {
    fn begin(is_done: &AtomicBool) -> DriverGuard<'_> {
        DRIVERS.set(DRIVERS.get() + 1);
        DriverGuard { is_done }
    }
}

impl Drop for DriverGuard<'_> {
    fn drop(&mut self) {
        DRIVERS.set(DRIVERS.get() - 1);
        self.is_done.store(true, Ordering::Release);
    }
}

/// Decrements a counter when dropped, also by a panic.
struct CountDown<'a>(&'a AtomicUsize);

impl Drop for CountDown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn every_piece_is_done_once_by_drivers_side_by_side() {
        let drive = |pieces: usize| {
            let mut done = vec![0; pieces];
            with_spinning_pool(|| {
                for _ in 0..20 {
                    for_each_piece(&mut done, |piece| {
                        let mut inner = [0; 5];
                        for_each_piece(&mut inner, |inner| *inner += 1);
                        *piece += inner.iter().sum::<usize>();
                    });
                }
            });
            assert_eq!(done, vec![100; pieces]);
        };
        for threads in 1..=4 {
            pool(threads).install(|| (0..12).into_par_iter().with_max_len(1).for_each(drive));
        }
        drive(7);
    }

    #[test]
    fn every_piece_is_done_once_by_any_thread() {
        for threads in 1..=4 {
            let mut parts = [vec![0; 0], vec![0; 40], vec![0; 1], vec![0; 3]];
            pool(threads).install(|| {
                with_spinning_pool(|| for_each_part(parts.iter_mut().map(Vec::as_mut_slice), |piece| *piece += 1));
            });
            assert!(parts.iter().flatten().all(|&done| done == 1), "{threads} threads: {parts:?}");
        }
    }

    #[test]
    fn a_panic_in_a_piece_is_propagated() {
        let fails = || {
            with_spinning_pool(|| {
                for_each_piece(&mut [1, 2, 3, 4], |piece| assert!(*piece < 3, "this one fails"));
            });
        };
        let result = pool(2).install(|| std::panic::catch_unwind(fails));
        assert!(result.is_err());
    }
}
