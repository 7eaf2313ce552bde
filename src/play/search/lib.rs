//! Searches for the scores of positions beyond the databases.
//!
//! A [`Searcher`] looks ahead from a position as far as its limits allow. What it returns about a position
//! and about each move has two parts that are never mixed:
//!
//! * *Proved bounds*: `low` and `high`, between which the score lies. They rest on the rules, on databases,
//!   and on nothing else.
//! * An *estimate* in hundredths of a stone, which is always within the bounds.
//!
//! Invariants:
//!
//! * Bounds do not depend on how a position was reached: a repetition proves nothing here, so bounds in the
//!   table hold for every search. (The estimate of a repetition is 0, and estimates that rest on one are not kept.)
//! * An entry of the table belongs to exactly one position, not to a hash value that others share.
//! * Nothing is allocated while positions are searched.
//!
//! The crate does no I/O; databases are behind the trait [`ExactScores`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod beyond;
mod board;
mod busy;
mod evaluation;
mod features;
mod inference;
mod limits;
mod memo;
mod memory;
mod recent;
mod report;
mod sampling;
mod searcher;
mod signature;
mod table;
#[cfg(test)]
mod tests;
mod training;
mod worker;

pub use beyond::EstimateSampler;
pub use evaluation::{Evaluation, EvaluationError};
pub use limits::{SearchLimits, SearchStop};
pub use memo::BoundsMemo;
pub use report::{MoveEstimate, SearchReport, SearchedMove};
pub use sampling::GameSampler;
pub use searcher::{SearchRequest, Searcher};
pub use signature::signature;
pub use table::TranspositionTable;
pub use training::Training;

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
