//! Limits of a search.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// When a search ends. A search without limits ends when the score is proved, or when it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchLimits {
    /// The largest depth, in moves of both players.
    pub depth: Option<u32>,
    /// The number of positions to search.
    pub nodes: Option<u64>,
    /// The time to search.
    pub time: Option<Duration>,
    /// The time after which no deeper iteration is begun.
    pub iteration_time: Option<Duration>,
}

/// A flag that stops a search from another thread.
#[derive(Debug, Default)]
pub struct SearchStop(AtomicBool);

impl SearchStop {
    /// Makes a flag that is not set.
    pub const fn new() -> SearchStop {
        SearchStop(AtomicBool::new(false))
    }

    /// Sets the flag: searches end within a millisecond.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
