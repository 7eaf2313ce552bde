//! One rank of the team that solves a database: its inputs, its snapshots, and its part of the file.

use super::{OneStageSolver, SolveTask};
use crate::build_context::BuildContext;
use crate::distributed::{LocalScratch, RankResult};
use crate::files;
use crate::solver::{DatabaseOutput, DatabaseWriter};
use crate::team::TeamMember;
use disk::Digest;
use messaging::Communicator;
use pipeline::{Snapshots, StageContext, StageError, StageReport, StageResult as Result};
use solvers::ranks::{ScoreShare, collect};
use solvers::{ScoreRows, Tables};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{FileKind, Scores};

/// One rank: its task, its inputs, and where it saves snapshots.
pub(crate) struct SolveRank<'a, S> {
    pub(crate) member: &'a TeamMember<'a, SolveTask<S>>,
    pub(crate) tables: Arc<Tables>,
    /// The context of the stage, alone or on rank 0.
    pub(super) leader: Option<&'a StageContext<'a>>,
    /// Directory of snapshots; `None` if solving again is faster than saving.
    snapshots: Option<PathBuf>,
    /// Rank-local scratch directory, and its snapshots.
    scratch: Option<(PathBuf, Snapshots<'a>)>,
}

impl<'a, S: OneStageSolver> SolveRank<'a, S> {
    pub(super) fn new(
        member: &'a TeamMember<'a, SolveTask<S>>,
        leader: Option<&'a StageContext<'a>>,
        communicator: &mut dyn Communicator,
    ) -> RankResult<SolveRank<'a, S>> {
        let (settings, disk, task) = (member.settings(), member.disk, member.task);
        let claim = |scratch: &LocalScratch| scratch.claim(settings, disk, task.stones, communicator);
        let scratch = task.scratch.as_ref().map(claim).transpose()?;
        let directory = scratch.as_ref().map(|(directory, _)| directory.clone());
        let snapshots = task.snapshots.as_ref().map(|shared| directory.unwrap_or_else(|| shared.clone()));
        Ok(SolveRank { member, tables: member.build.tables(), leader, snapshots, scratch })
    }

    /// Solves and writes the database with the other ranks.
    pub(super) fn solve(&self, communicator: &mut dyn Communicator) -> RankResult<StageReport> {
        let report = self.member.task.solver.solve(self, communicator)?;
        self.remove_local_snapshots();
        Ok(report)
    }

    /// Returns build and context if this machine is alone: then the stage cache has captures and arrays.
    pub(crate) fn alone(&self) -> Option<(&'a BuildContext, &'a StageContext<'a>)> {
        let build = self.member.build;
        self.leader.filter(|_| build.job().is_none()).map(|context| (build, context))
    }

    /// Removes the files in the rank-local directory, once the database is published.
    fn remove_local_snapshots(&self) {
        if let Some((_, snapshots)) = &self.scratch
            && let Err(error) = snapshots.remove()
        {
            tracing::warn!("cannot remove old snapshots: {error}");
        }
    }

    /// Opens the file of captures.
    pub(crate) fn captures(&self) -> Result<Scores> {
        let TeamMember { disk, ref index, task, .. } = *self.member;
        files::open_windowed(disk, &task.captures, self.member.settings(), FileKind::Capture, index)
    }

    /// The directory of snapshots, which may not exist; `None` if the stage saves none.
    pub(crate) fn snapshot_directory(&self) -> Option<&Path> {
        self.snapshots.as_deref()
    }

    /// Whether each rank saves snapshots in a directory of its own.
    pub(crate) fn has_local_snapshots(&self) -> bool {
        self.scratch.is_some()
    }

    /// Saves the values of this rank.
    pub(super) fn save(&self, save: impl FnOnce(&Path) -> store::Result<()>) -> Result<()> {
        let Some(directory) = &self.snapshots else { return Ok(()) };
        if let Some((_, context)) = self.alone() {
            context.snapshots().prepare()?;
        }
        save(directory).map_err(files::unwritable)
    }

    /// Begins to write the database with the other ranks.
    fn writer(&self, communicator: &mut dyn Communicator) -> RankResult<DatabaseWriter<'a>> {
        let TeamMember { disk, ref index, task, .. } = *self.member;
        let scratch = self.scratch.as_ref().map(|(directory, _)| &**directory);
        let SolveTask { ref database, opening_capture, .. } = *task;
        let settings = self.member.settings();
        let progress = self.leader.map(|context| context.progress());
        let output = DatabaseOutput { settings, disk, index, path: database, scratch, opening_capture, progress };
        DatabaseWriter::begin(&output, communicator)
    }

    /// Writes the database of a machine alone, whose rows are in the order of the file, and returns the digest.
    pub(crate) fn write_rows(&self, rows: &ScoreRows, communicator: &mut dyn Communicator) -> RankResult<Digest> {
        let mut writer = self.writer(communicator)?;
        let appended = rows.runs().try_for_each(|run| writer.append(run));
        Ok(writer.finish_with(appended, communicator)?.expect("rank 0 has the digest"))
    }

    /// Writes the database with the other ranks.
    pub(crate) fn write(&self, part: &dyn ScoreShare, communicator: &mut dyn Communicator) -> RankResult<()> {
        let mut writer = self.writer(communicator)?;
        let (ranges, mut appended) = (writer.positions_of_all(), Ok(()));
        let mut append = |scores: &[i8]| {
            appended = writer.append(scores);
            if appended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        if !collect(part, &ranges, communicator, &mut append)? && appended.is_ok() {
            // The rank that stopped the collection reports the error.
            appended = Err(StageError::Stopped);
        }
        writer.finish_with(appended, communicator).map(drop)
    }
}
