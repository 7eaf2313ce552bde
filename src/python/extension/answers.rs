//! Answers for positions.

use pyo3::prelude::*;

/// A legal move.
///
/// pit is the pit sown from, "A" to "F"; captured the number of captured stones; value what the move is worth to the
/// player to move, captured stones included; child the twelve pits after the move, seen from the opponent.
#[pyclass(frozen, get_all, eq, hash, module = "awari")]
#[derive(Clone, PartialEq, Hash)]
pub(crate) struct Move {
    /// The pit sown from, "A" to "F".
    pit: char,
    /// The number of captured stones.
    captured: u8,
    /// The captured stones, minus the score of the position after the move.
    value: i8,
    /// The twelve pits after the move, seen from the opponent, who moves next.
    child: Vec<u32>,
}

/// The score of a position, and its legal moves with their values, "A" to "F".
#[pyclass(frozen, get_all, eq, module = "awari")]
#[derive(PartialEq)]
pub(crate) struct Probe {
    /// The stones that the player to move will capture, minus those that the opponent will.
    score: i8,
    /// The legal moves. Empty if the player to move cannot move; the opponent then takes the remaining stones.
    moves: Vec<Move>,
}

impl From<awari_db::Move> for Move {
    fn from(played: awari_db::Move) -> Move {
        let awari_db::Move { pit, captured, value, child, .. } = played;
        Move { pit, captured, value, child: child.pits().map(u32::from).to_vec() }
    }
}

impl Probe {
    pub(crate) fn new(score: i8, moves: Vec<awari_db::Move>) -> Probe {
        Probe { score, moves: moves.into_iter().map(Move::from).collect() }
    }
}

#[pymethods]
impl Move {
    fn __repr__(&self) -> String {
        let Move { pit, captured, value, child } = self;
        format!("Move(pit='{pit}', captured={captured}, value={value}, child={child:?})")
    }
}

#[pymethods]
impl Probe {
    fn __repr__(&self) -> String {
        let moves: Vec<String> = self.moves.iter().map(Move::__repr__).collect();
        format!("Probe(score={}, moves=[{}])", self.score, moves.join(", "))
    }
}
