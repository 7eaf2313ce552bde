//! Errors of files: what was expected, what was found, and the remedy.

use crate::value_range::ValueRange;
use disk::{Digest, DiskError};
use std::path::{Path, PathBuf};

/// The remedy for a damaged file. A run trusts the journal until `verify` has recorded the damage.
fn remedy(path: &Path) -> String {
    let is_of_run = |folder: &Path| ["databases", "captures", "planes"].iter().any(|name| folder.ends_with(name));
    let folder = path.ancestors().skip(1).take(2).find(|folder| is_of_run(folder));
    let directory = match folder.and_then(Path::parent) {
        Some(directory) if directory.as_os_str().is_empty() => ".".to_owned(),
        Some(directory) => directory.display().to_string(),
        None => "DIR".to_owned(),
    };
    format!("`awari verify --dir {directory}` records it, and the next `awari run MANIFEST` rebuilds it")
}

/// The result of writing or reading a file.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of writing or reading a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum StoreError {
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file is not an awari file, or only a part of one.
    #[error(
        "{} is not a complete awari file: expected {expected}, found {found}; {}",
        path.display(),
        remedy(path)
    )]
    NotOurs { path: PathBuf, expected: String, found: String },
    /// The file has an unknown version of the format.
    #[error(
        "{} has format version {found}, expected at most {expected}; use the program that wrote it, or remove the \
         file and rebuild it with `awari run MANIFEST`",
        path.display()
    )]
    Version {
        path: PathBuf,
        /// The latest version that this program reads.
        expected: u32,
        found: u32,
    },
    /// The program was built without the codec of the file.
    #[error("{} has the codec zstd, which this program was built without: build it with the feature `zstd`", path.display())]
    NotBuilt { path: PathBuf },
    /// The bytes of the file have changed since it was written.
    #[error(
        "{} is damaged in {part}: expected {expected}, found {found}; {}",
        path.display(),
        remedy(path)
    )]
    Damaged {
        path: PathBuf,
        /// The damaged part: the header, the index, or a block with its positions.
        part: String,
        expected: String,
        found: String,
    },
    /// Another process writes to the file while it is read.
    #[error(
        "{} changed while it was read, so another process writes to it: find and stop that process; then {}",
        path.display(),
        remedy(path)
    )]
    Changing { path: PathBuf },
    /// The file is an archive, which is read with the help of smaller databases.
    #[error(
        "{} is an archive, expected a database; restore the database with `awari restore`",
        path.display()
    )]
    Archive { path: PathBuf },
    /// The file is sound, but its identity is not the expected one.
    #[error(
        "{} is the wrong file: expected {expected}, found {found}; remove the file and rebuild it with `awari run \
         MANIFEST`",
        path.display()
    )]
    Mismatch { path: PathBuf, expected: String, found: String },
    /// The digest of the scores differs from the one in the footer.
    #[error(
        "{} holds scores of digest {found}, expected {expected}; {}",
        path.display(),
        remedy(path)
    )]
    DigestDiffers { path: PathBuf, expected: Digest, found: Digest },
    /// A score lies outside the range declared for the file.
    #[error(
        "cannot write {}: position {position} has the value {value}, expected {range}; this is a bug in awari",
        path.display()
    )]
    OutOfRange {
        path: PathBuf,
        /// The position, in canonical order.
        position: u64,
        value: i8,
        range: ValueRange,
    },
    /// The format cannot represent the request.
    #[error("the file format cannot hold this: expected {expected}, found {found}")]
    Unsupported { expected: String, found: String },
}

/// Bytes that violate the format.
#[derive(Debug)]
pub(crate) struct DecodeError {
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl DecodeError {
    pub(crate) fn new(expected: impl Into<String>, found: impl ToString) -> Self {
        DecodeError { expected: expected.into(), found: found.to_string() }
    }
}

impl StoreError {
    /// Whether the file exists but its bytes have changed, so that it must be rebuilt. An absent file, or one with
    /// other content, is not damaged.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            StoreError::NotOurs { .. }
                | StoreError::Damaged { .. }
                | StoreError::Changing { .. }
                | StoreError::DigestDiffers { .. }
        )
    }

    /// The description of the error, for a message that names the file and the remedy itself.
    pub fn what(&self) -> String {
        match self {
            StoreError::NotOurs { expected, found, .. } => {
                format!("not a complete awari file: expected {expected}, found {found}")
            }
            StoreError::Version { expected, found, .. } => {
                format!("format version {found}, expected at most {expected}")
            }
            StoreError::Damaged { part, expected, found, .. } => format!("{part}: expected {expected}, found {found}"),
            StoreError::Changing { .. } => "it changes while it is read".to_owned(),
            StoreError::Mismatch { expected, found, .. } => {
                format!("the wrong file: expected {expected}, found {found}")
            }
            StoreError::DigestDiffers { expected, found, .. } => {
                format!("scores of digest {found}, expected {expected}")
            }
            StoreError::Disk(_)
            | StoreError::NotBuilt { .. }
            | StoreError::Archive { .. }
            | StoreError::OutOfRange { .. }
            | StoreError::Unsupported { .. } => self.to_string(),
        }
    }

    /// The file concerned, if the error is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            StoreError::NotOurs { path, .. }
            | StoreError::Version { path, .. }
            | StoreError::Damaged { path, .. }
            | StoreError::Changing { path }
            | StoreError::NotBuilt { path }
            | StoreError::Archive { path }
            | StoreError::Mismatch { path, .. }
            | StoreError::DigestDiffers { path, .. }
            | StoreError::OutOfRange { path, .. } => Some(path),
            StoreError::Disk(_) | StoreError::Unsupported { .. } => None,
        }
    }
}
