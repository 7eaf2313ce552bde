//! Verification of checksums and digests.

use super::Scores;
use super::ranges::PendingRange;
use crate::codec::Form;
use crate::error::{Result, StoreError};
use crate::hasher::{ContentHasher, PIECE_BYTES};
use crate::layout::batch_positions;
use crate::threads;
use disk::bytes_of;
use std::ops::Range;

impl Scores {
    /// Checks bounds that were read from a file of pairs: the lower bounds of the positions `first ..`, and
    /// the upper ones.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a lower bound exceeds the upper one.
    ///
    /// # Panics
    /// If there are not as many upper bounds as lower ones.
    pub fn check_bounds(&self, first: u64, low: &[i8], high: &[i8]) -> Result<()> {
        assert_eq!(low.len(), high.len(), "two bounds of each position");
        match low.iter().zip(high).position(|(low, high)| low > high) {
            None => Ok(()),
            Some(at) => Err(StoreError::Damaged {
                path: self.path().to_owned(),
                part: format!("the bounds of position {}", first + at as u64),
                expected: format!("a lower bound of at most {}", high[at]),
                found: low[at].to_string(),
            }),
        }
    }

    /// Verifies the checksums of all blocks, on all threads.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Disk`] with the first block that is damaged or cannot be read.
    pub fn verify_blocks(&self) -> Result<()> {
        match self.damaged_blocks().first() {
            None => Ok(()),
            Some(&block) => Err(self.block_damage(block)),
        }
    }

    /// The numbers of all blocks with a wrong checksum or that cannot be read, ascending. Reads the whole file,
    /// including blocks verified before.
    pub fn damaged_blocks(&self) -> Vec<usize> {
        let damaged = |block| self.verify_block(block).is_err().then_some(block);
        threads::map((0..self.block_count()).collect(), 1, damaged).into_iter().flatten().collect()
    }

    /// The error of reading a damaged block.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block_damage(&self, block: usize) -> StoreError {
        let entry = self.entry(block);
        match self.verify_block(block) {
            Ok(()) => self.wrong_checksum(block, &entry, entry.checksum),
            Err(error) => error,
        }
    }

    /// Verifies all checksums of a block.
    fn verify_block(&self, block: usize) -> Result<()> {
        self.settled(|| self.verify_block_once(block))
    }

    fn verify_block_once(&self, block: usize) -> Result<()> {
        let entry = self.entry(block);
        if !matches!(entry.form, Form::Strips | Form::Floors) {
            return self.check(block, &entry, self.stored_bytes(block, &entry)?).map(drop);
        }
        let head = self.head(block, &entry)?;
        let stored = self.stored_bytes(block, &entry)?;
        let checked =
            (0..head.tiling().strips()).try_for_each(|strip| head.check(block, strip, &stored[head.bytes_of(strip)]));
        checked.map_err(|error| self.damaged(block, error))
    }

    /// Decodes all scores and compares their digest with the one in the footer, in bounded memory, on all threads.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first block that is; [`StoreError::DigestDiffers`].
    pub fn verify_digest(&self) -> Result<()> {
        self.verify_hashes(&[self.hash_part(0, 1, |_| ())?])
    }

    /// Hashes one of several parts of the scores, by its number, on any machine: [`verify_hashes`](Self::verify_hashes)
    /// combines the results. `see` receives the scores of the part in canonical order, some million at a time. The
    /// next scores are decoded meanwhile.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    ///
    /// # Panics
    /// If there is no such part.
    pub fn hash_part(&self, number: u64, of: u64, mut see: impl FnMut(&[i8]) + Send) -> Result<Vec<u8>> {
        assert!(number < of, "{of} parts have no number {number}");
        let part = self.part(number, of);
        let mut hasher = ContentHasher::beginning_at(self.header.hash(), part.start);
        let mut first = part.start;
        let mut batches = std::iter::from_fn(|| {
            let block = (first < part.end).then(|| self.block_of(first))?;
            let last = self.layout.batch_end(block, batch_positions()) - 1;
            let end = self.block_range(last).end.min(part.end);
            Some(std::mem::replace(&mut first, end)..end)
        });
        let (mut now, mut next) = (Vec::new(), Vec::new());
        let decode = |range: Option<PendingRange>, into: &mut Vec<i8>| {
            into.resize(range.as_ref().map_or(0, PendingRange::positions), 0);
            range.map_or(Ok(()), |range| self.finish_range(range, into))
        };
        let mut start = || batches.next().map(|positions| self.start_range(positions));
        decode(start(), &mut now)?;
        let mut following = start();
        while !now.is_empty() {
            let (range, hasher) = (std::mem::replace(&mut following, start()), &mut hasher);
            let use_now = || {
                hasher.update(bytes_of(&now));
                see(&now);
            };
            let ((), decoded) = threads::join(use_now, || decode(range, &mut next));
            decoded?;
            std::mem::swap(&mut now, &mut next);
        }
        Ok(hasher.encode())
    }

    /// Compares the digest of the scores with the one in the footer. `parts` are the results of
    /// [`hash_part`](Self::hash_part), in order.
    ///
    /// # Errors
    /// [`StoreError::DigestDiffers`]; [`StoreError::Unsupported`] if one of them is not such a result.
    pub fn verify_hashes(&self, parts: &[Vec<u8>]) -> Result<()> {
        let mut hasher = ContentHasher::new(self.header.hash());
        for (number, hash) in (0..).zip(parts) {
            let part = self.part(number, parts.len() as u64);
            if !hasher.join(&part, hash) {
                let expected = format!("the hash of positions {part:?}");
                return Err(StoreError::Unsupported { expected, found: format!("{} bytes", hash.len()) });
            }
        }
        let found = hasher.finalize();
        if found == self.digest {
            return Ok(());
        }
        Err(StoreError::DigestDiffers { path: self.path.clone(), expected: self.digest, found })
    }

    /// The positions of a part: whole pieces of the hasher, except at the end.
    fn part(&self, number: u64, parts: u64) -> Range<u64> {
        let positions = self.shape().positions();
        let pieces = positions.div_ceil(PIECE_BYTES as u64);
        let cut =
            |number: u64| (u128::from(pieces) * u128::from(number) / u128::from(parts)) as u64 * PIECE_BYTES as u64;
        cut(number).min(positions)..cut(number + 1).min(positions)
    }
}
