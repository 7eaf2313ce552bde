//! The stage `stats:n` by all ranks: each counts a part, and rank 0 adds up.

use super::load::{Loads, Meter};
use super::order::Reading;
use super::{Failure, Follower, Job, Order, agree};
use crate::stats::{Counted, count};
use crate::{Shared, files};
use check::Histogram;
use disk::Disk;
use engines::{DatabasePart, Tables};
use game::Index;
use messaging::Communicator;
use pipeline::{StageContext, StageError};
use planner::{DatabasePlan, Settings};
use store::FileKind;

/// Counts a database, on rank 0.
pub(crate) fn run(
    shared: &Shared,
    job: &Job,
    index: &Index,
    context: &StageContext,
) -> Result<(Counted, Loads), StageError> {
    let stones = index.stones();
    let both = [files::capture(stones), files::database(stones)].map(|name| context.input(&name));
    let reading = Reading { stones, threads: context.threads(), files: both.to_vec() };
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(Order::Count(reading.clone()).encode())).map_err(StageError::failed)?;
    let (settings, plan, tables) = (shared.settings(), shared.plan(stones), &shared.tables());
    let member = Member { settings, plan, disk: context.disk(), tables, index };
    let counted = member.take_part(&reading, &mut **communicator).map_err(Failure::into_error)?;
    Ok(counted.expect("rank 0 hears of all"))
}

/// Takes part, on another rank than 0.
pub(super) fn follow(
    follower: &Follower,
    reading: &Reading,
    tables: &Tables,
    communicator: &mut dyn Communicator,
) -> Result<(), Failure> {
    let Follower { plan, settings, disk, .. } = *follower;
    let index = &Index::new(reading.stones, settings.set);
    let plan = plan.database(reading.stones);
    Member { settings, plan, disk, tables, index }.take_part(reading, communicator).map(drop)
}

/// What a rank needs to take part.
struct Member<'a> {
    settings: &'a Settings,
    plan: &'a DatabasePlan,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    index: &'a Index,
}

impl Member<'_> {
    /// Counts a part; rank 0 gets what all counted.
    fn take_part(
        &self,
        reading: &Reading,
        communicator: &mut dyn Communicator,
    ) -> Result<Option<(Counted, Loads)>, Failure> {
        let meter = Meter::start(communicator);
        let part = DatabasePart { number: communicator.rank(), of: communicator.size() };
        let counted = agree(communicator, self.count(reading, part))?;
        let Counted { choice, histogram } = counted;
        let numbers: Vec<u64> = [choice.offered, choice.declined].into_iter().chain(histogram.counts()).collect();
        let sums = communicator.sum(&numbers).map_err(Failure::lost)?;
        let loads = meter.gather(communicator).map_err(Failure::lost)?;
        let [offered, declined, counts @ ..] = &sums[..] else { unreachable!("as many sums as numbers") };
        let (choice, histogram) = (
            engines::ChoiceCounts { offered: *offered, declined: *declined },
            Histogram::of_counts(counts.try_into().expect("as many sums as counts")),
        );
        Ok(loads.map(|loads| (Counted { choice, histogram }, loads)))
    }

    fn count(&self, reading: &Reading, part: DatabasePart) -> Result<Counted, StageError> {
        let [captures, scores] = &reading.files[..] else {
            return Err(StageError::failed(format!("two files to count, found {}", reading.files.len())));
        };
        let stones = self.index.stones();
        let captures = files::open_windowed(self.disk, captures, self.settings, FileKind::Capture, self.index)
            .map_err(|error| files::unreadable(&files::capture(stones), error))?;
        let scores = files::open_windowed(self.disk, scores, self.settings, FileKind::Database, self.index)
            .map_err(|error| files::unreadable(&files::database(stones), error))?;
        count(self.tables, self.index, self.plan.memory().stats_stripe_bytes, part, &captures, scores)
    }
}
