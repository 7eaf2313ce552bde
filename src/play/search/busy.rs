//! Positions that threads of a search are searching, so that other threads search something else first.
//!
//! This is the simplified form of ABDADA (Weill 1996) by Tom Kerrigan: before a thread searches a move that
//! is not the first of its position, it looks whether another thread is searching that move to the same
//! depth, and if so, puts it off until after the others. The result of the other thread is then in the table.
//! A wrong answer, by a lost update or by two positions of one slot, costs time only.

use crate::board::PackedBoard;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads look here from this depth on: below, a search takes less time than to look.
pub(crate) const BUSY_DEPTH: i32 = 5;

/// The number of slots, a power of two: many more than the positions on the paths of all threads.
const SLOTS: usize = 1 << 12;

/// The bits of a depth.
const DEPTH_BITS: u32 = 6;

/// Positions that are being searched, each in the one slot of its position and depth. 0 is no position to
/// search: it has no stones.
pub(crate) struct BusyPositions(Box<[AtomicU64]>);

/// A position and the depth to which it is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BusyKey(u64);

impl BusyKey {
    #[inline]
    pub(crate) fn new(board: PackedBoard, depth: i32) -> BusyKey {
        BusyKey(board.number() << DEPTH_BITS | (depth as u64) & ((1 << DEPTH_BITS) - 1))
    }
}

impl BusyPositions {
    pub(crate) fn new() -> BusyPositions {
        BusyPositions((0..SLOTS).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn slot(&self, key: BusyKey) -> &AtomicU64 {
        &self.0[(key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS.ilog2())) as usize]
    }

    /// Whether a thread searches the position.
    #[inline]
    pub(crate) fn contains(&self, key: BusyKey) -> bool {
        self.slot(key).load(Ordering::Relaxed) == key.0
    }

    /// Enters a position before it is searched.
    #[inline]
    pub(crate) fn begin(&self, key: BusyKey) {
        self.slot(key).store(key.0, Ordering::Relaxed);
    }

    /// Removes a position that has been searched.
    #[inline]
    pub(crate) fn end(&self, key: BusyKey) {
        if self.contains(key) {
            self.slot(key).store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use game::Board;

    #[test]
    fn positions_are_busy_from_their_begin_to_their_end() {
        let busy = BusyPositions::new();
        let opening = PackedBoard::new(&Board::OPENING);
        let keys = [5, 6].map(|depth| BusyKey::new(opening, depth));
        busy.begin(keys[0]);
        assert_eq!(keys.map(|key| busy.contains(key)), [true, false]);
        busy.begin(keys[1]);
        busy.end(keys[0]);
        assert_eq!(keys.map(|key| busy.contains(key)), [false, true]);
    }
}
