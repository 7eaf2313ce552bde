//! A disk in memory: the twin of the real one, for tests.
//!
//! It keeps the state that a process sees apart from the durable state. The bytes of a file become durable when it is
//! synced, a name when its directory is synced; [`MemoryDisk::crash`] restores the durable state, as a loss of power
//! may. (A real disk may keep more than it promised, in any order: [`MemoryDisk::crash_torn`],
//! [`MemoryDisk::crash_anyhow`].)
//!
//! Operations are counted, and any of them can be made to fail. One call may be several operations: a rename is the
//! rename and the sync of each directory. A failed write leaves half of its bytes, or with a seed
//! ([`MemoryDisk::seed`]) any part. With a seed, a failed sync loses some of its bytes for good, and a failed read
//! overwrites part of the reader's memory. Directories exist by the files in them.
//!
//! A drive that confirms a sync without performing it (a volatile cache that ignores flushes) is not simulated: it
//! breaks the assumptions of this crate, and checksums detect its damage.

mod contents;
mod faults;
mod open;

#[cfg(test)]
mod tests;

pub use faults::{Fault, InjectedFault, OperationSet, PlannedFault};

use crate::clock::{Clock, SystemClock};
use crate::disk::{Disk, InputFile, OutputFile, ScratchFile};
use crate::error::{DiskError, Operation, too_short};
use crate::file_names::kept_names;
use crate::folder::parent;
use crate::lock::{Lock, has_note, is_lock_note};
use crate::map::Mapping;
use crate::meter::TrafficMeter;
use crate::staged::probe;
use crate::traffic::Traffic;
use contents::FileContents;
use faults::{FaultPlan, OperationOutcome, RandomBits};
use open::{MemoryFile, MemoryOutput};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A file system in memory. Clones refer to the same one, each with the clock of a host.
#[derive(Clone, Debug)]
pub struct MemoryDisk {
    state: Arc<Mutex<MemoryState>>,
    clock: Arc<dyn Clock>,
}

impl Default for MemoryDisk {
    fn default() -> Self {
        MemoryDisk { state: Arc::default(), clock: Arc::new(SystemClock) }
    }
}

#[derive(Debug, Default)]
struct MemoryState {
    files: Vec<FileContents>,
    /// Names as a process sees them, and the index of their file.
    names: BTreeMap<PathBuf, usize>,
    /// Names as they are after a crash.
    durable_names: BTreeMap<PathBuf, usize>,
    /// The nameless files that are open.
    scratch_files: BTreeSet<usize>,
    locks: BTreeMap<PathBuf, Holder>,
    locks_taken: u64,
    operations: u64,
    traffic: TrafficMeter,
    faults: FaultPlan,
    random: Option<RandomBits>,
    bytes_max: Option<u64>,
    /// The operation from which on only some bytes more can be written, and their number.
    filled: Option<(u64, u64)>,
    /// The number of crashes: files opened before the last one belong to a dead process.
    crashes: u64,
}

#[derive(Debug)]
struct Holder {
    number: u64,
    note: String,
}

impl MemoryDisk {
    /// An empty disk without a limit on its size.
    pub fn new() -> Self {
        MemoryDisk::default()
    }

    /// The same file system as seen from a host with another clock.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Self {
        MemoryDisk { state: Arc::clone(&self.state), clock }
    }

    /// Makes the effects of failures random, determined by the seed.
    pub fn seed(&self, seed: u64) {
        self.state().random = Some(RandomBits::new(seed));
    }

    /// Limits the bytes of all files together, reserved space included; a limit below the current size leaves no room.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.state().bytes_max = Some(bytes_max);
    }

    /// Fills the disk, except for `free_bytes`, when operation number `operation` (counted from 0) begins. It stays
    /// full, also after a crash, until [`make_room`](Self::make_room).
    pub fn fill_at(&self, operation: u64, free_bytes: u64) {
        self.state().filled = Some((operation, free_bytes));
    }

    /// Removes all limits on the size.
    pub fn make_room(&self) {
        let mut state = self.state();
        state.bytes_max = None;
        state.filled = None;
    }

    /// Whether there is such a limit now.
    pub fn is_limited(&self) -> bool {
        self.state().bytes_max.is_some()
    }

    /// The number of operations so far, failed ones included, which is the number of the next operation.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The number of operations among some; 0 for [`OperationSet::Below`], which is not counted.
    pub fn operations_among(&self, among: OperationSet) -> u64 {
        self.state().faults.count(among)
    }

    /// The operations that were made to fail so far, except those of a dead process.
    pub fn injected_faults(&self) -> Vec<InjectedFault> {
        self.state().faults.injected.clone()
    }

    /// Makes operation number `operation` (counted from 0) fail, once. Replaces an earlier plan.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.fail_range(operation, 1, fault);
    }

    /// Makes operation number `operation` and all after it fail, until a crash. Replaces an
    /// earlier plan.
    pub fn fail_from(&self, operation: u64, fault: Fault) {
        self.fail_range(operation, u64::MAX, fault);
    }

    fn fail_range(&self, operation: u64, count: u64, fault: Fault) {
        let mut state = self.state();
        state.faults.clear();
        let passed = state.operations.saturating_sub(operation);
        let (first, count) = (operation.saturating_sub(state.operations), count.saturating_sub(passed));
        state.faults.plan(PlannedFault { among: OperationSet::All, first, count, fault });
    }

    /// Plans a fault in addition to earlier ones.
    pub fn fail(&self, fault: PlannedFault) {
        self.state().faults.plan(fault);
    }

    /// Makes the process die in operation number `operation` (counted from 0): part of it may be done, and nothing
    /// after it. Followed by [`kill`](Self::kill) or a crash.
    pub fn die_at(&self, operation: u64) {
        let mut state = self.state();
        let left = (operation + 1).saturating_sub(state.operations);
        state.faults.die_after(left);
    }

    /// Cancels the failures planned.
    pub fn fail_never(&self) {
        self.state().faults.clear();
    }

    /// Ends the process: releases its locks and cancels planned faults. Its writes stay, synced or not. Open files fail
    /// from now on.
    pub fn kill(&self) {
        self.state().restart();
    }

    /// Loses power: discards every byte and every name that was not synced, releases the locks and cancels planned
    /// faults. Open files fail from now on.
    pub fn crash(&self) {
        let mut state = self.state();
        state.names = state.durable_names.clone();
        state.files.iter_mut().for_each(FileContents::crash);
        state.restart();
    }

    /// Loses power on a disk that kept more than it promised: names are as the process saw them, and of bytes appended
    /// but not synced, the first `bytes_max` of each file remain.
    pub fn crash_torn(&self, bytes_max: usize) {
        let mut state = self.state();
        state.durable_names = state.names.clone();
        state.files.iter_mut().for_each(|file| file.crash_torn(bytes_max));
        state.restart();
    }

    /// Loses power on a disk that kept a random part of everything not synced: each new, changed or removed name or
    /// not, in any order; the first bytes of each file, or any of its sectors of 512 bytes or pages of 4 KiB, the
    /// others unchanged or zero. Synced data remains.
    pub fn crash_anyhow(&self, seed: u64) {
        let mut random = RandomBits::new(seed);
        let mut state = self.state();
        let paths: BTreeSet<PathBuf> = state.names.keys().chain(state.durable_names.keys()).cloned().collect();
        for path in paths {
            let now = state.names.get(&path).copied();
            if now != state.durable_names.get(&path).copied() && random.coin() {
                match now {
                    Some(file) => state.durable_names.insert(path, file),
                    None => state.durable_names.remove(&path),
                };
            }
        }
        state.names = state.durable_names.clone();
        state.files.iter_mut().for_each(|file| file.crash_anyhow(&mut random));
        state.restart();
    }

    /// Writes a durable file, replacing any of that name. Not an operation.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        state.files.push(FileContents::durable(bytes));
        let file = state.files.len() - 1;
        state.names.insert(path.to_path_buf(), file);
        state.durable_names.insert(path.to_path_buf(), file);
    }

    /// The bytes of a file as a process sees them. Not an operation.
    pub fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let file = *state.names.get(path)?;
        Some(state.files[file].bytes.clone())
    }

    /// All names as a process sees them, sorted. Not an operation.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        // No invariant spans two statements of the methods below, so a poisoned lock is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file for reads and, if it is a scratch file, writes.
    fn opened(&self, state: &MemoryState, path: &Path, file: usize, is_scratch: bool) -> MemoryFile {
        let bytes = state.files[file].bytes.len() as u64;
        MemoryFile { disk: self.clone(), path: path.to_path_buf(), file, bytes, crashes: state.crashes, is_scratch }
    }

    /// Opens a file at its end; if `anew`, a new one that replaces any of that name.
    fn output(&self, path: &Path, anew: bool) -> Result<Box<dyn OutputFile>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Create, path)?;
        let name_is_new = anew || !state.names.contains_key(path);
        if name_is_new {
            state.files.push(FileContents::default());
            let file = state.files.len() - 1;
            state.names.insert(path.to_path_buf(), file);
        }
        let file = state.names[path];
        Ok(Box::new(MemoryOutput {
            disk: self.clone(),
            path: path.to_path_buf(),
            file,
            name_is_new,
            crashes: state.crashes,
        }))
    }
}

impl MemoryState {
    /// Counts an operation, and fails it if that is planned.
    fn begin(&mut self, operation: Operation, path: &Path) -> Result<(), DiskError> {
        self.begin_on(operation, path, false)
    }

    fn begin_on(&mut self, operation: Operation, path: &Path, is_scratch: bool) -> Result<(), DiskError> {
        match self.outcome_of(operation, path, is_scratch) {
            OperationOutcome::Fine => Ok(()),
            OperationOutcome::Fails(error) | OperationOutcome::Dies(error) | OperationOutcome::Dead(error) => {
                Err(error)
            }
        }
    }

    fn outcome_of(&mut self, operation: Operation, path: &Path, is_scratch: bool) -> OperationOutcome {
        if let Some((_, free)) = self.filled.take_if(|(at, _)| *at <= self.operations) {
            self.bytes_max = Some(self.used_bytes().saturating_add(free));
        }
        self.operations += 1;
        self.faults.next_outcome(operation, path, is_scratch)
    }

    /// Makes the content of a file durable; if the operation fails, a random part of it.
    fn sync_file(&mut self, file: usize, outcome: OperationOutcome) -> Result<(), DiskError> {
        let file = &mut self.files[file];
        match outcome {
            OperationOutcome::Fine => file.sync(),
            OperationOutcome::Fails(error) => {
                if let Some(random) = &mut self.random {
                    file.fail_to_sync(random);
                }
                return Err(error);
            }
            OperationOutcome::Dies(error) | OperationOutcome::Dead(error) => return Err(error),
        }
        Ok(())
    }

    fn find(&self, operation: Operation, path: &Path) -> Result<usize, DiskError> {
        self.names.get(path).copied().ok_or_else(|| DiskError::from_io(operation, path, io::ErrorKind::NotFound.into()))
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().fold(self.scratch_bytes(), |used, &file| {
            let file = &self.files[file];
            used.saturating_add(file.bytes_reserved.max(file.bytes.len() as u64))
        })
    }

    fn scratch_bytes(&self) -> u64 {
        self.scratch_files.iter().map(|&file| self.files[file].bytes.len() as u64).fold(0, u64::saturating_add)
    }

    fn free_bytes(&self) -> u64 {
        self.bytes_max.unwrap_or(u64::MAX).saturating_sub(self.used_bytes())
    }

    /// Refuses `bytes` more in a file if they exceed what is free or reserved for it.
    fn claim(&self, operation: Operation, path: &Path, file: usize, bytes: u64) -> Result<(), DiskError> {
        let file = &self.files[file];
        let own = file.bytes_reserved.saturating_sub(file.bytes.len() as u64);
        let free = self.free_bytes();
        if bytes <= free.saturating_add(own) {
            return Ok(());
        }
        let full = io::ErrorKind::StorageFull.into();
        Err(DiskError::from_io(operation, path, full).with_shortage(bytes, Some(free)))
    }

    fn sync_directory(&mut self, directory: &Path) -> Result<(), DiskError> {
        self.begin(Operation::Sync, directory)?;
        self.sync_names(directory);
        Ok(())
    }

    fn sync_names(&mut self, directory: &Path) {
        self.durable_names.retain(|path, _| parent(path) != directory);
        for (path, &file) in &self.names {
            if parent(path) == directory {
                self.durable_names.insert(path.clone(), file);
            }
        }
    }

    fn restart(&mut self) {
        self.locks.clear();
        self.faults.clear();
        self.crashes += 1;
        self.scratch_files.clear();
        for file in &mut self.files {
            file.bytes_reserved = 0;
        }
    }
}

impl Disk for MemoryDisk {
    fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Read, path)?;
        let file = state.find(Operation::Read, path)?;
        let bytes = &state.files[file].bytes;
        if bytes.len() as u64 > bytes_max {
            return Err(DiskError::TooLarge { path: path.to_path_buf(), bytes: bytes.len() as u64, bytes_max });
        }
        let bytes = bytes.clone();
        state.traffic.add_read(bytes.len() as u64);
        Ok(bytes)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn OutputFile>, DiskError> {
        self.output(path, true)
    }

    fn append(&self, path: &Path) -> Result<Box<dyn OutputFile>, DiskError> {
        self.output(path, false)
    }

    fn truncate(&self, path: &Path, bytes: u64) -> Result<(), DiskError> {
        let mut state = self.state();
        state.begin(Operation::Truncate, path)?;
        let file = state.find(Operation::Truncate, path)?;
        let file = &mut state.files[file];
        let found = file.bytes.len() as u64;
        if found < bytes {
            let source = too_short(found, bytes);
            return Err(DiskError::from_io(Operation::Truncate, path, source));
        }
        file.cut(bytes as usize);
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn InputFile>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Read, path)?;
        let file = state.find(Operation::Read, path)?;
        Ok(Box::new(self.opened(&state, path, file, false)))
    }

    fn scratch(&self, path: &Path, bytes: u64) -> Result<Box<dyn ScratchFile>, DiskError> {
        let mut state = self.state();
        state.begin_on(Operation::Create, path, true)?;
        state.files.push(FileContents::default());
        let file = state.files.len() - 1;
        state.claim(Operation::Create, path, file, bytes)?;
        // Nameless and not durable: a crash empties it.
        state.files[file] = FileContents::scratch(bytes);
        state.scratch_files.insert(file);
        Ok(Box::new(self.opened(&state, path, file, true)))
    }

    fn working(&self, path: &Path, bytes: u64) -> Result<Box<dyn ScratchFile>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Create, path)?;
        if !state.names.contains_key(path) {
            state.files.push(FileContents::default());
            let file = state.files.len() - 1;
            state.names.insert(path.to_path_buf(), file);
        }
        let file = state.names[path];
        let more = bytes.saturating_sub(state.files[file].bytes.len() as u64);
        state.claim(Operation::Create, path, file, more)?;
        state.files[file].resize(bytes);
        state.sync_directory(parent(path))?;
        Ok(Box::new(self.opened(&state, path, file, false)))
    }

    fn map(&self, path: &Path) -> Result<Mapping, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Map, path)?;
        let file = state.find(Operation::Map, path)?;
        Ok(Mapping::from(state.files[file].bytes.clone()))
    }

    fn bytes(&self, path: &Path) -> Result<Option<u64>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Measure, path)?;
        let file = state.names.get(path);
        Ok(file.map(|&file| state.files[file].bytes.len() as u64))
    }

    fn modified(&self, _: &Path) -> Result<Option<Duration>, DiskError> {
        Ok(None)
    }

    fn allocated_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Measure, path)?;
        let file = state.names.get(path).map(|&file| &state.files[file]);
        Ok(file.map_or(0, |file| file.bytes_reserved.max(file.bytes.len() as u64)))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::List, directory)?;
        let paths = state.names.keys();
        Ok(paths.filter(|path| path.parent() == Some(directory)).cloned().collect())
    }

    fn list_directories(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::List, directory)?;
        let below = state.names.keys().filter_map(|path| path.strip_prefix(directory).ok());
        let nested = below.filter(|path| path.iter().count() > 1);
        let names: BTreeSet<PathBuf> =
            nested.map(|path| directory.join(path.iter().next().unwrap_or_default())).collect();
        Ok(names.into_iter().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        state.begin(Operation::Rename, from)?;
        let file = state.find(Operation::Rename, from)?;
        state.names.remove(from);
        state.names.insert(to.to_path_buf(), file);
        state.sync_directory(parent(to))?;
        if parent(from) != parent(to) {
            state.sync_directory(parent(from))?;
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        state.begin(Operation::Remove, path)?;
        state.names.remove(path);
        // A lock on a removed file excludes no process.
        state.locks.remove(path);
        Ok(())
    }

    fn remove_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        let mut state = self.state();
        state.begin(Operation::Remove, directory)?;
        state.names.retain(|path, _| !path.starts_with(directory));
        Ok(())
    }

    fn create_dir_all(&self, directory: &Path) -> Result<(), DiskError> {
        self.state().begin(Operation::MakeDirectory, directory)
    }

    fn create_dir(&self, directory: &Path) -> Result<(), DiskError> {
        self.create_dir_all(directory)
    }

    fn create_private_dir(&self, parent: &Path, prefix: &str) -> Result<PathBuf, DiskError> {
        let mut state = self.state();
        state.begin(Operation::MakeDirectory, parent)?;
        // The number of operations only grows, so names are unique.
        Ok(parent.join(format!("{prefix}{:016x}", state.operations)))
    }

    fn free_bytes(&self, directory: &Path) -> Result<u64, DiskError> {
        let mut state = self.state();
        state.begin(Operation::FreeSpace, directory)?;
        Ok(state.free_bytes())
    }

    fn scratch_bytes(&self, _: &Path) -> u64 {
        self.state().scratch_bytes()
    }

    fn probe(&self, directory: &Path, bytes: u64) -> Result<(), DiskError> {
        probe(self, directory, bytes)
    }

    fn post(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = self.state();
        state.begin(Operation::Write, path)?;
        let mut posted = FileContents::default();
        posted.append(bytes);
        state.files.push(posted);
        let file = state.files.len() - 1;
        state.names.insert(path.to_path_buf(), file);
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.state().traffic.read()
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Lock, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Lock, path)?;
        if let Some(holder) = state.locks.get(path) {
            return Err(DiskError::Locked { path: path.to_path_buf(), holder: holder.note.clone() });
        }
        state.locks_taken += 1;
        let number = state.locks_taken;
        let note = crate::lock::holder_note(note);
        let found = state.names.get(path).map(|&file| state.files[file].bytes.clone());
        if found.as_deref().is_some_and(|found| !is_lock_note(found)) {
            let kept = kept_names(path).find(|kept| !state.names.contains_key(kept));
            let file = state.names.remove(path);
            state.names.extend(kept.zip(file));
        }
        state.files.push(FileContents::durable(note.as_bytes()));
        let file = state.files.len() - 1;
        state.names.insert(path.to_path_buf(), file);
        if !found.is_some_and(|found| has_note(&found)) {
            state.sync_names(parent(path));
        }
        let note = note.trim().to_owned();
        state.locks.insert(path.to_path_buf(), Holder { number, note });
        Ok(Lock::new(Release { disk: self.clone(), path: path.to_path_buf(), number }))
    }

    fn lock_holder(&self, path: &Path) -> Result<Option<String>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Lock, path)?;
        Ok(state.locks.get(path).map(|holder| holder.note.clone()))
    }
}

/// Releases a lock when dropped, unless a crash did and another process holds it now.
struct Release {
    disk: MemoryDisk,
    path: PathBuf,
    number: u64,
}

impl Drop for Release {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        let ours = state.locks.get(&self.path).is_some_and(|holder| holder.number == self.number);
        if ours {
            state.locks.remove(&self.path);
        }
    }
}
