//! Assessments of a book by all ranks of a job. Rank 0 keeps the book: it chooses leaves and enters results.
//!
//! Rank 0 leases each rank a share of the positions that wait for a result ([`Leases`]). A rank that has
//! left, or does not answer for too long, loses its lease: the positions go to the other ranks. Results are
//! entered in the order of the queue, so the number of ranks does not change the book.

use super::KIND;
use super::databases::BookDatabases;
use crate::distributed::{
    JobLeader, LeaseAnswer, LeaseResult, Leases, RankResult, StageOrder, StageTask, agree, message,
};
use crate::files;
use crate::team::FollowerRank;
use book::{Assessed, AssessmentLimits, AssessorPool, AwariGame};
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageResult as Result};
use planner::Settings;
use search::SearchStop;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::MutexGuard;

/// The assessments of a book.
#[derive(Serialize, Deserialize)]
struct BookTask {
    /// Threads of the leader.
    threads: usize,
    /// All databases, in ascending order of stones.
    files: Vec<PathBuf>,
}

impl StageTask for BookTask {
    fn is_valid(&self) -> bool {
        self.threads > 0 && self.files.len() <= game::STONES_MAX as usize + 1
    }
}

/// The other ranks, as rank 0 leases them positions. They leave the stage when it is dropped.
pub(crate) struct BookRanks<'a> {
    job: &'a JobLeader,
    communicator: MutexGuard<'a, Box<dyn Communicator>>,
    leases: Leases<'a>,
}

impl<'a> BookRanks<'a> {
    /// Orders all ranks to take part.
    pub(crate) fn new(
        settings: &Settings,
        limits: AssessmentLimits,
        job: &'a JobLeader,
        context: &'a StageContext,
    ) -> Result<BookRanks<'a>> {
        let files = settings.stones().map(|stones| context.input(&files::database(stones))).collect();
        let threads = context.threads();
        let mut communicator = job.order(KIND, &BookTask { threads, files })?;
        agree(&mut **communicator, Ok::<_, StageError>(()))?;
        let game = AwariGame::new(settings.rules);
        let (clock, ranks) = (context.disk().clock(), communicator.size());
        let leases = Leases::new(clock, game, limits.is_deterministic(), ranks, threads);
        Ok(BookRanks { job, communicator, leases })
    }

    /// Returns the number of ranks that answer, rank 0 included.
    pub(crate) fn count(&self) -> usize {
        self.leases.count()
    }

    /// Returns the number of results that came twice.
    pub(crate) fn repeated(&self) -> u64 {
        self.leases.repeated()
    }

    /// Assesses positions by all ranks. The results are in the order of the positions.
    pub(crate) fn assess(&mut self, keys: &[u64], own: &AssessorPool<'_>, stop: &SearchStop) -> Result<Vec<Assessed>> {
        let mut assess = |keys: &[u64]| own.assess(keys, stop).map_err(StageError::failed);
        self.leases.assess(&mut **self.communicator, keys, &mut assess)
    }
}

impl Drop for BookRanks<'_> {
    fn drop(&mut self) {
        if let Some(rank) = self.leases.end(&mut **self.communicator) {
            self.job.lose(rank);
        }
    }
}

/// Answers leases until rank 0 sends an empty one.
pub(super) fn follow(
    follower: &FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    let task: BookTask = order.task()?;
    let settings = follower.build.settings();
    let request = settings.book().ok_or_else(|| StageError::failed("the manifest of this rank has no book"));
    let paths: BTreeMap<_, _> = settings.stones().map(files::database).zip(&task.files).collect();
    let opened = request.and_then(|request| {
        if settings.stones().count() == task.files.len() {
            Ok((request, BookDatabases::of_build(settings, follower.disk, |name| paths[name].clone())?))
        } else {
            Err(StageError::failed("the manifest of this rank has other databases"))
        }
    });
    let game = AwariGame::new(settings.rules);
    let (request, databases) = agree(communicator, opened)?;
    let stop = SearchStop::new();
    let pool = AssessorPool::new(game, &databases, request.settings.limits, task.threads);
    loop {
        let bytes = communicator.receive(0)?;
        let keys: Vec<u64> = message::decode(&bytes, 0, "positions", |_| true)?;
        if keys.is_empty() {
            return Ok(());
        }
        let answer: LeaseAnswer = match &pool {
            Ok(pool) => assess_polling(pool, &keys, &stop, communicator).map_err(|error| error.to_string()),
            Err(error) => Err(format!("no memory for the tables of the searches: {error}; choose fewer threads")),
        }
        .and_then(|found| databases.failure().map(|()| found).map_err(|error| error.to_string()))
        .map(|found| found.iter().map(LeaseResult::new).collect());
        communicator.send(0, message::encode(&answer))?;
    }
}

/// Assesses positions, and lets messages make progress in between.
fn assess_polling(
    pool: &AssessorPool<'_>,
    keys: &[u64],
    stop: &SearchStop,
    communicator: &mut dyn Communicator,
) -> Result<Vec<Assessed>> {
    let mut found = Vec::with_capacity(keys.len());
    for some in keys.chunks(pool.threads()) {
        found.extend(pool.assess(some, stop).map_err(StageError::failed)?);
        // An error comes again with the next message.
        let _ = communicator.poll();
    }
    Ok(found)
}
