//! Errors of the oracle.

use crate::bounds::Bounds;
use game::notation::PositionText;
use game::{Board, Score};
use std::path::PathBuf;
use std::sync::Arc;
use store::StoreError;
use thiserror::Error;

/// The reason why a library cannot be opened or a query cannot be answered.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum OracleError {
    /// The database with the answer is missing.
    #[error("no {stones}-stone database here{}", of_largest(*largest))]
    Missing { stones: u32, largest: Option<u32> },
    /// The database with the answer cannot be read or trusted.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// The database with the answer could not be opened.
    #[error("{error}")]
    Damaged { stones: u32, error: Arc<StoreError> },
    /// The databases have different rules or position sets.
    #[error(
        "{} has rules {}, positions {}, but {} has rules {}, positions {}: all databases of a directory must have the \
         same rules and positions; if a run that replaces them was stopped, `awari run MANIFEST --replace` goes on; \
         otherwise move those of one kind to another directory",
        .0.path.display(), .0.rules, .0.positions, .0.first_path.display(), .0.first_rules, .0.first_positions
    )]
    Mixed(Box<Mixed>),
    /// A database has unknown rules or positions.
    #[error("{} has {what}, which this program does not know; use the program that made it", path.display())]
    Unknown {
        path: PathBuf,
        /// The unknown rules or position set, by name.
        what: String,
    },
    /// A file is not a database, or has another number of stones than its name.
    #[error("{} is {found}, expected {expected}; move it away and rebuild it with `awari run \
        MANIFEST`", path.display())]
    Misplaced {
        path: PathBuf,
        /// The identity that its name implies.
        expected: String,
        found: String,
    },
    /// A database has more stones than the game whose opening position another one holds.
    #[error(
        "{} has more stones than the game of {opening}, whose opening position {} holds: all databases of a directory must be \
         of the same game; move those of one game to another directory",
        path.display(), holder.display()
    )]
    Beyond { path: PathBuf, opening: u32, holder: PathBuf },
    /// A database contradicts the rules.
    #[error(
        "the {}-stone database scores position {} {found}, but its moves are worth {expected}; \
         `awari verify` shows which databases are wrong",
        board.stones(), PositionText::of_board(*board)
    )]
    Inconsistent {
        board: Board,
        /// The value of its best move.
        expected: Bounds,
        found: Bounds,
    },
    /// A database gives a position a lower bound above the upper one.
    #[error(
        "the {}-stone database gives position {} the lower bound {low} and the upper bound {high}; \
         `awari verify` shows which databases are wrong",
        board.stones(), PositionText::of_board(*board)
    )]
    Crossed { board: Board, low: Score, high: Score },
    /// The system refuses the memory of the table of a short search.
    #[error("no memory to search the position: {error}; end other programs, or ask for less at a time")]
    SearchTable { error: std::io::Error },
    /// Scores that a search met contradict each other.
    #[error(
        "the databases contradict each other about position {}; `awari verify` shows which of them are wrong",
        PositionText::of_board(*board)
    )]
    Contradiction {
        /// A position whose proved bounds exclude each other.
        board: Board,
    },
}

fn of_largest(largest: Option<u32>) -> String {
    largest.map_or_else(String::new, |largest| format!(" (the largest has {largest})"))
}

/// Two databases with different rules or position sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixed {
    /// The first one.
    pub first_path: PathBuf,
    /// Its rules.
    pub first_rules: String,
    /// Its position set.
    pub first_positions: String,
    /// The other one.
    pub path: PathBuf,
    /// Its rules.
    pub rules: String,
    /// Its position set.
    pub positions: String,
}

impl OracleError {
    /// Whether a database is damaged or wrong, as opposed to absent.
    pub fn is_damage(&self) -> bool {
        match self {
            OracleError::Missing { .. } | OracleError::SearchTable { .. } => false,
            OracleError::Store(error) => !matches!(**error, StoreError::Disk(_)),
            OracleError::Damaged { .. }
            | OracleError::Mixed(_)
            | OracleError::Unknown { .. }
            | OracleError::Misplaced { .. }
            | OracleError::Beyond { .. }
            | OracleError::Inconsistent { .. }
            | OracleError::Crossed { .. }
            | OracleError::Contradiction { .. } => true,
        }
    }
}

impl From<StoreError> for OracleError {
    fn from(error: StoreError) -> OracleError {
        OracleError::Store(Box::new(error))
    }
}
