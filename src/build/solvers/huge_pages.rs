//! Large arrays on huge pages, where the system has them.
//!
//! An array is followed by [`PAD`] bytes that kernels may read and ignore.

use memmap2::{Advice, MmapMut, MmapOptions};
use rayon::prelude::*;
use std::alloc::{self, Layout};
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU64;

/// Bytes readable behind the end of an array: the window of a gather piece, and a vector of 16 from its last byte on.
pub(crate) const PAD: usize = 144;

/// Bytes that a thread fills at a time: a huge page.
const FILL_BYTES: usize = 2 << 20;

/// Array of scores, initially zero. Derefs to its scores without the padding.
#[derive(Debug)]
pub struct Bytes {
    map: MmapMut,
    len: usize,
    /// End of the bytes that may be nonzero: pages behind it were never touched.
    touched: usize,
}

impl Bytes {
    /// Allocates `len` zero bytes and the padding. Pages are committed at first touch.
    pub fn zeroed(len: usize) -> io::Result<Bytes> {
        Bytes::zeroed_within(len, len)
    }

    /// As [`zeroed`](Self::zeroed), for an array that is only touched in part and may exceed the memory.
    pub(crate) fn sparse(len: usize) -> io::Result<Bytes> {
        let bytes = len.checked_add(PAD).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Bytes { map: mapped_sparse(bytes)?, len, touched: len + PAD })
    }

    /// As [`zeroed`](Self::zeroed), with capacity for `len_max` bytes: see [`resized`](Self::resized). Unused capacity
    /// takes addresses but no memory.
    pub fn zeroed_within(len: usize, len_max: usize) -> io::Result<Bytes> {
        assert!(len <= len_max);
        let bytes = len_max.checked_add(PAD).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Bytes { map: mapped(bytes)?, len, touched: len + PAD })
    }

    /// Reuses the memory for an array of another length, with unspecified content; `None` if it exceeds the capacity.
    /// Reuse is faster than a new array: the kernel clears a page at first touch, which takes as long as writing it
    /// several times.
    pub fn resized(mut self, len: usize) -> Option<Bytes> {
        if len.checked_add(PAD)? > self.map.len() {
            return None;
        }
        self.len = len;
        self.touched = self.touched.max(len + PAD);
        Some(self)
    }

    /// As [`resized`](Self::resized), with all bytes 0.
    pub fn zeroed_again(self, len: usize) -> Option<Bytes> {
        // The bytes behind these are still zero.
        let used = self.touched.min(len);
        let mut bytes = self.resized(len)?;
        bytes[..used].par_chunks_mut(FILL_BYTES).for_each(|chunk| chunk.fill(0));
        Some(bytes)
    }

    /// Upper bound on the memory committed so far.
    pub fn memory_bytes(&self) -> u64 {
        self.touched as u64
    }

    /// Allocates `len` copies of a score, written by all threads of the current pool.
    pub fn filled(len: usize, score: i8) -> io::Result<Bytes> {
        let mut bytes = Bytes::zeroed(len)?;
        bytes.par_chunks_mut(FILL_BYTES).for_each(|chunk| chunk.fill(score));
        Ok(bytes)
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

    #[inline]
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

/// Array of words, initially zero. A short one is on the heap, which often has memory at hand: pages of a map
/// are cleared at first touch, which took a twentieth of the processor time of two-bit at 19 stones.
#[derive(Debug)]
pub struct WordArray(WordMemory);

#[derive(Debug)]
enum WordMemory {
    Heap(Vec<u64>),
    Mapped { map: MmapMut, len: usize },
}

/// The most words on the heap: 4 MiB.
const HEAP_WORDS_MAX: usize = 512 << 10;

impl WordArray {
    /// Allocates `len` words.
    pub fn zeroed(len: usize) -> WordArray {
        WordArray(match len {
            0..=HEAP_WORDS_MAX => WordMemory::Heap(vec![0; len]),
            _ => WordMemory::Mapped { map: mapped_words(len), len },
        })
    }
}

impl Deref for WordArray {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        match &self.0 {
            WordMemory::Heap(words) => words,
            // SAFETY: the map is private to this type, as long as the words by `zeroed`, and aligned to a
            // page; every bit pattern is a valid word.
            WordMemory::Mapped { map, len } => unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), *len) },
        }
    }
}

impl DerefMut for WordArray {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        match &mut self.0 {
            WordMemory::Heap(words) => words,
            // SAFETY: as in `deref`, and the array is borrowed mutably.
            WordMemory::Mapped { map, len } => unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), *len) },
        }
    }
}

/// Array of words that threads share, initially zero.
pub(crate) struct Words {
    map: MmapMut,
    len: usize,
}

impl Words {
    /// Allocates `len` words. Pages are committed at first touch.
    pub(crate) fn zeroed(len: usize) -> Words {
        Words { map: mapped_words(len), len }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the map is private to this type, as long as the words by `zeroed`, and aligned to a page; it is never
        // accessed as bytes.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

/// Maps zero bytes, on huge pages where the system has them.
fn mapped(bytes: usize) -> io::Result<MmapMut> {
    on_huge_pages(MmapMut::map_anon(bytes)?)
}

/// Maps `len` zero words, without reserving memory.
fn mapped_words(len: usize) -> MmapMut {
    let layout = Layout::array::<u64>(len.max(1)).expect("there is a bit for each of some bytes in memory");
    mapped_sparse(layout.size()).unwrap_or_else(|_| {
        // Out of memory: fail as a `Vec` would, through the allocation error handler.
        drop(vec![0u64; len]);
        alloc::handle_alloc_error(layout)
    })
}

/// As [`mapped`], without reserving memory.
fn mapped_sparse(bytes: usize) -> io::Result<MmapMut> {
    on_huge_pages(MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?)
}

fn on_huge_pages(map: MmapMut) -> io::Result<MmapMut> {
    // Kernels read at a stride of one row: with small pages, address translation costs more than the reads. An error
    // means a kernel without huge pages, where this is only slower.
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
