//! The static evaluation: an estimate of the score without looking ahead.

use crate::board::PackedBoard;
use crate::table::STONE;
use game::Board;

/// An estimate of scores from features of the board: a sixth of the difference of stones, and a stone for the move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evaluation {}

impl Evaluation {
    /// Returns the estimate of the score of a position, in hundredths of a stone.
    pub fn hundredths(&self, board: &Board) -> i32 {
        self.estimate(PackedBoard::new(board)) * 100 / STONE
    }

    /// Returns the estimate in units of 1/[`STONE`] stone.
    #[inline]
    pub(crate) fn estimate(&self, board: PackedBoard) -> i32 {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let sum = |half: u64| (half.wrapping_mul(ONES) >> 56) as i32;
        (sum(board.mover) - sum(board.opponent)) * STONE / 6 + STONE
    }
}
