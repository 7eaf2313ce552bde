//! A plane of bits in a scratch file, behind a write-back cache of pages with least-recently-used eviction.
//!
//! Lincke (2002, section 2.5) measures his dual indexing by the misses of such a cache.

use disk::{DiskError, ScratchFile, bytes_of_words, bytes_of_words_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A cached array of words in a scratch file, initially zeros.
pub struct PageCache {
    page_words: usize,
    words: usize,
    state: Mutex<PageTable>,
}

/// Access counts of a page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Accesses to a cached page.
    pub hits: u64,
    /// Accesses to a page that had to be read.
    pub misses: u64,
    /// Pages written back.
    pub written: u64,
}

/// Marks the absence of a page or a slot.
const NONE: u32 = u32::MAX;

struct PageTable {
    file: Box<dyn ScratchFile>,
    /// By page, the slot that holds it.
    slot_of: Vec<u32>,
    /// By slot.
    slots: Vec<PageSlot>,
    capacity: usize,
    /// The ends of the list from the most to the least recently used slot.
    newest: u32,
    oldest: u32,
    counts: PageCounts,
    failure: Option<DiskError>,
}

struct PageSlot {
    page: u32,
    newer: u32,
    older: u32,
    is_changed: bool,
    words: Box<[u64]>,
}

/// A cache held by one thread.
pub struct Pages<'a> {
    page_words: usize,
    words: usize,
    state: MutexGuard<'a, PageTable>,
}

impl PageCache {
    /// Creates a cache of as many whole pages as fit in `capacity_bytes`, at least one, over a file of zeros.
    ///
    /// # Panics
    /// When a page is not a positive number of words, or there are 2^32 pages.
    pub fn new(file: Box<dyn ScratchFile>, page_bytes: usize, capacity_bytes: u64) -> PageCache {
        assert!(page_bytes >= 8 && page_bytes.is_multiple_of(8), "a page is made of words");
        let (page_words, words) = (page_bytes / 8, (file.bytes() / 8) as usize);
        let pages = words.div_ceil(page_words);
        assert!(pages < NONE as usize, "pages are numbered in 32 bits");
        let capacity = ((capacity_bytes / page_bytes as u64) as usize).clamp(1, pages.max(1));
        let state = PageTable {
            file,
            slot_of: vec![NONE; pages],
            slots: Vec::new(),
            capacity,
            newest: NONE,
            oldest: NONE,
            counts: PageCounts::default(),
            failure: None,
        };
        PageCache { page_words, words, state: Mutex::new(state) }
    }

    /// Locks the cache for a series of accesses.
    pub fn lock(&self) -> Pages<'_> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Pages { page_words: self.page_words, words: self.words, state }
    }

    /// The access counts so far.
    pub fn page_counts(&self) -> PageCounts {
        self.lock().state.counts
    }

    /// The most pages held.
    pub fn capacity(&self) -> usize {
        self.lock().state.capacity
    }

    /// Returns the first failure. Words read since may be zeros, and words written before or since may be lost, so
    /// every later call reports it again.
    ///
    /// # Errors
    /// That failure.
    pub fn check(&self) -> Result<(), DiskError> {
        self.lock().state.failure.clone().map_or(Ok(()), Err)
    }
}

impl Pages<'_> {
    /// Returns a word.
    #[inline]
    pub fn word(&mut self, at: usize) -> u64 {
        let slot = self.state.slot(at / self.page_words, self.page_words, self.words);
        self.state.slots[slot].words[at % self.page_words]
    }

    /// Sets bits of a word, and returns those that were not set before.
    #[inline]
    pub fn set(&mut self, at: usize, bits: u64) -> u64 {
        let slot = self.state.slot(at / self.page_words, self.page_words, self.words);
        let slot = &mut self.state.slots[slot];
        let word = &mut slot.words[at % self.page_words];
        let new = bits & !*word;
        if new != 0 {
            *word |= new;
            slot.is_changed = true;
        }
        new
    }

    /// Copies words.
    pub fn read(&mut self, mut first: usize, mut into: &mut [u64]) {
        while !into.is_empty() {
            let slot = self.state.slot(first / self.page_words, self.page_words, self.words);
            let from = &self.state.slots[slot].words[first % self.page_words..];
            let count = from.len().min(into.len());
            let (now, rest) = into.split_at_mut(count);
            now.copy_from_slice(&from[..count]);
            into = rest;
            first += count;
        }
    }
}

impl PageTable {
    /// Returns the slot of a page, and makes it the most recently used one.
    #[inline]
    fn slot(&mut self, page: usize, page_words: usize, words: usize) -> usize {
        let slot = self.slot_of[page];
        if slot == NONE {
            return self.load(page, page_words, words);
        }
        self.counts.hits += 1;
        if slot != self.newest {
            self.unlink(slot);
            self.link(slot);
        }
        slot as usize
    }

    #[cold]
    fn load(&mut self, page: usize, page_words: usize, words: usize) -> usize {
        self.counts.misses += 1;
        let slot = if self.slots.len() < self.capacity {
            self.slots.push(PageSlot {
                page: NONE,
                newer: NONE,
                older: NONE,
                is_changed: false,
                words: vec![0; page_words].into_boxed_slice(),
            });
            self.slots.len() as u32 - 1
        } else {
            let slot = self.oldest;
            self.unlink(slot);
            self.write_back(slot, page_words, words);
            slot
        };
        let page_slot = &mut self.slots[slot as usize];
        let count = page_words.min(words - page * page_words);
        let read =
            self.file.read_at(page as u64 * page_words as u64 * 8, bytes_of_words_mut(&mut page_slot.words[..count]));
        page_slot.page = page as u32;
        if let Err(error) = read {
            page_slot.words.fill(0);
            self.failure.get_or_insert(error);
        }
        self.slot_of[page] = slot;
        self.link(slot);
        slot as usize
    }

    fn write_back(&mut self, slot: u32, page_words: usize, words: usize) {
        let slot = &mut self.slots[slot as usize];
        let page = slot.page as usize;
        if std::mem::take(&mut slot.is_changed) {
            let count = page_words.min(words - page * page_words);
            let place = page as u64 * page_words as u64 * 8;
            if let Err(error) = self.file.write_at(place, bytes_of_words(&slot.words[..count])) {
                self.failure.get_or_insert(error);
            }
            self.counts.written += 1;
        }
        self.slot_of[page] = NONE;
    }

    fn unlink(&mut self, slot: u32) {
        let PageSlot { newer, older, .. } = self.slots[slot as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    fn link(&mut self, slot: u32) {
        let newest = std::mem::replace(&mut self.newest, slot);
        let page_slot = &mut self.slots[slot as usize];
        (page_slot.newer, page_slot.older) = (NONE, newest);
        match newest {
            NONE => self.oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Disk, Fault, MemoryDisk};
    use std::collections::VecDeque;
    use std::path::Path;

    /// Against a plain array, and against a list of pages in the order of their use.
    #[test]
    fn words_and_misses_are_those_of_a_plain_model() {
        const WORDS: usize = 1003;
        for capacity in [1, 2, 7, 1000] {
            let disk = MemoryDisk::new();
            let file = disk.scratch(Path::new("x"), 8 * WORDS as u64).unwrap();
            let cache = PageCache::new(file, 64, capacity * 64);
            let mut model = vec![0u64; WORDS];
            let (mut used, mut misses) = (VecDeque::new(), 0);
            let mut random = 12345u64;
            for _ in 0..20_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (random >> 33) as usize % WORDS;
                let page = at / 8;
                match used.iter().position(|&other| other == page) {
                    Some(place) => drop(used.remove(place)),
                    None => misses += 1,
                }
                used.push_front(page);
                used.truncate(cache.capacity());
                if random & 1 == 0 {
                    let bits = 1 << (random >> 20 & 63);
                    assert_eq!(cache.lock().set(at, bits), bits & !model[at]);
                    model[at] |= bits;
                } else {
                    assert_eq!(cache.lock().word(at), model[at]);
                }
            }
            assert_eq!(cache.page_counts().misses, misses);
            assert_eq!(cache.page_counts().hits + misses, 20_000);
            let mut all = vec![0; WORDS];
            cache.lock().read(0, &mut all);
            assert_eq!(all, model);
            cache.check().unwrap();
        }
    }

    #[test]
    fn failures_are_reported() {
        let disk = MemoryDisk::new();
        let cache = PageCache::new(disk.scratch(Path::new("x"), 1024).unwrap(), 64, 64);
        disk.fail_at(disk.operations() + 1, Fault::NoSpace);
        cache.lock().set(0, 1);
        cache.check().unwrap();
        cache.lock().set(100, 1);
        assert!(cache.check().unwrap_err().is_no_space());
        // A caller may have ignored the first report.
        cache.lock().set(0, 1);
        assert!(cache.check().unwrap_err().is_no_space());
    }
}
