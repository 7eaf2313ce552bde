//! Answers for positions.

use crate::arguments;
use crate::rules::board_html;
use awari_db::{Bounds, Position};
use pyo3::prelude::*;

/// A legal move.
///
/// pit is the pit sown from, "A" to "F"; captured the number of captured stones; value what the move is worth
/// to the player to move, captured stones included, or None if that is not known but its bounds, which
/// differ; bounds its lower and upper bound, both the value if that is known; child the twelve pits after the
/// move, seen from the opponent.
#[pyclass(frozen, get_all, eq, hash, module = "awari")]
#[derive(Clone, PartialEq, Hash)]
pub(crate) struct Move {
    /// The pit sown from, "A" to "F".
    pit: char,
    /// The number of captured stones.
    captured: u8,
    /// The captured stones, minus the score of the position after the move; None if that position has none.
    value: Option<i8>,
    /// The captured stones, minus the upper and minus the lower bound of the position after the move.
    bounds: (i8, i8),
    /// The twelve pits after the move, seen from the opponent, who moves next.
    child: Vec<u32>,
}

/// The score of a position, and its legal moves with their values, "A" to "F".
///
/// By rules where a position has two bounds, such as oware, score is None unless they are equal; bounds is
/// what the player to move can force, and to what the opponent can hold that player. By other rules both are
/// the score.
#[pyclass(frozen, get_all, eq, module = "awari")]
#[derive(PartialEq)]
pub(crate) struct Probe {
    /// The stones that the player to move will capture, minus those that the opponent will; None if the bounds differ.
    score: Option<i8>,
    /// What the player to move can force, and to what the opponent can hold that player.
    bounds: (i8, i8),
    /// The legal moves. Empty if the player to move cannot move; the game is then over.
    moves: Vec<Move>,
    /// The twelve pits, those of the player to move first.
    position: Vec<u32>,
}

impl From<awari_db::Move> for Move {
    fn from(played: awari_db::Move) -> Move {
        let awari_db::Move { pit, captured, value, child, .. } = played;
        let child = child.pits().map(u32::from).to_vec();
        Move { pit, captured, value: value.score(), bounds: (value.low(), value.high()), child }
    }
}

impl Probe {
    pub(crate) fn new(position: &Position, bounds: Bounds, moves: Vec<awari_db::Move>) -> Probe {
        let moves = moves.into_iter().map(Move::from).collect();
        let position = position.pits().map(u32::from).to_vec();
        Probe { score: bounds.score(), bounds: (bounds.low(), bounds.high()), moves, position }
    }
}

/// Formats a score, or the bounds in its place.
fn text(name: &str, score: Option<i8>, bounds: (i8, i8)) -> String {
    match score {
        Some(score) => format!("{name}={score}"),
        None => format!("{name}=None, bounds={bounds:?}"),
    }
}

impl Move {
    fn row(&self) -> String {
        let value =
            self.value.map_or_else(|| format!("{} to {}", self.bounds.0, self.bounds.1), |value| value.to_string());
        format!("<tr><td>{}</td><td>{}</td><td>{value}</td></tr>", self.pit, self.captured)
    }
}

#[pymethods]
impl Move {
    fn __repr__(&self) -> String {
        let Move { pit, captured, value, bounds, child } = self;
        format!("Move(pit='{pit}', captured={captured}, {}, child={child:?})", text("value", *value, *bounds))
    }
}

#[pymethods]
impl Probe {
    fn __repr__(&self) -> String {
        let moves: Vec<String> = self.moves.iter().map(|candidate| format!("\n  {}", candidate.__repr__())).collect();
        format!("Probe({}, moves=[{}])", text("score", self.score, self.bounds), moves.join(","))
    }

    fn _repr_html_(&self) -> PyResult<String> {
        let rows: String = self.moves.iter().map(Move::row).collect();
        Ok(format!(
            "{}<p>{}</p><table><tr><th>pit</th><th>captures</th><th>value</th></tr>{rows}</table>",
            board_html(&arguments::of_pits(&self.position)?),
            text("score", self.score, self.bounds),
        ))
    }
}
