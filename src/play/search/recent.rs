//! Static estimates of positions that a thread has evaluated last.
//!
//! A search comes to the same positions again: in the next iteration, after a search to a smaller depth, and
//! by another order of moves. Estimates take most of the time of a search, and positions at the ends of lines
//! are not in the table.

use crate::board::PackedBoard;
use crate::evaluation::Evaluation;

/// The number of slots, a power of two: 64 KiB. With four times as many a search is slower, since they do not
/// stay in the cache of a core.
const SLOTS: usize = 1 << 12;

/// The bits of a half that hold its stones.
const HALF_BITS: u32 = 48;

/// Estimates by position, each in the one slot of its position.
pub(crate) struct RecentEstimates {
    /// The mover's half; the opponent's half, with the estimate in its high bits.
    slots: Vec<[u64; 2]>,
}

impl RecentEstimates {
    pub(crate) fn new() -> RecentEstimates {
        // No half has these bits.
        RecentEstimates { slots: vec![[u64::MAX; 2]; SLOTS] }
    }

    /// Returns the estimate of a position, in units of 1/[`STONE`](crate::table::STONE) stone.
    #[inline]
    pub(crate) fn estimate(&mut self, evaluation: &Evaluation, board: PackedBoard) -> i32 {
        let slot = &mut self.slots[slot_of(board)];
        if slot[0] == board.mover && slot[1] & ((1 << HALF_BITS) - 1) == board.opponent {
            return i32::from((slot[1] >> HALF_BITS) as i16);
        }
        let estimate = evaluation.estimate(board);
        // That of any sensible evaluation fits.
        if let Ok(short) = i16::try_from(estimate) {
            *slot = [board.mover, board.opponent | u64::from(short as u16) << HALF_BITS];
        }
        estimate
    }
}

/// Returns the slot of a position.
#[inline]
fn slot_of(board: PackedBoard) -> usize {
    let mixed = board.mover.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ board.opponent.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> (u64::BITS - SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::SplitMix;
    use game::Board;
    use game::reference::boards;

    /// However many positions share a slot, each has its own estimate; also an estimate that does not fit.
    #[test]
    fn estimates_are_those_of_the_evaluation() {
        let mut network = Evaluation::default().network().unwrap().clone();
        network.direct.iter_mut().for_each(|weight| *weight = i16::MAX);
        let large = Evaluation::new(network);
        let all: Vec<PackedBoard> = (0..=6).flat_map(boards).map(|pits| PackedBoard::new(&Board(pits))).collect();
        assert!(all.len() > 3 * SLOTS);
        for evaluation in [Evaluation::default(), Evaluation::MATERIAL, large] {
            let mut recent = RecentEstimates::new();
            let mut random = SplitMix::new(1, 0);
            for _ in 0..all.len() {
                let board = all[random.below(all.len() as u64) as usize];
                let expected = evaluation.estimate(board);
                assert_eq!([0; 2].map(|_| recent.estimate(&evaluation, board)), [expected; 2], "{board:?}");
            }
        }
    }
}
