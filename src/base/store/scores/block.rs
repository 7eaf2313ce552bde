//! Blocks of a file: their bytes, checksums and values.

use super::Scores;
use crate::checksum;
use crate::codec::rans::{self, Context, Head};
use crate::codec::{self, Form};
use crate::error::{DecodeError, Result, StoreError};
use crate::format::IndexEntry;
use disk::{DiskError, bytes_of, bytes_of_mut};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Scores {
    /// Decodes all scores of a block.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the block is damaged; the content of `out` is then unspecified.
    ///
    /// # Panics
    /// If there is no such block, or `out` does not have its length.
    pub fn decode_block(&self, block: usize, out: &mut [i8]) -> Result<()> {
        assert_eq!(out.len(), self.layout.len_of(block), "the block's length");
        self.settled(|| self.decode_stored(block, 0, out))
    }

    /// Whether a block of a plane is known to be all zeros from the index alone. A false result does not exclude it.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn is_zeros(&self, block: usize) -> bool {
        let entry = self.entry(block);
        let (values, bytes) = (self.layout.len_of(block), entry.bytes as usize);
        codec::block::is_zeros(self.header.hash(), entry.form, block, values, bytes, entry.checksum)
    }

    /// Reads and decodes the values `first ..` of a block until `out` is full.
    pub(super) fn decode_stored(&self, block: usize, first: usize, out: &mut [i8]) -> Result<()> {
        let entry = self.entry(block);
        if entry.form == Form::Strips {
            let head = self.head(block, &entry)?;
            return self.decode_strips(block, &head, |bytes| self.strip_bytes(block, &entry, bytes), first, out);
        }
        let (stored, form) = self.stored(block)?;
        self.decode(block, &stored, form, first, out)
    }

    pub(super) fn decode(&self, block: usize, stored: &[u8], form: Form, first: usize, out: &mut [i8]) -> Result<()> {
        let values = self.layout.len_of(block);
        let range = self.header.range;
        codec::block::decode(form, stored, values, range, first, bytes_of_mut(out))
            .map_err(|error| self.damaged(block, error))
    }

    /// Decodes the values `first ..` of a block of strips until `out` is full.
    pub(super) fn decode_strips<'a>(
        &self,
        block: usize,
        head: &Head,
        read: impl Fn(Range<usize>) -> Result<Cow<'a, [u8]>>,
        first: usize,
        out: &mut [i8],
    ) -> Result<()> {
        for strip in head.strips_of(&(first..first + out.len())) {
            let bytes = read(head.bytes_of(strip))?;
            head.decode_into(block, strip, &bytes, first, bytes_of_mut(out))
                .map_err(|error| self.damaged(block, error))?;
        }
        Ok(())
    }

    pub(super) fn strip_bytes(&self, block: usize, entry: &IndexEntry, bytes: Range<usize>) -> Result<Cow<'_, [u8]>> {
        self.source.read(entry.offset + bytes.start as u64, bytes.len()).map_err(|error| self.unread(block, error))
    }

    /// Decodes a whole block given the floors of its scores.
    pub(crate) fn decode_floored(&self, block: usize, floors: &[i8], out: &mut [i8]) -> Result<()> {
        self.settled(|| self.decode_floored_once(block, floors, out))
    }

    fn decode_floored_once(&self, block: usize, floors: &[i8], out: &mut [i8]) -> Result<()> {
        let entry = self.entry(block);
        if entry.form != Form::Floors {
            return self.decode_stored(block, 0, out);
        }
        let head = self.head(block, &entry)?;
        let stored = self.stored_bytes(block, &entry)?;
        for strip in 0..head.tiling().strips() {
            head.decode_floored(block, strip, &stored[head.bytes_of(strip)], bytes_of(floors), bytes_of_mut(out))
                .map_err(|error| self.damaged(block, error))?;
        }
        Ok(())
    }

    /// Reads the head of a block of strips and compares its checksum, unless that was done in a map.
    pub(super) fn head(&self, block: usize, entry: &IndexEntry) -> Result<Head> {
        let (edition, is_verified) = (self.edition(), self.is_verified(block));
        let start = self.strip_bytes(block, entry, 0..rans::HEAD_FIXED_BYTES)?;
        let length = rans::head_bytes(&start, entry.bytes as usize).map_err(|error| self.damaged(block, error))?;
        let bytes = self.strip_bytes(block, entry, 0..length)?;
        let head = self.head_of(block, entry, &bytes, is_verified)?;
        if !is_verified {
            self.note_verified(block, edition);
        }
        Ok(head)
    }

    /// Decodes the head of a block of strips from its first bytes.
    pub(super) fn head_of(&self, block: usize, entry: &IndexEntry, stored: &[u8], is_verified: bool) -> Result<Head> {
        let decode = || {
            let length = rans::head_bytes(stored, entry.bytes as usize)?;
            let Some(bytes) = stored.get(..length) else {
                return Err(DecodeError::new(format!("a head of {length} bytes"), stored.len()));
            };
            let hash = self.header.hash();
            let computed = if is_verified { entry.checksum } else { checksum::of_block(hash, block, bytes) };
            checksum::compare(computed, entry.checksum)?;
            let context = if entry.form == Form::Floors { Context::Floors } else { Context::Neighbours };
            Head::decode(bytes, entry.bytes as usize, self.layout.band_of(block), self.header.range, context)
        };
        decode().map_err(|error| self.damaged(block, error))
    }

    /// The stored bytes of a block, verified unless it is one of strips.
    #[inline]
    pub(super) fn stored(&self, block: usize) -> Result<(Cow<'_, [u8]>, Form)> {
        let entry = self.entry(block);
        let stored = self.stored_bytes(block, &entry)?;
        // Bytes read on demand are verified each time.
        let is_known = matches!(stored, Cow::Borrowed(_)) && self.has_bit(block);
        let stored = if is_known || entry.form == Form::Strips { stored } else { self.check(block, &entry, stored)? };
        Ok((stored, entry.form))
    }

    #[inline]
    pub(super) fn entry(&self, block: usize) -> IndexEntry {
        IndexEntry::of_block(&self.index, block)
    }

    #[inline]
    pub(super) fn stored_bytes(&self, block: usize, entry: &IndexEntry) -> Result<Cow<'_, [u8]>> {
        self.source.read(entry.offset, entry.bytes as usize).map_err(|error| self.unread(block, error))
    }

    #[inline]
    pub(super) fn is_verified(&self, block: usize) -> bool {
        self.has_bit(block) && self.source.is_mapped()
    }

    #[inline]
    pub(super) fn has_bit(&self, block: usize) -> bool {
        // Relaxed: the bit belongs to the current edition, which is compared again after the bytes were used.
        self.verified.get(block / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
    }

    /// Verifies the stored bytes of a block, and records the verification if they are mapped.
    #[cold]
    pub(super) fn check<'s>(&self, block: usize, entry: &IndexEntry, stored: Cow<'s, [u8]>) -> Result<Cow<'s, [u8]>> {
        let edition = self.edition();
        let computed = checksum::of_block(self.header.hash(), block, &stored);
        if computed != entry.checksum {
            return Err(self.wrong_checksum(block, entry, computed));
        }
        self.note_verified(block, edition);
        Ok(stored)
    }

    /// Records that a block was verified in an edition, unless there is a newer edition.
    fn note_verified(&self, block: usize, edition: u64) {
        let Some(word) = self.verified.get(block / 64) else { return };
        if self.latest_edition() != edition {
            return;
        }
        word.fetch_or(1 << (block % 64), Ordering::SeqCst);
        // A thread that finds a later edition first raises its number and then clears all bits: one of the two threads
        // clears this bit.
        if self.edition() != edition {
            word.fetch_and(!(1 << (block % 64)), Ordering::SeqCst);
        }
    }

    pub(super) fn wrong_checksum(&self, block: usize, entry: &IndexEntry, computed: u64) -> StoreError {
        let expected = format!("checksum {:016x}", entry.checksum);
        self.damaged(block, DecodeError::new(expected, format!("{computed:016x}")))
    }

    /// The error of a failed read of a block.
    pub(super) fn unread(&self, block: usize, error: DiskError) -> StoreError {
        if error.is_cut_short() {
            let expected = format!("a file of {}", disk::bytes(self.bytes()));
            self.damaged(block, DecodeError::new(expected, "fewer, for it was cut"))
        } else {
            StoreError::Disk(error)
        }
    }

    pub(super) fn damaged(&self, block: usize, DecodeError { expected, found }: DecodeError) -> StoreError {
        let positions = self.block_range(block);
        StoreError::Damaged {
            path: self.path.clone(),
            part: format!(
                "block {block} of {} (slab {}, positions {}..{})",
                self.block_count(),
                self.layout.slab_of(block),
                positions.start,
                positions.end
            ),
            expected,
            found,
        }
    }
}
