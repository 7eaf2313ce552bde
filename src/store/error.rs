//! What can be wrong with a file, with both sides and the remedy.

use std::path::{Path, PathBuf};

use disk::{Digest, DiskError};

use crate::value_range::ValueRange;

/// How to get a file back that is damaged: a run believes what its journal says of a file until `verify` has recorded
/// otherwise.
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

/// A file that cannot be written, or cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system failed us.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Not one of our files, or only a piece of one.
    #[error(
        "{} is not a complete awari file: expected {expected}, found {found}; {}",
        path.display(),
        remedy(path)
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What a file of ours has.
        expected: String,
        /// What this one has.
        found: String,
    },
    /// A file of another version of the format.
    #[error(
        "{} has format version {found}, expected at most {expected}; use the program that wrote it, or remove the \
         file and rebuild it with `awari run MANIFEST`",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The latest version this program reads; it reads all before it.
        expected: u32,
        /// The version of the file.
        found: u32,
    },
    /// A file of ours whose bytes have changed.
    #[error(
        "{} is damaged in {part}: expected {expected}, found {found}; {}",
        path.display(),
        remedy(path)
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where: the header, the index, or a block with its positions.
        part: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A file that others write to while it is read.
    #[error(
        "{} changes while it is read, which no file of a run does: see what writes to it; then {}",
        path.display(),
        remedy(path)
    )]
    Changing {
        /// The file.
        path: PathBuf,
    },
    /// A file of scores that are read with those of other files.
    #[error(
        "{} is an archive, expected a database; restore the database with `awari restore`",
        path.display()
    )]
    Archive {
        /// The file.
        path: PathBuf,
    },
    /// A whole file, but of something else.
    #[error(
        "{} is the wrong file: expected {expected}, found {found}; remove the file and rebuild it with `awari run \
         MANIFEST`",
        path.display()
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// What the caller means.
        expected: String,
        /// What the file says it is.
        found: String,
    },
    /// The scores of a file do not have the digest that the file says they have.
    #[error(
        "{} holds scores of digest {found}, expected {expected}; {}",
        path.display(),
        remedy(path)
    )]
    DigestDiffers {
        /// The file.
        path: PathBuf,
        /// The digest at its end.
        expected: Digest,
        /// The digest of what it holds.
        found: Digest,
    },
    /// A score to be written lies outside the range announced for the file.
    #[error(
        "cannot write {}: position {position} has the value {value}, expected {range}; this is a bug in awari",
        path.display()
    )]
    OutOfRange {
        /// The file that is not written.
        path: PathBuf,
        /// The position, in canonical order.
        position: u64,
        /// Its value.
        value: i8,
        /// The range announced.
        range: ValueRange,
    },
    /// Something that has no place in the format.
    #[error("the file format cannot hold this: expected {expected}, found {found}")]
    Unsupported {
        /// What the format can hold.
        expected: String,
        /// What was asked for.
        found: String,
    },
}

/// Bytes that the format does not allow.
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
    /// Whether a file exists but its bytes are not those that were written: rebuilding it is the
    /// remedy. A file that is absent, or of something else, is not damaged.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            StoreError::NotOurs { .. }
                | StoreError::Damaged { .. }
                | StoreError::Changing { .. }
                | StoreError::DigestDiffers { .. }
        )
    }

    /// What is wrong with the file, for a message that names the file and the remedy itself.
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
            | StoreError::Archive { .. }
            | StoreError::OutOfRange { .. }
            | StoreError::Unsupported { .. } => self.to_string(),
        }
    }

    /// The file that the error is about, if it is one about a file of ours.
    pub fn path(&self) -> Option<&Path> {
        match self {
            StoreError::NotOurs { path, .. }
            | StoreError::Version { path, .. }
            | StoreError::Damaged { path, .. }
            | StoreError::Changing { path }
            | StoreError::Archive { path }
            | StoreError::Mismatch { path, .. }
            | StoreError::DigestDiffers { path, .. }
            | StoreError::OutOfRange { path, .. } => Some(path),
            StoreError::Disk(_) | StoreError::Unsupported { .. } => None,
        }
    }
}
