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

use disk::{Clock, Disk, DiskError, Input, Lock, Mapping, Output, Scratch, Traffic};

use crate::journal::record::Record;
use crate::journal::{Contents, JOURNAL_BYTES_MAX, JournalError};

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

/// A disk on which nothing gets a name, or loses it, once the directory has been lost to another run.
pub(crate) struct Fenced<'d> {
    disk: &'d dyn Disk,
    fence: Arc<Fence>,
}

impl<'d> Fenced<'d> {
    /// The disk of whoever writes to a journal.
    pub(crate) fn new(disk: &'d dyn Disk, fence: Arc<Fence>) -> Fenced<'d> {
        Fenced { disk, fence }
    }

    fn check(&self) -> Result<(), DiskError> {
        self.fence.check(self.disk)
    }
}

impl Disk for Fenced<'_> {
    fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        self.disk.read(path, bytes_max)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
        // Names of temporary files repeat where processes of two machines have the same number.
        self.check()?;
        self.disk.create(path)
    }

    fn append(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
        self.check()?;
        self.disk.append(path)
    }

    fn truncate(&self, path: &Path, bytes: u64) -> Result<(), DiskError> {
        self.check()?;
        self.disk.truncate(path, bytes)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Input>, DiskError> {
        self.disk.open(path)
    }

    fn open_scattered(&self, path: &Path) -> Result<Box<dyn Input>, DiskError> {
        self.disk.open_scattered(path)
    }

    fn scratch(&self, path: &Path, bytes: u64) -> Result<Box<dyn Scratch>, DiskError> {
        self.disk.scratch(path, bytes)
    }

    fn working(&self, path: &Path, bytes: u64) -> Result<Box<dyn Scratch + '_>, DiskError> {
        self.check()?;
        let file = self.disk.working(path, bytes)?;
        Ok(Box::new(FencedFile { file, fenced: self, looked_at: AtomicU64::new(self.clock().utc().as_secs()) }))
    }

    fn map(&self, path: &Path) -> Result<Mapping, DiskError> {
        self.disk.map(path)
    }

    fn bytes(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        self.disk.bytes(path)
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        self.disk.allocated_bytes(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        self.disk.list(directory)
    }

    fn list_directories(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        self.disk.list_directories(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.check()?;
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.check()?;
        self.disk.remove(path)
    }

    fn remove_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        self.check()?;
        self.disk.remove_dir_all(directory)
    }

    fn create_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        self.disk.create_dir_all(directory)
    }

    fn create_dir(&self, directory: &Path) -> Result<(), DiskError> {
        self.disk.create_dir(directory)
    }

    fn create_private_dir(&self, parent: &Path, prefix: &str) -> Result<PathBuf, DiskError> {
        self.disk.create_private_dir(parent, prefix)
    }

    fn canonical(&self, path: &Path) -> PathBuf {
        self.disk.canonical(path)
    }

    fn free_bytes(&self, directory: &Path) -> Result<u64, DiskError> {
        self.disk.free_bytes(directory)
    }

    fn probe(&self, directory: &Path, bytes: u64) -> Result<(), DiskError> {
        self.disk.probe(directory, bytes)
    }

    fn post(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.post(path, bytes)
    }

    fn traffic(&self) -> Traffic {
        self.disk.traffic()
    }

    fn clock(&self) -> &dyn Clock {
        self.disk.clock()
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Lock, DiskError> {
        self.disk.lock(path, note)
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<String>, DiskError> {
        self.disk.lock_holder(path)
    }
}

/// A file that is written in place, and that the next run goes on with. It is written often, so the look at the journal
/// is taken when the clock, which goes on while a process is suspended, shows another second.
struct FencedFile<'f> {
    file: Box<dyn Scratch + 'f>,
    fenced: &'f Fenced<'f>,
    looked_at: AtomicU64,
}

impl FencedFile<'_> {
    fn check(&self) -> Result<(), DiskError> {
        let now = self.fenced.clock().utc().as_secs();
        if self.looked_at.load(Ordering::Relaxed) != now {
            self.fenced.check()?;
            self.looked_at.store(now, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Input for FencedFile<'_> {
    fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_at(offset, into)
    }
}

impl Scratch for FencedFile<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check()?;
        self.file.write_at(offset, bytes)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    fn write_runs(&self, runs: &[(u64, &[u8])]) -> Result<(), DiskError> {
        self.check()?;
        self.file.write_runs(runs)
    }

    fn read_runs(&self, runs: &[(u64, usize)], each: &mut dyn FnMut(usize, &mut [u8])) -> Result<(), DiskError> {
        self.file.read_runs(runs, each)
    }
}
