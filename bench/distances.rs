//! Stack distances: from one run, the misses of least recently used caches of every size.
//!
//! Such a cache of n pages holds the n pages used last, whatever n is. So an access misses in all caches with no more
//! pages than were used since the last access to its page, and hits in the larger ones (Mattson, Gecsei, Slutz, Traiger:
//! Evaluation techniques for storage hierarchies, 1970).

/// Records accesses to pages.
#[derive(Debug)]
pub struct Distances {
    /// By page, the time of its last access.
    last: Vec<u32>,
    /// By time, the page accessed.
    page_at: Vec<u32>,
    /// By time, in bits, whether this is the last access to its page.
    is_last: Vec<u64>,
    /// By block of times, number of last accesses.
    blocks: Vec<u16>,
    now: usize,
    newest: u32,
    counts: AccessCounts,
}

/// Histogram of stack distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCounts {
    /// By kind of access and distance; the last entry counts first accesses.
    distances: [Vec<u64>; 2],
}

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Bits are read.
    Read,
    /// Bits are set.
    Set,
}

/// No time, no page.
const NONE: u32 = u32::MAX;

/// Words of times in a block.
const BLOCK_WORDS: usize = 8;
const BLOCK: usize = 64 * BLOCK_WORDS;

impl Distances {
    /// Starts a record of unused pages.
    ///
    /// # Panics
    /// When there are 2^28 pages or more: times are of 32 bits.
    pub fn new(pages: usize) -> Distances {
        assert!(pages < 1 << 28, "times are of 32 bits");
        // Renumbering visits every page, so more times make it rarer.
        let times = (8 * pages).next_multiple_of(BLOCK).max(8 * BLOCK);
        Distances {
            last: vec![NONE; pages],
            page_at: vec![NONE; times],
            is_last: vec![0; times / 64],
            blocks: vec![0; times / BLOCK],
            now: 0,
            newest: NONE,
            counts: AccessCounts::none(pages),
        }
    }

    /// Records `times` consecutive accesses to a page.
    #[inline]
    pub fn access(&mut self, page: usize, access: Access, times: u64) {
        let counts = &mut self.counts.distances[access as usize];
        if page as u32 == self.newest {
            counts[0] += times;
            return;
        }
        counts[0] += times - 1;
        let distance = self.touch(page);
        self.counts.distances[access as usize][distance] += 1;
    }

    /// Returns the counts since the last call.
    pub fn take(&mut self) -> AccessCounts {
        let none = AccessCounts::none(self.last.len());
        std::mem::replace(&mut self.counts, none)
    }

    /// Makes a page the newest, and returns its distance.
    fn touch(&mut self, page: usize) -> usize {
        if self.now == self.page_at.len() {
            self.renumber();
        }
        self.newest = page as u32;
        let then = std::mem::replace(&mut self.last[page], self.now as u32);
        let distance = if then == NONE { self.last.len() } else { self.forget(then as usize) };
        self.page_at[self.now] = page as u32;
        self.is_last[self.now / 64] |= 1 << (self.now % 64);
        self.blocks[self.now / BLOCK] += 1;
        self.now += 1;
        distance
    }

    /// Unmarks the last access to a page. Returns the number of pages accessed later.
    fn forget(&mut self, time: usize) -> usize {
        let (word, block) = (time / 64, time / BLOCK);
        let later = (self.is_last[word] >> (time % 64) >> 1).count_ones();
        let words = &self.is_last[word + 1..(block + 1) * BLOCK_WORDS];
        let in_block = words.iter().map(|word| word.count_ones()).sum::<u32>();
        let behind = self.blocks[block + 1..].iter().map(|&count| u32::from(count)).sum::<u32>();
        self.is_last[word] &= !(1 << (time % 64));
        self.blocks[block] -= 1;
        (later + in_block + behind) as usize
    }

    fn renumber(&mut self) {
        let mut now = 0;
        for word in 0..self.is_last.len() {
            let mut left = std::mem::take(&mut self.is_last[word]);
            while left != 0 {
                let page = self.page_at[word * 64 + left.trailing_zeros() as usize];
                self.page_at[now] = page;
                self.last[page as usize] = now as u32;
                now += 1;
                left &= left - 1;
            }
        }
        self.blocks.fill(0);
        for time in 0..now {
            self.is_last[time / 64] |= 1 << (time % 64);
            self.blocks[time / BLOCK] += 1;
        }
        self.now = now;
    }
}

impl AccessCounts {
    /// No accesses to `pages` pages.
    pub fn none(pages: usize) -> AccessCounts {
        AccessCounts { distances: [vec![0; pages + 1], vec![0; pages + 1]] }
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.distances[0].len() - 1
    }

    /// Number of accesses of a kind.
    pub fn accesses(&self, access: Access) -> u64 {
        self.distances[access as usize].iter().sum()
    }

    /// Number of misses in a cache of `capacity` pages, at least one. The first access to a page is a miss.
    pub fn misses(&self, access: Access, capacity: usize) -> u64 {
        self.distances[access as usize][capacity.min(self.pages())..].iter().sum()
    }

    /// Misses of both kinds.
    pub fn all_misses(&self, capacity: usize) -> u64 {
        self.misses(Access::Read, capacity) + self.misses(Access::Set, capacity)
    }

    /// Adds the counts of another record.
    pub fn add(&mut self, other: &AccessCounts) {
        for (counts, others) in self.distances.iter_mut().zip(&other.distances) {
            counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::Random;
    use disk::{Disk, MemoryDisk};
    use std::path::Path;
    use store::PageCache;

    /// Random accesses, many to few pages, against caches of all sizes.
    #[test]
    fn misses_are_those_of_caches() {
        const PAGES: usize = 700;
        const PAGE_WORDS: usize = 2;
        let mut distances = Distances::new(PAGES);
        let caches = [1, 2, 3, 10, 69, 70, 350, 699, 700].map(|capacity| {
            let disk = MemoryDisk::new();
            let file = disk.scratch(Path::new("x"), (8 * PAGES * PAGE_WORDS) as u64).unwrap();
            (capacity, PageCache::new(file, 8 * PAGE_WORDS, (8 * PAGE_WORDS * capacity) as u64))
        });
        let mut random = Random::of(&[4711]);
        for _ in 0..30_000 {
            let among = *random.pick(&[PAGES as u64, 30]);
            let (page, times) = (random.below(among) as usize, 1 + random.below(3));
            distances.access(page, *random.pick(&[Access::Read, Access::Set]), times);
            for (_, cache) in &caches {
                for _ in 0..times {
                    cache.lock().word(page * PAGE_WORDS);
                }
            }
        }
        let counts = distances.take();
        let accesses = counts.accesses(Access::Read) + counts.accesses(Access::Set);
        for (capacity, cache) in caches {
            let misses = counts.all_misses(capacity);
            assert_eq!(
                (accesses - misses, misses),
                (cache.page_counts().hits, cache.page_counts().misses),
                "{capacity} pages"
            );
        }
        assert_eq!(distances.take(), AccessCounts::none(PAGES));
    }
}
