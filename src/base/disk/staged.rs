//! Atomic publication of an artifact: write under a temporary name, sync, rename.
//!
//! An artifact `NAME` is written as `.NAME.tmp-PID` in the same directory, synced and renamed, and then the directory
//! is synced. At any moment `NAME` is absent, or the complete old file, or the complete new one. The temporary of a
//! dead run is ignored by readers and found by [`remove_leftovers`].

use crate::disk::{Disk, OutputFile};
use crate::error::{DiskError, Operation};
use crate::file_names::{is_leftover, kept_names, temporary_of};
use std::path::{Path, PathBuf};

/// A file being written under a temporary name. Dropped unpublished, it is removed.
pub struct Staged<'d> {
    disk: &'d dyn Disk,
    /// `None` once published or abandoned.
    output: Option<Box<dyn OutputFile>>,
    temporary: PathBuf,
    path: PathBuf,
    bytes: u64,
}

impl<'d> Staged<'d> {
    /// Opens the temporary file for `path` and reserves `expected_bytes` (0 reserves nothing).
    ///
    /// One process stages one path at most once at a time.
    ///
    /// # Errors
    /// [`DiskError::NoSpace`] with what is needed and free, or what the operating system says.
    pub fn create(disk: &'d dyn Disk, path: &Path, expected_bytes: u64) -> Result<Self, DiskError> {
        let temporary = temporary_of(path)?;
        let output = disk.create(&temporary)?;
        let mut staged = Staged { disk, output: Some(output), temporary, path: path.to_path_buf(), bytes: 0 };
        if expected_bytes > 0 {
            staged.output().reserve(expected_bytes)?;
        }
        Ok(staged)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// What the operating system says; the file can then only be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.output().write(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The name under which it will be published.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file durable under its final name, replacing any of that name. Returns its length in bytes.
    ///
    /// # Errors
    /// What the operating system says. The final name then shows either what it showed before or
    /// the complete new file.
    pub fn publish(mut self) -> Result<u64, DiskError> {
        self.output().sync()?;
        // Closed before it is renamed; nothing may write to a published file.
        self.output = None;
        if let Err(error) = self.disk.rename(&self.temporary, &self.path) {
            let _ = self.disk.remove(&self.temporary);
            return Err(error);
        }
        Ok(self.bytes)
    }

    fn output(&mut self) -> &mut dyn OutputFile {
        self.output.as_deref_mut().expect("the output is only taken by publish and drop, which consume self")
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if self.output.take().is_some() {
            // A leftover is harmless, and an error may be on its way already.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}

/// The bytes of a probe that are written and synced: a block, which the file system has to allocate.
const PROBE: [u8; 4096] = [0; 4096];

/// Writes a file that is removed at once, with `bytes` reserved for it.
pub(crate) fn probe(disk: &dyn Disk, directory: &Path, bytes: u64) -> Result<(), DiskError> {
    let path = temporary_of(&directory.join("probe"))?;
    let written = disk.create(&path).and_then(|mut output| {
        if bytes > 0 {
            output.reserve(bytes)?;
        }
        output.write(&PROBE)?;
        output.sync()
    });
    let removed = disk.remove(&path);
    written.and(removed)
}

/// Renames a foreign file, and returns its new name. Only for the holder of the directory's lock.
pub fn set_aside(disk: &dyn Disk, path: &Path) -> Result<PathBuf, DiskError> {
    let taken = disk.list(path.parent().unwrap_or(Path::new("")))?;
    let is_free = |kept: &PathBuf| taken.iter().all(|path| path.file_name() != kept.file_name());
    let Some(kept) = kept_names(path).find(is_free) else {
        let source = std::io::Error::other("all names to keep it under are taken; move it away");
        return Err(DiskError::from_io(Operation::Rename, path, source));
    };
    disk.rename(path, &kept)?;
    Ok(kept)
}

/// Removes the temporaries of dead runs in a directory, and returns their number.
///
/// Only for the holder of the directory's lock, before it stages anything: then all temporaries are of dead runs,
/// whatever process number is in their names (numbers repeat, above all in containers).
pub fn remove_leftovers(disk: &dyn Disk, directory: &Path) -> Result<usize, DiskError> {
    let mut removed = 0;
    for path in disk.list(directory)? {
        if is_leftover(&path) {
            disk.remove(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}
