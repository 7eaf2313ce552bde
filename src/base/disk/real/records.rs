//! Files at paths given by the user that grow by records, such as games.
//!
//! What may stand at the path is the table of `deliver`. A regular file keeps what it holds and is locked
//! while it is open; a device or a pipe has no content to keep. Missing directories are not made.

use super::deliver::{DeliveryTarget, open_stream, target};
use super::file_system::free_bytes;
use crate::error::{DiskError, Operation};
use crate::folder::{Folder, parent};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The space that must be free when a file is opened: a block of most file systems.
const ROOM_BYTES: u64 = 4 << 10;

/// Attempts to lock a file. A child that a killed process had just forked holds its lock until it calls `exec`.
const TRIES: u32 = 20;

/// The time between two attempts.
const RETRY: Duration = Duration::from_millis(20);

/// A file that grows by whole records, each durable before the next.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    path: PathBuf,
    /// The directory of a regular file; `None` for a device or a pipe.
    folder: Option<Folder>,
    /// The end of the last record.
    bytes: u64,
    /// Whether the file was created here.
    is_new: bool,
}

impl RecordFile {
    /// Opens or creates a file.
    pub(super) fn open(path: &Path) -> Result<RecordFile, DiskError> {
        match target(path)? {
            DeliveryTarget::Path(path) => RecordFile::open_regular(path),
            DeliveryTarget::Stream(path) => {
                let failed = |source| DiskError::from_io(Operation::Write, &path, source);
                let file = open_stream(&path).map_err(failed)?;
                // A device that is full says so.
                rustix::io::write(&file, &[]).map_err(|errno| failed(errno.into()))?;
                Ok(RecordFile { file, path, folder: None, bytes: 0, is_new: false })
            }
        }
    }

    fn open_regular(path: PathBuf) -> Result<RecordFile, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, &path, source);
        let (folder, name) = Folder::of(&path).map_err(failed)?;
        let (file, is_new) = folder.open_or_create(name, OFlags::RDWR).map_err(failed)?;
        lock(&file, &path)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(RecordFile { file, path, folder: Some(folder), bytes, is_new })
    }

    /// Whether the file has no record.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Checks that there is space to append, by reserving it for a moment. A device or a pipe is not checked.
    ///
    /// # Errors
    /// [`DiskError::NoSpace`], or what the operating system says.
    pub fn check_room(&self) -> Result<(), DiskError> {
        if self.folder.is_none() {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.bytes, ROOM_BYTES) {
            Ok(()) => self.file.set_len(self.bytes).map_err(|source| self.failed(Operation::Reserve, source)),
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::ROFS | Errno::IO)) => {
                let free = free_bytes(parent(&self.path)).ok();
                Err(self.failed(Operation::Reserve, errno.into()).with_shortage(ROOM_BYTES, free))
            }
            // This file system does not reserve space.
            Err(_) => Ok(()),
        }
    }

    /// Returns a reader of all records, from the first on. A device or a pipe has none.
    pub fn reader(&self) -> impl Read + '_ {
        RecordReader { file: self, at: 0 }
    }

    /// Cuts the file after its first `bytes` bytes, durably.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn cut(&mut self, bytes: u64) -> Result<(), DiskError> {
        let cut = self.file.set_len(bytes).and_then(|()| self.file.sync_all());
        cut.map_err(|source| self.failed(Operation::Truncate, source))?;
        self.bytes = bytes;
        Ok(())
    }

    /// Appends a record. When this returns, it is durable. After an error the file ends as before, or within
    /// the record if it cannot be cut.
    ///
    /// # Errors
    /// What the operating system says. A pipe whose reader has closed it is no error.
    pub fn append(&mut self, record: &[u8]) -> Result<(), DiskError> {
        let Some(folder) = &self.folder else {
            return match (&self.file).write_all(record) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(|source| self.failed(Operation::Write, source)),
            };
        };
        // A process that was killed may have created the file without making its name durable.
        let is_first = self.bytes == 0;
        let written = self.file.write_all_at(record, self.bytes).and_then(|()| self.file.sync_data());
        if let Err(source) = written.and_then(|()| if is_first { folder.sync() } else { Ok(()) }) {
            let _ = self.file.set_len(self.bytes);
            let free = free_bytes(parent(&self.path)).ok();
            return Err(self.failed(Operation::Write, source).with_shortage(record.len() as u64, free));
        }
        self.bytes += record.len() as u64;
        Ok(())
    }

    fn failed(&self, operation: Operation, source: io::Error) -> DiskError {
        DiskError::from_io(operation, &self.path, source)
    }
}

impl Drop for RecordFile {
    /// Removes a new file that has no record.
    fn drop(&mut self) {
        if let (Some(folder), Some(name), true, 0) = (&self.folder, self.path.file_name(), self.is_new, self.bytes) {
            let ours = self.file.metadata().map(|ours| (ours.dev(), ours.ino())).ok();
            // Another file may have the name by now.
            if ours.is_some() && folder.identity(name).ok() == ours {
                let _ = folder.remove(name);
            }
        }
        // Closing is not enough: a child that another thread has just forked holds a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

/// Reads a [`RecordFile`].
struct RecordReader<'a> {
    file: &'a RecordFile,
    at: u64,
}

impl Read for RecordReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.file.folder.is_none() {
            return Ok(0);
        }
        let read = self.file.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Locks a file for this process.
fn lock(file: &File, path: &Path) -> Result<(), DiskError> {
    for left in (0..TRIES).rev() {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if left > 0 => thread::sleep(RETRY),
            Err(TryLockError::WouldBlock) => {
                return Err(DiskError::Locked { path: path.to_path_buf(), holder: "another process".to_owned() });
            }
            Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => break,
            Err(TryLockError::Error(source)) => return Err(DiskError::from_io(Operation::Lock, path, source)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealDisk;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn content(file: &RecordFile) -> String {
        let mut text = String::new();
        file.reader().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn records_are_appended_and_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("games");
        let open = |path: &Path| RealDisk::default().records(path);
        // A new file without a record leaves nothing.
        drop(open(&path).unwrap());
        assert!(!path.exists());
        let mut file = open(&path).unwrap();
        file.append(b"one ").unwrap();
        file.append(b"two ").unwrap();
        let refused = open(&path).unwrap_err();
        assert!(matches!(refused, DiskError::Locked { .. }), "{refused}");
        drop(file);
        symlink("games", place.path().join("link")).unwrap();
        let mut file = open(&place.path().join("link")).unwrap();
        assert_eq!(content(&file), "one two ");
        file.cut(4).unwrap();
        file.append(b"three").unwrap();
        assert_eq!(content(&file), "one three");
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"one three");
        assert_eq!(fs::metadata(&path).unwrap().len(), 9);
        assert!(fs::symlink_metadata(place.path().join("link")).unwrap().is_symlink());
        // An empty file of the user stays.
        fs::write(&path, b"").unwrap();
        drop(open(&path).unwrap());
        assert!(path.exists());
    }

    #[test]
    fn what_cannot_grow_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let open = |path: &Path| RealDisk::default().records(path).map(drop).map_err(|error| error.to_string());
        let refused = |path: &Path| open(path).unwrap_err();
        assert!(refused(&place.path().join("no/games")).contains("create it with: mkdir -p"));
        assert!(refused(place.path()).contains("it is a directory"));
        assert!(refused(Path::new("/dev/full")).contains("no space left to write /dev/full"));
        open(Path::new("/dev/null")).unwrap();
        symlink("absent", place.path().join("dangling")).unwrap();
        assert!(refused(&place.path().join("dangling")).contains("which is absent"));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
