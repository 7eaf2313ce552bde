//! Snapshots: what a long stage saves of its unfinished work.
//!
//! They live in a directory of their own, `snapshots/STAGE/`, with a file `fingerprint` that says
//! for which result they were made. Those of another result are removed before the stage starts, all
//! of them once it is done.

use std::path::{Path, PathBuf};
use std::time::Duration;

use disk::{Digest, Disk, DiskError, Staged, remove_leftovers};

/// The place for the snapshots of one stage.
pub struct Snapshots<'a> {
    disk: &'a dyn Disk,
    directory: PathBuf,
    fingerprint: Digest,
    interval: Duration,
    exists: bool,
}

const MARKER: &str = "fingerprint";

/// Whether a directory is one of snapshots.
///
/// # Errors
/// What the operating system says.
pub(crate) fn is_snapshots(disk: &dyn Disk, directory: &Path) -> Result<bool, DiskError> {
    Ok(disk.bytes(&directory.join(MARKER))?.is_some())
}

impl<'a> Snapshots<'a> {
    /// Looks for snapshots that serve this result, and removes others. Where the disk fails they may be just the ones,
    /// and hours of work: then they stay, and the error is the caller's.
    ///
    /// # Errors
    /// What the operating system says.
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
                    // One that was not finished is of no use, and takes as much room as one that was.
                    remove_leftovers(disk, &directory)?;
                } else {
                    disk.remove_dir_all(&directory)?;
                }
                same
            }
            // Without a fingerprint nobody knows what they are of: their removal may have been cut short.
            Err(error) if error.is_not_found() || matches!(error, DiskError::TooLarge { .. }) => {
                disk.remove_dir_all(&directory)?;
                false
            }
            Err(error) => return Err(error),
        };
        Ok(Snapshots { disk, directory, fingerprint, interval, exists })
    }

    /// What they are made for.
    pub fn fingerprint(&self) -> Digest {
        self.fingerprint
    }

    /// How often to snapshot.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The directory with what an earlier attempt at the very same result saved, if there was one.
    pub fn saved(&self) -> Option<&Path> {
        self.exists.then_some(self.directory.as_path())
    }

    /// The directory to save in, made ready for it. Publish files in it, as artifacts.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn prepare(&self) -> Result<&Path, DiskError> {
        let marker = self.directory.join(MARKER);
        if self.disk.bytes(&marker)?.is_none() {
            let mut staged = Staged::create(self.disk, &marker, 0)?;
            staged.write(self.fingerprint.to_string().as_bytes())?;
            staged.publish()?;
        }
        Ok(&self.directory)
    }

    /// Removes everything saved.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn remove(&self) -> Result<(), DiskError> {
        if self.disk.bytes(&self.directory.join(MARKER))?.is_some() {
            self.disk.remove_dir_all(&self.directory)?;
        }
        Ok(())
    }
}
