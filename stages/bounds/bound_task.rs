//! The task to solve one bound of a database.

use super::planes::PlaneFile;
use crate::distributed::StageTask;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A bound to solve, and the planes that it starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoundTask {
    pub(super) stones: u32,
    pub(super) bound: u32,
    /// Files, in the order of [`BoundTask::planes`].
    pub(super) paths: Vec<PathBuf>,
}

impl BoundTask {
    pub(super) fn new(stones: u32, bound: u32, path: impl Fn(PlaneFile) -> PathBuf) -> BoundTask {
        BoundTask { stones, bound, paths: BoundTask::planes(stones, bound).map(path).collect() }
    }

    /// Returns the planes that a bound starts from: its seeds, and the planes of the bounds above.
    pub(super) fn planes(stones: u32, bound: u32) -> impl Iterator<Item = PlaneFile> {
        let above = (bound + 1..=stones).rev().flat_map(|above| [PlaneFile::Won(above), PlaneFile::Decided(above)]);
        [PlaneFile::CandidateSeeds, PlaneFile::Seed(bound)].into_iter().chain(above)
    }

    /// Whether this is the last bound of the database.
    pub(crate) fn is_last(&self) -> bool {
        self.bound == 1
    }
}

impl StageTask for BoundTask {
    fn is_valid(&self) -> bool {
        let &BoundTask { stones, bound, ref paths } = self;
        let is_bound = stones <= game::STONES_MAX && (1..=stones).contains(&bound);
        is_bound && BoundTask::planes(stones, bound).count() == paths.len()
    }
}
