//! The team of ranks that runs a stage. A machine alone is a team of one, which sends nothing.
//!
//! A stage that is shared is one function of a [`TeamMember`] and a communicator: rank 0 calls it through
//! [`lead`], the other ranks through [`follow`].

use crate::build_context::BuildContext;
use crate::distributed::{DatabaseTask, JobLeader, LoadMeter, RankLoads, RankResult, StageOrder};
use disk::Disk;
use game::Index;
use messaging::{Alone, Communicator};
use pipeline::{StageContext, StageError, StageProgress, StageReport, StageResult as Result, StopSignal};
use planner::{BuildPlan, DatabasePlan, Settings};
use std::sync::atomic::AtomicBool;

/// Environment of a rank other than 0.
pub(crate) struct FollowerRank<'a> {
    pub(crate) build: BuildContext,
    pub(crate) disk: &'a dyn Disk,
    /// Set by a signal that requests a stop.
    pub(crate) stop: StopSignal<'a>,
}

impl<'a> FollowerRank<'a> {
    pub(crate) fn new(plan: BuildPlan, disk: &'a dyn Disk, stop: &'a AtomicBool) -> FollowerRank<'a> {
        FollowerRank { build: BuildContext::new(plan, None), disk, stop: StopSignal::new(stop) }
    }
}

/// One rank of the team that runs a stage of a database.
pub(crate) struct TeamMember<'a, T> {
    pub(crate) build: &'a BuildContext,
    pub(crate) disk: &'a dyn Disk,
    pub(crate) index: Index,
    pub(crate) task: &'a T,
    stop: StopSignal<'a>,
    /// The progress of the stage, on rank 0.
    progress: Option<&'a StageProgress>,
}

/// Runs a stage on rank 0 of `job`, or alone. Returns the loads of all ranks of a job.
pub(crate) fn lead<T: DatabaseTask, R>(
    kind: &str,
    build: &BuildContext,
    job: Option<&JobLeader>,
    task: &T,
    context: &StageContext,
    work: impl FnOnce(&TeamMember<T>, &mut dyn Communicator) -> RankResult<R>,
) -> Result<(R, Option<RankLoads>)> {
    let index = Index::new(task.stones(), build.settings().set);
    let (disk, stop, progress) = (context.disk(), context.stop_signal(), Some(context.progress()));
    let member = TeamMember { build, disk, index, task, stop, progress };
    let Some(job) = job else { return Ok((work(&member, &mut Alone)?, None)) };
    let mut communicator = job.order(kind, task)?;
    Ok(member.measured(&mut **communicator, work)?)
}

/// Runs a stage on a rank other than 0.
pub(crate) fn follow<T: DatabaseTask, R>(
    follower: &FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
    work: impl FnOnce(&TeamMember<T>, &mut dyn Communicator) -> RankResult<R>,
) -> RankResult<()> {
    let FollowerRank { ref build, disk, stop } = *follower;
    let task: T = order.task()?;
    let index = Index::new(task.stones(), build.settings().set);
    let member = TeamMember { build, disk, index, task: &task, stop, progress: None };
    member.measured(communicator, work).map(drop)
}

/// Adds the loads of the ranks of a job to a report.
pub(crate) fn report(report: StageReport, loads: Option<RankLoads>) -> StageReport {
    match loads {
        Some(loads) => loads.report(report),
        None => report,
    }
}

impl<T: DatabaseTask> TeamMember<'_, T> {
    fn measured<R>(
        &self,
        communicator: &mut dyn Communicator,
        work: impl FnOnce(&TeamMember<T>, &mut dyn Communicator) -> RankResult<R>,
    ) -> RankResult<(R, Option<RankLoads>)> {
        let meter = LoadMeter::start(communicator, self.disk);
        let done = work(self, communicator)?;
        Ok((done, meter.gather(communicator)?))
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.build.settings()
    }

    /// Returns the plan of the database.
    pub(crate) fn plan(&self) -> &DatabasePlan {
        self.build.plan(self.task.stones())
    }

    /// Returns an error if the stage was asked to stop.
    pub(crate) fn stop(&self) -> Result<()> {
        if self.stop.is_raised() { Err(StageError::Stopped) } else { Ok(()) }
    }

    /// Begins the progress over some positions.
    pub(crate) fn begin_progress(&self, positions: u64) {
        if let Some(progress) = self.progress {
            progress.begin(positions, "positions");
        }
    }

    /// Adds positions to the progress.
    pub(crate) fn advance(&self, positions: u64) {
        if let Some(progress) = self.progress {
            progress.advance(positions);
        }
    }
}
