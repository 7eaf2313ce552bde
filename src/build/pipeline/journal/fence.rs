//! The fence of a run directory: stops a run from writing after another run has taken the directory despite the lock.
//!
//! Locks do not reach every machine, a lock file can be removed, and a suspended process may resume after its
//! job was queued and started again. So each run that writes first raises a durable counter: the run number
//! of its journal records. Before it names or removes a file, or appends to the journal, it checks that the
//! journal still ends where it left it, which takes one open and the length. If a run of the same or a higher
//! number has written there, it ends.
//!
//! Another run may begin between the check and the change. A file that then gets its final name is complete
//! and made of the same inputs, and readers skip a journal record with a smaller run number. In a job of
//! several ranks only the first rank is fenced; the others name no artifact, and write only to the temporary
//! files of the current attempt.

#[cfg(test)]
mod tests;

use crate::journal::contents::{Contents, JOURNAL_BYTES_MAX, JournalError};
use crate::journal::record::Record;
use disk::{Disk, DiskAccess, DiskError, DiskGuard};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The end of the journal as this run left it.
#[derive(Debug)]
pub(crate) struct Fence {
    path: PathBuf,
    run: u64,
    bytes: AtomicU64,
    /// Whether the journal has a record of this run, so that its number counts.
    raised: AtomicBool,
    /// Held while the run appends a record, and while the end of the journal is checked: between a record and the new
    /// length, a thread of a stage would find bytes beyond the end.
    ends: Mutex<()>,
}

impl Fence {
    /// Makes the fence of run number `run`, for a journal of `bytes` bytes.
    pub(crate) fn new(path: &Path, run: u64, bytes: u64) -> Fence {
        let (raised, ends) = (AtomicBool::new(false), Mutex::new(()));
        Fence { path: path.to_path_buf(), run, bytes: AtomicU64::new(bytes), raised, ends }
    }

    /// Returns the number of the run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Returns the length of the journal as this run left it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps the end of the journal as it is for other threads, until the result is dropped.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes that this run has appended.
    pub(crate) fn append(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Returns the bytes of the journal beyond that, usually none.
    ///
    /// # Errors
    /// [`JournalError::Overtaken`] if the journal has shrunk; otherwise if it cannot be read.
    pub(crate) fn beyond(&self, disk: &dyn Disk) -> Result<Vec<u8>, JournalError> {
        // Network file systems refresh the attributes of a file when it is opened, but not for a query by name.
        let found = match disk.open(&self.path) {
            Ok(file) => file.bytes(),
            Err(error) if error.is_not_found() => 0,
            Err(error) => return Err(error.into()),
        };
        let bytes = self.bytes();
        if found < bytes {
            return Err(self.overtaken(format!("has shrunk from {} to {found}", disk::bytes(bytes))));
        }
        if found == bytes {
            return Ok(Vec::new());
        }
        let mut all = disk.read(&self.path, JOURNAL_BYTES_MAX)?;
        Ok(all.split_off(all.len().min(bytes as usize)))
    }

    /// Accepts records of earlier runs, which readers ignore: those runs end with their next check.
    ///
    /// # Errors
    /// [`JournalError::Overtaken`] if there is anything else.
    pub(crate) fn judge(&self, beyond: &[u8]) -> Result<(), JournalError> {
        let contents = Contents::decode(beyond);
        let odd = contents.torn_bytes + contents.damaged_bytes + contents.unknown as u64;
        let earlier = contents.entries.iter().all(|entry| entry.run < self.run);
        if odd == 0 && earlier && self.raised.load(Ordering::Relaxed) {
            self.bytes.fetch_add(beyond.len() as u64, Ordering::Relaxed);
            return Ok(());
        }
        let run = contents.entries.iter().map(|entry| entry.run).max();
        let who = contents.entries.iter().find_map(|entry| match &entry.record {
            Record::RunStarted { host, pid, .. } => Some(format!("process {pid} on {host}")),
            _ => None,
        });
        Err(self.overtaken(match (run, who) {
            (Some(run), Some(who)) => format!("was written by run {run}, {who},"),
            (Some(run), None) => format!("was written by run {run}"),
            (None, _) => "was written by another process".to_owned(),
        }))
    }

    /// Checks that no other run has taken the directory.
    fn check(&self, disk: &dyn Disk) -> Result<(), DiskError> {
        let _held = self.hold();
        self.beyond(disk).and_then(|beyond| if beyond.is_empty() { Ok(()) } else { self.judge(&beyond) }).map_err(
            |error| match error {
                JournalError::Disk(error) => error,
                error => DiskError::Overtaken { path: self.path.clone(), why: error.to_string() },
            },
        )
    }

    fn overtaken(&self, what: String) -> JournalError {
        JournalError::Overtaken { path: self.path.clone(), what }
    }
}

/// Checks the journal before a run changes its directory, see [`disk::GuardedDisk`].
pub(crate) struct FenceGuard {
    fence: Arc<Fence>,
    /// The second of the last check. Working files are written often, so they are checked once a second.
    looked_at: AtomicU64,
}

impl FenceGuard {
    pub(crate) fn new(fence: Arc<Fence>) -> FenceGuard {
        FenceGuard { fence, looked_at: AtomicU64::new(0) }
    }
}

impl DiskGuard for FenceGuard {
    fn check_access(&self, disk: &dyn Disk, access: DiskAccess, _: &Path) -> Result<(), DiskError> {
        let now = disk.clock().utc().as_secs();
        let is_due = match access {
            DiskAccess::Neutral => false,
            // Names of temporary files repeat where processes of two machines have the same number.
            DiskAccess::Create | DiskAccess::Remove => true,
            // The clock advances while a process is suspended.
            DiskAccess::InPlace => self.looked_at.load(Ordering::Relaxed) != now,
        };
        if is_due {
            self.fence.check(disk)?;
            self.looked_at.store(now, Ordering::Relaxed);
        }
        Ok(())
    }
}
