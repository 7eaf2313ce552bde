//! What a check finds wrong, or cannot read.

use crate::WrongScore;
use game::notation::PositionText;
use game::quantity::plural;
use game::{Board, PositionSet, Score};
use std::fmt;
use std::path::PathBuf;
use store::StoreError;
use thiserror::Error;

/// Why a database did not pass.
#[derive(Debug, Error)]
pub enum CheckError {
    /// The check was asked to stop.
    #[error("stopped on request")]
    Stopped,
    /// A file cannot be read, or is not what it says.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// Blocks of a file are not what was written.
    #[error("{} of the blocks of {} are damaged: {}", blocks.len(), path.display(), ErrorList(first))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// All damaged blocks, ascending.
        blocks: Vec<usize>,
        /// What is wrong with the first of them.
        first: Vec<StoreError>,
    },
    /// A text that is no record of statistics.
    #[error("expected the statistics of a database as JSON, found {found}; `awari run MANIFEST` writes them again")]
    Statistics {
        /// What is wrong with it.
        found: String,
    },
    /// A database that the check needs is not there.
    #[error("no {stones}-stone database here; build it first")]
    Missing {
        /// Its stones.
        stones: u32,
    },
    /// A database holds too few scores or too many.
    #[error("the {stones}-stone database has {}, expected {expected} (positions {set})", plural(*found, "score"))]
    Size {
        /// Its stones.
        stones: u32,
        /// The position set.
        set: PositionSet,
        /// Positions in the set.
        expected: u64,
        /// Scores in the database.
        found: u64,
    },
    /// A score beyond the stones on the board; others may be so too.
    #[error(
        "position {} of the {stones}-stone database scores {found}, expected -{stones} to {stones}",
        PositionText::of_board(*board)
    )]
    Range {
        /// The stones of the database.
        stones: u32,
        /// The position.
        board: Board,
        /// Its score.
        found: Score,
    },
    /// A move leads to a position that its database does not hold.
    #[error(
        "position {} follows from a move, but is not in the set `{set}`",
        PositionText::of_board(*board)
    )]
    Outside {
        /// The position.
        board: Board,
        /// The set.
        set: PositionSet,
    },
    /// Scores that do not follow from those of the children.
    #[error("{mistakes} of {} checked in the {stones}-stone database {} wrong: {}",
        plural(*checked, "position"), if *mistakes == 1 { "is" } else { "are" }, ErrorList(first))]
    Wrong {
        /// The stones of the database.
        stones: u32,
        /// How many positions are wrong.
        mistakes: u64,
        /// How many were looked at.
        checked: u64,
        /// The first of them, in the order of the database.
        first: Vec<WrongScore>,
    },
    /// Claims that no line of play proves.
    #[error(
        "the {stones}-stone database claims {} of {bound} or -{bound} that cannot be derived, \
         for example {} which it scores {claimed}: its scores are consistent at best, not proved",
        plural(*unproved, "score"),
        PositionText::of_board(*board)
    )]
    Uncertified {
        /// The stones of the database.
        stones: u32,
        /// The bound at which the derivation stopped.
        bound: Score,
        /// How many claims of that size are left.
        unproved: u64,
        /// The first of them.
        board: Board,
        /// What the database says of it.
        claimed: Score,
    },
}

impl CheckError {
    /// What is wrong with the database, for a message that names the file and the remedy itself.
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

/// A list in an error's text.
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
