//! A score that the checks contradict.

use game::notation::PositionText;
use game::{Board, Score};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A position whose score does not follow from those of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongScore {
    /// The position.
    #[serde(with = "BoardPits")]
    pub board: Board,
    /// The score that its children imply.
    pub expected: Score,
    /// The score in the database.
    pub found: Score,
}

/// Pits of a board, to be serialized.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Board")]
struct BoardPits([u8; 12]);

impl fmt::Display for WrongScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}: expected {}, found {}", PositionText::of_board(self.board), self.expected, self.found)
    }
}
