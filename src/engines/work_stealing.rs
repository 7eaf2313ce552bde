//! Threads that stay awake between the many short phases of a driver.
//!
//! A thread of a pool that finds nothing to do goes to sleep within some ten microseconds, and to wake it takes twenty.
//! A phase of a sweep takes some hundred, and there are thousands.

use rayon::Yield;
use std::cell::Cell;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How often a thread looks for work before it lets other programs have its processor.
const LOOKS: usize = 32;

thread_local! {
    /// Drivers on this thread, one inside the other.
    static DRIVERS: Cell<usize> = const { Cell::new(0) };
}

/// Runs a driver on this thread, while the others of the current pool wait for what it has to do without going to sleep.
pub(crate) fn with_spinning_pool<T>(driver: impl FnOnce() -> T) -> T {
    if rayon::current_num_threads() == 1 {
        return driver();
    }
    let is_done = AtomicBool::new(false);
    rayon::in_place_scope(|scope| {
        scope.spawn_broadcast(|_, _| {
            // A driver comes by when it waits for others: to wait for another driver here, which may do the same, would
            // be to wait for ever.
            if DRIVERS.get() == 0 {
                help_until(|| is_done.load(Ordering::Acquire));
            }
        });
        let _driving = DriverGuard::begin(&is_done);
        driver()
    })
}

/// Does something with each of some pieces of work, by whatever threads of the current pool have nothing else to do.
///
/// Each thread has neighbours among them, and of the same number of pieces always the same: what it left in its cache is
/// there for the next work on them.
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

/// The same, given what each thread has. It takes that in this order, and then what others have left, the last first.
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
        // Nobody holds a part while he works.
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
        // The end of the scope would put this thread to sleep.
        if rayon::current_thread_index().is_some() {
            help_until(|| working.load(Ordering::Acquire) == 0);
        }
    });
}

/// Does what others have to do.
fn help_until(is_done: impl Fn() -> bool) {
    let mut looks = 0;
    while !is_done() {
        if rayon::yield_now() == Some(Yield::Executed) {
            looks = 0;
            continue;
        }
        looks += 1;
        if looks % LOOKS == 0 {
            thread::yield_now();
        } else {
            hint::spin_loop();
        }
    }
}

/// A driver on this thread, until it is dropped, by a panic too.
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

/// One less when it is dropped, by a panic too.
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
    fn a_panic_of_a_piece_comes_out() {
        let fails = || {
            with_spinning_pool(|| {
                for_each_piece(&mut [1, 2, 3, 4], |piece| assert!(*piece < 3, "this one fails"));
            });
        };
        let result = pool(2).install(|| std::panic::catch_unwind(fails));
        assert!(result.is_err());
    }
}
