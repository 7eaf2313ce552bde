//! Reading a file: single scores, ranges, or all scores.

mod block;
mod gather;
mod location;
mod mapped;
pub(crate) mod open;
mod ranges;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod verify;

pub(crate) use self::location::{AccessPattern, BlockPart, ScoreLocation};
pub use self::mapped::MappedScores;
pub use self::ranges::{BlockRun, PendingRange, PendingRun, RangeDecoder};

use self::source::FileSource;
use crate::codec::Form;
use crate::codec::{Codec, packed};
use crate::error::{DecodeError, Result, StoreError};
use crate::format::Header;
use crate::identity::Identity;
use crate::layout::{BlockLayout, BlockLocation};
use crate::shape::Shape;
use crate::value_range::ValueRange;
use disk::Digest;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The scores of a file, read through a map or in windows.
///
/// In a map, the checksum of a block is verified when the block is first touched, and again only after the file has
/// changed (see the module `source`). In windows it is verified at each read. A damaged block is an error at every
/// touch. One `Scores` serves all threads.
pub struct Scores {
    path: PathBuf,
    source: FileSource,
    header: Header,
    layout: BlockLayout,
    index: Vec<u8>,
    digest: Digest,
    /// One bit a block: its checksum was verified. Empty for windows, where each read is verified.
    verified: Box<[AtomicU64]>,
}

/// Attempts to read a file that other processes change.
const READS_MAX: usize = 4;

impl Scores {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.source.bytes()
    }

    /// The identity of the file.
    pub fn identity(&self) -> &Identity {
        &self.header.identity
    }

    /// Its slabs.
    pub fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// The codec of the file.
    pub fn codec(&self) -> Codec {
        self.header.codec
    }

    /// Whether single scores are read in place: from raw and packed blocks in a map. Otherwise each probe decodes, and
    /// perhaps reads, a block, so that a cache pays.
    pub fn is_in_place(&self) -> bool {
        self.source.is_mapped() && !self.codec().is_compressed()
    }

    /// The range of the scores.
    pub fn range(&self) -> ValueRange {
        self.header.range
    }

    /// The digest of the scores in the footer; [`verify_digest`](Self::verify_digest) verifies it.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The number of blocks.
    pub fn block_count(&self) -> usize {
        self.layout.block_count()
    }

    /// The positions of a block, in canonical order.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block_range(&self, block: usize) -> Range<u64> {
        self.layout.positions_of(block)
    }

    /// The block that contains a position.
    ///
    /// # Panics
    /// If there is no such position.
    pub fn block_of(&self, position: u64) -> usize {
        self.layout.locate(position).block
    }

    pub(crate) fn slab_positions(&self, slab: usize) -> Range<u64> {
        self.layout.slab_positions(slab)
    }

    /// The last known edition of the file; it is constant without a map. A score that [`get`](Self::get) read in place
    /// is right if the edition was the same before and [`latest_edition`](Self::latest_edition) is afterwards.
    #[inline]
    pub fn edition(&self) -> u64 {
        self.source.edition().unwrap_or(0)
    }

    /// The current edition of the file, which differs from the last known one if another process has changed the file.
    /// Takes a system call. All methods but [`get`](Self::get) call it themselves.
    pub fn latest_edition(&self) -> u64 {
        let forget = || self.verified.iter().for_each(|word| word.store(0, Ordering::SeqCst));
        self.source.latest_edition(forget).unwrap_or(0)
    }

    /// Repeats a read until the file did not change meanwhile.
    fn settled<T>(&self, mut read: impl FnMut() -> Result<T>) -> Result<T> {
        for _ in 0..READS_MAX {
            let edition = self.edition();
            let done = read();
            if self.latest_edition() == edition {
                return done;
            }
        }
        Err(StoreError::Changing { path: self.path.clone() })
    }

    /// Returns one score. Raw and packed blocks of a map are read in place; otherwise a frame, a strip with its head
    /// or, without a map, a block is read and decoded each time (see [`CachedScores`](crate::CachedScores)).
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the block is; [`StoreError::Disk`] if it cannot be read.
    ///
    /// # Panics
    /// If there is no such position.
    #[inline]
    pub fn get(&self, position: u64) -> Result<i8> {
        match self.get_in_place(position) {
            Some(score) => Ok(score),
            None => self.settled(|| self.get_once(position)),
        }
    }

    /// Returns a score from where it lies: in a verified raw or packed block of a map.
    #[inline]
    pub(crate) fn get_in_place(&self, position: u64) -> Option<i8> {
        let (map, edition) = self.source.in_place()?;
        let BlockLocation { block, index, .. } = self.layout.locate(position);
        let entry = self.entry(block);
        let stored = &map[entry.offset as usize..][..entry.bytes as usize];
        let range = self.header.range;
        let score = match entry.form {
            _ if !self.has_bit(block) => return None,
            Form::Raw => stored[index] as i8,
            Form::Packed => packed::value_at(stored, index, range.low(), range.bits()),
            _ => return None,
        };
        // The score must be loaded before the edition is loaded again.
        let score = std::hint::black_box(score);
        (range.contains(score) && self.edition() == edition).then_some(score)
    }

    #[cold]
    fn get_once(&self, position: u64) -> Result<i8> {
        let BlockLocation { block, index, .. } = self.layout.locate(position);
        let mut value = [0];
        self.decode_stored(block, index, &mut value)?;
        let [value] = value;
        if self.header.range.contains(value) {
            return Ok(value);
        }
        Err(self.damaged(block, DecodeError::new(format!("values in {}", self.header.range), value)))
    }
}

impl fmt::Debug for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scores({}: {})", self.path.display(), self.identity())
    }
}
