//! Reading ranges of positions, and neighbouring blocks at once.

use super::Scores;
use crate::checksum;
use crate::codec::form::Form;
use crate::error::Result;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// A block, the index of its first wanted value, and the destination of the values from there.
pub(crate) type Piece<'a> = (usize, usize, &'a mut [i8]);

/// Stored blocks that were read together, not yet verified or decoded.
#[derive(Debug)]
pub struct BlockRun {
    blocks: Range<usize>,
    offset: u64,
    bytes: Vec<u8>,
}

impl BlockRun {
    /// The blocks.
    pub fn blocks(&self) -> Range<usize> {
        self.blocks.clone()
    }
}

/// Bytes of neighbouring blocks that are read at once without a map.
const RUN_BYTES: u64 = 256 << 10;
/// Blocks that are read at once, so that all threads get some.
const RUN_BLOCKS: usize = 16;

impl Scores {
    /// Reads all scores in canonical order, on all threads.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first block that is; `out` then holds anything.
    ///
    /// # Panics
    /// If the length of `out` is not the number of positions.
    pub fn read_into(&self, out: &mut [i8]) -> Result<()> {
        assert_eq!(out.len() as u64, self.shape().positions(), "as many scores as positions");
        self.read_range(0..self.shape().positions(), out)
    }

    /// Reads the scores of consecutive positions, on all threads. Frames are decoded as a whole, so long ranges are
    /// cheaper than short ones; without a map several blocks are read at a time.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first block that is; `out` then holds anything.
    ///
    /// # Panics
    /// If the range exceeds the file, or `out` does not have its length.
    pub fn read_range(&self, positions: Range<u64>, out: &mut [i8]) -> Result<()> {
        self.settled(|| self.read_range_once(positions.clone(), out))
    }

    fn read_range_once(&self, positions: Range<u64>, out: &mut [i8]) -> Result<()> {
        let mut pieces = self.pieces(positions, out).collect::<Vec<_>>();
        if let [(block, first, piece)] = &mut pieces[..] {
            return self.decode_stored(*block, *first, piece);
        }
        let mut runs = Vec::new();
        let mut rest = &mut pieces[..];
        while let Some(&(block, ..)) = rest.first() {
            let end = self.run_end(block, RUN_BYTES).min(block + rest.len().min(RUN_BLOCKS));
            let (run, after) = rest.split_at_mut(end - block);
            runs.push((block..end, run));
            rest = after;
        }
        let decode = |(blocks, pieces): (Range<usize>, &mut [Piece<'_>])| {
            if self.source.is_mapped() {
                return pieces
                    .iter_mut()
                    .try_for_each(|(block, first, piece)| self.decode_stored(*block, *first, piece));
            }
            let run = self.read_blocks(blocks)?;
            pieces.iter_mut().try_for_each(|(block, first, piece)| self.decode_of_run(&run, *block, *first, piece))
        };
        let results: Vec<_> = runs.into_par_iter().map(decode).filter(Result::is_err).collect();
        results.into_iter().next().unwrap_or(Ok(()))
    }

    /// Reads stored blocks: the first of `blocks`, and those after it that lie within `bytes_max` bytes.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn read_run(&self, blocks: Range<usize>, bytes_max: u64) -> Result<BlockRun> {
        self.read_blocks(blocks.start..self.run_end(blocks.start, bytes_max).min(blocks.end))
    }

    /// Decodes a block of a run.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) if the block is; `out` then holds anything.
    ///
    /// # Panics
    /// If the run does not contain the block, or `out` does not have its length.
    pub fn decode_block_of(&self, run: &BlockRun, block: usize, out: &mut [i8]) -> Result<()> {
        assert_eq!(out.len(), self.layout.len_of(block), "the block's length");
        self.decode_of_run(run, block, 0, out)
    }

    /// The end of the run of blocks, contiguous in the file, that lie within `bytes_max` bytes. A single block may be
    /// longer.
    fn run_end(&self, block: usize, bytes_max: u64) -> usize {
        let first = self.entry(block);
        let mut end = first.offset + u64::from(first.bytes);
        let is_in_run = |block: &usize| {
            let entry = self.entry(*block);
            let is_next = entry.offset == end;
            end += u64::from(entry.bytes);
            is_next && end - first.offset <= bytes_max
        };
        block + 1 + (block + 1..self.block_count()).take_while(is_in_run).count()
    }

    /// Reads neighbouring blocks.
    fn read_blocks(&self, blocks: Range<usize>) -> Result<BlockRun> {
        let (first, last) = (self.entry(blocks.start), self.entry(blocks.end - 1));
        let bytes = (last.offset - first.offset) as usize + last.bytes as usize;
        let bytes = self.source.copy(first.offset, bytes).map_err(|error| self.unread(blocks.start, error))?;
        Ok(BlockRun { blocks, offset: first.offset, bytes })
    }

    fn decode_of_run(&self, run: &BlockRun, block: usize, first: usize, out: &mut [i8]) -> Result<()> {
        assert!(run.blocks.contains(&block), "block {block} of {:?}", run.blocks);
        let entry = self.entry(block);
        let stored = &run.bytes[(entry.offset - run.offset) as usize..][..entry.bytes as usize];
        if entry.form == Form::Strips {
            let head = self.head_of(block, &entry, stored, false)?;
            return self.decode_strips(block, &head, |bytes| Ok(Cow::Borrowed(&stored[bytes])), first, out);
        }
        let computed = checksum::of_block(block, stored);
        if computed != entry.checksum {
            return Err(self.wrong_checksum(block, &entry, computed));
        }
        self.decode(block, stored, entry.form, first, out)
    }

    /// Splits a range of positions by blocks: block, index of the first value in it, destination.
    pub(crate) fn pieces<'a>(&self, positions: Range<u64>, out: &'a mut [i8]) -> impl Iterator<Item = Piece<'a>> {
        assert!(
            positions.start <= positions.end && positions.end <= self.shape().positions(),
            "there are no positions {positions:?}"
        );
        assert_eq!(out.len() as u64, positions.end - positions.start, "as many scores as positions");
        let mut position = positions.start;
        let mut rest = out;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let place = self.layout.locate(position);
            let length = rest.len().min(place.ahead);
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(length);
            rest = after;
            position += length as u64;
            Some((place.block, place.index, piece))
        })
    }
}
