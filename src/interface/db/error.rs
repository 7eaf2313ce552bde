//! Errors.

use oracle::OracleError;
use std::path::PathBuf;
use store::StoreError;
use thiserror::Error;

/// Why databases cannot be opened, or a question not be answered. The message names the file and the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory holds no databases.
    #[error("{} holds no databases, expected files such as databases/08.awari", .0.display())]
    NoDatabases(PathBuf),
    /// The position or its text is invalid.
    #[error("invalid position: {0}")]
    Position(String),
    /// There is no database with this number of stones.
    #[error("no {0}-stone database here")]
    Missing(u32),
    /// The position set of the databases does not contain the position: its opponent has no empty pit.
    #[error("the databases hold reachable positions only, and no move leads to {0}")]
    NotContained(String),
    /// By the rules of the databases the position has two bounds, which differ.
    #[error("the position has no score but two bounds, {low} and {high}; `Databases::bounds` returns both")]
    Bounds {
        /// What the player to move can force.
        low: i8,
        /// To what the opponent can hold the player to move.
        high: i8,
    },
    /// By the rules of the databases positions have two bounds instead of a score.
    #[error("positions have no scores by the rules {0}, but two bounds; `Database::read_bounds` reads both")]
    NoScores(&'static str),
    /// The databases of a directory are of different rules, position sets or games.
    #[error("{0}")]
    Mixed(String),
    /// A database is of rules or positions that this version of the library does not know.
    #[error("{0}")]
    Unknown(String),
    /// A database is damaged or wrong.
    #[error("{0}")]
    Damaged(String),
    /// The operating system failed to read a file.
    #[error("{0}")]
    Io(String),
}

impl From<OracleError> for Error {
    fn from(error: OracleError) -> Error {
        match error {
            OracleError::Missing { stones, .. } => Error::Missing(stones),
            OracleError::Store(error) => Error::from(*error),
            error @ OracleError::SearchTable { .. } => Error::Io(error.to_string()),
            error @ (OracleError::Mixed(_) | OracleError::Beyond { .. }) => Error::Mixed(error.to_string()),
            error @ OracleError::Unknown { .. } => Error::Unknown(error.to_string()),
            error => Error::Damaged(error.to_string()),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error.is_damage() {
            true => Error::Damaged(error.to_string()),
            false => Error::Io(error.to_string()),
        }
    }
}
