//! Open files in memory.

use super::faults::{OperationOutcome, RandomBits};
use super::{MemoryDisk, MemoryState};
use crate::disk::{InputFile, OutputFile, ScratchFile};
use crate::error::{DiskError, Operation};
use crate::folder::parent;
use std::io;
use std::path::PathBuf;
use std::sync::MutexGuard;

/// A file open for writing at its end.
pub(super) struct MemoryOutput {
    pub(super) disk: MemoryDisk,
    pub(super) path: PathBuf,
    pub(super) file: usize,
    pub(super) name_is_new: bool,
    pub(super) crashes: u64,
}

impl MemoryOutput {
    fn state(&self, operation: Operation) -> Result<MutexGuard<'_, MemoryState>, DiskError> {
        let state = self.disk.state();
        if state.crashes != self.crashes {
            let source = io::Error::other("opened before the crash");
            return Err(DiskError::from_io(operation, &self.path, source));
        }
        Ok(state)
    }
}

impl OutputFile for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        let mut state = self.state(Operation::Write)?;
        let written = match state.outcome_of(Operation::Write, &self.path, false) {
            OperationOutcome::Fine => state.claim(Operation::Write, &self.path, self.file, bytes.len() as u64),
            OperationOutcome::Fails(error) | OperationOutcome::Dies(error) => Err(error),
            OperationOutcome::Dead(error) => return Err(error),
        };
        let kept = match (&written, &mut state.random) {
            (Ok(()), _) => bytes,
            (Err(_), None) => &bytes[..bytes.len() / 2],
            (Err(_), Some(random)) => &bytes[..random.up_to(bytes.len())],
        };
        state.traffic.add_written(kept.len() as u64);
        state.files[self.file].append(kept);
        written
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), DiskError> {
        let mut state = self.state(Operation::Reserve)?;
        state.begin(Operation::Reserve, &self.path)?;
        state.claim(Operation::Reserve, &self.path, self.file, bytes)?;
        let file = &mut state.files[self.file];
        let end = (file.bytes.len() as u64).saturating_add(bytes);
        file.bytes_reserved = file.bytes_reserved.max(end);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        let mut state = self.state(Operation::Sync)?;
        let outcome = state.outcome_of(Operation::Sync, &self.path, false);
        state.sync_file(self.file, outcome)?;
        state.files[self.file].bytes_reserved = 0;
        if self.name_is_new {
            state.sync_directory(parent(&self.path))?;
            drop(state);
            self.name_is_new = false;
        }
        Ok(())
    }
}

/// A file open for reads, or reads and writes, at any offset.
pub(super) struct MemoryFile {
    pub(super) disk: MemoryDisk,
    pub(super) path: PathBuf,
    pub(super) file: usize,
    pub(super) bytes: u64,
    pub(super) crashes: u64,
    pub(super) is_scratch: bool,
}

impl MemoryFile {
    /// Counts an operation and applies `then` to the bytes at an offset; if it fails, to a random part of them.
    fn at(
        &self,
        operation: Operation,
        offset: u64,
        len: usize,
        then: impl FnOnce(&mut [u8], Option<&mut RandomBits>),
    ) -> Result<(), DiskError> {
        let mut guard = self.disk.state();
        let state = &mut *guard;
        let failed = |source| DiskError::from_io(operation, &self.path, source);
        let outcome = state.outcome_of(operation, &self.path, self.is_scratch);
        if state.crashes != self.crashes {
            return Err(failed(io::Error::other("the process that opened it has crashed")));
        }
        let bytes = &mut state.files[self.file].bytes;
        let end = offset.checked_add(len as u64).filter(|&end| end <= bytes.len() as u64);
        let end = end.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof.into()));
        match outcome {
            OperationOutcome::Fine => then(&mut bytes[offset as usize..end? as usize], None),
            OperationOutcome::Fails(error) => {
                if let (Ok(end), Some(random)) = (end, &mut state.random) {
                    then(&mut bytes[offset as usize..end as usize], Some(random));
                }
                return Err(error);
            }
            OperationOutcome::Dies(error) | OperationOutcome::Dead(error) => return Err(error),
        }
        match operation {
            Operation::Write => state.traffic.add_written(len as u64),
            _ => state.traffic.add_read(len as u64),
        }
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.disk.state().scratch_files.remove(&self.file);
    }
}

impl InputFile for MemoryFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError> {
        self.at(Operation::Read, offset, into.len(), |bytes, failing| match failing {
            None => into.copy_from_slice(bytes),
            // A failed read leaves unspecified bytes.
            Some(random) => {
                let read = random.up_to(into.len());
                into[..read].iter_mut().zip(bytes).for_each(|(into, byte)| *into = !*byte);
            }
        })
    }
}

impl ScratchFile for MemoryFile {
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), DiskError> {
        assert!(offset + from.len() as u64 <= self.bytes, "a scratch file does not grow");
        self.at(Operation::Write, offset, from.len(), |bytes, failing| {
            let written = failing.map_or(from.len(), |random| random.up_to(from.len()));
            bytes[..written].copy_from_slice(&from[..written]);
        })
    }

    fn sync(&self) -> Result<(), DiskError> {
        let mut state = self.disk.state();
        let outcome = state.outcome_of(Operation::Sync, &self.path, self.is_scratch);
        if state.crashes != self.crashes {
            let source = io::Error::other("the process that opened it has crashed");
            return Err(DiskError::from_io(Operation::Sync, &self.path, source));
        }
        state.sync_file(self.file, outcome)
    }
}
