//! What positions do by the rules alone, without databases.

use crate::arguments;
use crate::error::exception;
use crate::position::RulePosition;
use awari_db::{Position, Rules, SownMove};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

impl RulePosition {
    fn sown(&self, pit: &str) -> PyResult<SownMove> {
        let mut letters = pit.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => self.position.play(&self.rules, letter).map_err(exception),
            _ => Err(PyValueError::new_err(format!("expected a pit from A to F, found {pit:?}"))),
        }
    }
}

#[pymethods]
impl RulePosition {
    #[new]
    #[pyo3(signature = (position=None, rules="awari"))]
    fn new(position: Option<&Bound<'_, PyAny>>, rules: &str) -> PyResult<RulePosition> {
        let position = position.map_or_else(|| Ok(Position::opening()), arguments::position)?;
        Ok(RulePosition { position, rules: arguments::rules(rules)? })
    }

    /// The twelve pits, A to F of the player to move and then a to f of the opponent.
    #[getter]
    fn pits(&self) -> Vec<u32> {
        self.position.pits().map(u32::from).to_vec()
    }

    /// The number of stones on the board.
    #[getter]
    fn stones(&self) -> u32 {
        self.position.stones()
    }

    /// The name of the rules.
    #[getter]
    fn rules(&self) -> &'static str {
        self.rules.name
    }

    /// Returns the pits of the legal moves, "A" to "F". There are none if the player to move cannot move; the
    /// game is then over.
    ///
    /// >>> awari.Position("0 0 0 1 1 3 0 0 0 0 0 0").moves()
    /// ['F']
    fn moves(&self) -> Vec<char> {
        self.position.moves(&self.rules).iter().map(|legal| legal.pit).collect()
    }

    /// Returns the position after a move, seen from the opponent. Raises ValueError if the move is not legal.
    ///
    /// >>> awari.Position().play("F").pits
    /// [5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 0]
    #[pyo3(signature = (pit, /))]
    fn play(&self, pit: &str) -> PyResult<RulePosition> {
        Ok(RulePosition { position: self.sown(pit)?.child, rules: self.rules })
    }

    /// Returns the number of stones that a move captures. Raises ValueError if the move is not legal.
    ///
    /// >>> awari.Position().captures("F")
    /// 0
    #[pyo3(signature = (pit, /))]
    fn captures(&self, pit: &str) -> PyResult<u8> {
        Ok(self.sown(pit)?.captured)
    }

    fn __str__(&self) -> String {
        format!("{:#}", self.position)
    }

    fn __repr__(&self) -> String {
        let rules = if self.rules == Rules::AWARI { String::new() } else { format!(", rules='{}'", self.rules.name) };
        format!("awari.Position('{}'{rules})", self.position)
    }

    fn _repr_html_(&self) -> String {
        board_html(&self.position)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (Vec<u32>, &'static str)) {
        let position = slf.get();
        (slf.get_type().into_any(), (position.pits(), position.rules.name))
    }
}

/// Draws a position as a table, the player to move below.
pub(crate) fn board_html(position: &Position) -> String {
    let pits = position.pits();
    let row = |places: &mut dyn Iterator<Item = usize>| {
        let cells: String =
            places.map(|place| format!("<td>{}<br><b>{}</b></td>", NAMES[place], pits[place])).collect();
        format!("<tr>{cells}</tr>")
    };
    format!("<table>{}{}</table>", row(&mut (6..12).rev()), row(&mut (0..6)))
}

/// The names of the pits.
pub(crate) const NAMES: [&str; arguments::PITS] = ["A", "B", "C", "D", "E", "F", "a", "b", "c", "d", "e", "f"];
