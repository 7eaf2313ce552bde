//! Why a database does not go out, or a file of others cannot be compared.

use disk::DiskError;
use game::quantity::plural;
use std::path::PathBuf;
use store::StoreError;
use thiserror::Error;

/// Why an exchange failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The caller asked to stop.
    #[error("stopped on request; incomplete files were removed")]
    Stopped,
    /// The database cannot be read, or not trusted.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Another file has the name already.
    #[error(
        "{} exists and differs from the new file from byte {offset} on; replace it with --force, or choose another \
         directory", path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
        /// The first byte that differs, or where the shorter ends.
        offset: u64,
    },
    /// There is not enough memory for an array.
    #[error("cannot allocate {}: {}", disk::bytes(*bytes as u64), disk::reason(source))]
    Memory {
        /// How many bytes.
        bytes: usize,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A file of other scores has the name already.
    #[error(
        "{} exists and is not a valid archive of these scores; replace it with --force, or choose another directory",
        path.display()
    )]
    Others {
        /// The file.
        path: PathBuf,
    },
    /// What came out of an archive is not what went in.
    #[error(
        "{} does not restore the scores that it was made of: the smaller databases differ from those that it was made \
         with; restore them from the same set of archives, or build them", path.display()
    )]
    Restored {
        /// The archive.
        path: PathBuf,
    },
    /// Text of so many positions is rarely meant.
    #[error(
        "the {stones}-stone database has {}, as csv about {}; expected at most {}: choose another format, or write it with --force",
        plural(*positions, "position"), disk::bytes(*bytes), plural(*limit, "position")
    )]
    TooLarge {
        /// The stones of the database.
        stones: u32,
        /// Its positions.
        positions: u64,
        /// About how many bytes they would take.
        bytes: u64,
        /// How many positions are written without being forced.
        limit: u64,
    },
    /// The layout has no place for the database.
    #[error("{what}")]
    Unsupported {
        /// Why.
        what: String,
    },
    /// There is nothing to compare with.
    #[error(
        "{} does not exist: expected a file of {} with the scores of {}; exclude these \
         with --stones",
        path.display(), disk::bytes(*expected), plural((*stones).into(), "stone")
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The stones.
        stones: u32,
        /// Its length if it were there.
        expected: u64,
    },
    /// The file has another length than such scores take.
    #[error(
        "{} has {}, expected {expected}, one for each reachable position of {}: it is \
         incomplete or has another layout",
        path.display(), disk::bytes(*found), plural((*stones).into(), "stone")
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// The stones.
        stones: u32,
        /// How long it should be.
        expected: u64,
        /// How long it is.
        found: u64,
    },
    /// The encoder of a format failed.
    #[error("{} cannot be encoded: {what}", path.display())]
    Encoder {
        /// The file.
        path: PathBuf,
        /// What it says.
        what: String,
    },
}

impl From<StoreError> for ExchangeError {
    fn from(error: StoreError) -> ExchangeError {
        ExchangeError::Store(Box::new(error))
    }
}
