//! A position with its rules, as an object of Python.

use awari_db::{Position, Rules};
use pyo3::prelude::*;

/// A position by some rules, which needs no database: the opening, or twelve pits, the player to move first.
///
/// >>> import awari
/// >>> position = awari.Position()
/// >>> position.moves()
/// ['A', 'B', 'C', 'D', 'E', 'F']
/// >>> print(position.play("F"))
///   f  e  d  c  b  a
///   0  4  4  4  4  4
///   5  5  5  5  4  4
///   A  B  C  D  E  F
/// >>> awari.Position("0 0 0 0 0 2 1 1 0 0 0 1").captures("F")
/// 4
///
/// After a move the position is seen from the opponent, who moves next.
#[pyclass(frozen, eq, hash, name = "Position", module = "awari")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct RulePosition {
    pub(crate) position: Position,
    pub(crate) rules: Rules,
}
