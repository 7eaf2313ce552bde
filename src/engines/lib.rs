//! The methods: row kernels, and the drivers that run them over threads.
//!
//! A driver gets slices and gives slices; it opens no file and knows no manifest. Work is cut into units fixed by the
//! number of stones alone (ranges of rows by ranges of columns), never by threads, so results do not depend on them.
//! The work of a row is plain arrays: child offsets and the numbers of precompiled classes of moves.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bounds;
pub mod capture;
pub mod counting;
pub mod distributed;
mod huge_pages;
mod kernels;
mod layout;
pub mod sweep;
mod word_update;
mod work_stealing;

pub use capture::{CaptureChoice, DatabasePart, choice, choice_of};
pub use huge_pages::Bytes;
pub use kernels::Kernel;
pub use kernels::Tables;
pub use layout::{ScoreRows, row_bytes};

use std::ops::ControlFlow;

/// Told of progress between units of work; its answer stops a driver.
pub trait DriverObserver: Sync {
    /// `done` of `total` positions are finished, roughly; `total` may grow.
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()>;

    /// A pass has ended, of a driver that repeats passes until one changes nothing.
    fn end_pass(&self, _pass: EndedPass) {}

    /// Bound `bound` begins, of a driver that takes bounds from `bounds` down to 1.
    fn begin_bound(&self, _bound: u32, _bounds: u32) {}
}

/// A pass that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedPass {
    /// Whether it recomputed everything, rather than what may have changed.
    pub is_full: bool,
    /// Whether the next one will.
    pub is_next_full: bool,
    /// What it changed, in a unit that is the same for all passes of a driver.
    pub changed: u64,
}

/// A driver was asked to stop; what it had is lost unless it was checkpointed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request")]
pub struct Stopped;

impl DriverObserver for () {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
