//! The order in which the threads of a run go on when several stages run side by side.

use crate::stage::StageName;

/// Decides which thread of a run goes on. A simulation lets one go on at a time, so that a seed repeats every
/// operation; otherwise the operating system decides, and a run has none.
///
/// The thread of the run goes on alone from the end of a stage until it [passes](Self::pass) the turn to the stages.
pub trait Turns: Sync {
    /// Called by the thread of the run before it blocks until one of the running stages ends.
    fn pass(&self, running: &[StageName]);

    /// Called by the thread of a stage before it begins. Returns when it may.
    fn wait(&self, stage: &StageName);
}
