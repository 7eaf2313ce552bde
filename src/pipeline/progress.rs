//! How far the running stage is: written by its threads, read by whoever shows it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of one stage. Shared by reference; every method may be called from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    unit: Mutex<&'static str>,
}

/// One reading of a [`Progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Units done.
    pub done: u64,
    /// Units in all; 0 if not known.
    pub total: u64,
    /// What is counted: `positions`, `rows`. Empty until the stage says.
    pub unit: &'static str,
}

impl Progress {
    /// Nothing done of an unknown total.
    pub fn new() -> Self {
        Progress::default()
    }

    /// Begins a count from 0: of `total` units (0: not known), each a `unit`.
    pub fn begin(&self, total: u64, unit: &'static str) {
        if let Ok(mut current) = self.unit.lock() {
            *current = unit;
        }
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Adds units done.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Sets the units done.
    pub fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Reads it. The three values may be of slightly different moments.
    pub fn read(&self) -> Reading {
        Reading {
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            unit: self.unit.lock().map_or("", |unit| *unit),
        }
    }
}
