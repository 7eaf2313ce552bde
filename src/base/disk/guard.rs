//! A disk that asks a guard before each operation.
//!
//! A layer between a caller and a disk (a fence, a meter, a fault injector) implements [`DiskGuard`], which has one
//! method; [`GuardedDisk`] forwards everything else.

use crate::clock::Clock;
use crate::disk::{Disk, InputFile, OutputFile, ScratchFile};
use crate::error::DiskError;
use crate::lock::Lock;
use crate::map::Mapping;
use crate::traffic::Traffic;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The effect of an operation on the named files of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskAccess {
    /// No effect on named files: reading, measuring, listing, locking, posting, making a directory or a scratch file.
    Neutral,
    /// Creates a named file, or opens one for writing.
    Create,
    /// Truncates, renames or removes files.
    Remove,
    /// Writes to an open [`working`](Disk::working) file.
    InPlace,
}

/// Permits or refuses the operations of a [`GuardedDisk`].
pub trait DiskGuard: Send + Sync {
    /// Called before each operation on `disk`, the disk behind the guard; `path` is the first that the operation names.
    ///
    /// # Errors
    /// The reason for refusing the operation, which is then not carried out.
    fn check_access(&self, disk: &dyn Disk, access: DiskAccess, path: &Path) -> Result<(), DiskError>;
}

/// A disk behind a guard.
#[derive(Clone, Copy)]
pub struct GuardedDisk<'d> {
    disk: &'d dyn Disk,
    guard: &'d dyn DiskGuard,
}

impl<'d> GuardedDisk<'d> {
    /// Puts a disk behind a guard.
    pub fn new(disk: &'d dyn Disk, guard: &'d dyn DiskGuard) -> Self {
        GuardedDisk { disk, guard }
    }
}

macro_rules! guarded {
    ($($access:ident: $name:ident($path:ident $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self, $path: &Path $(, $argument: $type)*) -> Result<$result, DiskError> {
            self.guard.check_access(self.disk, DiskAccess::$access, $path)?;
            self.disk.$name($path $(, $argument)*)
        })*
    };
}

impl Disk for GuardedDisk<'_> {
    guarded! {
        Neutral: read(path, bytes_max: u64) -> Vec<u8>;
        Neutral: read_given(path, bytes_max: u64) -> Vec<u8>;
        Neutral: open(path) -> Box<dyn InputFile>;
        Neutral: open_scattered(path) -> Box<dyn InputFile>;
        Neutral: open_unfollowed(path) -> Box<dyn InputFile>;
        Neutral: map(path) -> Mapping;
        Neutral: bytes(path) -> Option<u64>;
        Neutral: allocated_bytes(path) -> u64;
        Neutral: modified(path) -> Option<Duration>;
        Neutral: check_replaceable(path) -> ();
        Neutral: list(directory) -> Vec<PathBuf>;
        Neutral: list_directories(directory) -> Vec<PathBuf>;
        Neutral: scratch(path, bytes: u64) -> Box<dyn ScratchFile>;
        Neutral: create_dir_all(directory) -> ();
        Neutral: create_dir(directory) -> ();
        Neutral: create_private_dir(parent, prefix: &str) -> PathBuf;
        Neutral: free_bytes(directory) -> u64;
        Neutral: probe(directory, bytes: u64) -> ();
        Neutral: post(path, bytes: &[u8]) -> ();
        Neutral: lock(path, note: &str) -> Lock;
        Neutral: lock_holder(path) -> Option<String>;
        Create: create(path) -> Box<dyn OutputFile>;
        Create: append(path) -> Box<dyn OutputFile>;
        Remove: truncate(path, bytes: u64) -> ();
        Remove: rename(from, to: &Path) -> ();
        Remove: remove(path) -> ();
        Remove: remove_dir_all(directory) -> ();
    }

    fn working(&self, path: &Path, bytes: u64) -> Result<Box<dyn ScratchFile + '_>, DiskError> {
        self.guard.check_access(self.disk, DiskAccess::Create, path)?;
        let file = self.disk.working(path, bytes)?;
        Ok(Box::new(GuardedFile { file, path: path.to_path_buf(), disk: *self }))
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        self.disk.canonical(path)
    }

    fn scratch_bytes(&self, directory: &Path) -> u64 {
        self.disk.scratch_bytes(directory)
    }

    fn traffic(&self) -> Traffic {
        self.disk.traffic()
    }

    fn clock(&self) -> &dyn Clock {
        self.disk.clock()
    }
}

/// A working file of a guarded disk.
struct GuardedFile<'d> {
    file: Box<dyn ScratchFile + 'd>,
    path: PathBuf,
    disk: GuardedDisk<'d>,
}

impl GuardedFile<'_> {
    fn before_write(&self) -> Result<(), DiskError> {
        self.disk.guard.check_access(self.disk.disk, DiskAccess::InPlace, &self.path)
    }
}

impl InputFile for GuardedFile<'_> {
    fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_at(offset, into)
    }
}

impl ScratchFile for GuardedFile<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.before_write()?;
        self.file.write_at(offset, bytes)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }
}
