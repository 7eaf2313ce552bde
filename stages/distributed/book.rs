//! Assessments of a book by all ranks of a job. Rank 0 keeps the book: it chooses leaves and enters results.
//!
//! Rank 0 leases each rank, itself included, a share of the positions that wait for a result, and takes the results in
//! the order of ranks. A rank that has left, or is silent for too long, loses its lease: the positions go to the other
//! ranks. Results are entered in the order of the queue, so the number of ranks does not change the book.

use super::FollowerRank;
use super::agreement::{RankResult, agree};
use super::job::JobLeader;
use super::message;
use super::order::{BookTask, JobOrder};
use crate::{BookDatabases, Result, files};
use book::{Assessed, Assessment, AssessorPool, AwariGame, BookGame};
use messaging::Communicator;
use pipeline::{StageContext, StageError};
use planner::Settings;
use search::SearchStop;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::MutexGuard;

/// The results of a lease, or why there are none.
type LeaseAnswer = Result<Vec<LeaseResult>, String>;

/// The result of a position in a message: bounds and estimate in hundredths of a stone, depth and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LeaseResult(i16, i16, i16, u32, u64);

impl LeaseResult {
    fn new(found: &Assessed) -> LeaseResult {
        let Assessment { low, high, estimate } = found.assessment;
        LeaseResult(low, high, estimate, found.depth, found.nodes)
    }

    /// Returns the result if it is possible.
    fn of(self, game: &AwariGame, key: u64) -> Option<Assessed> {
        let LeaseResult(low, high, estimate, depth, nodes) = self;
        let most = game.value_max(key);
        let is_possible = -most <= low && low <= estimate && estimate <= high && high <= most;
        is_possible.then_some(Assessed { assessment: Assessment { low, high, estimate }, depth, nodes })
    }
}

/// The other ranks, as rank 0 leases them positions. They leave the stage when it is dropped.
pub(crate) struct BookRanks<'a> {
    communicator: MutexGuard<'a, Box<dyn Communicator>>,
    /// Ranks that answer.
    alive: Vec<usize>,
}

impl<'a> BookRanks<'a> {
    /// Orders all ranks to take part.
    pub(crate) fn new(settings: &Settings, job: &'a JobLeader, context: &StageContext) -> Result<BookRanks<'a>> {
        let files = settings.stones().map(|stones| context.input(&files::database(stones))).collect();
        let mut communicator = job.order(&JobOrder::Book(BookTask { threads: context.threads(), files }))?;
        agree(&mut **communicator, Ok::<_, StageError>(()))?;
        let alive = (1..communicator.size()).collect();
        Ok(BookRanks { communicator, alive })
    }

    /// Returns the number of ranks that take part, rank 0 included.
    pub(crate) fn count(&self) -> usize {
        self.alive.len() + 1
    }

    /// Assesses positions by all ranks. The results are in the order of the positions.
    pub(crate) fn assess(
        &mut self,
        keys: &[u64],
        own: &AssessorPool<'_>,
        game: &AwariGame,
        stop: &SearchStop,
    ) -> Result<Vec<Assessed>> {
        let mut results = vec![None; keys.len()];
        let mut failure = None;
        while failure.is_none() {
            let open: Vec<usize> = (0..keys.len()).filter(|&at| results[at].is_none()).collect();
            if open.is_empty() {
                break;
            }
            // Rank 0 has the first lease, and the other ranks that are alive one each.
            let share = |number: usize| open.iter().copied().skip(number).step_by(self.alive.len() + 1).collect();
            let leases: Vec<Vec<usize>> = (0..=self.alive.len()).map(share).collect();
            let mut leased = Vec::new();
            for (&rank, lease) in self.alive.iter().zip(&leases[1..]) {
                let keys: Vec<u64> = lease.iter().map(|&at| keys[at]).collect();
                let is_sent = keys.is_empty() || self.communicator.send(rank, message::encode(&keys)).is_ok();
                leased.push((rank, lease, is_sent));
            }
            let mine: Vec<u64> = leases[0].iter().map(|&at| keys[at]).collect();
            match assess_polling(own, &mine, stop, &mut **self.communicator) {
                Ok(found) => leases[0].iter().zip(found).for_each(|(&at, found)| results[at] = Some(found)),
                Err(error) => failure = Some(error),
            }
            let mut alive = Vec::new();
            for (rank, lease, is_sent) in leased {
                if lease.is_empty() {
                    alive.push(rank);
                    continue;
                }
                let answer = if is_sent { self.communicator.receive(rank).ok() } else { None };
                let Some(answer) = answer else {
                    tracing::warn!("rank {rank} has left: its {} positions go to the other ranks", lease.len());
                    continue;
                };
                alive.push(rank);
                let is_whole = |answer: &LeaseAnswer| answer.as_ref().map_or(true, |found| found.len() == lease.len());
                match message::decode::<LeaseAnswer>(&answer, rank, "results of positions", is_whole) {
                    Ok(Ok(found)) => {
                        for (&at, found) in lease.iter().zip(found) {
                            results[at] = found.of(game, keys[at]);
                            if results[at].is_none() {
                                let position = game.text(keys[at]);
                                let what = format!("rank {rank} gives {position} the impossible result {found:?}");
                                failure.get_or_insert(StageError::failed(what));
                            }
                        }
                    }
                    Ok(Err(what)) => drop(failure.get_or_insert(StageError::failed(format!("rank {rank}: {what}")))),
                    Err(error) => drop(failure.get_or_insert(StageError::failed(error))),
                }
            }
            self.alive = alive;
        }
        failure.map_or_else(|| Ok(results.into_iter().flatten().collect()), Err)
    }
}

impl Drop for BookRanks<'_> {
    fn drop(&mut self) {
        let end = message::encode(&Vec::<u64>::new());
        for &rank in &self.alive {
            // A rank that has left needs no message.
            let _ = self.communicator.send(rank, end.clone());
        }
    }
}

/// Answers leases until rank 0 sends an empty one.
pub(super) fn follow(follower: &FollowerRank, task: &BookTask, communicator: &mut dyn Communicator) -> RankResult<()> {
    let settings = follower.plan.settings();
    let request = settings.book().ok_or_else(|| StageError::failed("the manifest of this rank has no book"));
    let paths: BTreeMap<_, _> = settings.stones().map(files::database).zip(&task.files).collect();
    let opened = request.and_then(|request| match settings.stones().count() == task.files.len() {
        true => Ok((request, BookDatabases::of_build(settings, follower.disk, |name| paths[name].clone())?)),
        false => Err(StageError::failed("the manifest of this rank has other databases")),
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
