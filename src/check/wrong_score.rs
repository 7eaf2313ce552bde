//! A score that the checks contradict.

use game::notation::PositionText;
use game::{Board, Score};
use std::fmt;

/// A position whose score does not follow from those of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongScore {
    /// The position.
    pub board: Board,
    /// What its children say it scores.
    pub expected: Score,
    /// What the database says.
    pub found: Score,
}

impl fmt::Display for WrongScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}: expected {}, found {}", PositionText::of_board(self.board), self.expected, self.found)
    }
}
