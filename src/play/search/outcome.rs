//! What a search finds out about a position: an estimate beside proved bounds, and how they follow from its moves.

use crate::board::{PackedBoard, SearchMove};
use crate::table::STONE;
use game::Rules;

/// What a search found out about a position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// The estimate, or a bound of it outside the window.
    pub(crate) estimate: i32,
    pub(crate) low: i8,
    pub(crate) high: i8,
    /// The lower bound if repetitions of positions on the path are worth 0.
    pub(crate) assumed_low: i8,
    /// The upper bound if repetitions of positions on the path are worth 0.
    pub(crate) assumed_high: i8,
    /// The first position on the path that a line below repeats; [`PATH_FREE`] if none.
    pub(crate) repeats: u32,
}

/// The value of [`Outcome::repeats`] for what does not depend on the path.
pub(crate) const PATH_FREE: u32 = u32::MAX;

impl Outcome {
    /// A score that does not depend on the path.
    pub(crate) fn exact(score: i32) -> Outcome {
        Outcome::bounded(score * STONE, score, score)
    }

    /// A repetition of the first position of the game.
    pub(crate) fn repetition(rules: &Rules, board: PackedBoard) -> Outcome {
        let stones = board.stones() as i32;
        let value = i32::from(rules.repetition_score(&board.board()));
        let unknown = Outcome { repeats: 0, ..Outcome::bounded(value * STONE, -stones, stones) };
        if rules.has_scores() { Outcome { assumed_low: 0, assumed_high: 0, ..unknown } } else { unknown }
    }

    /// An outcome that does not depend on the path.
    #[inline]
    pub(crate) fn bounded(estimate: i32, low: i32, high: i32) -> Outcome {
        let (low, high) = (low as i8, high as i8);
        Outcome { estimate, low, high, assumed_low: low, assumed_high: high, repeats: PATH_FREE }
    }
}

/// What the moves of a position have come to so far.
pub(crate) struct FoundMoves {
    pub(crate) alpha: i32,
    /// The best estimate, and the pit that has it.
    pub(crate) estimate: i32,
    pub(crate) pit: Option<u8>,
    /// As in an [`Outcome`], of the position before the moves.
    pub(crate) low: i32,
    pub(crate) high: i32,
    pub(crate) assumed_low: i32,
    pub(crate) assumed_high: i32,
    pub(crate) repeats: u32,
}

impl FoundMoves {
    pub(crate) fn none(stones: i32, alpha: i32) -> FoundMoves {
        let least = -stones;
        let (low, high, assumed_low, assumed_high) = (least, least, least, least);
        FoundMoves { alpha, estimate: i32::MIN, pit: None, low, high, assumed_low, assumed_high, repeats: PATH_FREE }
    }

    /// Adds a move, and returns whether it is better than all before and than the start of the window.
    #[inline]
    pub(crate) fn add(&mut self, candidate: &SearchMove, found: &Outcome) -> bool {
        let (captured, estimate) = (i32::from(candidate.captured), candidate.estimate(found));
        self.repeats = self.repeats.min(found.repeats);
        self.low = self.low.max(captured - i32::from(found.high));
        self.high = self.high.max(captured - i32::from(found.low));
        self.assumed_low = self.assumed_low.max(captured - i32::from(found.assumed_high));
        self.assumed_high = self.assumed_high.max(captured - i32::from(found.assumed_low));
        if estimate > self.estimate {
            (self.estimate, self.pit) = (estimate, Some(candidate.pit));
        }
        let is_better = estimate > self.alpha;
        self.alpha = self.alpha.max(estimate);
        is_better
    }
}

impl SearchMove {
    /// Returns the estimate of the move, given what was found about the position after it.
    #[inline]
    pub(crate) fn estimate(&self, found: &Outcome) -> i32 {
        i32::from(self.captured) * STONE - found.estimate
    }
}
