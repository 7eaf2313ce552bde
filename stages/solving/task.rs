//! The task to solve a database in one stage.

use super::OneStageSolver;
use crate::distributed::{DatabaseTask, LocalScratch, StageTask};
use game::Score;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A database to solve and write: its captures, and its snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SolveTask<S> {
    pub(super) solver: S,
    pub(super) stones: u32,
    pub(super) captures: PathBuf,
    pub(super) database: PathBuf,
    /// Directory of snapshots; `None` if solving again is faster than saving.
    pub(super) snapshots: Option<PathBuf>,
    pub(super) scratch: Option<LocalScratch>,
    /// Best capture of the opening, if the database has the opening and it has captures.
    pub(super) opening_capture: Option<Score>,
}

impl<S: OneStageSolver> DatabaseTask for SolveTask<S> {
    fn stones(&self) -> u32 {
        self.stones
    }
}

impl<S: OneStageSolver> StageTask for SolveTask<S> {
    fn is_valid(&self) -> bool {
        self.solver.is_valid()
            && self.stones <= game::STONES_MAX
            && self.scratch.as_ref().is_none_or(LocalScratch::is_valid)
    }
}
