//! The journal of a run directory: an append-only file of records, each durable before the next step is taken.
//!
//! [`Contents`] is the format and its reader, [`Record`] what the records say, [`JournalState`] the latest fact about everything
//! and [`History`] all of them in order. A crash can only tear the end of the file; [`Journal::open`] truncates a torn end
//! to the last valid record.

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
pub use record::{ArtifactRecord, Entry, LastSign, Measured, Record, RunEnd};
pub use state::{
    ArtifactCheck, BuiltArtifact, Damage, JournalMoment, JournalState, RunHistory, StageEnd, StageHistory,
};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, Output};

use crate::journal::contents::encode;
use crate::journal::fence::Fence;

/// A journal open for writing, with what it says so far. Only for who holds the directory's lock.
pub struct Journal<'d> {
    disk: &'d dyn Disk,
    path: PathBuf,
    /// `None` until the first record of ours, and after a failed write.
    output: Option<Box<dyn Output>>,
    /// What a failed write was to write: as much of it as arrived is ours to cut off.
    failed: Vec<u8>,
    /// Our number, and where the valid records end.
    fence: Arc<Fence>,
    cut_bytes: u64,
    state: JournalState,
}

impl<'d> Journal<'d> {
    /// Opens a journal, cutting off a torn end. An absent one is made by the first record.
    ///
    /// # Errors
    /// If it cannot be read, or a torn end cannot be cut.
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

    /// The number under which we write.
    pub fn run(&self) -> u64 {
        self.fence.run()
    }

    /// What keeps us from writing when the directory is no longer ours.
    pub(crate) fn fence(&self) -> Arc<Fence> {
        Arc::clone(&self.fence)
    }

    /// Bytes that were cut off when it was opened.
    pub fn cut_bytes(&self) -> u64 {
        self.cut_bytes
    }

    /// What the journal says, our own records included.
    pub fn state(&self) -> &JournalState {
        &self.state
    }

    /// Appends a record. When this returns, the record is durable.
    ///
    /// # Errors
    /// [`JournalError::Overtaken`] if the journal is not as we left it; otherwise if it cannot be written. It is then
    /// as before, as far as any reader can tell.
    pub fn append(&mut self, record: Record) -> Result<(), JournalError> {
        let now = self.disk.clock().utc();
        let entry = Entry { run: self.run(), at: now.as_secs(), millis: now.subsec_millis() as u16, record };
        let bytes = encode(&entry)?;
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

    /// Makes sure that the journal ends where our knowledge of it does. What a failed write of ours left is cut off.
    fn make_sure(&mut self) -> Result<(), JournalError> {
        let beyond = self.fence.beyond(self.disk)?;
        if beyond.is_empty() {
            return Ok(());
        }
        let nobody = || Contents::decode(&beyond).entries.is_empty();
        let is_ours = self.output.is_none() && (self.failed.starts_with(&beyond) || nobody());
        if is_ours {
            return Ok(self.disk.truncate(&self.path, self.fence.bytes())?);
        }
        self.fence.judge(&beyond)
    }
}
