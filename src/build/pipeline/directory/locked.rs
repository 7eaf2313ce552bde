//! A run directory that is locked for writing.

use crate::directory::claim::{claim, keep_others, lock_is_of_others};
use crate::directory::layout::{journal_path, lock_path};
use crate::error::{PipelineError, Result, unusable};
use crate::journal::{Journal, JournalError};
use disk::{Disk, DiskError, Lock};
use std::path::Path;
use std::time::Duration;

/// A run directory locked for writing.
pub struct Directory<'d> {
    // Declared before the lock: the journal is closed before the lock is released.
    journal: Journal<'d>,
    _lock: Lock,
}

impl<'d> Directory<'d> {
    /// Takes the lock and opens the journal, truncating a torn end. Creates the directory if it is absent. `command` is
    /// written into the lock. `holds_artifacts` is called if neither lock nor journal show that the directory belongs
    /// to a run.
    ///
    /// # Errors
    /// [`PipelineError::Locked`], or [`PipelineError::Preflight`] if the directory cannot be used. Nothing is changed
    /// if it holds only foreign files.
    pub fn open(
        disk: &'d dyn Disk,
        path: &Path,
        command: &str,
        holds_artifacts: &dyn Fn() -> Result<bool>,
    ) -> Result<Self> {
        claim(disk, path, holds_artifacts)?;
        let lock_path = lock_path(path);
        let lock_is_of_others = lock_is_of_others(disk, path);
        let lock = match disk.lock(&lock_path, command) {
            Err(DiskError::Locked { .. }) => {
                // A process that queries the holder takes the lock briefly, so a failed attempt is repeated.
                std::thread::sleep(Duration::from_millis(100));
                disk.lock(&lock_path, command)
            }
            other => other,
        };
        let lock = lock.map_err(|error| match error {
            DiskError::Locked { holder, .. } => PipelineError::Locked { directory: path.to_path_buf(), holder },
            source => unusable(path, source),
        })?;
        if lock_is_of_others {
            tracing::warn!("{} was not written by awari: it is renamed and kept", lock_path.display());
        }
        keep_others(disk, path).map_err(|source| unusable(path, source))?;
        let journal = Journal::open(disk, &journal_path(path)).map_err(|error| match error {
            JournalError::Disk(source) => unusable(path, source),
            other => other.into(),
        })?;
        Ok(Directory { journal, _lock: lock })
    }

    /// Checks that a directory is a run directory, or holds nothing that a run would replace. Writes nothing.
    ///
    /// # Errors
    /// [`PipelineError::Preflight`] if it holds foreign files, or cannot be read.
    pub fn check(disk: &dyn Disk, path: &Path, holds_artifacts: &dyn Fn() -> Result<bool>) -> Result<()> {
        claim(disk, path, holds_artifacts).map(|_| ())
    }

    /// Returns the journal.
    pub fn journal(&mut self) -> &mut Journal<'d> {
        &mut self.journal
    }
}
