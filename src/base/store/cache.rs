//! A bounded cache of decoded blocks and parts of blocks, shared by threads and files.
//!
//! Entries are in shards, each behind a lock of its own; within a shard the clock algorithm selects the entry to evict
//! (one bit says whether an entry was used since the hand last passed). Reads of single scores cache parts as small as
//! the form of the block allows; reads of ranges cache whole blocks.

use crate::codec::BLOCK_POSITIONS;
use crate::codec::rans::Head;
use crate::error::Result;
use crate::scores::{AccessPattern, BlockPart, ScoreLocation, Scores};
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A cache of decoded blocks of one or several files, of at most a number of bytes.
pub struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    /// The heads, in a shard of their own: they are few and large, and each serves a hundred strips.
    heads: Mutex<Shard>,
    bytes_max: usize,
    /// Bytes of heads, by which the limit of the other shards is reduced.
    head_bytes: AtomicUsize,
    files: AtomicU64,
    decoded: AtomicU64,
}

/// Ascending positions in one run of this length are read together; a run crosses at most one block boundary, except in
/// the shortest slabs.
const RUN_POSITIONS: u64 = BLOCK_POSITIONS as u64;

/// The most shards: enough that the threads of a large machine rarely contend.
const SHARDS_MAX: usize = 64;

/// The fewest blocks in a shard: with fewer, a shard would evict blocks that are needed while other shards keep unused
/// ones.
const SHARD_BLOCKS_MIN: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartKey {
    pub(crate) file: u64,
    pub(crate) block: usize,
    pub(crate) part: BlockPart,
}

#[derive(Default)]
struct Shard {
    /// With a fast hasher: an attacker does not choose the keys.
    places: FxHashMap<PartKey, usize>,
    slots: Vec<CacheSlot>,
    bytes: usize,
    hand: usize,
}

struct CacheSlot {
    key: PartKey,
    content: CachedPart,
    used: bool,
}

/// A cached part of a block.
#[derive(Clone)]
enum CachedPart {
    Scores(Arc<Vec<i8>>),
    Head(Arc<Head>),
}

impl BlockCache {
    /// Creates a cache of at most `bytes_max` bytes of scores, and at least 65,536.
    ///
    /// Of files of the codec rans it holds strips, of about 8,192 scores, and heads, of half a megabyte each: with less
    /// than some megabytes, every probe reads a head.
    pub fn new(bytes_max: u64) -> Arc<Self> {
        let blocks = usize::try_from(bytes_max / BLOCK_POSITIONS as u64).unwrap_or(usize::MAX).max(1);
        let shards = (blocks / SHARD_BLOCKS_MIN).clamp(1, SHARDS_MAX);
        Arc::new(BlockCache {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            heads: Mutex::default(),
            bytes_max: blocks.saturating_mul(BLOCK_POSITIONS),
            head_bytes: AtomicUsize::new(0),
            files: AtomicU64::new(0),
            decoded: AtomicU64::new(0),
        })
    }

    /// Bytes of the cached scores and models.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().chain([&self.heads]).map(|shard| held(shard).bytes as u64).sum()
    }

    /// The number of times that blocks or parts were decoded.
    pub fn decoded(&self) -> u64 {
        self.decoded.load(Ordering::Relaxed)
    }

    /// A part of a block, decoded if it is not cached.
    fn scores(&self, key: PartKey, scores: &Scores) -> Result<Arc<Vec<i8>>> {
        if let Some(CachedPart::Scores(found)) = self.find(key) {
            return Ok(found);
        }
        // Without the lock: other threads need the shard, and decoding a block twice is harmless.
        let decoded = scores.decode_part(key.block, key.part, || self.head(key, scores))?;
        self.decoded.fetch_add(1, Ordering::Relaxed);
        let decoded = Arc::new(decoded);
        self.insert(key, CachedPart::Scores(Arc::clone(&decoded)));
        Ok(decoded)
    }

    /// The head of a block of strips, read if it is not cached.
    fn head(&self, key: PartKey, scores: &Scores) -> Result<Arc<Head>> {
        let key = PartKey { part: BlockPart::Head, ..key };
        if let Some(CachedPart::Head(found)) = held(&self.heads).find(key) {
            return Ok(found);
        }
        let head = Arc::new(scores.head_of_block(key.block)?);
        let content = CachedPart::Head(Arc::clone(&head));
        let bytes = {
            let mut heads = held(&self.heads);
            heads.insert(key, content, self.bytes_max / 2);
            heads.bytes
        };
        if self.head_bytes.swap(bytes, Ordering::Relaxed) < bytes {
            self.shards.iter().for_each(|shard| held(shard).shrink(self.shard_bytes_max()));
        }
        Ok(head)
    }

    fn find(&self, key: PartKey) -> Option<CachedPart> {
        held(self.shard(key)).find(key)
    }

    fn insert(&self, key: PartKey, content: CachedPart) {
        held(self.shard(key)).insert(key, content, self.shard_bytes_max());
    }

    fn shard_bytes_max(&self) -> usize {
        (self.bytes_max - self.head_bytes.load(Ordering::Relaxed)) / self.shards.len()
    }

    fn shard(&self, key: PartKey) -> &Mutex<Shard> {
        let strip = if let BlockPart::Strip(strip) = key.part { strip as usize } else { 0 };
        // Neighbouring blocks and strips, and equal blocks of neighbouring files, are in different shards.
        &self.shards[(key.block + strip + key.file as usize * 7) % self.shards.len()]
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockCache({} bytes)", self.bytes())
    }
}

impl CachedPart {
    fn bytes(&self) -> usize {
        match self {
            CachedPart::Scores(scores) => scores.len(),
            CachedPart::Head(head) => head.memory_bytes(),
        }
    }
}

fn held(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A panic leaves every slot consistent: slots are replaced in one assignment.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn find(&mut self, key: PartKey) -> Option<CachedPart> {
        let slot = &mut self.slots[*self.places.get(&key)?];
        slot.used = true;
        Some(slot.content.clone())
    }

    fn insert(&mut self, key: PartKey, content: CachedPart, bytes_max: usize) {
        let bytes = content.bytes();
        // Another thread has inserted the entry, or the entry alone exceeds the limit.
        if self.places.contains_key(&key) || bytes > bytes_max {
            return;
        }
        self.shrink(bytes_max - bytes);
        self.bytes += bytes;
        self.places.insert(key, self.slots.len());
        self.slots.push(CacheSlot { key, content, used: false });
    }

    /// Evicts entries until at most `bytes_max` bytes are held.
    fn shrink(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max {
            self.evict_one();
        }
    }

    /// Evicts the next entry that was not used since the clock hand last passed it.
    fn evict_one(&mut self) {
        self.hand %= self.slots.len();
        // Terminates: a full turn clears every bit.
        while std::mem::take(&mut self.slots[self.hand].used) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        // The last entry takes the slot. The hand skips it: it was used latest.
        let slot = self.slots.swap_remove(self.hand);
        self.bytes -= slot.content.bytes();
        self.places.remove(&slot.key);
        if let Some(moved) = self.slots.get(self.hand) {
            self.places.insert(moved.key, self.hand);
            self.hand += 1;
        }
    }
}

/// Scores behind a cache of decoded blocks: those of a file, or of one section of a file of pairs. Raw and
/// packed files in a map are read in place and bypass the cache.
#[derive(Debug)]
pub struct CachedScores {
    scores: Arc<Scores>,
    cache: Arc<BlockCache>,
    file: u64,
    /// The positions of the file that these are.
    section: Range<u64>,
}

impl CachedScores {
    /// Creates a cache for one file, of at most `bytes_max` bytes (at least 65,536).
    pub fn new(scores: Scores, bytes_max: u64) -> Self {
        CachedScores::sharing(scores, BlockCache::new(bytes_max))
    }

    /// Uses a cache that is shared with other files.
    pub fn sharing(scores: Scores, cache: Arc<BlockCache>) -> Self {
        let file = cache.files.fetch_add(1, Ordering::Relaxed);
        let section = 0..scores.shape().positions();
        CachedScores { scores: Arc::new(scores), cache, file, section }
    }

    /// Separates the sections of a file of pairs: the first values of all positions, and the second ones.
    /// Both share the cache with other files.
    ///
    /// # Panics
    /// If the file has no pairs.
    pub fn sections(scores: Scores, cache: Arc<BlockCache>) -> [Self; 2] {
        assert!(scores.identity().kind.has_pairs(), "{scores:?} has one section");
        let all = CachedScores::sharing(scores, cache);
        let positions = all.section.end / 2;
        [0..positions, positions..2 * positions].map(|section| CachedScores {
            scores: Arc::clone(&all.scores),
            cache: Arc::clone(&all.cache),
            file: all.file,
            section,
        })
    }

    /// The number of scores.
    pub fn positions(&self) -> u64 {
        self.section.end - self.section.start
    }

    /// The first position in the file: not 0 for the second section of a file of pairs.
    pub fn first(&self) -> u64 {
        self.section.start
    }

    /// The file behind the cache.
    pub fn scores(&self) -> &Scores {
        &self.scores
    }

    pub(crate) fn key(&self, location: &ScoreLocation) -> PartKey {
        PartKey { file: self.file, block: location.block, part: location.part }
    }

    pub(crate) fn part(&self, key: PartKey) -> Result<Arc<Vec<i8>>> {
        self.cache.scores(key, &self.scores)
    }

    /// One score, as [`Scores::get`].
    ///
    /// # Errors
    /// As [`Scores::get`].
    ///
    /// # Panics
    /// If there is no such position.
    #[inline]
    pub fn get(&self, position: u64) -> Result<i8> {
        let position = self.section.start + position;
        if !self.scores.codec().is_compressed()
            && let Some(score) = self.scores.get_in_place(position)
        {
            return Ok(score);
        }
        let location = self.scores.locate(position, AccessPattern::Single);
        if location.part == BlockPart::InPlace {
            return self.scores.get(position);
        }
        Ok(self.part(self.key(&location))?[location.at])
    }

    /// One score, as [`get`](Self::get), but only if that decodes nothing: `None` if the score is in a
    /// compressed block that the cache does not hold.
    ///
    /// # Panics
    /// If there is no such position.
    #[inline]
    pub fn get_decoded(&self, position: u64) -> Option<Result<i8>> {
        if !self.scores.codec().is_compressed() {
            return Some(self.get(position));
        }
        let position = self.section.start + position;
        let location = self.scores.locate(position, AccessPattern::Single);
        if location.part == BlockPart::InPlace {
            return Some(self.scores.get(position));
        }
        match self.cache.find(self.key(&location))? {
            CachedPart::Scores(scores) => Some(Ok(scores[location.at])),
            CachedPart::Head(_) => None,
        }
    }

    /// Scores of ascending positions. Each block of a file is decoded once, and not cached.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first damaged block; the content of `out` is then
    /// unspecified.
    ///
    /// # Panics
    /// If a position exceeds the file, or `out` does not have as many scores.
    pub fn gather(&self, positions: &[u64], out: &mut [i8]) -> Result<()> {
        assert!(positions.is_sorted() && positions.last().is_none_or(|&last| last < self.positions()), "ascending");
        if self.section.start == 0 && self.scores.is_gathered() {
            return self.scores.gather(positions, out);
        }
        // Copying a run costs less than a cache look-up for each score.
        let mut out = out.iter_mut();
        let mut between = Vec::new();
        for run in positions.chunk_by(|&a, &b| a / RUN_POSITIONS == b / RUN_POSITIONS) {
            let (first, last) = (run[0], run[run.len() - 1]);
            between.resize((last - first + 1) as usize, 0);
            self.read_range(first..last + 1, &mut between)?;
            for (position, score) in run.iter().zip(&mut out) {
                *score = between[(position - first) as usize];
            }
        }
        Ok(())
    }

    /// Consecutive scores, as [`Scores::read_range`].
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first damaged block; the content of `out` is then
    /// unspecified.
    ///
    /// # Panics
    /// If the range exceeds the file, or `out` does not have its length.
    pub fn read_range(&self, positions: Range<u64>, out: &mut [i8]) -> Result<()> {
        let positions = self.section.start + positions.start..self.section.start + positions.end;
        assert!(positions.end <= self.section.end, "there are no positions {positions:?}");
        if self.scores.is_in_place() {
            return self.scores.read_range(positions, out);
        }
        assert_eq!(out.len() as u64, positions.end - positions.start, "as many scores as positions");
        let (mut position, mut rest) = (positions.start, out);
        while !rest.is_empty() {
            let location = self.scores.locate(position, AccessPattern::Range);
            let (now, after) = rest.split_at_mut(location.ahead.min(rest.len()));
            now.copy_from_slice(&self.part(self.key(&location))?[location.at..][..now.len()]);
            position += now.len() as u64;
            rest = after;
        }
        Ok(())
    }
}
