//! The journal of a run directory: an append-only file of records, each durable before the next step is taken.
//!
//! [`Contents`] is the file format and its reader, [`Record`] the content of a record, [`JournalState`] the latest
//! state of each artifact and stage, and [`History`] all events in order. A crash can only tear the end of the file;
//! [`Journal::open`] truncates a torn end to the last valid record.

mod contents;
mod fence;
mod history;
mod record;
mod state;
#[cfg(test)]
mod tests;

pub use contents::{Contents, JOURNAL_BYTES_MAX, JournalError, PAYLOAD_BYTES_MAX};
pub(crate) use contents::{could_be_journal, holds_record};
pub(crate) use fence::FenceGuard;
pub use history::{History, Remark, RunSpan, StageOutcome, StageSpan};
pub(crate) use record::clip;
pub use record::{ArtifactRecord, Entry, LastHeartbeat, Measured, Record, RunEnd};
pub use state::{BuiltArtifact, Damage, JournalMoment, JournalState, RunHistory, StageEnd, StageHistory};

use crate::journal::contents::encode;
use crate::journal::fence::Fence;
use disk::{Disk, OutputFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A journal open for writing. Only for the holder of the directory's lock.
pub struct Journal<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    /// `None` until the first record of this run, and after a failed write.
    output: Option<Box<dyn OutputFile>>,
    /// The bytes of a failed write: whatever part of them reached the file is truncated.
    failed: Vec<u8>,
    /// The number of the run, and the end of the valid records.
    fence: Arc<Fence>,
    cut_bytes: u64,
    state: JournalState,
}

impl<'d> Journal<'d> {
    /// Opens a journal, truncating a torn end. An absent one is created by the first record.
    pub fn open(disk: &'d dyn Disk, path: &Path) -> Result<Self, JournalError> {
        let contents = Contents::read(disk, path)?;
        if contents.torn_bytes > 0 {
            disk.truncate(path, contents.valid_bytes)?;
        }
        let state = JournalState::replay(&contents.entries);
        Ok(Journal {
            disk,
            path: path.to_path_buf(),
            output: None,
            failed: Vec::new(),
            fence: Arc::new(Fence::new(path, state.last_run() + 1, contents.valid_bytes)),
            cut_bytes: contents.torn_bytes,
            state,
        })
    }

    /// Returns the number of the run.
    pub fn run(&self) -> u64 {
        self.fence.run()
    }

    /// Returns the fence, which refuses writes once another run has taken the directory.
    pub(crate) fn fence(&self) -> Arc<Fence> {
        Arc::clone(&self.fence)
    }

    /// Returns the bytes that were truncated when the journal was opened.
    pub fn cut_bytes(&self) -> u64 {
        self.cut_bytes
    }

    /// Returns the state after all records, including those of this run.
    pub fn state(&self) -> &JournalState {
        &self.state
    }

    /// Appends a record. When this returns, the record is durable.
    ///
    /// # Errors
    /// [`JournalError::Overtaken`] if another run has written to the journal; otherwise if it cannot be written.
    /// Readers then see it unchanged.
    pub fn append(&mut self, record: Record) -> Result<(), JournalError> {
        let now = self.disk.clock().utc();
        let entry = Entry { run: self.run(), at: now.as_secs(), millis: now.subsec_millis() as u16, record };
        let bytes = encode(&entry)?;
        let fence = self.fence();
        let _held = fence.hold();
        self.make_sure()?;
        let mut output = match self.output.take() {
            Some(output) => output,
            None => self.disk.append(&self.path)?,
        };
        if let Err(error) = output.write(&bytes).and_then(|()| output.sync()) {
            self.failed = bytes;
            return Err(error.into());
        }
        self.output = Some(output);
        self.fence.append(bytes.len() as u64);
        self.state.apply(&entry);
        Ok(())
    }

    /// Checks that the journal ends where this run left it, and truncates the rest of its own failed write.
    fn make_sure(&mut self) -> Result<(), JournalError> {
        let beyond = self.fence.beyond(self.disk)?;
        if beyond.is_empty() {
            return Ok(());
        }
        let has_no_record = || Contents::decode(&beyond).entries.is_empty();
        let is_ours = self.output.is_none() && (self.failed.starts_with(&beyond) || has_no_record());
        if is_ours {
            return Ok(self.disk.truncate(&self.path, self.fence.bytes())?);
        }
        self.fence.judge(&beyond)
    }
}
