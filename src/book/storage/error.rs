//! Errors of the file of a book.

use disk::DiskError;
use std::path::{Path, PathBuf};

/// An error of the file of a book.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// SQLite failed.
    #[error("{}: {source}{}", path.display(), remedy(source))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: rusqlite::Error,
    },
    /// There is no book.
    #[error("there is no book {}; `awari book expand` makes one", .0.display())]
    Missing(PathBuf),
    /// The file is none that this program wrote.
    #[error("{} is not a book: {what}; choose another file, or restore the book from a copy", path.display())]
    NotABook {
        /// The file.
        path: PathBuf,
        /// How it differs.
        what: String,
    },
    /// A writer changes the file again and again while it is read.
    #[error("{}: another program writes to it, try again", .0.display())]
    Busy(PathBuf),
    /// The book is by other rules.
    #[error("{}: expected a book with {rules}, found one with the rules {found}; choose another book, or the databases of these \
        rules", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The expected rules.
        rules: String,
        /// Those of the file.
        found: String,
    },
    /// The rules give no scores.
    #[error(
        "no book can have the rules {0}: a repetition gives each player the stones on the own side, so a position has \
        two values, and a book holds one; choose the databases of other rules"
    )]
    NoScores(&'static str),
    /// A row is impossible.
    #[error("{}: {what}; the file is damaged: restore it from a copy, or remove it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The lock or the directory cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl BookError {
    /// Whether the file is damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            BookError::Damaged { .. } | BookError::NotABook { .. } => true,
            BookError::Sqlite { source, .. } => is_damage(source),
            _ => false,
        }
    }
}

/// Whether an error of SQLite says that the bytes of a file are wrong. A query of a sound book is never interrupted.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, QueryReturnedNoRows, Utf8Error,
    };
    use rusqlite::ErrorCode::{
        ConstraintViolation, DatabaseCorrupt, NotADatabase, OperationInterrupted, TooBig, TypeMismatch,
    };
    match error {
        FromSqlConversionFailure(..)
        | IntegralValueOutOfRange(..)
        | InvalidColumnType(..)
        | QueryReturnedNoRows
        | Utf8Error(..) => true,
        error => matches!(
            error.sqlite_error_code(),
            Some(DatabaseCorrupt | NotADatabase | ConstraintViolation | OperationInterrupted | TooBig | TypeMismatch)
        ),
    }
}

fn remedy(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DatabaseBusy, DiskFull, ReadOnly};
    match error.sqlite_error_code() {
        _ if is_damage(error) => "; the file is damaged: restore it from a copy, or remove it",
        Some(DatabaseBusy) => "; another program writes to it, try again",
        Some(DiskFull) => "; free some space, or begin another book if it has 1 GiB",
        Some(ReadOnly) => "; the directory must be writable",
        _ => "",
    }
}

/// Returns the error of a failed operation of SQLite.
pub(super) fn failed(path: &Path, source: rusqlite::Error) -> BookError {
    match source {
        rusqlite::Error::FromSqlConversionFailure(_, _, what) => {
            BookError::Damaged { path: path.to_path_buf(), what: what.to_string() }
        }
        source => BookError::Sqlite { path: path.to_path_buf(), source },
    }
}
