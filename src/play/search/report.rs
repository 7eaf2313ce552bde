//! The result of a search.

use game::{Board, Pit, Score};
use std::time::Duration;

/// What a search found out about a position.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchReport {
    /// Proved lower bound of the score.
    pub low: Score,
    /// Proved upper bound of the score.
    pub high: Score,
    /// The estimate of the score, in hundredths of a stone.
    pub estimate: i32,
    /// The legal moves, best first; none if the player to move cannot move.
    pub moves: Vec<SearchedMove>,
    /// The depth of the last iteration.
    pub depth: u32,
    /// The number of positions searched.
    pub nodes: u64,
    /// The number of scores that databases gave.
    pub probes: u64,
    /// The time taken.
    pub time: Duration,
    /// A position whose proved bounds contradict each other: a database is wrong, and no bound can be trusted.
    pub contradiction: Option<Board>,
    /// The share of the table that this search uses, in thousandths, from a sample.
    pub table_permille: u32,
}

/// What a search found out about a move.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedMove {
    /// The pit sown from.
    pub pit: Pit,
    /// The captured stones.
    pub captured: u8,
    /// Proved lower bound of its value for the mover, captured stones included.
    pub low: Score,
    /// Proved upper bound of its value.
    pub high: Score,
    /// The estimate of its value.
    pub estimate: MoveEstimate,
    /// The expected line of play that begins with the move.
    pub line: Vec<Pit>,
}

impl SearchedMove {
    /// Returns the estimate within the proved bounds, in hundredths of a stone.
    pub fn estimated_hundredths(&self) -> i32 {
        self.estimate.hundredths().clamp(i32::from(self.low) * 100, i32::from(self.high) * 100)
    }
}

/// An estimate of the value of a move, in hundredths of a stone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveEstimate {
    /// The value of the best line.
    About(i32),
    /// The move is worse than a better one; the search did not find out how much.
    AtMost(i32),
}

impl MoveEstimate {
    /// Returns the number.
    pub fn hundredths(self) -> i32 {
        match self {
            MoveEstimate::About(value) | MoveEstimate::AtMost(value) => value,
        }
    }

    /// Returns the estimate, moved into proved bounds.
    pub(crate) fn within(self, low: i32, high: i32) -> MoveEstimate {
        match self {
            MoveEstimate::About(value) => MoveEstimate::About(value.clamp(low, high)),
            MoveEstimate::AtMost(value) => MoveEstimate::AtMost(value.clamp(low, high)),
        }
    }
}

impl SearchReport {
    /// Whether the score is proved.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}
