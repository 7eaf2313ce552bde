//! A run directory held for writing: its lock, and its journal.

mod claim;
mod heartbeat;
mod layout;
mod snapshots;
mod space;
mod stop;
mod survey;

pub(crate) use claim::{Claim, MANIFEST_MARK, claim, holds_artifacts, is_leftover_of, keep_manifest};
pub use heartbeat::Heartbeat;
pub(crate) use layout::{heartbeat_path, lock_path, snapshots_path, stop_path};
pub use layout::{journal_path, manifest_path};
pub use snapshots::Snapshots;
pub(crate) use snapshots::is_snapshots;
pub use space::Space;
pub use stop::StopRequest;
pub use survey::Inspections;
pub(crate) use survey::{look, survey};

use std::path::Path;
use std::time::Duration;

use disk::{Disk, DiskError, Lock};

use crate::directory::claim::{keep_others, lock_is_of_others};
use crate::error::{PipelineError, unusable};
use crate::journal::{Journal, JournalError};

/// A run directory held for writing, by us alone.
pub struct Directory<'d> {
    // Declared before the lock: nothing of ours is open when the lock goes.
    journal: Journal<'d>,
    _lock: Lock,
}

impl<'d> Directory<'d> {
    /// Takes the lock and opens the journal, cutting off what a crash tore. Makes the directory if
    /// it is absent. `command` tells others who holds it. `holds_artifacts` looks for artifacts, where neither lock nor
    /// journal say that the directory is a run's.
    ///
    /// # Errors
    /// [`PipelineError::Locked`], or [`PipelineError::Preflight`] if the directory cannot be used: above all if it holds
    /// files of others only, and then nothing was touched.
    pub fn open(
        disk: &'d dyn Disk,
        path: &Path,
        command: &str,
        holds_artifacts: &dyn Fn() -> Result<bool, PipelineError>,
    ) -> Result<Self, PipelineError> {
        claim(disk, path, holds_artifacts)?;
        let lock_path = lock_path(path);
        let lock_is_of_others = lock_is_of_others(disk, path);
        let lock = match disk.lock(&lock_path, command) {
            Err(DiskError::Locked { .. }) => {
                // Whoever only looks whether a run goes on holds it for a moment.
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
            tracing::warn!("{} was not written by awari: it is kept under another name", lock_path.display());
        }
        keep_others(disk, path).map_err(|source| unusable(path, source))?;
        let journal = Journal::open(disk, &journal_path(path)).map_err(|error| match error {
            JournalError::Disk(source) => unusable(path, source),
            other => other.into(),
        })?;
        Ok(Directory { journal, _lock: lock })
    }

    /// Whether a directory can be a run directory: it is one, or nothing in it would be replaced. Writes nothing.
    ///
    /// # Errors
    /// [`PipelineError::Preflight`] if it holds files of others, or cannot be read.
    pub fn check(
        disk: &dyn Disk,
        path: &Path,
        holds_artifacts: &dyn Fn() -> Result<bool, PipelineError>,
    ) -> Result<(), PipelineError> {
        claim(disk, path, holds_artifacts).map(|_| ())
    }

    /// Its journal.
    pub fn journal(&mut self) -> &mut Journal<'d> {
        &mut self.journal
    }
}
