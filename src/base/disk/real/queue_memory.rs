//! Memory of queues, in large pages.
//!
//! For a drive, a request in a large page is a single run of memory; in small pages it is as many runs as pages. A
//! stream that reads 1.1 to 1.3 GB/s into small pages reads 2.0 to 2.5 into a large one. Queues are smaller than a
//! large page and share it: each has its own range.

use memmap2::{Advice, MmapMut, MmapRaw};
use std::io;
use std::sync::Arc;

/// Bytes of a large page.
const PAGE_BYTES: usize = 2 << 20;

/// Shares of a page.
const SHARES: usize = 2;

/// Bytes of a share.
pub(crate) const MEMORY_BYTES: usize = PAGE_BYTES / SHARES;

/// Pieces of a ring, which is also the maximum number of requests in flight.
pub(crate) const PIECES: usize = 4;

/// Bytes of a piece. In large pages, beside a loop of requests of 1 MiB that read 2.2 GB/s and wrote 2.6: rings of 4
/// pieces read 2.4 and wrote 2.3; 8 of 128 KiB 2.3 and 1.5; 2 of 512 KiB as 4 do, but leave no room for small requests.
/// In small pages 16 of 64 KiB read 1.1 and wrote 1.9.
pub(crate) const PIECE_BYTES: usize = MEMORY_BYTES / PIECES;

/// A share of a large page, or of as many small ones where the system has no large ones; aligned to pages.
pub(crate) struct QueueMemory {
    pages: Arc<MmapRaw>,
    offset: usize,
}

impl QueueMemory {
    /// All shares of a new page.
    pub(crate) fn page() -> io::Result<[QueueMemory; SHARES]> {
        let pages = MmapMut::map_anon(2 * PAGE_BYTES)?;
        let first = pages.as_ptr().align_offset(PAGE_BYTES);
        // Kernels without huge pages refuse this, which only costs speed. Memory around the page is never accessed.
        let _ = pages.advise_range(Advice::HugePage, first, PAGE_BYTES);
        let pages = Arc::new(MmapRaw::from(pages));
        let share = |at| QueueMemory { pages: pages.clone(), offset: first + at * MEMORY_BYTES };
        Ok(std::array::from_fn(share))
    }

    /// The address of the first byte.
    pub(crate) fn address(&self) -> *mut u8 {
        assert!(self.offset + MEMORY_BYTES <= self.pages.len(), "it lies within its pages");
        // SAFETY: within `pages`, as asserted.
        unsafe { self.pages.as_mut_ptr().add(self.offset) }
    }

    /// Its bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range lies within `pages` (asserted by `address`), which live as long as this; no other share has
        // it (`page` gives each another), and the result borrows `self` mutably. Saves a copy, and a page for each.
        unsafe { std::slice::from_raw_parts_mut(self.address(), MEMORY_BYTES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_do_not_overlap() {
        let mut shares = QueueMemory::page().unwrap();
        for (at, share) in shares.iter_mut().enumerate() {
            assert_eq!(share.address().align_offset(MEMORY_BYTES), 0);
            share.bytes_mut().fill(at as u8 + 1);
        }
        let [mut first, second] = shares;
        drop(second);
        assert!(first.bytes_mut().iter().all(|&byte| byte == 1));
    }
}
