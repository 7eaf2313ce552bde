//! The bound methods by the ranks of a job (*two-bit*: Romein & Bal 2002). Each rank runs the driver of
//! [`crate::bounds`] on its partition, in any storage.
//!
//! A rank owns the rows of candidates that [`RowPartition`] assigns to it, and keeps the rows of wins that their moves
//! lead to (`wins.rs`). A *superstep* is one pass of all ranks over their candidates. Losses stay with their owner. The
//! resulting wins are sent to all ranks that keep their rows, combined into one message a rank and superstep, or more
//! if long. The last message carries a vote: a bound ends with a superstep in which no rank found a win. Wins may be
//! late but are never wrong, so the planes do not depend on the number of ranks and threads.
//!
//! The state stays with the ranks from bound to bound. The decisions of a bound are logged until they are
//! written (`log.rs`), in the encoding in which they are sent.

mod collect;
mod log;
mod memory;
mod message;
mod partition;
mod share;
#[cfg(test)]
mod tests;
mod wins;

pub use collect::PlaneRun;
pub use memory::solve_in_memory;
pub use partition::RowPartition;
use partition::as_usize;
pub use share::{PlaneShare, keepers_bytes, plane_shares};

use crate::bounds::solver::{Solver, SolverError};
use crate::bounds::storage::{UnitsInMemory, Wins};
use crate::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use crate::kernels::tables::Tables;
use crate::observer::{DriverObserver, EndedPass};
use crate::ranks::JobError;
use crate::ranks::varint::Malformed;
use collect::{collect_plane, row_location};
use game::{Index, Orientation};
pub use log::BoxedUnits;
use log::OwnedCandidates;
use messaging::{CommunicationError, Communicator, MessageTraffic, Result};
use rayon::prelude::*;
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use wins::{KeptInMemory, KeptWords};
use wins::{KeptWins, RowKeepers, WinSource};

/// State of a rank: the candidates that it owns and the wins that it keeps, in storage that fails with errors `E`.
pub struct RankPlanes<W, E> {
    rank: usize,
    ranks: usize,
    layout: PlaneLayout,
    wins_layout: PlaneLayout,
    kernel: BitKernel,
    solver: Solver<KeptWins<W>, OwnedCandidates<E>, E>,
    /// The first failure of the storage of this rank while a bound was solved.
    failed: Option<E>,
}

/// Work done for a bound, of all ranks together but for the traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DistributedBoundReport {
    /// Supersteps until no rank found a win.
    pub supersteps: u64,
    /// Positions found lost.
    pub lost: u64,
    /// Rows tested.
    pub rows: u64,
    /// Messages sent: in each superstep at least one from each rank to each other.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Traffic of this rank.
    pub traffic: MessageTraffic,
}

/// What a bound decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// Positions found won at this bound, without those that were added as wins by captures; `OpponentMajor`.
    Won,
    /// Positions lost at this bound but not at higher ones, `MoverMajor`.
    Lost,
}

impl RankPlanes<KeptInMemory, Infallible> {
    /// Creates the state of `rank` in memory, as [`empty`](RankPlanes::empty).
    pub fn in_memory(
        tables: Arc<Tables>,
        index: &Index,
        partition: &RowPartition,
        rank: usize,
        kernel: BitKernel,
    ) -> Self {
        let words = |words| Ok(KeptInMemory::zeroed(words));
        let Ok(planes) = RankPlanes::empty(tables, index, partition, rank, kernel, words, |units| Ok(in_memory(units)));
        planes
    }
}

/// Returns empty units in memory.
pub fn in_memory<E>(units: &[PlaneUnit]) -> BoxedUnits<E> {
    Box::new(UnitsInMemory::zeroed(units.iter().map(|unit| unit.words.clone())))
}

/// The planes of one rank in any storage. `E` is the error of the storage.
pub trait RankSolver<E>: Send + Sync {
    /// The units of candidates that this rank owns, in whole or in part.
    fn units(&self) -> &[PlaneUnit];

    /// The runs of rows of wins that this rank keeps, each in one unit.
    fn kept_runs(&self) -> Box<dyn Iterator<Item = PlaneUnit> + '_>;

    /// Adds wins of higher bounds, given the words of one of [`kept_runs`](Self::kept_runs).
    fn add_wins_above(&self, run: &PlaneUnit, words: &mut [u64]);

    /// Adds wins by captures of the current bound, given the words of one of [`kept_runs`](Self::kept_runs).
    fn add_seeds(&self, run: &PlaneUnit, words: &mut [u64]);

    /// Adds candidates, given the words of one of [`units`](Self::units); they will be tested.
    ///
    /// # Errors
    /// That of the storage.
    fn add_candidates(&self, number: usize, words: &[u64]) -> Result<(), E>;

    /// Returns the first failure of the storage since the last call.
    ///
    /// # Errors
    /// That of the storage. The planes must then not be used.
    fn check(&mut self) -> Result<(), E>;

    /// Forgets all changes, for planes that are known to be at a fixpoint, such as those of higher bounds.
    fn settle(&self);

    /// Solves the current bound together with the other ranks. If it is stopped or fails, the planes are not those of
    /// any bound. All ranks stop if the storage of one fails, which [`check`](Self::check) then returns there.
    ///
    /// # Panics
    /// If the communicator is of another rank or number of ranks.
    fn solve(
        &mut self,
        communicator: &mut dyn Communicator,
        progress: &dyn DriverObserver,
    ) -> Result<DistributedBoundReport, JobError>;

    /// Collects a plane of the bound: each rank gets the words of its range, and passes them to `sink` in
    /// runs. Returns false on all ranks if a `sink` broke.
    ///
    /// # Panics
    /// If there is not one range for each rank.
    fn collect(
        &mut self,
        decided: Decided,
        ranges: &[Range<usize>],
        communicator: &mut dyn Communicator,
        sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
    ) -> Result<bool>;
}

impl<W: KeptWords<E>, E: Send + Sync> RankPlanes<W, E> {
    /// Creates the state of `rank`, without candidates and wins: the words of the wins that it keeps in what
    /// `words` returns for their number, its candidates in what `candidates` returns for their units.
    ///
    /// # Errors
    /// That of `words` or `candidates`.
    ///
    /// # Panics
    /// If there is no such rank, the partition is of another database, or the tables serve fewer stones or another
    /// position set.
    pub fn empty(
        tables: Arc<Tables>,
        index: &Index,
        partition: &RowPartition,
        rank: usize,
        kernel: BitKernel,
        words: impl FnOnce(usize) -> Result<W, E>,
        candidates: impl FnOnce(&[PlaneUnit]) -> Result<BoxedUnits<E>, E>,
    ) -> Result<Self, E> {
        assert!(rank < partition.ranks() && partition.slabs() == index.slabs(), "rank {rank} shares the database");
        let layout = PlaneLayout::new(index, Orientation::MoverMajor);
        let wins_layout = PlaneLayout::new(index, Orientation::OpponentMajor);
        let units: Vec<_> = layout.units().iter().flat_map(|unit| owned(&layout, unit, partition, rank)).collect();
        let keepers = RowKeepers::new(&tables, partition);
        let wins = KeptWins::none(&wins_layout, keepers, (rank, kernel), words)?;
        let candidates = OwnedCandidates::none(&layout, candidates(&units)?, kernel);
        let solver = Solver::of_units(tables, index.clone(), kernel, wins, candidates, units);
        let planes = RankPlanes { rank, ranks: partition.ranks(), layout, wins_layout, kernel, solver, failed: None };
        planes.solver.settle();
        Ok(planes)
    }

    fn add_wins(&self, source: WinSource, run: &PlaneUnit, words: &mut [u64]) {
        self.solver.wins().expect_from(source);
        self.solver.add_wins(run, words);
    }

    /// Runs one pass on all ranks, and returns the sum of their votes.
    fn superstep(
        &mut self,
        communicator: &mut dyn Communicator,
        progress: &dyn DriverObserver,
    ) -> Result<Vote, JobError> {
        let others = || (0..self.ranks).filter(|&other| other != self.rank);
        let wins = self.solver.wins();
        wins.expect_from(WinSource::Own);
        let messenger = PassMessenger {
            wins,
            rank: self.rank,
            progress,
            mailbox: Mutex::new(Mailbox { communicator, votes: vec![None; self.ranks] }),
            take_in: &|bound_messages| {
                wins.receiving(|| bound_messages.iter().try_for_each(|bound_message| self.take_in(bound_message)))
            },
            wants_stop: AtomicBool::new(false),
            has_sent: AtomicBool::new(false),
            failed: Mutex::new(None),
        };
        let done = self.solver.pass(&messenger);
        let mut failed = None;
        let (wants_stop, has_sent) = (messenger.wants_stop.into_inner(), messenger.has_sent.into_inner());
        if let Some(error) = messenger.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        let mailbox = messenger.mailbox.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Mailbox { communicator, votes } = mailbox;
        let (done, found) = match done {
            Ok(done) => done,
            Err(SolverError::Stopped) => Default::default(),
            Err(SolverError::Storage(error)) => {
                failed = Some(error);
                Default::default()
            }
        };
        self.failed = failed.or_else(|| wins.check().err());
        let wants_stop = wants_stop || self.failed.is_some();
        let bound_messages: Vec<_> = others().map(|to| (to, wins.bound_messages(to, false))).collect();
        let found = found || has_sent || bound_messages.iter().any(|(_, bound_messages)| !bound_messages.is_empty());
        let mut vote = Vote { found: u64::from(found), lost: done.lost, rows: done.rows, stop: u64::from(wants_stop) };
        wins.expect_from(WinSource::Others);
        for (to, bound_messages) in bound_messages {
            communicator.send(to, vote.with(&bound_messages))?;
        }
        for (from, mut theirs) in votes.into_iter().enumerate().filter(|&(from, _)| from != self.rank) {
            while theirs.is_none() {
                let message = communicator.receive(from)?;
                let message = SuperstepMessage::read(&message).ok_or_else(|| unexpected(from))?;
                let taken = message.bound_messages.par_iter().try_for_each(|bound_message| self.take_in(bound_message));
                taken.map_err(|Malformed| unexpected(from))?;
                theirs = message.vote;
            }
            vote = theirs.into_iter().fold(vote, Vote::add);
        }
        Ok(vote)
    }

    /// Adds the wins that another rank sent.
    fn take_in(&self, bound_message: &[u8]) -> Result<(), Malformed> {
        self.solver.add_rows(|add| {
            message::read(self.kernel, bound_message, |row, bits| {
                let (slab, row) = row_location(&self.wins_layout, row).ok_or(Malformed)?;
                if !self.solver.wins().takes(slab, row, bits) {
                    return Err(Malformed);
                }
                add(slab, row, bits);
                Ok(())
            })
        })
    }
}

impl<W: KeptWords<E> + Send, E: Send + Sync> RankSolver<E> for RankPlanes<W, E> {
    fn units(&self) -> &[PlaneUnit] {
        self.solver.units()
    }

    fn kept_runs(&self) -> Box<dyn Iterator<Item = PlaneUnit> + '_> {
        Box::new(self.solver.wins_units().iter().flat_map(|unit| self.solver.wins().kept_runs(unit)))
    }

    fn add_wins_above(&self, run: &PlaneUnit, words: &mut [u64]) {
        self.add_wins(WinSource::Above, run, words);
    }

    fn add_seeds(&self, run: &PlaneUnit, words: &mut [u64]) {
        self.add_wins(WinSource::Captures, run, words);
    }

    fn add_candidates(&self, number: usize, words: &[u64]) -> Result<(), E> {
        self.solver.add_candidates(number, words, |_| {})
    }

    fn check(&mut self) -> Result<(), E> {
        self.failed.take().map_or_else(|| self.solver.wins().check(), Err)
    }

    fn settle(&self) {
        self.solver.settle();
    }

    fn solve(
        &mut self,
        communicator: &mut dyn Communicator,
        progress: &dyn DriverObserver,
    ) -> Result<DistributedBoundReport, JobError> {
        assert!((self.rank, self.ranks) == (communicator.rank(), communicator.size()), "the job has other ranks");
        let before = communicator.traffic();
        let mut report = DistributedBoundReport::default();
        loop {
            let vote = self.superstep(communicator, progress)?;
            report.supersteps += 1;
            report.lost += vote.lost;
            report.rows += vote.rows;
            if vote.stop > 0 {
                return Err(JobError::Stopped);
            }
            if vote.found == 0 {
                break;
            }
            progress.end_pass(EndedPass { is_full: false, is_next_full: false, changed: vote.lost });
        }
        report.traffic = communicator.traffic().since(&before);
        let sums = communicator.sum(&[report.traffic.messages_sent, report.traffic.bytes_sent])?;
        (report.messages, report.bytes) = (sums[0], sums[1]);
        Ok(report)
    }

    fn collect(
        &mut self,
        decided: Decided,
        ranges: &[Range<usize>],
        communicator: &mut dyn Communicator,
        sink: &mut dyn FnMut(PlaneRun) -> ControlFlow<()>,
    ) -> Result<bool> {
        match decided {
            Decided::Won => collect_plane(&mut self.solver.wins.won, &self.wins_layout, ranges, communicator, sink),
            Decided::Lost => collect_plane(&mut self.solver.candidates.lost, &self.layout, ranges, communicator, sink),
        }
    }
}

/// Returns the parts of a unit of candidates that a rank owns.
fn owned<'a>(
    layout: &'a PlaneLayout,
    unit: &'a PlaneUnit,
    partition: &'a RowPartition,
    rank: usize,
) -> impl Iterator<Item = PlaneUnit> + 'a {
    let slab = &layout.slabs()[unit.slab];
    let parts = partition.rows(rank, unit.slab as u32).map(as_usize);
    let parts = parts.map(|owned| unit.rows.start.max(owned.start)..unit.rows.end.min(owned.end));
    parts.filter(|rows| !rows.is_empty()).map(|rows| PlaneUnit {
        slab: unit.slab,
        words: slab.word(rows.start)..slab.word(rows.end),
        rows,
    })
}

/// Sends long messages while the pass of this rank is running, and takes in those of others: the sooner a win
/// arrives, the fewer rows are tested without it and tested again.
struct PassMessenger<'a, 'c, W> {
    wins: &'a KeptWins<W>,
    rank: usize,
    progress: &'a dyn DriverObserver,
    mailbox: Mutex<Mailbox<'c>>,
    take_in: TakeIn<'a>,
    wants_stop: AtomicBool,
    has_sent: AtomicBool,
    failed: Mutex<Option<CommunicationError>>,
}

/// Adds the wins of some bound messages.
type TakeIn<'a> = &'a (dyn Fn(&[&[u8]]) -> Result<(), Malformed> + Sync);

/// The connection to the other ranks in a superstep.
struct Mailbox<'c> {
    communicator: &'c mut dyn Communicator,
    /// By rank, the vote that ends its messages of the superstep.
    votes: Vec<Option<Vote>>,
}

impl<W> PassMessenger<'_, '_, W> {
    fn exchange(&self, mailbox: &mut Mailbox) -> Result<()> {
        let Mailbox { communicator, votes } = mailbox;
        for to in (0..communicator.size()).filter(|&to| to != self.rank) {
            for bound_message in self.wins.bound_messages(to, true) {
                communicator.send(to, more(bound_message))?;
                self.has_sent.store(true, Relaxed);
            }
        }
        for (from, vote) in votes.iter_mut().enumerate().filter(|&(from, _)| from != self.rank) {
            while vote.is_none()
                && let Some(message) = communicator.try_receive(from)?
            {
                let message = SuperstepMessage::read(&message).ok_or_else(|| unexpected(from))?;
                (self.take_in)(&message.bound_messages).map_err(|Malformed| unexpected(from))?;
                *vote = message.vote;
            }
        }
        communicator.poll()
    }
}

impl<W: Sync> DriverObserver for PassMessenger<'_, '_, W> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        let mut flow = self.progress.advance(done, total);
        if flow.is_break() {
            self.wants_stop.store(true, Relaxed);
        }
        // One thread at a time; the others continue.
        if let Ok(mut mailbox) = self.mailbox.try_lock()
            && let Err(error) = self.exchange(&mut mailbox)
        {
            *lock(&self.failed) = Some(error);
            flow = ControlFlow::Break(());
        }
        flow
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Vote of a rank at the end of a superstep, or the sum of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Vote {
    /// Nonzero if there were new wins.
    found: u64,
    lost: u64,
    rows: u64,
    /// Nonzero if a rank wants to stop.
    stop: u64,
}

/// Message of a superstep: byte 0 and one bound message, or byte 1, a vote, and bound messages prefixed by their
/// lengths.
struct SuperstepMessage<'a> {
    vote: Option<Vote>,
    bound_messages: Vec<&'a [u8]>,
}

/// Encodes a bound message that is sent before the end of the pass.
fn more(bound_message: Vec<u8>) -> Vec<u8> {
    let mut message = Vec::with_capacity(bound_message.len() + 1);
    message.push(0);
    message.extend_from_slice(&bound_message);
    message
}

impl Vote {
    fn add(self, other: Vote) -> Vote {
        let Vote { found, lost, rows, stop } = other;
        Vote {
            found: self.found.saturating_add(found),
            lost: self.lost.saturating_add(lost),
            rows: self.rows.saturating_add(rows),
            stop: self.stop.saturating_add(stop),
        }
    }

    /// Encodes the last message of a superstep.
    fn with(self, bound_messages: &[Vec<u8>]) -> Vec<u8> {
        let mut message = vec![1];
        for number in [self.found, self.lost, self.rows, self.stop] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        for bound_message in bound_messages {
            message.extend_from_slice(&(bound_message.len() as u32).to_le_bytes());
            message.extend_from_slice(bound_message);
        }
        message
    }
}

impl SuperstepMessage<'_> {
    fn read(message: &[u8]) -> Option<SuperstepMessage<'_>> {
        match message.split_first()? {
            (0, bound_message) => Some(SuperstepMessage { vote: None, bound_messages: vec![bound_message] }),
            (1, rest) => {
                let (numbers, mut rest) = rest.split_at_checked(32)?;
                let mut numbers = numbers.as_chunks().0.iter().map(|&number| u64::from_le_bytes(number));
                let mut next = || numbers.next();
                let vote = Vote { found: next()?, lost: next()?, rows: next()?, stop: next()? };
                let mut bound_messages = Vec::new();
                while !rest.is_empty() {
                    let (length, others) = rest.split_first_chunk()?;
                    let (bound_message, others) = others.split_at_checked(u32::from_le_bytes(*length) as usize)?;
                    bound_messages.push(bound_message);
                    rest = others;
                }
                Some(SuperstepMessage { vote: Some(vote), bound_messages })
            }
            _ => None,
        }
    }
}

fn unexpected(rank: usize) -> CommunicationError {
    let (expected, found) = ("wins of rows that this rank keeps".to_owned(), "something else".to_owned());
    CommunicationError::Unexpected { rank, expected, found }
}
