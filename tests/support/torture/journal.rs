//! The journal of a run directory, checked repeatedly while it grows.

use disk::MemoryDisk;
use pipeline::journal::{Contents, Entry};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The run directory of all builds.
pub(crate) const DIRECTORY: &str = "run";

/// The folder of scratch files of ranks, outside of the run directory.
pub(crate) const RANK_SCRATCH: &str = "scratch";

/// Checks of the journal during a run.
pub(crate) struct Journals<'a> {
    disk: &'a MemoryDisk,
    /// Damage at the start of the run.
    damaged_bytes: u64,
    seen: Mutex<(Vec<Entry>, Option<String>)>,
}

impl<'a> Journals<'a> {
    pub(crate) fn new(disk: &'a MemoryDisk) -> Journals<'a> {
        Journals { disk, damaged_bytes: read(disk).damaged_bytes, seen: Mutex::default() }
    }

    /// Checks that the run has damaged no record, and that the journal begins with the records of the last
    /// check. Not an operation of the disk.
    pub(crate) fn look(&self) {
        let found = read(self.disk);
        let mut guard = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, wrong) = &mut *guard;
        if found.damaged_bytes > self.damaged_bytes || found.unknown > 0 || found.fenced > 0 {
            wrong.get_or_insert(format!(
                "the journal has {} damaged bytes, {} unknown and {} fenced records",
                found.damaged_bytes, found.unknown, found.fenced
            ));
        }
        if !found.entries.starts_with(seen) {
            wrong.get_or_insert(format!("the journal had {} records, and does not begin with them", seen.len()));
        }
        *seen = found.entries;
    }

    /// The first mistake, if there was one.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.look();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }
}

/// The journal on a disk; no operation of it.
pub(crate) fn read(disk: &MemoryDisk) -> Contents {
    let bytes = disk.peek(&Path::new(DIRECTORY).join("journal"));
    Contents::decode(&bytes.unwrap_or_default())
}
