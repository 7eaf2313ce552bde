//! The method *counting*: each decided position updates its parents once, bound by bound (Bal & Allis 1995).
//!
//! Positions are partitioned among logical processors. The upper bound on undecided scores descends from n. At bound b,
//! a position with a capture that scores b is won, and a position with no undecided quiet child and a best capture of
//! at most -b is lost. Each newly decided position updates its parents: the parents of a lost position are won at this
//! bound, the parents of a won position have one undecided child less. Positions that are undecided below bound 1 can
//! only repeat, and score 0.
//!
//! A position decided at bound b scores b or -b, so best values need not be stored. A position is one byte, in
//! `MoverMajor` order like the captures: its score once decided, before that `-(n + 1 + c)` with c undecided quiet
//! children. The best capture is not counted as a child, so testing all captures again for a bound changes nothing, and
//! a stopped solve resumes at the bound of its least decided score.
//!
//! Updates to positions of other processors are combined into messages. In a *superstep* every processor receives its
//! messages, then updates parents until nothing is pending or a queue is full; then queues are exchanged. Processors
//! share nothing else, so the counts of a [`CountingReport`] depend on the distribution and on n, not on threads. (The
//! paper's processors run asynchronously and need to detect the end of a bound; here that is a superstep without
//! messages. Its `handle` does not test the status: taken literally, a decided position that receives another update
//! updates its parents twice.)

pub(crate) mod partition;
mod pending;
mod processor;
pub mod ranks;
mod unmoves;

pub use ranks::{CountingReport, RankValues, counting};

use processor::ActiveProcessor;

/// Bytes of an update: a position of the receiver, and one bit for what its child scores.
pub const UPDATE_BYTES: u64 = 4;

/// Most updates in a message: 4 KiB.
pub const BATCH: usize = 1024;

/// Updates in all queues of a processor, about: what one superstep can send. They take 1 MiB, and milliseconds to
/// process, which makes the barrier cheap.
pub const QUEUED: usize = 1 << 18;

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

/// Range of the values in the array of an unfinished solve, and so in a checkpoint: scores, counts below them, then
/// lost and won positions with pending updates of their parents.
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
    // A bit a position, and one for 64 of them; at the end, instead, rows that are collected, of one slab at most.
    let bits = set.slab_positions(index_stones) / 8 * 65 / 64;
    largest.max(bits) + processors as u64 * processor::QUEUES_BYTES
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
