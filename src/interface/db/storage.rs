//! Storage of databases that is not a directory of this machine.

use disk::{DiskError, InputFile, Operation};
use std::io;
use std::path::{Path, PathBuf};

/// A place with files of databases: an archive, an object store, memory. See
/// [`Databases::open_in`](crate::Databases::open_in).
pub trait Storage {
    /// A file of this storage.
    type File: StoredFile + 'static;

    /// Returns the names of all files, with or without folders. Those not named as databases, `08.awari`, are ignored.
    ///
    /// # Errors
    /// If the storage cannot be read.
    fn files(&self) -> io::Result<Vec<PathBuf>>;

    /// Opens a file of [`files`](Self::files).
    ///
    /// # Errors
    /// If it cannot be opened. Questions that need its database are then errors, others are answered.
    fn open(&self, name: &Path) -> io::Result<Self::File>;
}

/// A file that several threads read at once. Its bytes do not change.
pub trait StoredFile: Send + Sync {
    /// Returns the length.
    fn bytes(&self) -> u64;

    /// Fills `into` with the bytes from `offset` on. Reads are not aligned, and rarely longer than 64 KiB.
    ///
    /// # Errors
    /// If they cannot be read, or the file ends before.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A file in memory.
impl<T: AsRef<[u8]> + Send + Sync> StoredFile for T {
    fn bytes(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let end = usize::try_from(offset).ok().and_then(|first| Some(first..first.checked_add(into.len())?));
        let bytes = end.and_then(|range| self.as_ref().get(range)).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

/// A stored file as the readers of files see it.
pub(crate) struct StoredInput<F> {
    pub(crate) name: PathBuf,
    pub(crate) file: F,
}

impl<F: StoredFile> InputFile for StoredInput<F> {
    fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_at(offset, into).map_err(|error| unreadable(&self.name, error))
    }
}

/// Returns the error of a file that the storage cannot read.
pub(crate) fn unreadable(name: &Path, error: io::Error) -> DiskError {
    DiskError::from_io(Operation::Read, name, error)
}
