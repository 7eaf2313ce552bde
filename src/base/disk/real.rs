//! The disk of the operating system.

mod deliver;
pub(crate) mod direct;
pub(crate) mod file;
pub(crate) mod file_system;
pub(crate) mod output;
pub(crate) mod pool;
mod queue;
pub(crate) mod queue_memory;
pub(crate) mod records;
mod request;
#[cfg_attr(not(feature = "build"), path = "real/no_ring.rs")]
pub(crate) mod ring;

use self::deliver::check_replaceable;
use self::file::{RealFile, SharedFile};
use self::file_system::{TMPFS_MAGIC, file_system, free_bytes};
use self::output::RealOutput;
use self::pool::Pool;
use self::records::RecordFile;
use crate::disk::{Disk, InputFile, OutputFile, ScratchFile};
use crate::error::{DiskError, Operation, reason, too_short};
use crate::file_names::temporary_of;
use crate::folder::{Folder, here_if_empty, nameless, parent};
use crate::io::Io;
use crate::lock::Lock;
use crate::map::Mapping;
use crate::open::{ReadableKind, open_to_read};
use crate::staged::probe;
use crate::traffic::Traffic;
use rustix::fs::OFlags;
use std::fmt;
use std::fs::{self, FileType};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The unit of `st_blocks`.
const SECTOR_BYTES: u64 = 512;

/// The file system of the operating system. Clones share buffers and traffic; a process needs one.
///
/// Large reads and writes bypass the page cache where the file system allows it, and go through `io_uring`
/// where [`Io`] and the kernel allow it. Buffers take at most [`POOL_BYTES_MAX`](crate::POOL_BYTES_MAX), and
/// 1 MiB for each thread beyond four, once they are used.
#[derive(Clone, Default)]
pub struct RealDisk {
    pub(crate) pool: Arc<Pool>,
}

impl RealDisk {
    /// Creates a disk with the given I/O mode.
    ///
    /// # Errors
    /// [`DiskError::RingRefused`] if a ring is asked for and the kernel refuses it.
    pub fn new(io: Io) -> Result<Self, DiskError> {
        let disk = RealDisk { pool: Arc::new(Pool::new(io)) };
        if io == Io::Uring {
            disk.pool.share().map_err(|source| DiskError::RingRefused { source: Arc::new(source) })?;
        }
        Ok(disk)
    }

    /// Allows as many reads at a time as there are threads, from the first read on. Without a call, four.
    pub fn set_threads(&self, threads: usize) {
        self.pool.set_threads(threads);
    }

    /// Makes [`Io::Auto`] take the given way from now on: that which [`IoChoice`](crate::IoChoice) found to be faster.
    pub fn choose(&self, io: Io) {
        self.pool.choose(io);
    }

    /// Returns why `io_uring` was not used, if the kernel has refused it to [`Io::Auto`].
    pub fn ring_refusal(&self) -> Option<String> {
        self.pool.refused().map(reason)
    }

    /// Writes a file to a path given by the user.
    ///
    /// # Errors
    /// [`DiskError::NoDirectory`] if its directory is absent; [`DiskError::Io`] if the target is refused or the write
    /// fails.
    pub fn deliver(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        deliver::deliver(self, path, bytes)
    }

    /// Opens or creates a file at a path given by the user, to append records to it.
    ///
    /// # Errors
    /// [`DiskError::NoDirectory`] if its directory is absent; [`DiskError::Locked`] if another process
    /// appends to it; [`DiskError::Io`] if the target is refused.
    pub fn records(&self, path: &Path) -> Result<RecordFile, DiskError> {
        RecordFile::open(path)
    }
}

impl RealDisk {
    fn read_of(&self, path: &Path, accepted: ReadableKind, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        let file = open_to_read(path, accepted).map_err(failed)?;
        let expected = file.metadata().map_err(failed)?.len();
        let mut bytes = Vec::with_capacity(expected.min(bytes_max) as usize);
        // One byte more than allowed detects "too large" also for a file that grows meanwhile.
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        let found = bytes.len() as u64;
        self.pool.meter.add_read(found);
        if found > bytes_max {
            return Err(DiskError::TooLarge { path: path.to_path_buf(), bytes: expected.max(found), bytes_max });
        }
        Ok(bytes)
    }
}

impl fmt::Debug for RealDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RealDisk({})", self.pool.io)
    }
}

impl Disk for RealDisk {
    fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.read_of(path, ReadableKind::File, bytes_max)
    }

    fn read_given(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.read_of(path, ReadableKind::FileOrPipe, bytes_max)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn OutputFile>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let (folder, name) = Folder::make_of(path).map_err(failed)?;
        let file = folder.create(name, OFlags::WRONLY).map_err(failed)?;
        Ok(Box::new(RealOutput::create(file, path, true, self.pool.clone())))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn OutputFile>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let (folder, name) = Folder::make_of(path).map_err(failed)?;
        let how = OFlags::WRONLY | OFlags::APPEND;
        let (file, name_is_new) = folder.open_or_create(name, how).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Box::new(RealOutput::append(file, path, bytes, name_is_new, self.pool.clone())))
    }

    fn truncate(&self, path: &Path, bytes: u64) -> Result<(), DiskError> {
        let failed = |source| DiskError::from_io(Operation::Truncate, path, source);
        let opened = Folder::of(path).and_then(|(folder, name)| folder.open_file(name, OFlags::WRONLY));
        let file = opened.map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found < bytes {
            return Err(failed(too_short(found, bytes)));
        }
        file.set_len(bytes).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn InputFile>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        let file = open_to_read(path, ReadableKind::File).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Box::new(SharedFile::new(RealFile::input(file, path, bytes, self.pool.clone()))))
    }

    fn open_scattered(&self, path: &Path) -> Result<Box<dyn InputFile>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        let file = open_to_read(path, ReadableKind::File).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Box::new(SharedFile::new(RealFile::scattered(file, path, bytes, self.pool.clone()))))
    }

    fn open_unfollowed(&self, path: &Path) -> Result<Box<dyn InputFile>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Read, path, source);
        let file = open_to_read(path, ReadableKind::UnfollowedFile).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Box::new(SharedFile::new(RealFile::scattered(file, path, bytes, self.pool.clone()))))
    }

    fn scratch(&self, path: &Path, bytes: u64) -> Result<Box<dyn ScratchFile>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let file = nameless(path)?;
        let file = RealFile::scratch(file, path, bytes, self.pool.clone());
        let file = file.map_err(|source| failed(source).with_shortage(bytes, free_bytes(parent(path)).ok()))?;
        Ok(Box::new(file))
    }

    fn working(&self, path: &Path, bytes: u64) -> Result<Box<dyn ScratchFile>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Create, path, source);
        let (folder, name) = Folder::make_of(path).map_err(failed)?;
        let (file, _) = folder.open_or_create(name, OFlags::RDWR).map_err(failed)?;
        let file = RealFile::working(file, path, bytes, self.pool.clone());
        let file = file.map_err(|source| failed(source).with_shortage(bytes, free_bytes(parent(path)).ok()))?;
        folder.sync().map_err(|source| DiskError::from_io(Operation::Sync, parent(path), source))?;
        Ok(Box::new(file))
    }

    fn map(&self, path: &Path) -> Result<Mapping, DiskError> {
        open_to_read(path, ReadableKind::File)
            .and_then(|file| Mapping::of_file(file, path))
            .map_err(|source| DiskError::from_io(Operation::Map, path, source))
    }

    fn bytes(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        let failed = |source| DiskError::from_io(Operation::Measure, path, source);
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(_) => Err(failed(io::Error::other("it is not a regular file"))),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failed(source)),
        }
    }

    fn modified(&self, path: &Path) -> Result<Option<Duration>, DiskError> {
        match fs::metadata(path).and_then(|metadata| metadata.modified()) {
            Ok(time) => Ok(Some(time.duration_since(UNIX_EPOCH).unwrap_or_default())),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DiskError::from_io(Operation::Measure, path, source)),
        }
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(metadata.blocks() * SECTOR_BYTES),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(source) => Err(DiskError::from_io(Operation::Measure, path, source)),
        }
    }

    fn check_replaceable(&self, path: &Path) -> Result<(), DiskError> {
        check_replaceable(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        list(directory, |kind| !kind.is_dir())
    }

    fn list_directories(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        list(directory, FileType::is_dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let failed = |source| DiskError::from_io(Operation::Rename, from, source);
        let unsynced = |path: &Path, source| DiskError::from_io(Operation::Sync, parent(path), source);
        let (old_folder, old_name) = Folder::of(from).map_err(failed)?;
        let (folder, name) = Folder::of(to).map_err(failed)?;
        old_folder.rename(old_name, &folder, name).map_err(failed)?;
        folder.sync().map_err(|source| unsynced(to, source))?;
        if parent(from) != parent(to) {
            old_folder.sync().map_err(|source| unsynced(from, source))?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        absent_is_fine(Folder::of(path).and_then(|(folder, name)| folder.remove(name)))
            .map_err(|source| DiskError::from_io(Operation::Remove, path, source))
    }

    fn remove_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        absent_is_fine(Folder::of(directory).and_then(|(folder, name)| folder.remove_all(name)))
            .map_err(|source| DiskError::from_io(Operation::Remove, directory, source))
    }

    fn create_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        let made = Folder::make(directory).map(drop);
        made.map_err(|source| DiskError::from_io(Operation::MakeDirectory, directory, source))
    }

    fn create_dir(&self, directory: &Path) -> Result<(), DiskError> {
        match Folder::open(parent(directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(DiskError::NoDirectory { path: parent(directory).to_path_buf() })
            }
            Err(source) => Err(DiskError::from_io(Operation::MakeDirectory, directory, source)),
            Ok(_) => self.create_dir_all(directory),
        }
    }

    fn create_private_dir(&self, parent: &Path, prefix: &str) -> Result<PathBuf, DiskError> {
        let made = Folder::open(parent).and_then(|folder| folder.make_private(prefix));
        made.map(|name| parent.join(name))
            .map_err(|source| DiskError::from_io(Operation::MakeDirectory, parent, source))
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        let mut behind = Vec::new();
        for existing in path.ancestors() {
            let existing_or_here = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
            if let Ok(canonical) = fs::canonicalize(existing_or_here) {
                return behind.into_iter().rev().fold(canonical, |at, name| at.join(name));
            }
            behind.extend(existing.file_name());
        }
        path.to_path_buf()
    }

    fn free_bytes(&self, directory: &Path) -> Result<u64, DiskError> {
        free_bytes(directory)
    }

    fn scratch_bytes(&self, directory: &Path) -> u64 {
        fs::metadata(here_if_empty(directory)).map_or(0, |metadata| self.pool.scratch_bytes(metadata.dev()))
    }

    fn probe(&self, directory: &Path, bytes: u64) -> Result<(), DiskError> {
        self.create_dir_all(directory)?;
        // On a file system in memory, reserved space is used memory.
        let is_memory = file_system(directory).is_ok_and(|kind| kind == TMPFS_MAGIC);
        probe(self, directory, if is_memory { 0 } else { bytes })
    }

    fn post(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let temporary = temporary_of(path)?;
        let written = || {
            let (folder, name) = Folder::of(path)?;
            let temporary = temporary.file_name().unwrap_or_default();
            folder.create(temporary, OFlags::WRONLY)?.write_all(bytes)?;
            folder.rename(temporary, &folder, name)
        };
        written().map_err(|source| DiskError::from_io(Operation::Write, path, source))
    }

    fn traffic(&self) -> Traffic {
        self.pool.meter.read()
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Lock, DiskError> {
        Lock::take(path, note)
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<String>, DiskError> {
        Lock::holder(path)
    }
}

/// Paths of the entries of some kinds in a directory, sorted.
fn list(directory: &Path, is_listed: impl Fn(&FileType) -> bool) -> Result<Vec<PathBuf>, DiskError> {
    let failed = |source| DiskError::from_io(Operation::List, directory, source);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if is_listed(&entry.file_type().map_err(failed)?) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
