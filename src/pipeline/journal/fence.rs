//! The fence of a run directory: what keeps a run that has lost the directory from writing there, should the lock not.
//!
//! A lock does not reach every machine, a lock file can be removed, and a process that was suspended comes back to a job
//! that was put into the queue again meanwhile. So each run that writes raises a counter, the number of its journal's
//! records, durably and before anything else; and before it gives a file a name, takes one away, or appends to the
//! journal, a run looks whether the journal still ends where it left it. If a run of the same or a higher number has
//! written there, it ends. Looking is opening the journal and asking for its length.
//!
//! Between the look and what follows it another run may begin. What then gets its final name is complete and made of the
//! same inputs, and what then gets into the journal has a number that readers pass over. Of a job of several ranks the
//! first is fenced so; the others give no artifact its name, and write to none under a temporary name but that of the attempt
//! they are told of.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use disk::{Disk, DiskAccess, DiskError, ScratchGuard};

use crate::journal::contents::{Contents, JOURNAL_BYTES_MAX, JournalError};
use crate::journal::record::Record;

/// Where the journal of a directory ends as long as nobody else has taken the directory.
#[derive(Debug)]
pub(crate) struct Fence {
    path: PathBuf,
    run: u64,
    bytes: AtomicU64,
    /// Whether the journal has a record of ours: our number is raised.
    raised: AtomicBool,
}

impl Fence {
    /// For run number `run`, of a journal of so many bytes.
    pub(crate) fn new(path: &Path, run: u64, bytes: u64) -> Fence {
        Fence { path: path.to_path_buf(), run, bytes: AtomicU64::new(bytes), raised: AtomicBool::new(false) }
    }

    /// The number of the run.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Where our knowledge of the journal ends.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// So many bytes more are ours.
    pub(crate) fn append(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.raised.store(true, Ordering::Relaxed);
    }

    /// What the journal has beyond that, mostly nothing.
    ///
    /// # Errors
    /// [`JournalError::Overtaken`] if it has less; or if it cannot be read.
    pub(crate) fn beyond(&self, disk: &dyn Disk) -> Result<Vec<u8>, JournalError> {
        // Opened, not asked for by name: network file systems look at a file anew when it is opened.
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

    /// Looks at what is beyond: records of earlier runs, which learn of ours with their next look, count for nobody.
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

    /// Makes sure that the directory is still ours.
    fn check(&self, disk: &dyn Disk) -> Result<(), DiskError> {
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

/// Looks at the journal before a run changes its directory, see [`disk::GuardedDisk`].
pub(crate) struct FenceGuard {
    fence: Arc<Fence>,
    /// The second of the last look. Working files are written often: before those writes, one look a second is enough.
    looked_at: AtomicU64,
}

impl FenceGuard {
    pub(crate) fn new(fence: Arc<Fence>) -> FenceGuard {
        FenceGuard { fence, looked_at: AtomicU64::new(0) }
    }
}

impl ScratchGuard for FenceGuard {
    fn before(&self, disk: &dyn Disk, access: DiskAccess, _: &Path) -> Result<(), DiskError> {
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
