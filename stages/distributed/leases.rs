//! Leases: positions of a book that ranks assess for rank 0, and what becomes of those that do not come back.
//!
//! A rank has at most one lease. Rank 0 takes positions too, a few at a time, and between them looks for
//! answers. A rank that has left loses its lease at once. One that does not answer within the age of its
//! lease is overdue: its positions are given out again, and it gets no others until it answers. The age is a
//! multiple of the time that rank 0 needs for as many positions, so that few positions are assessed twice. A
//! result that comes twice must be the same.

use super::message;
use book::{Assessed, Assessment, AwariGame, BookGame};
use disk::Clock;
use messaging::Communicator;
use pipeline::StageError;
use pipeline::StageResult as Result;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::thread;
use std::time::Duration;

/// The results of a lease, or why there are none.
pub(crate) type LeaseAnswer = Result<Vec<LeaseResult>, String>;

/// The result of a position in a message: bounds and estimate in hundredths of a stone, depth and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseResult(i16, i16, i16, u32, u64);

impl LeaseResult {
    pub(crate) fn new(found: &Assessed) -> LeaseResult {
        let Assessment { low, high, estimate } = found.assessment;
        LeaseResult(low, high, estimate, found.depth, found.nodes)
    }

    /// Returns the result if it is possible.
    fn of(self, game: &AwariGame, key: u64) -> Option<Assessed> {
        let LeaseResult(low, high, estimate, depth, nodes) = self;
        let assessment = Assessment { low, high, estimate };
        assessment.is_possible(game.value_max(key)).then_some(Assessed { assessment, depth, nodes })
    }
}

/// The least age at which a lease is overdue.
const AGE_MIN: Duration = Duration::from_secs(10);

/// The age at which a lease is overdue, as a multiple of the mean time that rank 0 needs for its positions.
const AGE_FACTOR: u32 = 20;

/// The time between two looks for answers while rank 0 has nothing to assess.
const PAUSE: Duration = Duration::from_micros(200);

/// The leases of all other ranks.
pub(crate) struct Leases<'a> {
    clock: &'a dyn Clock,
    game: AwariGame,
    /// Whether equal searches give equal results.
    is_deterministic: bool,
    /// Threads of a rank.
    threads: usize,
    others: Vec<LeasedRank>,
    /// The time that rank 0 has assessed positions, and their number.
    own: (Duration, u32),
    /// Results of positions whose first lease is overdue.
    given_again: HashMap<u64, Assessed>,
    /// Results that came twice.
    repeated: u64,
}

/// A rank that has not left.
struct LeasedRank {
    rank: usize,
    lease: Option<Lease>,
}

/// Positions that a rank assesses.
struct Lease {
    keys: Vec<u64>,
    since: Duration,
    is_overdue: bool,
}

/// The positions that are wanted, with the results so far.
struct Wanted<'a> {
    keys: &'a [u64],
    numbers: HashMap<u64, usize>,
    results: Vec<Option<Assessed>>,
    /// Positions that no rank assesses.
    open: VecDeque<usize>,
}

impl Wanted<'_> {
    /// Gives positions without a result out again.
    fn reopen(&mut self, keys: &[u64]) {
        let numbers = keys.iter().filter_map(|key| self.numbers.get(key).copied());
        self.open.extend(numbers.filter(|&number| self.results[number].is_none()));
    }
}

impl<'a> Leases<'a> {
    /// Makes leases for ranks 1 to `ranks - 1`, of `threads` threads each.
    pub(crate) fn new(
        clock: &'a dyn Clock,
        game: AwariGame,
        is_deterministic: bool,
        ranks: usize,
        threads: usize,
    ) -> Leases<'a> {
        let others = (1..ranks).map(|rank| LeasedRank { rank, lease: None }).collect();
        let (own, given_again, threads) = ((Duration::ZERO, 0), HashMap::new(), threads.max(1));
        Leases { clock, game, is_deterministic, threads, others, own, given_again, repeated: 0 }
    }

    /// Returns the number of ranks that answer, rank 0 included.
    pub(crate) fn count(&self) -> usize {
        let answers = |other: &&LeasedRank| other.lease.as_ref().is_none_or(|lease| !lease.is_overdue);
        self.others.iter().filter(answers).count() + 1
    }

    /// Returns the number of results that came twice.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Assesses positions by all ranks; rank 0 calls `own` with a few at a time. The results are in the order
    /// of the positions.
    ///
    /// # Errors
    /// Those of `own` and of other ranks; impossible results, and those that differ from others of the same position.
    pub(crate) fn assess(
        &mut self,
        communicator: &mut dyn Communicator,
        keys: &[u64],
        own: &mut dyn FnMut(&[u64]) -> Result<Vec<Assessed>>,
    ) -> Result<Vec<Assessed>> {
        let numbers = keys.iter().enumerate().map(|(number, &key)| (key, number)).collect();
        let mut wanted = Wanted { keys, numbers, results: vec![None; keys.len()], open: (0..keys.len()).collect() };
        let mut missing = keys.len();
        while missing > 0 {
            self.collect(communicator, &mut wanted)?;
            self.give(communicator, &mut wanted);
            let some: Vec<usize> = wanted.open.drain(..self.threads.min(wanted.open.len())).collect();
            if !some.is_empty() {
                let begun = self.clock.steady();
                let found = own(&some.iter().map(|&number| keys[number]).collect::<Vec<u64>>())?;
                self.own.0 += self.clock.steady().saturating_sub(begun);
                self.own.1 += some.len() as u32;
                some.into_iter().zip(found).for_each(|(number, found)| wanted.results[number] = Some(found));
            }
            missing = wanted.results.iter().filter(|result| result.is_none()).count();
            if missing > 0 && wanted.open.is_empty() {
                thread::sleep(PAUSE);
            }
        }
        for lease in self.others.iter().filter_map(|other| other.lease.as_ref()) {
            let again = lease.keys.iter().filter_map(|key| Some((*key, wanted.results[*wanted.numbers.get(key)?]?)));
            self.given_again.extend(again);
        }
        Ok(wanted.results.into_iter().flatten().collect())
    }

    /// Takes the answers that have arrived, and what ranks have that have left or are overdue.
    fn collect(&mut self, communicator: &mut dyn Communicator, wanted: &mut Wanted<'_>) -> Result<()> {
        let age_max = |positions: usize| {
            let (time, count) = self.own;
            let mean = time.checked_div(count).unwrap_or_default();
            AGE_MIN.max(mean.saturating_mul(AGE_FACTOR).saturating_mul(positions.div_ceil(self.threads) as u32))
        };
        let mut answers = Vec::new();
        for other in &mut self.others {
            let Some(lease) = &mut other.lease else { continue };
            match communicator.try_receive(other.rank) {
                Ok(None) if lease.is_overdue => {}
                Ok(None) => {
                    if self.clock.steady().saturating_sub(lease.since) >= age_max(lease.keys.len()) {
                        let count = lease.keys.len();
                        tracing::warn!(
                            "rank {} does not answer: its {count} positions go to the other ranks",
                            other.rank
                        );
                        lease.is_overdue = true;
                        wanted.reopen(&lease.keys);
                    }
                }
                Ok(Some(answer)) => {
                    answers.push((other.rank, std::mem::take(&mut lease.keys), Some(answer)));
                    other.lease = None;
                }
                Err(error) => {
                    tracing::warn!("{error}: {} positions go to the other ranks", lease.keys.len());
                    answers.push((other.rank, std::mem::take(&mut lease.keys), None));
                }
            }
        }
        for (rank, keys, answer) in answers {
            match answer {
                Some(answer) => self.enter(rank, &keys, &answer, wanted)?,
                None => {
                    self.others.retain(|other| other.rank != rank);
                    wanted.reopen(&keys);
                }
            }
        }
        Ok(())
    }

    /// Enters the answer of a rank.
    fn enter(&mut self, rank: usize, keys: &[u64], answer: &[u8], wanted: &mut Wanted<'_>) -> Result<()> {
        let is_whole = |answer: &LeaseAnswer| answer.as_ref().map_or(true, |found| found.len() == keys.len());
        let answer = message::decode::<LeaseAnswer>(answer, rank, "results of positions", is_whole);
        let found = answer.map_err(StageError::failed)?;
        let found = found.map_err(|what| StageError::failed(format!("rank {rank}: {what}")))?;
        for (&key, found) in keys.iter().zip(found) {
            let refused = |why: &str| {
                let position = self.game.text(key);
                StageError::failed(format!("rank {rank} gives {position} the result {found:?}, {why}"))
            };
            let result = found.of(&self.game, key).ok_or_else(|| refused("which is impossible"))?;
            let number = wanted.numbers.get(&key).copied();
            let first = number.and_then(|number| wanted.results[number]).or_else(|| self.given_again.remove(&key));
            match (first, number) {
                (Some(first), _) => {
                    self.repeated += 1;
                    if self.is_deterministic && first != result {
                        let again = LeaseResult::new(&first);
                        return Err(refused(&format!(
                            "and another rank {again:?}; the ranks have different databases or \
                            programs"
                        )));
                    }
                }
                (None, Some(number)) => {
                    wanted.results[number] = Some(result);
                    wanted.open.retain(|&open| open != number);
                }
                // A position of an expansion that failed.
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Gives ranks without a lease positions that are open: half of their share, so that the last ones are spread, but
    /// enough for all threads.
    fn give(&mut self, communicator: &mut dyn Communicator, wanted: &mut Wanted<'_>) {
        let count = self.count();
        let mut gone = Vec::new();
        for other in self.others.iter_mut().filter(|other| other.lease.is_none()) {
            let share = wanted.open.len().div_ceil(2 * count).max(self.threads);
            // Rank 0 keeps enough for its own threads.
            let some = share.min(wanted.open.len().saturating_sub(self.threads));
            if some == 0 {
                continue;
            }
            let keys: Vec<u64> = wanted.open.drain(..some).map(|number| wanted.keys[number]).collect();
            if communicator.send(other.rank, message::encode(&keys)).is_err() {
                wanted.reopen(&keys);
                gone.push(other.rank);
                continue;
            }
            other.lease = Some(Lease { keys, since: self.clock.steady(), is_overdue: false });
        }
        self.others.retain(|other| !gone.contains(&other.rank));
    }

    /// Ends the leases: sends all ranks an empty one, and waits a while for ranks that are overdue. Returns a
    /// rank whose answer is still to come.
    pub(crate) fn end(&mut self, communicator: &mut dyn Communicator) -> Option<usize> {
        let end = message::encode(&Vec::<u64>::new());
        for other in &self.others {
            // A rank that has left needs no message.
            let _ = communicator.send(other.rank, end.clone());
        }
        let begun = self.clock.steady();
        loop {
            self.others
                .retain_mut(|other| other.lease.is_some() && matches!(communicator.try_receive(other.rank), Ok(None)));
            if self.others.is_empty() || self.clock.steady().saturating_sub(begun) >= AGE_MIN {
                return self.others.first().map(|other| other.rank);
            }
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests;
