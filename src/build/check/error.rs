//! Errors of checks.

use crate::wrong_score::WrongScore;
use game::notation::PositionText;
use game::quantity::plural;
use game::{Board, PositionSet, Score};
use std::collections::TryReserveError;
use std::fmt;
use std::path::PathBuf;
use store::StoreError;
use thiserror::Error;

/// The result of a check.
pub type Result<T, E = CheckError> = std::result::Result<T, E>;

/// The reason why a database failed a check, or why the check could not finish.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum CheckError {
    /// The check stopped on request.
    #[error("stopped on request")]
    Stopped,
    /// A file cannot be read, or contradicts its header.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// Blocks of a file are damaged.
    #[error("{} of the blocks of {} are damaged: {}", blocks.len(), path.display(), ErrorList(first))]
    Damaged {
        path: PathBuf,
        /// All damaged blocks, ascending.
        blocks: Vec<usize>,
        /// The errors of the first damaged blocks.
        first: Vec<StoreError>,
    },
    /// A text does not parse as statistics.
    #[error("expected the statistics of a database as JSON, found {found}; `awari run MANIFEST` writes them again")]
    Statistics { found: String },
    /// A database that the check needs is missing.
    #[error("no {stones}-stone database here; build it first")]
    Missing { stones: u32 },
    /// There is not enough memory.
    #[error(
        "the certificate of {} of {stones} stones takes two bits a position in memory: {source}; close other programs, or \
         verify without --certify",
        plural(*positions, "position")
    )]
    Memory { stones: u32, positions: u64, source: TryReserveError },
    /// A database has the wrong number of scores.
    #[error("the {stones}-stone database has {}, expected {expected} (positions {set})", plural(*found, "score"))]
    Size { stones: u32, set: PositionSet, expected: u64, found: u64 },
    /// A score exceeds the stones on the board.
    #[error(
        "position {} of the {stones}-stone database scores {found}, expected -{stones} to {stones}",
        PositionText::of_board(*board)
    )]
    Range { stones: u32, board: Board, found: Score },
    /// A move leads to a position that is not in the position set.
    #[error(
        "position {} follows from a move, but is not in the set `{set}`",
        PositionText::of_board(*board)
    )]
    Outside { board: Board, set: PositionSet },
    /// Scores do not follow from those of the children.
    #[error("{mistakes} of {} checked in the {stones}-stone database {} wrong: {}",
        plural(*checked, "position"), if *mistakes == 1 { "is" } else { "are" }, ErrorList(first))]
    Wrong {
        stones: u32,
        mistakes: u64,
        checked: u64,
        /// The first of them, in the order of the database.
        first: Vec<WrongScore>,
    },
    /// A lower bound exceeds the upper one.
    #[error(
        "position {} of {stones} stones has the bounds {low} and {high}, expected the lower one first",
        PositionText::of_board(*board)
    )]
    Crossed { stones: u32, board: Board, low: Score, high: Score },
    /// Claims cannot be derived.
    #[error(
        "the {stones}-stone database claims {} of {bound} or -{bound} that cannot be derived, \
         for example {} which it scores {claimed}: its scores are consistent at best, not proved",
        plural(*unproved, "score"),
        PositionText::of_board(*board)
    )]
    Uncertified {
        stones: u32,
        /// The bound at which the derivation stopped.
        bound: Score,
        /// The number of claims of that size that are not derived.
        unproved: u64,
        board: Board,
        claimed: Score,
    },
}

impl CheckError {
    /// Describes the error without the file and the remedy.
    pub fn what(&self) -> String {
        match self {
            CheckError::Store(error) => error.what(),
            CheckError::Damaged { blocks, first, .. } => {
                let first: Vec<String> = first.iter().map(StoreError::what).collect();
                match blocks.len() {
                    1 => first.join("; "),
                    count => format!("{count} blocks; {}", first.join("; ")),
                }
            }
            other => other.to_string(),
        }
    }
}

impl From<StoreError> for CheckError {
    fn from(error: StoreError) -> CheckError {
        CheckError::Store(Box::new(error))
    }
}

/// A list in an error message.
struct ErrorList<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for ErrorList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, entry) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{entry}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_counts_damaged_blocks() {
        let block = |found: &str| StoreError::Mismatch {
            path: "05.awari".into(),
            expected: "5 stones".to_owned(),
            found: found.to_owned(),
        };
        let damaged =
            |blocks: Vec<usize>, first: Vec<StoreError>| CheckError::Damaged { path: "05.awari".into(), blocks, first };
        let single = damaged(vec![3], vec![block("4")]).what();
        assert!(single.contains("4") && !single.contains("blocks") && !single.contains("05.awari"), "{single}");
        let several = damaged(vec![3, 7], vec![block("4"), block("6")]).what();
        assert!(several.starts_with("2 blocks; ") && several.contains("4") && several.contains("6"), "{several}");
        assert_eq!(CheckError::Missing { stones: 9 }.what(), CheckError::Missing { stones: 9 }.to_string());
    }
}
