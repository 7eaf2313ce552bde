//! Large byte arrays on huge pages where the system has them.
//!
//! An array is followed by [`PAD`] bytes that kernels may read but that mean nothing.

use memmap2::{Advice, MmapMut, MmapOptions};
use rayon::prelude::*;
use std::alloc::{self, Layout};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU64;

/// Bytes readable behind the end of an array: the window of a piece, and a vector of 16 that starts at its last byte.
pub(crate) const PAD: usize = 144;

/// A thread takes and fills whole huge pages.
const FILL_BYTES: usize = 2 << 20;

/// An array of scores, zero at first. Derefs to its scores without the padding.
#[derive(Debug)]
pub struct Bytes {
    map: MmapMut,
    len: usize,
    /// Behind the last byte that may not be zero, or be read: the pages behind it were never touched.
    touched: usize,
}

impl Bytes {
    /// `len` zero bytes and the padding. Pages are taken when first touched.
    pub fn zeroed(len: usize) -> io::Result<Bytes> {
        Bytes::zeroed_within(len, len)
    }

    /// As [`zeroed`](Self::zeroed), of which only a part will ever be touched: more than there is memory for.
    pub(crate) fn sparse(len: usize) -> io::Result<Bytes> {
        let bytes = len.checked_add(PAD).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Bytes { map: mapped_sparse(bytes)?, len, touched: len + PAD })
    }

    /// As [`zeroed`](Self::zeroed), with room for up to `len_max` bytes: see [`resized`](Self::resized). Room that is not
    /// used takes addresses, no memory.
    pub fn zeroed_within(len: usize, len_max: usize) -> io::Result<Bytes> {
        assert!(len <= len_max);
        let bytes = len_max.checked_add(PAD).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Bytes { map: mapped(bytes)?, len, touched: len + PAD })
    }

    /// The same memory as an array of another length, its bytes anything: the kernel clears a page at its first touch,
    /// which takes as long as writing it some times over, so an array is better used again. `None` if there is no room.
    pub fn resized(mut self, len: usize) -> Option<Bytes> {
        if len.checked_add(PAD)? > self.map.len() {
            return None;
        }
        self.len = len;
        self.touched = self.touched.max(len + PAD);
        Some(self)
    }

    /// As [`resized`](Self::resized), all bytes 0.
    pub fn zeroed_again(self, len: usize) -> Option<Bytes> {
        // Behind these the kernel has cleared, or will.
        let used = self.touched.min(len);
        let mut bytes = self.resized(len)?;
        bytes[..used].par_chunks_mut(FILL_BYTES).for_each(|chunk| chunk.fill(0));
        Some(bytes)
    }

    /// The most bytes of memory that it can have taken so far.
    pub fn memory_bytes(&self) -> u64 {
        self.touched as u64
    }

    /// `len` times the same score, written by all threads of the current pool.
    pub fn filled(len: usize, score: i8) -> io::Result<Bytes> {
        let mut bytes = Bytes::zeroed(len)?;
        bytes.par_chunks_mut(FILL_BYTES).for_each(|chunk| chunk.fill(score));
        Ok(bytes)
    }

    /// The array up to `at`, and the rest with its padding.
    pub(crate) fn split_padded_at_mut(&mut self, at: usize) -> (&mut [i8], &[i8]) {
        assert!(at <= self.len);
        let (low, high) = self.map.split_at_mut(at);
        // SAFETY: as in `deref_mut`.
        let low = unsafe { std::slice::from_raw_parts_mut(low.as_mut_ptr().cast(), low.len()) };
        (low, as_scores(high))
    }

    /// The array with its padding.
    pub(crate) fn padded_mut(&mut self) -> &mut [i8] {
        let bytes = &mut self.map[..self.len + PAD];
        // SAFETY: as in `deref_mut`.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
    }

    /// The array with its padding.
    pub(crate) fn padded(&self) -> &[i8] {
        as_scores(&self.map[..self.len + PAD])
    }
}

impl Deref for Bytes {
    type Target = [i8];

    fn deref(&self) -> &[i8] {
        as_scores(&self.map[..self.len])
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [i8] {
        let bytes = &mut self.map[..self.len];
        // SAFETY: u8 and i8 have the same size and alignment and every bit pattern is valid for both.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
    }
}

/// Words that threads share, zero at first.
pub(crate) struct Words {
    map: MmapMut,
    len: usize,
}

impl Words {
    /// So many, in pages that are taken when first touched, if ever.
    pub(crate) fn zeroed(len: usize) -> Words {
        let layout = Layout::array::<AtomicU64>(len.max(1)).expect("there is a bit for each of some bytes in memory");
        let map = mapped_sparse(layout.size()).unwrap_or_else(|_| {
            // As of a vector: the allocator of the program says what is missing, and ends it.
            drop(vec![0u64; len]);
            alloc::handle_alloc_error(layout)
        });
        Words { map, len }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({})", self.len)
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the map is private, as long as the words by `zeroed`, aligned to a page, and seen by nothing but this:
        // nobody takes the words as bytes.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

/// Zero bytes, on huge pages where there are any.
fn mapped(bytes: usize) -> io::Result<MmapMut> {
    on_huge_pages(MmapMut::map_anon(bytes)?)
}

/// The same, more perhaps than there is memory.
fn mapped_sparse(bytes: usize) -> io::Result<MmapMut> {
    on_huge_pages(MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?)
}

fn on_huge_pages(map: MmapMut) -> io::Result<MmapMut> {
    // Rows are read at strides of a row: with small pages the translation of addresses costs more than the reads.
    // Refused where the kernel has no huge pages; then it is only slower.
    let _ = map.advise(Advice::HugePage);
    Ok(map)
}

fn as_scores(bytes: &[u8]) -> &[i8] {
    // SAFETY: u8 and i8 have the same size and alignment and every bit pattern is valid for both.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_memory_serves_arrays_of_other_lengths() {
        let mut bytes = Bytes::zeroed_within(100, 1000).unwrap();
        assert_eq!((bytes.len(), bytes.padded().len()), (100, 100 + PAD));
        bytes.fill(7);
        let mut bytes = bytes.zeroed_again(1000).unwrap();
        assert_eq!((bytes.len(), bytes.padded().len(), bytes.memory_bytes()), (1000, 1000 + PAD, 1000 + PAD as u64));
        assert!(bytes.iter().all(|&score| score == 0));
        bytes.fill(7);
        let bytes = bytes.zeroed_again(500).unwrap().resized(10).unwrap();
        assert!(bytes.iter().all(|&score| score == 0));
        assert_eq!((bytes.len(), bytes.memory_bytes()), (10, 1000 + PAD as u64));
        assert!(bytes.resized(1001).is_none());
    }
}
