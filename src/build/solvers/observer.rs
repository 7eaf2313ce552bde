//! What a driver tells its caller as it works.

use std::ops::ControlFlow;

/// Observer of a driver, called between units of work; it may stop the driver.
pub trait DriverObserver: Sync {
    /// Reports that about `done` of `total` positions are finished; `total` may grow. `Break` stops the driver.
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()>;

    /// Reports the end of a pass, for drivers that repeat passes until one changes nothing.
    fn end_pass(&self, _pass: EndedPass) {}

    /// Reports the start of a bound, for drivers that go from `bounds` down to 1.
    fn begin_bound(&self, _bound: u32, _bounds: u32) {}
}

/// Summary of a finished pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedPass {
    /// Whether the pass recomputed everything, rather than what may have changed.
    pub is_full: bool,
    /// Whether the next pass recomputes everything.
    pub is_next_full: bool,
    /// Number of changes, in a unit that is the same for all passes of a driver.
    pub changed: u64,
}

/// Error of a driver that its observer stopped. Work since the last checkpoint is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request")]
pub struct Stopped;

impl DriverObserver for () {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
