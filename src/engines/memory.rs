//! Large byte arrays on huge pages where the system has them.
//!
//! An array is followed by [`PAD`] bytes that kernels may read but that mean nothing.

use memmap2::{Advice, MmapMut};
use rayon::prelude::*;
use std::io;
use std::ops::{Deref, DerefMut};

/// Bytes readable behind the end of an array: the window of a piece, and a vector of 16 that starts at its last byte.
pub(crate) const PAD: usize = 144;

/// A thread takes and fills whole huge pages.
const FILL_BYTES: usize = 2 << 20;

/// An array of scores, zero at first. Derefs to its scores without the padding.
#[derive(Debug)]
pub struct Bytes {
    map: MmapMut,
    len: usize,
}

impl Bytes {
    /// `len` zero bytes and the padding. Pages are taken when first touched.
    pub fn zeroed(len: usize) -> io::Result<Bytes> {
        let bytes = len.checked_add(PAD).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = MmapMut::map_anon(bytes)?;
        // Rows are read at strides of a row: with small pages the translation of addresses costs more than the reads.
        // Refused where the kernel has no huge pages; then it is only slower.
        let _ = map.advise(Advice::HugePage);
        Ok(Bytes { map, len })
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
        // SAFETY: as in `deref_mut`.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.map.len()) }
    }

    /// The array with its padding.
    pub(crate) fn padded(&self) -> &[i8] {
        as_scores(&self.map)
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

fn as_scores(bytes: &[u8]) -> &[i8] {
    // SAFETY: u8 and i8 have the same size and alignment and every bit pattern is valid for both.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}
