//! Snapshots of a long stage, at the interval of the manifest.

use disk::Stopwatch;
use pipeline::StageContext;
use pipeline::StageResult as Result;
use planner::WORTH_A_SNAPSHOT;
use std::fmt;
use std::time::Duration;

/// Decides when a stage saves its state.
pub(crate) struct SnapshotTimer<'a> {
    started: Stopwatch<'a>,
    last: Stopwatch<'a>,
    interval: Duration,
}

impl<'a> SnapshotTimer<'a> {
    /// Returns a timer that starts now.
    pub(crate) fn start(context: &StageContext<'a>) -> SnapshotTimer<'a> {
        let started = context.stopwatch();
        SnapshotTimer { started, last: started, interval: context.snapshots().interval() }
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Restarts the interval.
    pub(crate) fn restart(&mut self) {
        self.last.restart();
    }

    /// Whether the interval has passed; then the next one begins.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.last.elapsed() >= self.interval;
        if is_due {
            self.last.restart();
        }
        is_due
    }

    /// Saves a snapshot if the interval has passed. A failure is logged: without a snapshot a crash costs more time,
    /// which is no reason to lose the work.
    pub(crate) fn save_if_due(&mut self, stage: fmt::Arguments, save: impl FnOnce() -> Result<()>) {
        if self.last.elapsed() < self.interval {
            return;
        }
        match save() {
            Ok(()) => tracing::info!("snapshot after {:.1} s", self.elapsed().as_secs_f64()),
            Err(error) => tracing::warn!("cannot save a snapshot of {stage}: {error}"),
        }
        self.last.restart();
    }

    /// Saves a snapshot of a stage that was asked to stop, if it is worth the time.
    pub(crate) fn save_at_stop(&self, save: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.is_worth_a_snapshot() { save() } else { Ok(()) }
    }

    /// Whether a stage that was asked to stop should save a snapshot.
    pub(crate) fn is_worth_a_snapshot(&self) -> bool {
        self.elapsed() >= WORTH_A_SNAPSHOT
    }
}
