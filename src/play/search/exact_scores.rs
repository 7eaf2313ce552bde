//! What a search knows without searching.

use crate::memo::BoundsMemo;
use crate::open_estimates::OpenEstimates;
use game::{Board, Score};

/// Databases of exact scores.
pub trait ExactScores: Sync {
    /// Whether scores of positions with this number of stones are known, all or nearly all.
    fn knows(&self, stones: u32) -> bool;

    /// Returns the score of a position, if it is known.
    fn score(&self, board: &Board) -> Option<Score>;

    /// As [`score`](Self::score), but only if that takes no longer than searching a few positions. Most
    /// positions of a search are looked up in this way.
    fn ready_score(&self, board: &Board) -> Option<Score> {
        self.score(board)
    }

    /// Returns bounds of the score of a position, if any are known.
    fn bounds(&self, board: &Board) -> Option<(Score, Score)> {
        self.score(board).map(|score| (score, score))
    }

    /// As [`bounds`](Self::bounds), on the condition of [`ready_score`](Self::ready_score).
    fn ready_bounds(&self, board: &Board) -> Option<(Score, Score)> {
        self.ready_score(board).map(|score| (score, score))
    }

    /// Returns the memo in which a search keeps the bounds of small positions that it has looked up here;
    /// `None` if it must keep none.
    fn memo(&self) -> Option<&BoundsMemo> {
        None
    }

    /// Returns estimates of small boards whose bounds differ, made from these databases by the rules of the search.
    /// Their bounds are taken for those of [`bounds`](Self::bounds).
    fn open_estimates(&self) -> Option<&OpenEstimates> {
        None
    }
}

/// No databases.
#[derive(Clone, Copy, Debug)]
pub struct NoScores;

impl ExactScores for NoScores {
    fn knows(&self, _: u32) -> bool {
        false
    }

    fn score(&self, _: &Board) -> Option<Score> {
        None
    }
}
