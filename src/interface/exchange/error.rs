//! Errors of export, comparison and archives.

use disk::DiskError;
use game::quantity::plural;
use std::path::PathBuf;
use store::StoreError;
use thiserror::Error;

/// An error of an exchange.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum ExchangeError {
    /// The caller requested a stop.
    #[error("stopped on request; incomplete files were removed")]
    Stopped,
    /// The database cannot be read, or is damaged.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file of the same name exists with other content.
    #[error(
        "{} exists and differs from the new file from byte {offset} on; replace it with --force, or choose another \
         directory", path.display()
    )]
    Exists {
        path: PathBuf,
        /// The offset of the first different byte, or the end of the shorter file.
        offset: u64,
    },
    /// There is not enough memory for an array.
    #[error("cannot allocate {}: {}", disk::bytes(*bytes as u64), disk::reason(source))]
    Memory { bytes: usize, source: std::io::Error },
    /// A file of the same name exists that is not an archive of the scores.
    #[error(
        "{} exists and is not a valid archive of these scores; replace it with --force, or choose another directory",
        path.display()
    )]
    Others { path: PathBuf },
    /// The restored scores differ from those of the archive.
    #[error(
        "{} does not restore the scores that it was made of: the smaller databases differ from those that it was made \
         with; restore them from the same set of archives, or build them", path.display()
    )]
    Restored { path: PathBuf },
    /// The database is too large for text, unless forced.
    #[error(
        "the {stones}-stone database has {}, as csv about {}; expected at most {}: choose another format, or write it with --force",
        plural(*positions, "position"), disk::bytes(*bytes), plural(*limit, "position")
    )]
    TooLarge {
        stones: u32,
        positions: u64,
        bytes: u64,
        /// The most positions that are written without force.
        limit: u64,
    },
    /// The layout cannot represent the database.
    #[error("{what}")]
    Unsupported {
        /// The reason and the remedy.
        what: String,
    },
    /// A Parquet table was asked for without the feature `parquet`.
    #[error(
        "built without Parquet: choose another format, or in Python write the columns of `awari.open(DIR).table(N)`; from a checkout, \
         `cargo build --release --features parquet` builds the program with it"
    )]
    NoParquet,
    /// The file to compare with is absent.
    #[error(
        "{} does not exist: expected a file of {} with the scores of {}; exclude these \
         with --stones",
        path.display(), disk::bytes(*expected), plural((*stones).into(), "stone")
    )]
    Missing { path: PathBuf, stones: u32, expected: u64 },
    /// The file to compare with has another length.
    #[error(
        "{} has {}, expected {expected}, one for each reachable position of {}: it is \
         incomplete or has another layout",
        path.display(), disk::bytes(*found), plural((*stones).into(), "stone")
    )]
    Length { path: PathBuf, stones: u32, expected: u64, found: u64 },
    /// The encoder of a format failed.
    #[error("{} cannot be encoded: {what}", path.display())]
    Encoder { path: PathBuf, what: String },
}

impl From<StoreError> for ExchangeError {
    fn from(error: StoreError) -> ExchangeError {
        ExchangeError::Store(Box::new(error))
    }
}
