//! A block: its bytes, their checksum, its values.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::Ordering;

use disk::{bytes_of, bytes_of_mut};

use super::Scores;
use crate::error::StoreError;
use crate::form::{self, DecodeError, Form};
use crate::format::{INDEX_ENTRY_BYTES, IndexEntry, block_checksum};
use crate::strips::{self, Context, Head};

impl Scores {
    /// Reads and decodes the values `first ..` of a block until `out` is full.
    pub(super) fn decode_stored(&self, block: usize, first: usize, out: &mut [i8]) -> Result<(), StoreError> {
        let entry = self.entry(block);
        if entry.form == Form::Strips {
            let head = self.head(block, &entry)?;
            return self.decode_strips(block, &head, |bytes| self.strip_bytes(&entry, bytes), first, out);
        }
        let (stored, form) = self.stored(block)?;
        self.decode(block, &stored, form, first, out)
    }

    pub(super) fn decode(
        &self,
        block: usize,
        stored: &[u8],
        form: Form,
        first: usize,
        out: &mut [i8],
    ) -> Result<(), StoreError> {
        let values = self.layout.len_of(block);
        let range = self.header.range;
        form::decode(form, stored, values, range, first, bytes_of_mut(out))
            .map_err(|error| self.damaged(block, error.expected, error.found))
    }

    /// Decodes the values `first ..` of a block of strips until `out` is full.
    pub(super) fn decode_strips<'a>(
        &self,
        block: usize,
        head: &Head,
        read: impl Fn(Range<usize>) -> Result<Cow<'a, [u8]>, StoreError>,
        first: usize,
        out: &mut [i8],
    ) -> Result<(), StoreError> {
        for strip in head.strips_of(&(first..first + out.len())) {
            let bytes = read(head.bytes_of(strip))?;
            head.decode_into(block, strip, &bytes, first, bytes_of_mut(out))
                .map_err(|error| self.damaged(block, error.expected, error.found))?;
        }
        Ok(())
    }

    pub(super) fn strip_bytes(&self, entry: &IndexEntry, bytes: Range<usize>) -> Result<Cow<'_, [u8]>, StoreError> {
        Ok(self.source.read(entry.offset + bytes.start as u64, bytes.len())?)
    }

    /// Decodes a whole block given the floors of its scores.
    pub(crate) fn decode_floored(&self, block: usize, floors: &[i8], out: &mut [i8]) -> Result<(), StoreError> {
        let entry = self.entry(block);
        if entry.form != Form::Floors {
            return self.decode_stored(block, 0, out);
        }
        let head = self.head(block, &entry)?;
        let stored = self.stored_bytes(&entry)?;
        for strip in 0..head.tiling().strips() {
            head.decode_floored(block, strip, &stored[head.bytes_of(strip)], bytes_of(floors), bytes_of_mut(out))
                .map_err(|error| self.damaged(block, error.expected, error.found))?;
        }
        Ok(())
    }

    /// Reads the head of a block of strips and compares its checksum, unless that was done in a map.
    pub(super) fn head(&self, block: usize, entry: &IndexEntry) -> Result<Head, StoreError> {
        let start = self.strip_bytes(entry, 0..strips::HEAD_FIXED_BYTES)?;
        let length = strips::head_bytes(&start, entry.bytes as usize)
            .map_err(|error| self.damaged(block, error.expected, error.found))?;
        let bytes = self.strip_bytes(entry, 0..length)?;
        let head = self.head_of(block, entry, &bytes, self.is_verified(block))?;
        self.note_verified(block);
        Ok(head)
    }

    /// The head of a block of strips from its bytes, or more than those.
    pub(super) fn head_of(
        &self,
        block: usize,
        entry: &IndexEntry,
        stored: &[u8],
        is_verified: bool,
    ) -> Result<Head, StoreError> {
        let decode = || {
            let length = strips::head_bytes(stored, entry.bytes as usize)?;
            let Some(bytes) = stored.get(..length) else {
                return Err(DecodeError {
                    expected: format!("a head of {length} bytes"),
                    found: stored.len().to_string(),
                });
            };
            let computed = if is_verified { entry.checksum } else { block_checksum(block, bytes) };
            if computed != entry.checksum {
                let expected = format!("checksum {:016x}", entry.checksum);
                return Err(DecodeError { expected, found: format!("{computed:016x}") });
            }
            let context = if entry.form == Form::Floors { Context::Floors } else { Context::Neighbours };
            Head::decode(bytes, entry.bytes as usize, self.layout.band_of(block), self.header.range, context)
        };
        decode().map_err(|error| self.damaged(block, error.expected, error.found))
    }

    /// The stored bytes of a block, verified; of a block of strips, not.
    #[inline]
    pub(super) fn stored(&self, block: usize) -> Result<(Cow<'_, [u8]>, Form), StoreError> {
        let entry = self.entry(block);
        let is_checked = entry.form == Form::Strips || self.is_verified(block);
        let stored = if is_checked { self.stored_bytes(&entry)? } else { self.check(block, &entry)? };
        Ok((stored, entry.form))
    }

    #[inline]
    pub(super) fn entry(&self, block: usize) -> IndexEntry {
        IndexEntry::of_block(self.index(), block)
    }

    #[inline]
    pub(super) fn index(&self) -> &[u8] {
        let end = self.index_offset + self.block_count() * INDEX_ENTRY_BYTES;
        match (&self.index, self.source.mapping()) {
            (Some(index), _) => index,
            (None, Some(mapping)) => &mapping[self.index_offset..end],
            (None, None) => unreachable!("an index is held where there is no map"),
        }
    }

    #[inline]
    pub(super) fn stored_bytes(&self, entry: &IndexEntry) -> Result<Cow<'_, [u8]>, StoreError> {
        Ok(self.source.read(entry.offset, entry.bytes as usize)?)
    }

    #[inline]
    pub(super) fn is_verified(&self, block: usize) -> bool {
        // The bytes that the bit vouches for never change, so nothing needs to be ordered with it.
        self.verified.get(block / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
    }

    /// Reads a block, compares its checksum, and notes it if it is right and the bytes are to stay.
    #[cold]
    pub(super) fn check(&self, block: usize, entry: &IndexEntry) -> Result<Cow<'_, [u8]>, StoreError> {
        let stored = self.stored_bytes(entry)?;
        let computed = block_checksum(block, &stored);
        if computed != entry.checksum {
            return Err(self.wrong_checksum(block, entry, computed));
        }
        self.note_verified(block);
        Ok(stored)
    }

    pub(super) fn note_verified(&self, block: usize) {
        if let Some(word) = self.verified.get(block / 64) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
    }

    pub(super) fn wrong_checksum(&self, block: usize, entry: &IndexEntry, computed: u64) -> StoreError {
        self.damaged(block, format!("checksum {:016x}", entry.checksum), format!("{computed:016x}"))
    }

    pub(super) fn damaged(&self, block: usize, expected: String, found: String) -> StoreError {
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
