//! The file format of journals, and its reader.
//!
//! Layout of a record (version 1):
//!
//! | bytes | what |
//! |---|---|
//! | 4 | magic `FF 4A 52 01`; the byte FF occurs in no UTF-8 text, so never in a payload |
//! | 4 | length of the payload, little-endian, at most [`PAYLOAD_BYTES_MAX`] |
//! | 8 | the first 8 bytes of the BLAKE3 digest of length and payload |
//! | n | payload: one [`Entry`] as JSON |
//!
//! [`Contents::read`] skips a torn end. If bytes in the middle are damaged, reading continues at the next valid record:
//! a lost record costs time, never data. Readers accept any bytes.

use crate::journal::record::Entry;
use disk::{Digest, Disk, DiskError};
use std::path::{Path, PathBuf};

const MAGIC: [u8; 4] = [0xFF, b'J', b'R', 1];
const HEADER_BYTES: usize = 16;

/// The longest payload. Records take a few kilobytes; a stage with hundreds of outputs takes some hundred.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// The largest accepted run number, so that later runs can have larger numbers.
const RUN_MAX: u64 = 1 << 32;

/// The longest journal that is read: several hundred thousand records.
pub const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// A journal that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant explains its fields")]
pub enum JournalError {
    /// A file operation failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The file exceeds [`JOURNAL_BYTES_MAX`].
    #[error("{} has {bytes} bytes, expected at most {JOURNAL_BYTES_MAX}; move it away, and the next run adopts the \
        files that it finds (headers checked)", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    /// A record longer than [`PAYLOAD_BYTES_MAX`].
    #[error("a journal record has {bytes} bytes, the limit is {PAYLOAD_BYTES_MAX}")]
    RecordTooLong { bytes: usize },
    /// Another process has written to the journal, truncated or removed it, despite the lock.
    #[error(
        "{} {what} while this run held the directory, so this run ends; either the file system does not share locks \
         with the other machine, or the file `lock` was removed; wait for the other run to end, or stop it with \
             `awari stop`, then repeat this command; no data is lost",
        path.display()
    )]
    Overtaken {
        path: PathBuf,
        /// What happened to the journal.
        what: String,
    },
    /// The record cannot be encoded as JSON.
    #[error("cannot write a journal record: {0}")]
    Encode(#[from] serde_json::Error),
}

/// The content of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The accepted records, in the order in which they were written.
    pub entries: Vec<Entry>,
    /// Bytes up to the end of the last valid record.
    pub valid_bytes: u64,
    /// Bytes after it, torn by a crash.
    pub torn_bytes: u64,
    /// Bytes before it that belong to no valid record.
    pub damaged_bytes: u64,
    /// Valid records of an unknown kind (from a newer version) or with an impossible number.
    pub unknown: usize,
    /// Valid records of a run written after those of a later run.
    pub fenced: usize,
}

impl Contents {
    /// Reads a journal; an absent one is empty. Changes nothing.
    ///
    /// # Errors
    /// If the file cannot be read. Any content is accepted.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<Self, JournalError> {
        match disk.read(path, JOURNAL_BYTES_MAX) {
            Ok(bytes) => Ok(Contents::decode(&bytes)),
            Err(error) if error.is_not_found() => Ok(Contents::default()),
            Err(DiskError::TooLarge { path, bytes, .. }) => Err(JournalError::TooLarge { path, bytes }),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a journal from its bytes.
    pub fn decode(bytes: &[u8]) -> Self {
        let mut contents = Contents::default();
        let mut at = 0;
        let mut run = 0;
        while at < bytes.len() {
            let Some(payload) = frame(&bytes[at..]) else {
                // The next position at which a record could begin.
                let rest = &bytes[at + 1..];
                at += 1 + rest.iter().position(|b| *b == MAGIC[0]).unwrap_or(rest.len());
                continue;
            };
            contents.damaged_bytes += at as u64 - contents.valid_bytes;
            at += HEADER_BYTES + payload.len();
            contents.valid_bytes = at as u64;
            match serde_json::from_slice::<Entry>(payload) {
                Ok(entry) if entry.run < run => contents.fenced += 1,
                Ok(entry) if entry.run <= RUN_MAX => {
                    run = entry.run;
                    contents.entries.push(entry);
                }
                Ok(_) | Err(_) => contents.unknown += 1,
            }
        }
        contents.torn_bytes = bytes.len() as u64 - contents.valid_bytes;
        contents
    }
}

/// Returns the payload of the record at the start of `bytes`, if it is valid.
fn frame(bytes: &[u8]) -> Option<&[u8]> {
    let header = bytes.get(..HEADER_BYTES)?;
    let (magic, rest) = header.split_at(MAGIC.len());
    let (length, checksum) = rest.split_at(4);
    if magic != MAGIC {
        return None;
    }
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    if length > PAYLOAD_BYTES_MAX {
        return None;
    }
    let payload = bytes.get(HEADER_BYTES..HEADER_BYTES + length)?;
    // No text contains this byte, so records do not nest, and each byte is digested a few times at most, even if the
    // lengths are forged.
    if payload.contains(&MAGIC[0]) {
        return None;
    }
    (checksum == checksum_of(payload)).then_some(payload)
}

/// Whether the magic of a record occurs in `bytes`, so that they are a journal, possibly damaged.
pub(crate) fn holds_record(bytes: &[u8]) -> bool {
    bytes.windows(MAGIC.len()).any(|window| window == MAGIC)
}

/// Whether `bytes` may be a journal, possibly torn in its first record.
pub(crate) fn could_be_journal(bytes: &[u8]) -> bool {
    MAGIC.starts_with(bytes) || holds_record(bytes)
}

fn checksum_of(payload: &[u8]) -> [u8; 8] {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(payload);
    let [a, b, c, d, e, f, g, h, ..] = Digest::of(&bytes).0;
    [a, b, c, d, e, f, g, h]
}

pub(super) fn encode(entry: &Entry) -> Result<Vec<u8>, JournalError> {
    let payload = serde_json::to_vec(entry)?;
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(JournalError::RecordTooLong { bytes: payload.len() });
    }
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&checksum_of(&payload));
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}
