//! The method *counting*: each decided position updates its parents once, bound by bound (Bal & Allis 1995).
//!
//! Positions are partitioned among logical processors. The upper bound on undecided scores descends from n. At bound b, a
//! position with a capture that scores b is won, and a position with no undecided quiet child and a best capture of at
//! most -b is lost. Each newly decided position updates its parents: the parents of a lost position are won at this bound,
//! the parents of a won position have one undecided child less. Positions that are undecided below bound 1 can only
//! repeat, and score 0.
//!
//! A position decided at bound b scores b or -b, so best values need not be stored. A position is one byte, in `MoverMajor`
//! order like the captures: its score once decided, before that `-(n + 1 + c)` with c undecided quiet children. The best
//! capture is not counted as a child, so testing all captures again for a bound changes nothing, and a stopped solve
//! resumes at the bound of its least decided score.
//!
//! Updates to positions of other processors are combined into messages. In a *superstep* every processor receives its
//! messages, then updates parents until nothing is pending or a queue is full; then queues are exchanged. Processors share
//! nothing else, so the counts of a [`CountingReport`] depend on the distribution and on n, not on threads. (The paper's
//! processors run asynchronously and need to detect the end of a bound; here that is a superstep without messages. Its
//! `handle` does not test the status: taken literally, a decided position that receives another update updates its parents
//! twice.)

pub mod distributed;
pub(crate) mod partition;
mod pending;
mod processor;
mod unmoves;

use crate::huge_pages::Bytes;
use crate::kernels::tables::Tables;
use crate::{DriverObserver, Stopped};
use game::Index;
use partition::UnitPartition;
use processor::{ActiveProcessor, Processor, ProcessorInputs};
use rayon::prelude::*;

/// Bytes of an update: a position of the receiver, and one bit for what its child scores.
pub const UPDATE_BYTES: u64 = 4;

/// Most updates in a message: 4 KiB.
pub const BATCH: usize = 1024;

/// Updates in all queues of a processor, about: what one superstep can send. They take 1 MiB, and milliseconds to
/// process, which makes the barrier cheap.
pub const QUEUED: usize = 1 << 18;

/// `OpponentMajor` rows that a thread transposes at a time, at the end.
const TRANSPOSE_ROWS: usize = 64;

/// Reason why a database was not solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountingError {
    /// The observer stopped it.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The initial array counts fewer children than there are: no call wrote it.
    #[error("a position heard of more children than it has")]
    Inconsistent,
}

/// Distribution of a database over logical processors, and the sizes of their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Logical processors. More are used if a part would have more than 2^31 positions.
    pub processors: usize,
    /// Most updates in a message.
    pub batch: usize,
    /// Updates in the queues of a processor, about; at least one full message for each receiver.
    pub queued: usize,
}

impl Distribution {
    /// A number of processors, with messages of [`BATCH`] and queues of [`QUEUED`] updates.
    pub fn new(processors: usize) -> Distribution {
        Distribution { processors, batch: BATCH, queued: QUEUED }
    }
}

/// Work done by a call. Counts start at 0 when a solve resumes from a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountingReport {
    /// Number of exchanges of queues.
    pub supersteps: u64,
    /// Counts by processor.
    pub processors: Vec<UpdateCounts>,
}

/// Work done by one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateCounts {
    /// Positions it owns.
    pub positions: u64,
    /// Positions it decided, of those it owns.
    pub decided: u64,
    /// Updates to its own positions, which take no messages.
    pub kept: u64,
    /// Updates sent to other processors.
    pub sent: u64,
    /// Updates received from other processors.
    pub received: u64,
    /// Messages sent to other processors, each with at most a batch of updates.
    pub messages: u64,
}

impl CountingReport {
    /// Sums the counts of all processors.
    pub fn total(&self) -> UpdateCounts {
        self.processors.iter().fold(UpdateCounts::default(), |sum, &one| sum.add(one))
    }
}

impl UpdateCounts {
    /// Adds two counts.
    pub(crate) fn add(self, other: UpdateCounts) -> UpdateCounts {
        UpdateCounts {
            positions: self.positions + other.positions,
            decided: self.decided + other.decided,
            kept: self.kept + other.kept,
            sent: self.sent + other.sent,
            received: self.received + other.received,
            messages: self.messages + other.messages,
        }
    }

    /// Updates generated.
    pub fn updates(&self) -> u64 {
        self.kept + self.sent
    }

    /// The paper's combining factor: updates sent to other processors by message; none without messages.
    pub fn combining(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.sent as f64 / self.messages as f64)
    }

    /// Bytes sent to other processors, without headers.
    pub fn volume_bytes(&self) -> u64 {
        self.sent * UPDATE_BYTES
    }
}

/// Range of the values in the array of an unfinished solve, and so in a checkpoint: scores, counts below them, then lost
/// and won positions with pending updates of their parents.
pub const fn checkpoint_range(stones: u32) -> (i8, i8) {
    let stones = stones as i8;
    (-(2 * stones + 7), 2 * stones)
}

/// Bytes that a solve takes besides captures and values, including the queues of all processors.
pub fn memory_bytes(index_stones: u32, set: game::PositionSet, processors: usize) -> u64 {
    let largest = (0..=index_stones)
        .map(|mover| u64::from(game::Halves::count(mover)) * u64::from(set.opponent_halves(index_stones - mover)))
        .max()
        .unwrap_or(0);
    // A bit a position, and one for 64 of them; at the end, instead, a copy of one slab.
    let bits = set.positions(index_stones) / 8 * 65 / 64;
    largest.max(bits) + processors as u64 * processor::QUEUES_BYTES
}

/// Solves the database of `index` from its best captures (`MoverMajor`, see [`crate::capture`]).
///
/// `values` is zeros, or the array of a stopped call or of `checkpoint`. In the end it has the scores in `OpponentMajor`
/// order. `checkpoint` gets it between bounds, when no update is in flight. A stopped call leaves all decisions in it. A
/// solve may resume with another distribution.
///
/// # Errors
/// [`CountingError::Inconsistent`] if `values` is detected to be something else; undetected, the scores are wrong.
///
/// # Panics
/// If the arrays do not have the size of the index, the tables serve fewer stones or another position set, there is no
/// processor, messages have no room, or `values` is outside [`checkpoint_range`].
pub fn counting(
    tables: &Tables,
    index: &Index,
    captures: &Bytes,
    values: &mut Bytes,
    distribution: Distribution,
    progress: &dyn DriverObserver,
    checkpoint: &mut dyn FnMut(&Bytes),
) -> Result<CountingReport, CountingError> {
    assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
    assert!(captures.len() as u64 == index.positions() && values.len() as u64 == index.positions());
    assert!(distribution.processors > 0 && distribution.batch > 0, "{distribution:?}");
    let partition = UnitPartition::new(index.positions(), distribution.processors);
    let processors = (0..partition.processors()).map(|me| Processor::new(&partition, me, distribution)).collect();
    let mut counting = CountingSolver { tables, index, captures, partition, processors, supersteps: 0 };
    let first = counting.restore(values);
    for bound in (1..=first).rev() {
        progress.begin_bound(bound as u32, index.stones());
        counting.bound(bound, values, progress)?;
        checkpoint(values);
    }
    let report = counting.report();
    drop(counting);
    finish(index, values);
    let _ = progress.advance(index.positions(), index.positions());
    Ok(report)
}

struct CountingSolver<'a> {
    tables: &'a Tables,
    index: &'a Index,
    captures: &'a Bytes,
    partition: UnitPartition,
    processors: Vec<Processor>,
    supersteps: u64,
}

impl CountingSolver<'_> {
    /// Counts the children of untouched positions, finds pending updates, and returns the bound to resume at.
    fn restore(&mut self, values: &mut Bytes) -> i8 {
        let (work, mut parts) = self.parts(0, values);
        let least = parts.par_iter_mut().filter_map(|part| part.restore(&work)).min();
        least.unwrap_or(self.index.stones() as i8)
    }

    /// All supersteps of a bound.
    fn bound(&mut self, bound: i8, values: &mut Bytes, progress: &dyn DriverObserver) -> Result<(), CountingError> {
        let positions = self.index.positions();
        let mut supersteps = 0;
        let (work, mut parts) = self.parts(bound, values);
        parts.par_iter_mut().for_each(|part| part.look_at_captures(&work));
        loop {
            let decided = parts.iter().map(ActiveProcessor::decided).sum();
            if progress.advance(decided, positions).is_break() {
                // Delivers all updates, including those in partial messages.
                parts.par_iter_mut().for_each(|part| part.receive(&work));
                exchange(&mut parts, 0, Flush::All);
                parts.par_iter_mut().for_each(|part| {
                    part.receive(&work);
                    part.save(&work);
                });
                return Err(Stopped.into());
            }
            parts.par_iter_mut().for_each(|part| {
                part.receive(&work);
                part.notify(&work);
            });
            supersteps += 1;
            if parts.iter().any(ActiveProcessor::is_inconsistent) {
                return Err(CountingError::Inconsistent);
            }
            let sent = exchange(&mut parts, 0, Flush::Idle);
            if sent == 0 && parts.iter().all(ActiveProcessor::is_idle) {
                break;
            }
        }
        drop(parts);
        self.supersteps += supersteps;
        Ok(())
    }

    /// Pairs the processors with their parts of the array.
    fn parts<'v>(&'v mut self, bound: i8, values: &'v mut Bytes) -> (ProcessorInputs<'v>, Vec<ActiveProcessor<'v>>) {
        let CountingSolver { tables, index, captures, partition, processors, .. } = self;
        let units = partition
            .split(values.chunks_mut(partition.unit()))
            .into_iter()
            .zip(partition.split(captures.chunks(partition.unit())));
        let parts = processors.iter_mut().zip(units);
        let parts =
            parts.map(|(processor, (units, captures))| ActiveProcessor::new(processor, units, captures)).collect();
        (ProcessorInputs { tables, index, partition, bound }, parts)
    }

    fn report(&self) -> CountingReport {
        CountingReport {
            supersteps: self.supersteps,
            processors: self.processors.iter().map(|processor| processor.traffic()).collect(),
        }
    }
}

/// Extent of an exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Full messages, and all messages of idle processors.
    Idle,
    /// All messages.
    All,
}

/// Exchanges the queues among processors from `first` on, and returns the number of updates.
pub(crate) fn exchange(parts: &mut [ActiveProcessor], first: usize, flush: Flush) -> u64 {
    let mut sent = 0;
    for from in 0..parts.len() {
        for to in (0..parts.len()).filter(|&to| to != from) {
            let spare = parts[to].take_spare(first + from);
            let queue = parts[from].take_queue(first + to, flush == Flush::All, spare);
            sent += queue.len() as u64;
            parts[to].deliver(first + from, queue);
        }
    }
    sent
}

/// Scores undecided positions 0, and transposes every slab.
fn finish(index: &Index, values: &mut Bytes) {
    let undecided = -(index.stones() as i8);
    let mut copy = Vec::new();
    for slab in index.slabs() {
        let (rows, columns) = (slab.mover_halves as usize, slab.opponent_halves as usize);
        let slab = &mut values[slab.offset as usize..][..rows * columns];
        copy.clear();
        copy.extend_from_slice(slab);
        slab.par_chunks_mut(TRANSPOSE_ROWS * rows).enumerate().for_each(|(at, band)| {
            let first = at * TRANSPOSE_ROWS;
            let width = band.len() / rows;
            for (row, from) in copy.chunks_exact(columns).enumerate() {
                for (column, &value) in from[first..first + width].iter().enumerate() {
                    band[column * rows + row] = if value < undecided { 0 } else { value };
                }
            }
        });
    }
    // The opening position of 48 stones lies behind all slabs and has no place in a method.
}
