//! The stage `stats:n` by all ranks: each counts a part, and rank 0 adds them up.

use super::{CountedDatabase, KIND, StatsInputs, count, publish};
use crate::build_context::BuildContext;
use crate::distributed::{FollowerRank, JobLeader, LoadMeter, RankLoads, RankResult, ReadTask, StageOrder, agree};
use check::Histogram;
use disk::Disk;
use game::Index;
use messaging::Communicator;
use pipeline::StageResult as Result;
use pipeline::{ArtifactName, StageContext, StageError, StageReport};
use planner::{DatabasePlan, Settings};
use solvers::{DatabasePart, Tables};

/// Runs the stage, on rank 0.
pub(crate) fn run(build: &BuildContext, job: &JobLeader, stones: u32, context: &StageContext) -> Result<StageReport> {
    let index = Index::new(stones, build.settings().set);
    let (settings, plan) = (build.settings(), build.plan(stones));
    let inputs = StatsInputs::open(settings, plan, &index, context.disk(), |name| context.input(name))?;
    let opening = inputs.opening(settings, &index, context)?;
    if let Some(CountedDatabase { choice, histogram }) = inputs.cached(build) {
        let choice = opening.add_choice(choice);
        return publish(&index, CountedDatabase { choice, histogram }, None, context);
    }
    drop(inputs);
    let files = StatsInputs::names(plan).iter().map(|name| context.input(name)).collect();
    let task = ReadTask { stones, threads: context.threads(), files };
    let mut communicator = job.order(KIND, &task)?;
    let tables = &build.tables();
    let member = StatsRank { settings, plan, disk: context.disk(), tables, index: &index };
    let (counted, loads) = member.take_part(&task, &mut **communicator)?.expect("rank 0 gets the sums");
    Ok(loads.report(publish(&index, opening.add(counted), None, context)?))
}

/// Runs the stage on a rank other than 0.
pub(super) fn follow(
    follower: &mut FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    let (task, tables): (ReadTask, _) = (order.task()?, follower.tables());
    let FollowerRank { plan, disk, .. } = *follower;
    let settings = plan.settings();
    let index = &Index::new(task.stones, settings.set);
    let plan = plan.database(task.stones);
    StatsRank { settings, plan, disk, tables: &tables, index }.take_part(&task, communicator).map(drop)
}

/// Inputs of one rank.
struct StatsRank<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    index: &'a Index,
}

impl StatsRank<'_> {
    /// Counts a part; rank 0 gets the sums.
    fn take_part(
        &self,
        task: &ReadTask,
        communicator: &mut dyn Communicator,
    ) -> RankResult<Option<(CountedDatabase, RankLoads)>> {
        let meter = LoadMeter::start(communicator);
        let part = DatabasePart { number: communicator.rank(), of: communicator.size() };
        let CountedDatabase { choice, histogram } = agree(communicator, self.count(task, part))?;
        let numbers: Vec<u64> = [choice.offered, choice.declined].into_iter().chain(histogram.by_score()).collect();
        let sums = communicator.sum(&numbers)?;
        let loads = meter.gather(communicator)?;
        let [offered, declined, counts @ ..] = &sums[..] else { unreachable!("as many sums as numbers") };
        let (choice, histogram) = (
            solvers::ChoiceCounts { offered: *offered, declined: *declined },
            Histogram::of_counts(counts.try_into().expect("as many sums as counts")),
        );
        Ok(loads.map(|loads| (CountedDatabase { choice, histogram }, loads)))
    }

    fn count(&self, task: &ReadTask, part: DatabasePart) -> Result<CountedDatabase> {
        let names = StatsInputs::names(self.plan);
        if task.files.len() != names.len() {
            return Err(StageError::failed(format!("{} files to count, found {}", names.len(), task.files.len())));
        }
        let path = |name: &ArtifactName| {
            let at = names.iter().position(|other| other == name).expect("one of the names");
            task.files[at].clone()
        };
        let inputs = StatsInputs::open(self.settings, self.plan, self.index, self.disk, path)?;
        count(self.tables, self.index, self.plan.memory().stats_stripe_bytes, part, inputs)
    }
}
