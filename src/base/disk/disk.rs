//! A file system and its files, as every other crate sees them.

use crate::ahead::PendingRead;
use crate::clock::{Clock, SystemClock};
use crate::error::DiskError;
use crate::lock::Lock;
use crate::map::Mapping;
use crate::traffic::Traffic;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file system.
///
/// Methods take whole paths and keep no state between calls, so one `&dyn Disk` serves all threads.
pub trait Disk: Send + Sync {
    /// Reads a small regular file.
    ///
    /// # Errors
    /// [`DiskError::TooLarge`] if it has more than `bytes_max` bytes, so that an unexpected file cannot exhaust memory.
    fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError>;

    /// As [`read`](Self::read), for a path given by the user, which may also be a pipe: `/dev/stdin`,
    /// `<(...)` in a shell.
    fn read_given(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.read(path, bytes_max)
    }

    /// Creates a file, replacing any of that name. Makes missing parent directories. Artifacts are written with
    /// [`Staged`] instead.
    fn create(&self, path: &Path) -> Result<Box<dyn OutputFile>, DiskError>;

    /// Opens a file at its end, creating it and its parent directories if absent.
    fn append(&self, path: &Path) -> Result<Box<dyn OutputFile>, DiskError>;

    /// Cuts an existing file to `bytes` bytes, durably.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it is absent, or shorter than that.
    fn truncate(&self, path: &Path, bytes: u64) -> Result<(), DiskError>;

    /// Opens a file for reads at any offset, into the caller's memory. The alternative to a map where memory is
    /// bounded.
    fn open(&self, path: &Path) -> Result<Box<dyn InputFile>, DiskError>;

    /// As [`open`](Self::open), for a file that is read in short pieces whose neighbours are read later: with
    /// [`Io::Auto`] it goes through the page cache.
    fn open_scattered(&self, path: &Path) -> Result<Box<dyn InputFile>, DiskError> {
        self.open(path)
    }

    /// As [`open_scattered`](Self::open_scattered), for a file whose name is not followed if it is a symbolic link.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it is a link, or what the operating system says.
    fn open_unfollowed(&self, path: &Path) -> Result<Box<dyn InputFile>, DiskError> {
        self.open_scattered(path)
    }

    /// Makes an unnamed file of `bytes` zeros, private to this process. It disappears when dropped, or when the process
    /// dies. `path` determines the file system, and names the file in errors; its parent directories are made.
    fn scratch(&self, path: &Path, bytes: u64) -> Result<Box<dyn ScratchFile>, DiskError>;

    /// Opens a named file of `bytes` bytes, to be read and written in place, also by other processes.
    /// Existing content is kept, cut (to whole blocks) or extended by zeros. Name and length are durable; content is
    /// durable only after [`ScratchFile::sync`], and after a loss of power any sector written since may have its old
    /// content.
    fn working(&self, path: &Path, bytes: u64) -> Result<Box<dyn ScratchFile + '_>, DiskError>;

    /// Maps a file for reading.
    fn map(&self, path: &Path) -> Result<Mapping, DiskError>;

    /// The length of a file, or `None` if it is absent.
    ///
    /// # Errors
    /// What the operating system says, or [`DiskError::Io`] if the path is a directory.
    fn bytes(&self, path: &Path) -> Result<Option<u64>, DiskError>;

    /// The space that a file takes on the disk, which differs from its length if it has holes or reserved space. 0 if
    /// it is absent.
    fn allocated_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        Ok(self.bytes(path)?.unwrap_or(0))
    }

    /// The time at which a file was last written, since 1970, by the clock of its file system. `None` if it
    /// is absent, or the disk keeps no times.
    fn modified(&self, path: &Path) -> Result<Option<Duration>, DiskError>;

    /// Checks that a path is unused or a regular file: output to a path given by the user must not replace anything
    /// else.
    ///
    /// # Errors
    /// [`DiskError::Io`] with the kind of file that has the name.
    fn check_replaceable(&self, path: &Path) -> Result<(), DiskError> {
        self.bytes(path).map(drop)
    }

    /// The files (not directories) in a directory, sorted by path. An absent directory is empty.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError>;

    /// The subdirectories of a directory, sorted by path. An absent directory has none.
    fn list_directories(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError>;

    /// Renames a file, replacing any of the new name, and syncs both directories. After an error the file has one of
    /// the two names; after a loss of power either.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file, if it exists. Not synced: a loss of power may undo it.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// Removes a directory with its content, if it exists. Not synced.
    fn remove_dir_all(&self, directory: &Path) -> Result<(), DiskError>;

    /// Makes a directory and its parents durably, as far as they are missing.
    fn create_dir_all(&self, directory: &Path) -> Result<(), DiskError>;

    /// Makes a directory in an existing one durably, if it is missing.
    ///
    /// # Errors
    /// [`DiskError::NoDirectory`] if its parent is absent, or what the operating system says.
    fn create_dir(&self, directory: &Path) -> Result<(), DiskError>;

    /// Makes a directory that only this user may enter, named `prefix` and a random number. Its parent exists.
    fn create_private_dir(&self, parent: &Path, prefix: &str) -> Result<PathBuf, DiskError>;

    /// The canonical name of a path that need not exist: absolute, with links and `..` resolved as far as it exists.
    /// For comparing paths.
    fn canonical(&self, path: &Path) -> PathBuf {
        std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
    }

    /// The bytes free for this user below a directory, which need not exist yet.
    fn free_bytes(&self, directory: &Path) -> Result<u64, DiskError>;

    /// The bytes that the [`scratch`](Self::scratch) files of this disk and its clones take on the file system of a
    /// directory: not free until the files are dropped. 0 if it is absent.
    fn scratch_bytes(&self, directory: &Path) -> u64;

    /// Checks that `bytes` bytes can be written below a directory, by reserving them for a moment in a file that is
    /// then removed, and writing the first of them, the only way to detect a quota.
    ///
    /// # Errors
    /// [`DiskError::NoSpace`] with the bytes needed and free, or what the operating system says.
    fn probe(&self, directory: &Path, bytes: u64) -> Result<(), DiskError>;

    /// Publishes a small file for other processes, which see the old one or the new one, complete. Not durable: a loss
    /// of power may lose both.
    fn post(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError>;

    /// The bytes read and written so far through this disk and its clones, without mapped files.
    fn traffic(&self) -> Traffic;

    /// The clock of the host.
    fn clock(&self) -> &dyn Clock {
        &SystemClock
    }

    /// Takes the lock `path`, creating the file (and its parents) if absent, and writes into it the holder's process,
    /// host, time and `note` (the command). Does not wait. A file of that name that is not a lock is kept as
    /// `PATH.kept-N`. A new lock is durable.
    ///
    /// # Errors
    /// [`DiskError::Locked`] with the holder's note if another process, or another [`Lock`] of
    /// this one, holds it.
    fn lock(&self, path: &Path, note: &str) -> Result<Lock, DiskError>;

    /// The note of the holder of the lock `path`; `None` if it is free or absent. Writes nothing.
    fn lock_holder(&self, path: &Path) -> Result<Option<String>, DiskError>;
}

/// A file open for reads from any thread.
pub trait InputFile: Send + Sync {
    /// The length of the file when it was opened.
    fn bytes(&self) -> u64;

    /// Fills `into` from `offset` on.
    ///
    /// # Errors
    /// [`DiskError::Io`] if the file ends before, or what the operating system reports.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError>;

    /// Starts to read `bytes` bytes from `offset` on, beside the caller if the disk can. Errors are those of
    /// [`read_at`](Self::read_at), returned by [`PendingRead::wait`].
    fn start_read(&self, offset: u64, bytes: usize) -> PendingRead {
        let mut read = vec![0; bytes];
        PendingRead::complete(self.read_at(offset, &mut read).map(|()| read))
    }
}

/// A file of fixed length for intermediate state, read and written in place from any thread.
pub trait ScratchFile: InputFile {
    /// Writes all of `bytes` at `offset`. Not durable.
    ///
    /// # Panics
    /// If `bytes` reach beyond the end.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Makes all writes to a [`working`](Disk::working) file durable.
    ///
    /// # Errors
    /// What the operating system reports. The content of the file is then unknown.
    fn sync(&self) -> Result<(), DiskError>;
}

/// A file open for writing at its end, in large pieces or whole records.
///
/// Writes may be asynchronous: an error is reported by a later write or by [`sync`](OutputFile::sync), and until then
/// the file may be longer than what was written. A file dropped without [`sync`](OutputFile::sync) has unspecified
/// content.
pub trait OutputFile: Send {
    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// [`DiskError::NoSpace`] and similar errors, of this write or an earlier one; some of `bytes` may have been
    /// written.
    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError>;

    /// Reserves space for the next `bytes` bytes, so that a full disk is noticed before hours of work. The length of
    /// the file does not change. Where the file system cannot reserve, only the free space is compared.
    fn reserve(&mut self, bytes: u64) -> Result<(), DiskError>;

    /// Makes all writes and the name of the file durable, and releases unused reserved space.
    ///
    /// # Errors
    /// What the operating system reports. The content of the file is then unknown, and it must be written again.
    fn sync(&mut self) -> Result<(), DiskError>;
}
