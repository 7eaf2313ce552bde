//! What a rank of the team that runs a stage of bounds has: its inputs and outputs.
//!
//! Each rank makes the words of its part of every output. All ranks see the files of the run directory.

use super::planes::{PlaneFile, PlaneReader, PlaneWriter, SeedsReader, UnitGroup};
use crate::distributed::{DatabaseTask, RankResult, StageTask, agree, is_shared};
use crate::files;
use crate::team::TeamMember;
use messaging::Communicator;
use pipeline::{ArtifactName, StageContext, StageError, StageResult as Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A stage of bounds, with the paths of its inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlaneTask {
    pub(super) stones: u32,
    /// The bound, 0 for stages of all bounds.
    pub(super) bound: u32,
    files: Vec<(ArtifactName, PathBuf)>,
}

impl PlaneTask {
    /// Returns the task of a stage with these inputs and outputs.
    pub(super) fn new(
        context: &StageContext,
        (stones, bound): (u32, u32),
        inputs: impl IntoIterator<Item = ArtifactName>,
        outputs: impl IntoIterator<Item = ArtifactName>,
    ) -> PlaneTask {
        let inputs = inputs.into_iter().map(|name| (name.clone(), context.input(&name)));
        let outputs = outputs.into_iter().map(|name| (name.clone(), context.output(&name)));
        PlaneTask { stones, bound, files: inputs.chain(outputs).collect() }
    }

    /// Whether this is the last bound of the database.
    pub(super) fn is_last(&self) -> bool {
        self.bound == 1
    }
}

impl DatabaseTask for PlaneTask {
    fn stones(&self) -> u32 {
        self.stones
    }
}

impl StageTask for PlaneTask {
    fn is_valid(&self) -> bool {
        (1..=game::STONES_MAX).contains(&self.stones) && self.bound <= self.stones
    }
}

/// One rank of the team that runs a stage of bounds.
pub(super) type PlaneMember<'a> = TeamMember<'a, PlaneTask>;

impl PlaneMember<'_> {
    /// Returns the path of an input or output.
    pub(super) fn path(&self, name: &ArtifactName) -> Result<&Path> {
        let file = self.task.files.iter().find(|(artifact, _)| artifact == name);
        file.map(|(_, path)| &**path).ok_or_else(|| StageError::failed(format!("the order has no file {name}")))
    }

    /// Opens an input.
    pub(super) fn open(&self, plane: PlaneFile) -> Result<PlaneReader> {
        let name = plane.name(self.task.stones);
        PlaneReader::open(self.disk, self.path(&name)?, self.settings(), &self.index, plane)
            .map_err(|error| files::unreadable(&name, error))
    }

    /// Opens an input with seeds of all bounds, whose layout has these groups.
    pub(super) fn open_seeds<'g>(&self, plane: PlaneFile, groups: &'g [UnitGroup]) -> Result<SeedsReader<'g>> {
        Ok(SeedsReader::new(plane.name(self.task.stones), self.open(plane)?, self.task.stones, groups))
    }

    /// Begins to write an output with the other ranks.
    pub(super) fn create<'d>(
        &'d self,
        plane: PlaneFile,
        communicator: &mut dyn Communicator,
    ) -> RankResult<PlaneWriter<'d>> {
        let path = self.path(&plane.name(self.task.stones)).map(Path::to_path_buf);
        let path = agree(communicator, path)?;
        let is_shared = is_shared(self.settings(), self.task.stones, communicator.size());
        PlaneWriter::begin(self.disk, &path, self.settings(), &self.index, plane, is_shared, communicator)
    }
}
