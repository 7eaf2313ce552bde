//! Anonymous memory of tables, on huge pages where the system has them.

use memmap2::{Advice, MmapMut};
use std::io;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;

/// The words of a cache line.
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub(crate) [AtomicU64; CacheLine::WORDS]);

impl CacheLine {
    /// The number of words.
    pub(crate) const WORDS: usize = 8;

    /// The number of bytes.
    pub(crate) const BYTES: usize = size_of::<CacheLine>();

    /// Starts to load the line into the cache.
    #[inline]
    pub(crate) fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch of any address is harmless, and every x86-64 processor has SSE. It hides a third of a
        // microsecond of main memory.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>((&raw const *self).cast());
        }
    }
}

/// Cache lines that threads share, initially zero. Pages are committed at first touch.
pub(crate) struct SharedLines {
    map: MmapMut,
    len: usize,
}

impl SharedLines {
    /// Allocates lines.
    pub(crate) fn zeroed(len: usize) -> io::Result<SharedLines> {
        let bytes = len.checked_mul(CacheLine::BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = MmapMut::map_anon(bytes.max(1))?;
        // An error means a kernel without huge pages, where address translation takes longer.
        let _ = map.advise(Advice::HugePage);
        Ok(SharedLines { map, len })
    }
}

impl Deref for SharedLines {
    type Target = [CacheLine];

    #[inline]
    fn deref(&self) -> &[CacheLine] {
        // SAFETY: the map has as many bytes as `len` lines, is aligned to a page, private to this type, and never
        // accessed as bytes. Every bit pattern is a valid word.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}
