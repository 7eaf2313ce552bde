//! Snapshots: the saved state of a long stage.
//!
//! `snapshots/STAGE/` holds the snapshots of a stage and a file `fingerprint` that identifies the result they
//! belong to. Snapshots of another result are removed before the stage starts, all of them once it is done.

use disk::{Digest, Disk, DiskError, Staged, remove_leftovers};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The snapshots of one stage.
#[derive(Clone)]
pub struct Snapshots<'a> {
    disk: &'a dyn Disk,
    directory: PathBuf,
    fingerprint: Digest,
    interval: Duration,
    exists: bool,
}

const MARKER: &str = "fingerprint";

/// Whether a directory holds snapshots.
pub(crate) fn is_snapshots(disk: &dyn Disk, directory: &Path) -> Result<bool, DiskError> {
    Ok(disk.bytes(&directory.join(MARKER))?.is_some())
}

impl<'a> Snapshots<'a> {
    /// Opens the snapshots of this result, and removes those of another. A failing disk removes none: they
    /// may be hours of work.
    pub fn open(
        disk: &'a dyn Disk,
        directory: PathBuf,
        fingerprint: Digest,
        interval: Duration,
    ) -> Result<Self, DiskError> {
        let marker = directory.join(MARKER);
        let exists = match disk.read(&marker, 1024) {
            Ok(found) => {
                let same = found == fingerprint.to_string().as_bytes();
                if same {
                    // An unfinished snapshot is useless, and may be as large as a finished one.
                    remove_leftovers(disk, &directory)?;
                } else {
                    disk.remove_dir_all(&directory)?;
                }
                same
            }
            // Their removal may have been interrupted: without a fingerprint their result is unknown.
            Err(error) if error.is_not_found() || matches!(error, DiskError::TooLarge { .. }) => {
                disk.remove_dir_all(&directory)?;
                false
            }
            Err(error) => return Err(error),
        };
        Ok(Snapshots { disk, directory, fingerprint, interval, exists })
    }

    /// Returns the fingerprint of the result.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// Returns the time between snapshots.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the directory of the snapshots, which may not exist.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory with the snapshots of an earlier attempt at the same result, if there was one.
    pub fn saved(&self) -> Option<&Path> {
        self.exists.then_some(self.directory.as_path())
    }

    /// Creates the directory to save in. Files in it are published like artifacts.
    pub fn prepare(&self) -> Result<&Path, DiskError> {
        let marker = self.directory.join(MARKER);
        if self.disk.bytes(&marker)?.is_none() {
            let mut staged = Staged::create(self.disk, &marker, 0)?;
            staged.write(self.fingerprint.to_string().as_bytes())?;
            staged.publish()?;
        }
        Ok(&self.directory)
    }

    /// Removes all snapshots.
    pub fn remove(&self) -> Result<(), DiskError> {
        if self.disk.bytes(&self.directory.join(MARKER))?.is_some() {
            self.disk.remove_dir_all(&self.directory)?;
        }
        Ok(())
    }
}
