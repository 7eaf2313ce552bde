//! The stage `verify:n` by all ranks: each checks a part of the checksums, counts and hashes the scores there, and
//! derives a part of the positions. Rank 0 combines the results.
//!
//! Positions are derived in rounds, after each of which the ranks agree whether to continue.

use super::{KIND, VerifyInputs, counted, extent, report, with_smaller, wrong};
use crate::build_context::BuildContext;
use crate::distributed::message;
use crate::distributed::{FollowerRank, JobLeader, LoadMeter, RankLoads, RankResult, ReadTask, StageOrder, agree};
use crate::files;
use check::{CheckError, DatabasePortion, Extent, Histogram, PortionFindings};
use disk::Disk;
use messaging::Communicator;
use pipeline::StageResult as Result;
use pipeline::{StageContext, StageReport};
use planner::{DatabasePlan, Settings};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Approximate number of positions that a thread derives in a round: some seconds of work.
const ROUND_POSITIONS: u64 = 1 << 22;

/// Runs the stage, on rank 0.
pub(crate) fn run(build: &BuildContext, job: &JobLeader, stones: u32, context: &StageContext) -> Result<StageReport> {
    let settings = build.settings();
    let paths = with_smaller(settings, stones).map(|stones| context.input(&files::database(stones)));
    let task = ReadTask { stones, threads: context.threads(), files: paths.collect() };
    let mut communicator = job.order(KIND, &task)?;
    context.progress().begin(extent(settings).count(settings.set.positions(stones)), "positions");
    // All ranks derive about the same number of positions.
    let advance = |more| context.progress().advance(more * job.ranks() as u64);
    let (plan, disk, stop) = (build.plan(stones), context.disk(), context.stop_flag());
    let member = VerifyRank { settings, plan, disk, task: &task, stop, advance: &advance };
    let all = member.take_part(&mut **communicator)?;
    let (opened, AllFindings { hashes, histogram, findings, loads }) = all.expect("rank 0 gathers the results");
    let wrong = |error| wrong(error, stones, &task.files);
    opened.scores().verify_hashes(&hashes).map_err(|error| wrong(error.into()))?;
    let verified = findings.verified(stones, histogram).map_err(wrong)?;
    Ok(loads.report(report(build, opened.scores().digest(), &verified)?))
}

/// Runs the stage on a rank other than 0.
pub(super) fn follow(
    follower: &mut FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    let task: ReadTask = order.task()?;
    let FollowerRank { plan, disk, stop, .. } = *follower;
    let settings = plan.settings();
    let plan = plan.database(task.stones);
    VerifyRank { settings, plan, disk, task: &task, stop, advance: &|_| () }.take_part(communicator).map(drop)
}

/// Inputs of one rank.
struct VerifyRank<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
    disk: &'a dyn Disk,
    task: &'a ReadTask,
    stop: &'a AtomicBool,
    /// Receives the number of positions derived since the last call.
    advance: &'a (dyn Fn(u64) + Sync),
}

/// Results of all ranks.
struct AllFindings {
    /// Hashes by rank.
    hashes: Vec<Vec<u8>>,
    histogram: Histogram,
    findings: PortionFindings,
    loads: RankLoads,
}

impl VerifyRank<'_> {
    /// Verifies a part; rank 0 gets the results of all ranks.
    fn take_part(&self, communicator: &mut dyn Communicator) -> RankResult<Option<(VerifyInputs, AllFindings)>> {
        let VerifyRank { settings, plan, disk, task, .. } = *self;
        let cache_bytes = plan.memory().cache_bytes;
        let opened = VerifyInputs::new(settings, plan, disk, &task.files, BTreeMap::new(), cache_bytes);
        let opened = agree(communicator, opened)?;
        let meter = LoadMeter::start(communicator);
        let read =
            self.read(&opened, DatabasePortion { number: communicator.rank() as u64, of: communicator.size() as u64 });
        let (hashes, histogram) = agree(communicator, read)?;
        let findings = self.derive(&opened, communicator)?;
        let hashes = communicator.gather(0, hashes)?;
        let counts = communicator.sum(&histogram.by_score())?;
        let histogram = Histogram::of_counts(counts.try_into().expect("as many sums as counts"));
        let all = communicator.gather(0, message::encode(&findings))?;
        let loads = meter.gather(communicator)?;
        let (Some(hashes), Some(all), Some(loads)) = (hashes, all, loads) else { return Ok(None) };
        let mut findings = PortionFindings::default();
        for (rank, bytes) in all.iter().enumerate() {
            findings.merge(message::decode(bytes, rank, "findings", |_| true)?);
        }
        Ok(Some((opened, AllFindings { hashes, histogram, findings, loads })))
    }

    /// Checks the checksums of a part, and returns its hashes and counts.
    fn read(&self, opened: &VerifyInputs, part: DatabasePortion) -> Result<(Vec<u8>, Histogram)> {
        let mut histogram = Histogram::EMPTY;
        let see = |scores: &[i8]| histogram = histogram.plus(&counted(scores));
        let hashes = opened.scores().hash_part(part.number, part.of, see);
        let hashes = hashes.map_err(|error| wrong(error.into(), self.task.stones, &self.task.files))?;
        Ok((hashes, histogram))
    }

    /// Derives a portion in each round.
    fn derive(&self, opened: &VerifyInputs, communicator: &mut dyn Communicator) -> RankResult<PortionFindings> {
        let (rank, ranks, stones) = (communicator.rank() as u64, communicator.size() as u64, self.task.stones);
        let extent = extent(self.settings);
        let count = extent.count(self.settings.set.positions(stones));
        // The same on all ranks.
        let rounds = count.div_ceil(ranks * self.task.threads as u64 * ROUND_POSITIONS);
        let mut findings = PortionFindings::default();
        for round in 0..rounds {
            let portion = DatabasePortion { number: round * ranks + rank, of: rounds * ranks };
            let found = self.derive_portion(opened, extent, portion);
            let found = found.map_err(|error| wrong(error, stones, &self.task.files));
            findings.merge(agree(communicator, found)?);
        }
        Ok(findings)
    }

    fn derive_portion(
        &self,
        opened: &VerifyInputs,
        extent: Extent,
        portion: DatabasePortion,
    ) -> Result<PortionFindings, CheckError> {
        let (databases, stones) = (&opened.databases, self.task.stones);
        let watch = |more| {
            (self.advance)(more);
            if self.stop.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let editions = databases.editions();
        let found = match (opened.round_bytes, extent) {
            (Some(bytes), Extent::Tiles(sample)) => {
                check::verify_portion_in_rounds(databases, stones, sample, bytes, portion, &watch)
            }
            _ => check::verify_portion(databases, stones, extent, portion, &watch),
        };
        databases.unchanged(&editions).and(found)
    }
}
