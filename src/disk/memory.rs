//! A disk in memory, the twin of the real one for tests.
//!
//! It keeps apart what a process sees and what is durable. A file's bytes become durable when it is
//! synced, a name when its directory is synced; [`MemoryDisk::crash`] goes back to what is durable,
//! as a loss of power may. (A real disk may have kept more than it promised:
//! [`MemoryDisk::crash_torn`].)
//!
//! Operations are counted, and any one of them can be made to fail. One call may be several
//! operations: a rename is the rename and the sync of each directory concerned. A write that fails
//! leaves half of its bytes behind. Directories exist by the files in them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{DiskError, Operation};
use crate::real::{parent, too_short};
use crate::staged::probe;
use crate::{Disk, Input, Lock, Mapping, Output, Scratch, Traffic};

/// A file system in memory. Clones are handles on the same one.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

/// How an operation is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The disk is full.
    NoSpace,
    /// The file system is read-only.
    ReadOnly,
    /// The permissions forbid it.
    PermissionDenied,
    /// The device fails.
    Io,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<File>,
    /// Names as a process sees them, and the index of their file.
    names: BTreeMap<PathBuf, usize>,
    /// Names as they are after a crash.
    durable_names: BTreeMap<PathBuf, usize>,
    locks: BTreeMap<PathBuf, Holder>,
    locks_taken: u64,
    operations: u64,
    traffic: Traffic,
    fault: Option<PlannedFault>,
    bytes_max: Option<u64>,
    /// Outputs opened before the last crash belong to a dead process.
    crashes: u64,
}

#[derive(Debug, Default)]
struct File {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    bytes_reserved: u64,
}

#[derive(Debug)]
struct Holder {
    number: u64,
    note: String,
}

#[derive(Clone, Copy, Debug)]
struct PlannedFault {
    first: u64,
    last: u64,
    fault: Fault,
}

impl MemoryDisk {
    /// An empty disk without a limit on its size.
    pub fn new() -> Self {
        MemoryDisk::default()
    }

    /// Limits the bytes of all files together, reserved space included.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.state().bytes_max = Some(bytes_max);
    }

    /// How many operations have been asked for so far, failed ones included. It is the number that
    /// the next operation has.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Makes operation number `operation` (counted from 0) fail, once. Replaces an earlier plan.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.state().fault = Some(PlannedFault { first: operation, last: operation, fault });
    }

    /// Makes operation number `operation` and all after it fail, until a crash. Replaces an
    /// earlier plan.
    pub fn fail_from(&self, operation: u64, fault: Fault) {
        self.state().fault = Some(PlannedFault { first: operation, last: u64::MAX, fault });
    }

    /// Cancels the failure planned.
    pub fn fail_never(&self) {
        self.state().fault = None;
    }

    /// Loses power: forgets every byte and every name that was not synced, releases the locks,
    /// cancels the failure planned. Outputs still open fail from now on.
    pub fn crash(&self) {
        let mut state = self.state();
        state.names = state.durable_names.clone();
        for file in &mut state.files {
            file.bytes = file.durable.clone();
        }
        state.restart();
    }

    /// Loses power where the disk had kept more than it promised: names are as the process saw
    /// them, and of bytes appended but not synced, the first `bytes_max` of each file are there.
    pub fn crash_torn(&self, bytes_max: usize) {
        let mut state = self.state();
        state.durable_names = state.names.clone();
        for file in &mut state.files {
            if file.bytes.starts_with(&file.durable) {
                let kept = file.bytes.len().min(file.durable.len() + bytes_max);
                file.bytes.truncate(kept);
            }
            file.durable = file.bytes.clone();
        }
        state.restart();
    }

    /// Puts a durable file there, whatever it was before. Not an operation.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        state.files.push(File { bytes: bytes.to_vec(), durable: bytes.to_vec(), bytes_reserved: 0 });
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

    fn state(&self) -> MutexGuard<'_, State> {
        // No invariant spans two statements of the methods below, so a panic elsewhere is no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self, path: &Path, empty: bool) -> Result<Box<dyn Output>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Create, path)?;
        let name_is_new = !state.names.contains_key(path);
        if name_is_new {
            state.files.push(File::default());
            let file = state.files.len() - 1;
            state.names.insert(path.to_path_buf(), file);
        }
        let file = state.names[path];
        if empty {
            state.files[file].bytes.clear();
        }
        Ok(Box::new(MemoryOutput {
            disk: self.clone(),
            path: path.to_path_buf(),
            file,
            name_is_new,
            crashes: state.crashes,
        }))
    }
}

impl State {
    /// Counts an operation and fails it if that is planned.
    fn begin(&mut self, operation: Operation, path: &Path) -> Result<(), DiskError> {
        let number = self.operations;
        self.operations += 1;
        match self.fault {
            Some(plan) if (plan.first..=plan.last).contains(&number) => {
                let kind = match plan.fault {
                    Fault::NoSpace => io::ErrorKind::StorageFull,
                    Fault::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
                    Fault::PermissionDenied => io::ErrorKind::PermissionDenied,
                    Fault::Io => io::ErrorKind::Other,
                };
                Err(DiskError::from_io(operation, path, kind.into()))
            }
            _ => Ok(()),
        }
    }

    fn find(&self, operation: Operation, path: &Path) -> Result<usize, DiskError> {
        self.names.get(path).copied().ok_or_else(|| DiskError::from_io(operation, path, io::ErrorKind::NotFound.into()))
    }

    fn free_bytes(&self) -> u64 {
        let used = self.names.values().fold(0u64, |used, &file| {
            let file = &self.files[file];
            used.saturating_add(file.bytes_reserved.max(file.bytes.len() as u64))
        });
        self.bytes_max.unwrap_or(u64::MAX).saturating_sub(used)
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
        self.durable_names.retain(|path, _| parent(path) != directory);
        for (path, &file) in &self.names {
            if parent(path) == directory {
                self.durable_names.insert(path.clone(), file);
            }
        }
        Ok(())
    }

    fn restart(&mut self) {
        self.locks.clear();
        self.fault = None;
        self.crashes += 1;
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
        state.traffic.read_bytes += bytes.len() as u64;
        Ok(bytes)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
        self.output(path, true)
    }

    fn append(&self, path: &Path) -> Result<Box<dyn Output>, DiskError> {
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
        file.bytes.truncate(bytes as usize);
        file.durable = file.bytes.clone();
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Input>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Read, path)?;
        let file = state.find(Operation::Read, path)?;
        let bytes = state.files[file].bytes.len() as u64;
        Ok(Box::new(MemoryFile { disk: self.clone(), path: path.to_path_buf(), file, bytes, crashes: state.crashes }))
    }

    fn scratch(&self, path: &Path, bytes: u64) -> Result<Box<dyn Scratch>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Create, path)?;
        // Without a name, and not durable: a crash empties it.
        state.files.push(File { bytes: vec![0; bytes as usize], ..File::default() });
        let file = state.files.len() - 1;
        Ok(Box::new(MemoryFile { disk: self.clone(), path: path.to_path_buf(), file, bytes, crashes: state.crashes }))
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

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
        let mut state = self.state();
        state.begin(Operation::List, directory)?;
        let paths = state.names.keys();
        Ok(paths.filter(|path| path.parent() == Some(directory)).cloned().collect())
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

    fn free_bytes(&self, directory: &Path) -> Result<u64, DiskError> {
        let mut state = self.state();
        state.begin(Operation::FreeSpace, directory)?;
        Ok(state.free_bytes())
    }

    fn probe(&self, directory: &Path, bytes: u64) -> Result<(), DiskError> {
        probe(self, directory, bytes)
    }

    fn post(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = self.state();
        state.begin(Operation::Write, path)?;
        state.files.push(File { bytes: bytes.to_vec(), ..File::default() });
        let file = state.files.len() - 1;
        state.names.insert(path.to_path_buf(), file);
        Ok(())
    }

    fn traffic(&self) -> Traffic {
        self.state().traffic
    }

    fn lock(&self, path: &Path, note: &str) -> Result<Lock, DiskError> {
        let mut state = self.state();
        state.begin(Operation::Lock, path)?;
        if let Some(holder) = state.locks.get(path) {
            return Err(DiskError::Locked { path: path.to_path_buf(), holder: holder.note.clone() });
        }
        state.locks_taken += 1;
        let number = state.locks_taken;
        let note = crate::lock::holder_note(note).trim().to_owned();
        if !state.names.contains_key(path) {
            state.files.push(File::default());
            let file = state.files.len() - 1;
            state.names.insert(path.to_path_buf(), file);
        }
        state.locks.insert(path.to_path_buf(), Holder { number, note });
        Ok(Lock::new(Release { disk: self.clone(), path: path.to_path_buf(), number }))
    }
}

/// Lets go of a lock when dropped, unless a crash did and somebody else has it now.
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

struct MemoryOutput {
    disk: MemoryDisk,
    path: PathBuf,
    file: usize,
    name_is_new: bool,
    crashes: u64,
}

impl MemoryOutput {
    fn begin(&self, operation: Operation) -> Result<MutexGuard<'_, State>, DiskError> {
        let mut state = self.disk.state();
        if state.crashes != self.crashes {
            let source = io::Error::other("opened before the crash");
            return Err(DiskError::from_io(operation, &self.path, source));
        }
        state.begin(operation, &self.path)?;
        Ok(state)
    }
}

impl Output for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let (mut state, written) = match self.begin(Operation::Write) {
            Ok(state) => {
                let claimed = state.claim(Operation::Write, &self.path, self.file, bytes.len() as u64);
                (state, claimed)
            }
            Err(error) => {
                let state = self.disk.state();
                if state.crashes != self.crashes {
                    return Err(error);
                }
                (state, Err(error))
            }
        };
        let kept = match written {
            Ok(()) => bytes,
            Err(_) => &bytes[..bytes.len() / 2],
        };
        state.traffic.written_bytes += kept.len() as u64;
        state.files[self.file].bytes.extend_from_slice(kept);
        written
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), DiskError> {
        let mut state = self.begin(Operation::Reserve)?;
        state.claim(Operation::Reserve, &self.path, self.file, bytes)?;
        let file = &mut state.files[self.file];
        let end = (file.bytes.len() as u64).saturating_add(bytes);
        file.bytes_reserved = file.bytes_reserved.max(end);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        let mut state = self.begin(Operation::Sync)?;
        let file = &mut state.files[self.file];
        file.bytes_reserved = 0;
        file.durable = file.bytes.clone();
        if self.name_is_new {
            state.sync_directory(parent(&self.path))?;
            drop(state);
            self.name_is_new = false;
        }
        Ok(())
    }
}

/// A file open for reads, or reads and writes, at any place.
struct MemoryFile {
    disk: MemoryDisk,
    path: PathBuf,
    file: usize,
    bytes: u64,
    crashes: u64,
}

impl MemoryFile {
    /// The bytes at a place, once the operation was counted.
    fn at<T>(
        &self,
        operation: Operation,
        offset: u64,
        len: usize,
        then: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, DiskError> {
        let mut state = self.disk.state();
        state.begin(operation, &self.path)?;
        let failed = |source| DiskError::from_io(operation, &self.path, source);
        if state.crashes != self.crashes {
            return Err(failed(io::Error::other("the process that opened it has crashed")));
        }
        let bytes = &mut state.files[self.file].bytes;
        let end = offset.checked_add(len as u64).filter(|&end| end <= bytes.len() as u64);
        let end = end.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()))?;
        let done = then(&mut bytes[offset as usize..end as usize]);
        match operation {
            Operation::Write => state.traffic.written_bytes += len as u64,
            _ => state.traffic.read_bytes += len as u64,
        }
        Ok(done)
    }
}

impl Input for MemoryFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.at(Operation::Read, offset, into.len(), |bytes| into.copy_from_slice(bytes))
    }
}

impl Scratch for MemoryFile {
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DiskError> {
        assert!(offset + from.len() as u64 <= self.bytes, "a scratch file does not grow");
        self.at(Operation::Write, offset, from.len(), |bytes| bytes.copy_from_slice(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Staged, is_leftover, remove_leftovers};

    const OLD: &[u8] = b"the old file";
    const NEW: &[u8] = b"the new file, which is longer";

    fn publish(disk: &MemoryDisk) -> Result<(), DiskError> {
        let mut staged = Staged::create(disk, Path::new("d/x"), NEW.len() as u64)?;
        let (first, second) = NEW.split_at(7);
        staged.write(first)?;
        staged.write(second)?;
        staged.publish()?;
        Ok(())
    }

    /// Publishes with operation `k` failing for every `k`, and hands each result to `check`.
    fn each_failure(old: bool, once: bool, check: impl Fn(&MemoryDisk, bool)) {
        for k in 0.. {
            let disk = MemoryDisk::new();
            if old {
                disk.put(Path::new("d/x"), OLD);
            }
            if once {
                disk.fail_at(k, Fault::NoSpace);
            } else {
                disk.fail_from(k, Fault::Io);
            }
            let published = publish(&disk).is_ok();
            assert_eq!(published, disk.operations() <= k, "operation {k}");
            check(&disk, published);
            if published {
                assert!(k >= 6, "create, reserve, write, write, sync, rename, sync");
                return;
            }
        }
    }

    #[test]
    fn failures_leave_the_old_file_or_the_new() {
        for old in [false, true] {
            each_failure(old, true, |disk, published| {
                let found = disk.peek(Path::new("d/x"));
                let before = old.then(|| OLD.to_vec());
                assert!(found.as_deref() == Some(NEW) || (!published && found == before));
                assert!(!disk.paths().iter().any(|path| is_leftover(path)));
            });
        }
    }

    #[test]
    fn crashes_leave_the_old_file_or_the_new() {
        for old in [false, true] {
            for torn in [None, Some(0), Some(5), Some(100)] {
                each_failure(old, false, |disk, published| {
                    match torn {
                        None => disk.crash(),
                        Some(bytes) => disk.crash_torn(bytes),
                    }
                    let found = disk.peek(Path::new("d/x"));
                    let before = old.then(|| OLD.to_vec());
                    assert!(found.as_deref() == Some(NEW) || (!published && found == before));
                    remove_leftovers(disk, Path::new("d")).unwrap();
                    assert!(!disk.paths().iter().any(|path| is_leftover(path)));
                });
            }
        }
    }

    #[test]
    fn appended_records_survive_once_synced() {
        let disk = MemoryDisk::new();
        let path = Path::new("journal");
        let mut journal = disk.append(path).unwrap();
        journal.write(b"one").unwrap();
        journal.sync().unwrap();
        journal.write(b"two").unwrap();
        disk.crash();
        assert_eq!(disk.peek(path).unwrap(), b"one");
        assert!(journal.write(b"three").is_err(), "its process is dead");
        let mut journal = disk.append(path).unwrap();
        journal.write(b"two").unwrap();
        disk.crash_torn(2);
        assert_eq!(disk.peek(path).unwrap(), b"onetw");
        disk.truncate(path, 3).unwrap();
        disk.crash();
        assert_eq!(disk.peek(path).unwrap(), b"one");
        assert!(disk.truncate(path, 4).is_err());
    }

    #[test]
    fn a_name_needs_its_directory_synced() {
        let disk = MemoryDisk::new();
        disk.create(Path::new("a")).unwrap().write(b"x").unwrap();
        disk.crash();
        assert!(disk.paths().is_empty());
        // A rename of unsynced bytes keeps the name and loses the bytes, as real disks do.
        disk.create(Path::new("a")).unwrap().write(b"x").unwrap();
        disk.rename(Path::new("a"), Path::new("b")).unwrap();
        disk.crash();
        assert_eq!(disk.peek(Path::new("b")).unwrap(), b"");
        // A removal that nothing synced comes back.
        disk.remove(Path::new("b")).unwrap();
        disk.crash();
        assert!(disk.peek(Path::new("b")).is_some());
    }

    #[test]
    fn space_is_limited() {
        let disk = MemoryDisk::new();
        disk.set_bytes_max(20);
        disk.put(Path::new("d/old"), &[0; 10]);
        let mut staged = Staged::create(&disk, Path::new("d/x"), 8).unwrap();
        assert_eq!(disk.free_bytes(Path::new("d")).unwrap(), 2);
        staged.write(&[1; 10]).unwrap();
        let error = staged.write(&[1; 4]).unwrap_err();
        assert_eq!(
            error.to_string().split(';').next().unwrap(),
            format!("no space left to write d/.x.tmp-{}: 4 bytes needed, 0 free", std::process::id())
        );
        drop(staged);
        let Err(error) = Staged::create(&disk, Path::new("d/x"), 11) else {
            panic!("11 of 10 bytes were reserved");
        };
        assert!(error.is_no_space());
        assert_eq!(disk.paths(), [Path::new("d/old")]);
    }

    #[test]
    fn locks_go_with_drop_and_crash() {
        let disk = MemoryDisk::new();
        let path = Path::new("d/lock");
        let lock = disk.lock(path, "first").unwrap();
        let error = disk.lock(path, "second").unwrap_err().to_string();
        assert!(error.contains("first"), "{error}");
        drop(lock);
        let dead = disk.lock(path, "second").unwrap();
        disk.crash();
        let _alive = disk.lock(path, "third").unwrap();
        drop(dead);
        assert!(disk.lock(path, "fourth").unwrap_err().is_locked());
    }

    #[test]
    fn leftovers_are_told_from_artifacts() {
        let check = |name: &str, expect| assert_eq!(is_leftover(Path::new(name)), expect, "{name}");
        check("d/.03.awari.tmp-12", true);
        check("d/03.awari", false);
        check("d/.03.awari", false);
        check("d/03.awari.tmp-12", false);
        check("d/.03.awari.tmp-", false);
        check("d/.03.awari.tmp-x", false);
        check(".tmp-12", true);
        check("/", false);
    }
}
