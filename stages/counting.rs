//! The stage `counting:n`: the scores of all n-stone positions, propagated from children to parents, see [`solving`].
//!
//! The output does not depend on the number of threads or ranks, nor on those that wrote the snapshot it resumes from.
//! Snapshots of all ranks must be taken at the same time, see [`snapshots`].

mod snapshots;

use crate::distributed::limits::PROCESSORS_MAX;
use crate::distributed::{RankResult, agree};
use crate::files::{self, CountsFormat};
use crate::kind::{KindOptions, Phase, StageKind};
use crate::solver::{self, DATABASES, read_captures};
use crate::solver_progress::{PassLimit, SolverProgress};
use crate::solving::{self, OneStageSolver, SnapshotPlace, SolveObserver, SolveRank};
use crate::stage_cache::CacheUse;
use crate::team::TeamMember;
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use planner::{OneStage, StageClass};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use snapshots::{ResumePlan, SnapshotSeries};
use solvers::Bytes;
use solvers::counting::ranks::processors_a_rank;
use solvers::counting::{CountingReport, Distribution, RankValues, UPDATE_BYTES, counting};
use solvers::ranks::JobError;
use std::ops::Range;
use std::path::Path;

/// The kind `counting:n`.
pub(crate) static COUNTING: StageKind = StageKind {
    word: Counting::KIND,
    phase: Phase::Solving,
    files: Some(&DATABASES),
    declare: |kind, build| solver::declare(kind, build),
    run: |build, parameters, context| solving::run::<Counting>(build, parameters[0], context),
    options: KindOptions {
        classes: &[StageClass::OneStage(OneStage::Counting)],
        cache_use: CacheUse { captures: true, databases: true, arrays: false },
        follow: solving::follow::<Counting>,
        ..KindOptions::OF_DATABASES
    },
};

/// Solver by counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counting {
    /// Logical processors of each rank.
    processors: usize,
    /// How to resume; `None` if the stage saves no snapshots.
    resume_plan: Option<ResumePlan>,
}

impl OneStageSolver for Counting {
    const KIND: &str = "counting";

    fn new(context: &StageContext, place: Option<SnapshotPlace>) -> Result<Counting> {
        let resume_plan = match place {
            Some(SnapshotPlace::Shared(directory)) => Some(ResumePlan::lead(context.disk(), directory)?),
            Some(SnapshotPlace::Local) => Some(ResumePlan::on_local_disks(context.disk())),
            None => None,
        };
        Ok(Counting { processors: context.threads(), resume_plan })
    }

    fn is_valid(&self) -> bool {
        (1..=PROCESSORS_MAX).contains(&self.processors) && self.resume_plan.as_ref().is_none_or(ResumePlan::is_valid)
    }

    fn solve(&self, rank: &SolveRank<Counting>, communicator: &mut dyn Communicator) -> RankResult<StageReport> {
        let index = &rank.member.index;
        let series = self.series(rank, communicator)?;
        let prepared = self.values(rank, series.as_ref(), communicator);
        let (mut values, captures, mut resumed) = agree(communicator, prepared)?;
        // All ranks resume, or none does.
        if communicator.sum(&[u64::from(!resumed)])? != [0] && resumed {
            resumed = false;
            values.values_mut().fill(0);
        }
        let progress = |context| SolverProgress::new(context, index.slab_positions());
        let save = |directory: &Path, values: &RankValues| match &series {
            Some(series) => series.save(rank.member.disk, directory, &format_of(rank), values),
            None => Ok(()),
        };
        let observer = SolveObserver::new(rank, progress, PassLimit::new(false), save);
        let mut solved = counting(&rank.tables, index, &captures, &mut values, communicator, &observer);
        if resumed && matches!(solved, Err(JobError::Inconsistent)) {
            tracing::warn!("ignoring the snapshot of counting:{}, which does not hold its counts", index.stones());
            resumed = false;
            values.values_mut().fill(0);
            solved = counting(&rank.tables, index, &captures, &mut values, communicator, &observer);
        }
        let CountingReport { processors, supersteps, total, sent, messages, .. } =
            observer.end(solved, communicator)?;
        match rank.alone() {
            Some((build, _)) => build.stage_cache().give_back(captures),
            None => drop(captures),
        }
        rank.write(&values, communicator)?;
        // Messages with updates: on a machine alone between its processors, else between ranks.
        let (sent, messages) = if communicator.size() == 1 { (total.sent, total.messages) } else { (sent, messages) };
        Ok(StageReport::new(index.positions())
            .with("processors", processors)
            .with("supersteps", supersteps)
            .with("updates", total.updates())
            .with("messages", messages)
            .with("combining", if messages > 0 { sent as f64 / messages as f64 } else { 0.0 })
            .with("volume", sent * UPDATE_BYTES)
            .with("resumed", u64::from(resumed)))
    }
}

impl Counting {
    /// Returns the snapshots that this rank writes, if any. Ranks with local directories first agree on the
    /// set that they resume from, and remove the others.
    fn series(
        &self,
        rank: &SolveRank<Counting>,
        communicator: &mut dyn Communicator,
    ) -> RankResult<Option<SnapshotSeries>> {
        let plan = match (self.resume_plan, rank.snapshot_directory()) {
            (Some(plan), Some(directory)) if rank.has_local_snapshots() => {
                let processors = processors_a_rank(&rank.member.index, communicator.size(), self.processors);
                Some(plan.settle(rank.member.disk, directory, processors, communicator)?)
            }
            (plan, _) => plan,
        };
        Ok(plan.map(SnapshotSeries::new))
    }

    /// Returns the counts of a rank, its captures, and whether the counts come from a snapshot.
    fn values(
        &self,
        rank: &SolveRank<Counting>,
        series: Option<&SnapshotSeries>,
        communicator: &dyn Communicator,
    ) -> Result<(RankValues, Bytes, bool)> {
        let TeamMember { disk, ref index, .. } = *rank.member;
        let distribution = Distribution::new(self.processors);
        let values = RankValues::zeroed(index, communicator.size(), communicator.rank(), distribution);
        let mut values = values.map_err(StageError::failed)?;
        let resumed = match (series, rank.snapshot_directory()) {
            (Some(series), Some(directory)) => series.restore(disk, directory, &format_of(rank), index, &mut values)?,
            _ => false,
        };
        if let Some((build, context)) = rank.alone() {
            let (captures, _) = read_captures(build, index, context)?;
            return Ok((values, captures, resumed));
        }
        let mut captures = Bytes::zeroed(values.values().len()).map_err(StageError::failed)?;
        let file = rank.captures()?;
        let mut rest = &mut captures[..];
        let run = |positions: Range<u64>| {
            let length = (positions.end - positions.start) as usize;
            (positions, rest.split_off_mut(..length).expect("there is room for the captures of all runs"))
        };
        let runs: Vec<_> = values.runs().map(run).collect();
        let read = runs.into_par_iter().try_for_each(|(positions, to)| file.read_range(positions, to));
        read.map_err(|error| files::unreadable(&files::capture(index.stones()), error))?;
        Ok((values, captures, resumed))
    }
}

/// Returns the format of snapshots.
fn format_of(rank: &SolveRank<Counting>) -> CountsFormat {
    CountsFormat::new(rank.member.settings().rules.name, &rank.member.index)
}
