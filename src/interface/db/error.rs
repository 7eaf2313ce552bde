//! Errors.

use disk::DiskError;
use oracle::OracleError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};
use store::StoreError;

/// Why databases cannot be opened, or a question not be answered. The message names the file and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory holds no databases.
    #[error("{} holds no databases, expected files such as databases/08.awari", .0.display())]
    NoDatabases(PathBuf),
    /// The position or its text is invalid.
    #[error("invalid position: {0}")]
    Position(String),
    /// A move is not legal.
    #[error("invalid move: {0}")]
    Move(String),
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
    /// The files do not belong together: their rules, position sets or games differ, or a file is not what
    /// its name says.
    #[error(transparent)]
    Mixed(FileError),
    /// This version of the library does not know the rules, the positions or the format of a file, or was
    /// built without its codec.
    #[error(transparent)]
    Unknown(FileError),
    /// A database is damaged or wrong.
    #[error(transparent)]
    Damaged(FileError),
    /// A file cannot be read. [`source`](std::error::Error::source) is the [`io::Error`].
    #[error(transparent)]
    Io(FileError),
}

/// What is wrong with a file, or with several.
#[derive(Debug)]
pub struct FileError {
    path: Option<PathBuf>,
    message: String,
    cause: Option<Arc<io::Error>>,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.message)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl Error {
    /// Returns the file or directory that the error is about; `None` if there is none, or if any of several
    /// files may be wrong.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::NoDatabases(directory) => Some(directory),
            Error::Mixed(error) | Error::Unknown(error) | Error::Damaged(error) | Error::Io(error) => {
                error.path.as_deref()
            }
            Error::Position(_)
            | Error::Move(_)
            | Error::Missing(_)
            | Error::NotContained(_)
            | Error::Bounds { .. }
            | Error::NoScores(_) => None,
        }
    }

    /// The error of a fitted evaluation that is not one.
    #[cfg(feature = "engine")]
    pub(crate) fn of_evaluation(path: PathBuf, error: &search::EvaluationError) -> Error {
        let remedy =
            "`awari run` makes it again if it is damaged; without the file, estimates come from the library's own";
        let message = format!("{}: {error} ({remedy})", path.display());
        Error::Damaged(FileError { path: Some(path), message, cause: None })
    }

    fn of_file(error: &StoreError) -> Error {
        let variant = match error {
            StoreError::Disk(error) => return Error::from(error),
            StoreError::Version { .. } | StoreError::Unsupported { .. } | StoreError::NotBuilt { .. } => Error::Unknown,
            StoreError::Archive { .. } | StoreError::Mismatch { .. } => Error::Mixed,
            _ => Error::Damaged,
        };
        variant(FileError { path: error.path().map(Path::to_path_buf), message: error.to_string(), cause: None })
    }
}

impl From<OracleError> for Error {
    fn from(error: OracleError) -> Error {
        let message = error.to_string();
        let about = |path| FileError { path, message, cause: None };
        match error {
            OracleError::Missing { stones, .. } => Error::Missing(stones),
            OracleError::Store(error) => Error::of_file(&error),
            OracleError::Damaged { error, .. } => Error::of_file(&error),
            OracleError::SearchTable { error } => Error::Io(FileError { cause: Some(Arc::new(error)), ..about(None) }),
            OracleError::Mixed(mixed) => Error::Mixed(about(Some(mixed.path))),
            OracleError::Beyond { path, .. } | OracleError::Misplaced { path, .. } => Error::Mixed(about(Some(path))),
            OracleError::Unknown { path, .. } => Error::Unknown(about(Some(path))),
            _ => Error::Damaged(about(None)),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::of_file(&error)
    }
}

impl From<&DiskError> for Error {
    fn from(error: &DiskError) -> Error {
        let cause = match error {
            DiskError::Io { source, .. } => Some(Arc::clone(source)),
            DiskError::PermissionDenied { .. } => Some(Arc::new(io::ErrorKind::PermissionDenied.into())),
            _ => None,
        };
        Error::Io(FileError { path: error.path().map(Path::to_path_buf), message: error.to_string(), cause })
    }
}
