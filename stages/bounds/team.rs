//! What a rank of the team that runs a stage of bounds has. A machine alone is a team of one, which sends nothing.
//!
//! Each rank makes the words of its part of every output. All ranks see the files of the run directory.

use super::planes::{PlaneFile, PlaneReader, PlaneWriter, SeedsReader, UnitGroup};
use crate::build_context::BuildContext;
use crate::distributed::{FollowerRank, JobLeader, LoadMeter, RankLoads, RankResult, StageOrder, StageTask, is_shared};
use crate::files;
use disk::Disk;
use game::Index;
use messaging::{Alone, Communicator};
use pipeline::{ArtifactName, StageContext, StageError, StageProgress, StageReport, StageResult as Result};
use planner::{DatabasePlan, Settings};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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

impl StageTask for PlaneTask {
    fn is_valid(&self) -> bool {
        (1..=game::STONES_MAX).contains(&self.stones) && self.bound <= self.stones
    }
}

/// One rank of a team.
pub(super) struct TeamMember<'a> {
    pub(super) settings: &'a Settings,
    pub(super) plan: &'a DatabasePlan,
    pub(super) disk: &'a dyn Disk,
    pub(super) index: Index,
    pub(super) task: &'a PlaneTask,
    stop: &'a AtomicBool,
    /// The progress of the stage, on rank 0.
    progress: Option<&'a StageProgress>,
}

/// Runs a stage on rank 0 of `job`, or alone.
pub(super) fn lead<T>(
    kind: &str,
    build: &BuildContext,
    job: Option<&JobLeader>,
    task: &PlaneTask,
    context: &StageContext,
    work: impl FnOnce(&TeamMember, &mut dyn Communicator) -> RankResult<T>,
) -> Result<(T, Option<RankLoads>)> {
    let settings = build.settings();
    let member = TeamMember {
        settings,
        plan: build.plan(task.stones),
        disk: context.disk(),
        index: Index::new(task.stones, settings.set),
        task,
        stop: context.stop_flag(),
        progress: Some(context.progress()),
    };
    let Some(job) = job else { return Ok((work(&member, &mut Alone)?, None)) };
    let mut communicator = job.order(kind, task)?;
    Ok(member.measured(&mut **communicator, work)?)
}

/// Runs a stage on a rank other than 0.
pub(super) fn follow<T>(
    follower: &FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
    work: impl FnOnce(&TeamMember, &mut dyn Communicator) -> RankResult<T>,
) -> RankResult<()> {
    let FollowerRank { plan, disk, stop, .. } = *follower;
    let (settings, task): (_, PlaneTask) = (plan.settings(), order.task()?);
    let (plan, index) = (plan.database(task.stones), Index::new(task.stones, settings.set));
    let member = TeamMember { settings, plan, disk, index, task: &task, stop, progress: None };
    member.measured(communicator, work).map(drop)
}

/// Adds the loads of the ranks of a job to a report.
pub(super) fn report(report: StageReport, loads: Option<RankLoads>) -> StageReport {
    match loads {
        Some(loads) => loads.report(report),
        None => report,
    }
}

impl TeamMember<'_> {
    fn measured<T>(
        &self,
        communicator: &mut dyn Communicator,
        work: impl FnOnce(&TeamMember, &mut dyn Communicator) -> RankResult<T>,
    ) -> RankResult<(T, Option<RankLoads>)> {
        let meter = LoadMeter::start(communicator);
        let done = work(self, communicator)?;
        Ok((done, meter.gather(communicator)?))
    }

    /// Returns the path of an input or output.
    pub(super) fn path(&self, name: &ArtifactName) -> Result<&Path> {
        let file = self.task.files.iter().find(|(of, _)| of == name);
        file.map(|(_, path)| &**path).ok_or_else(|| StageError::failed(format!("the order has no file {name}")))
    }

    /// Opens an input.
    pub(super) fn open(&self, plane: PlaneFile) -> Result<PlaneReader> {
        let name = plane.name(self.task.stones);
        PlaneReader::open(self.disk, self.path(&name)?, self.settings, &self.index, plane)
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
        let path = crate::distributed::agree(communicator, path)?;
        let is_shared = is_shared(self.settings, self.task.stones, communicator.size());
        PlaneWriter::begin(self.disk, &path, self.settings, &self.index, plane, is_shared, communicator)
    }

    /// Returns an error if the stage was asked to stop.
    pub(super) fn stop(&self) -> Result<()> {
        if self.stop.load(Relaxed) { Err(StageError::Stopped) } else { Ok(()) }
    }

    /// The flag that asks the stage to stop.
    pub(super) fn stop_flag(&self) -> &AtomicBool {
        self.stop
    }

    /// Begins the progress over some positions.
    pub(super) fn begin_progress(&self, positions: u64) {
        if let Some(progress) = self.progress {
            progress.begin(positions, "positions");
        }
    }

    /// Adds positions to the progress.
    pub(super) fn advance(&self, positions: u64) {
        if let Some(progress) = self.progress {
            progress.advance(positions);
        }
    }
}
