//! The stage `verify:n` by all ranks: each compares a part of the checksums, counts and hashes the scores there, and
//! derives a part of what the extent has. Rank 0 puts the hashes together, and says what is wrong as it does alone.
//!
//! Parts are taken in rounds, and after each the ranks vote on going on.

use super::load::{Loads, Meter};
use super::order::Reading;
use super::{Failure, Follower, Job, Order, agree};
use crate::verify::{Opened, counted, extent, report, with_smaller, wrong};
use crate::{Shared, files};
use check::{CheckError, DatabasePortion, Extent, Histogram, PortionFindings};
use disk::Disk;
use messaging::{CommunicationError, Communicator};
use pipeline::{StageContext, StageError, StageReport};
use planner::{DatabasePlan, Settings};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Positions that a thread derives in a round, about: some seconds' work.
const ROUND_POSITIONS: u64 = 1 << 22;

/// Runs the stage, on rank 0.
pub(crate) fn run(shared: &Shared, job: &Job, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let paths = with_smaller(settings, stones).map(|stones| context.input(&files::database(stones)));
    let reading = Reading { stones, threads: context.threads(), files: paths.collect() };
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(Order::Verify(reading.clone()).encode())).map_err(StageError::failed)?;
    context.progress().begin(extent(settings).count(settings.set.positions(stones)), "positions");
    // All ranks derive about as much.
    let tell = |more| context.progress().advance(more * job.ranks() as u64);
    let (plan, disk, stop) = (shared.plan(stones), context.disk(), context.stop_flag());
    let member = Member { settings, plan, disk, reading: &reading, stop, tell: &tell };
    let all = member.take_part(&mut **communicator).map_err(Failure::into_error)?;
    let (opened, All { hashes, histogram, findings, loads }) = all.expect("rank 0 hears of all");
    let wrong = |error| wrong(error, stones, &reading.files);
    opened.scores().verify_hashes(&hashes).map_err(|error| wrong(error.into()))?;
    let verified = findings.verified(stones, histogram).map_err(wrong)?;
    Ok(loads.report(report(shared, opened.scores().digest(), &verified)?))
}

/// Takes part, on another rank than 0.
pub(super) fn follow(
    follower: &Follower,
    reading: &Reading,
    communicator: &mut dyn Communicator,
) -> Result<(), Failure> {
    let Follower { plan, settings, disk, stop } = *follower;
    let plan = plan.database(reading.stones);
    Member { settings, plan, disk, reading, stop, tell: &|_| () }.take_part(communicator).map(drop)
}

/// What a rank needs to take part.
struct Member<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
    disk: &'a dyn Disk,
    reading: &'a Reading,
    stop: &'a AtomicBool,
    /// Told how many positions more were derived.
    tell: &'a (dyn Fn(u64) + Sync),
}

/// What all ranks found.
struct All {
    /// By rank.
    hashes: Vec<Vec<u8>>,
    histogram: Histogram,
    findings: PortionFindings,
    loads: Loads,
}

impl Member<'_> {
    /// Verifies a part; rank 0 gets what all found.
    fn take_part(&self, communicator: &mut dyn Communicator) -> Result<Option<(Opened, All)>, Failure> {
        let Member { settings, plan, disk, reading, .. } = *self;
        let cache_bytes = plan.memory().cache_bytes;
        let opened = Opened::new(settings, plan, disk, &reading.files, BTreeMap::new(), cache_bytes);
        let opened = agree(communicator, opened)?;
        let meter = Meter::start(communicator);
        let read =
            self.read(&opened, DatabasePortion { number: communicator.rank() as u64, of: communicator.size() as u64 });
        let (hashes, histogram) = agree(communicator, read)?;
        let findings = self.derive(&opened, communicator)?;
        let hashes = communicator.gather(0, hashes).map_err(Failure::lost)?;
        let counts = communicator.sum(&histogram.counts()).map_err(Failure::lost)?;
        let histogram = Histogram::of_counts(counts.try_into().expect("as many sums as counts"));
        let all = communicator.gather(0, findings.encode()).map_err(Failure::lost)?;
        let loads = meter.gather(communicator).map_err(Failure::lost)?;
        let (Some(hashes), Some(all), Some(loads)) = (hashes, all, loads) else { return Ok(None) };
        let mut findings = PortionFindings::default();
        for (rank, bytes) in all.iter().enumerate() {
            let (expected, found) = ("what was found".to_owned(), format!("{} bytes", bytes.len()));
            let unexpected = CommunicationError::Unexpected { rank, expected, found };
            findings.merge(PortionFindings::decode(bytes).ok_or(unexpected).map_err(Failure::lost)?);
        }
        Ok(Some((opened, All { hashes, histogram, findings, loads })))
    }

    /// Compares the checksums of a part, and gives its hashes and counts.
    fn read(&self, opened: &Opened, part: DatabasePortion) -> Result<(Vec<u8>, Histogram), StageError> {
        let mut histogram = Histogram::EMPTY;
        let see = |scores: &[i8]| histogram = histogram.plus(&counted(scores));
        let hashes = opened.scores().hash_part(part.number, part.of, see);
        let hashes = hashes.map_err(|error| wrong(error.into(), self.reading.stones, &self.reading.files))?;
        Ok((hashes, histogram))
    }

    /// Derives a part in each round.
    fn derive(&self, opened: &Opened, communicator: &mut dyn Communicator) -> Result<PortionFindings, Failure> {
        let (rank, ranks, stones) = (communicator.rank() as u64, communicator.size() as u64, self.reading.stones);
        let extent = extent(self.settings);
        let count = extent.count(self.settings.set.positions(stones));
        // The same for all.
        let rounds = count.div_ceil(ranks * self.reading.threads as u64 * ROUND_POSITIONS);
        let mut findings = PortionFindings::default();
        for round in 0..rounds {
            let portion = DatabasePortion { number: round * ranks + rank, of: rounds * ranks };
            let found = self.derive_portion(opened, extent, portion);
            let found = found.map_err(|error| wrong(error, stones, &self.reading.files));
            findings.merge(agree(communicator, found)?);
        }
        Ok(findings)
    }

    fn derive_portion(
        &self,
        opened: &Opened,
        extent: Extent,
        portion: DatabasePortion,
    ) -> Result<PortionFindings, CheckError> {
        let (databases, stones) = (&opened.databases, self.reading.stones);
        let watch = |more| {
            (self.tell)(more);
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
