//! The task to solve a database by sweep or counting.

use super::counting_snapshots::ResumePlan;
use crate::distributed::limits::PROCESSORS_MAX;
use crate::distributed::{DatabaseTask, LocalScratch, StageTask};
use game::Score;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A database to solve and write: its captures, its snapshots, and how a snapshot of counting is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SolveTask {
    pub(super) by: SolvingMethod,
    pub(super) stones: u32,
    pub(super) captures: PathBuf,
    pub(super) database: PathBuf,
    /// Directory of snapshots; `None` if solving again is faster than saving.
    pub(super) snapshots: Option<PathBuf>,
    pub(super) counts: Option<ResumePlan>,
    pub(super) scratch: Option<LocalScratch>,
    /// Best capture of the opening, if the database has the opening and it has captures.
    pub(super) opening_capture: Option<Score>,
}

/// A method that solves a database in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SolvingMethod {
    Sweep,
    /// Counting with a number of logical processors for each rank.
    Counting {
        processors: usize,
    },
}

impl DatabaseTask for SolveTask {
    fn stones(&self) -> u32 {
        self.stones
    }
}

impl StageTask for SolveTask {
    fn is_valid(&self) -> bool {
        let is_method = match self.by {
            SolvingMethod::Sweep => true,
            SolvingMethod::Counting { processors } => (1..=PROCESSORS_MAX).contains(&processors),
        };
        is_method
            && self.stones <= game::STONES_MAX
            && self.counts.as_ref().is_none_or(ResumePlan::is_valid)
            && self.scratch.as_ref().is_none_or(LocalScratch::is_valid)
    }
}
