//! Reading ranges of positions, and neighbouring blocks at once.

use super::Scores;
use crate::checksum;
use crate::codec::Form;
use crate::error::{Result, StoreError};
use crate::threads;
use disk::{PendingRead, ReadBytes};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::vec;

/// A block, the index of its first wanted value, and the destination of the values from there.
pub(crate) type Piece<'a> = (usize, usize, &'a mut [i8]);

/// Stored blocks that were read together, not yet verified or decoded.
#[derive(Debug)]
pub struct BlockRun {
    blocks: Range<usize>,
    offset: u64,
    bytes: ReadBytes,
}

impl BlockRun {
    /// The blocks.
    pub fn blocks(&self) -> Range<usize> {
        self.blocks.clone()
    }
}

/// Stored blocks that are being read.
#[derive(Debug)]
pub struct PendingRun {
    blocks: Range<usize>,
    offset: u64,
    length: usize,
    bytes: PendingRead,
}

/// Scores of consecutive positions, whose first stored blocks are being read.
#[derive(Debug)]
pub struct PendingRange {
    positions: Range<u64>,
    /// Blocks whose read has not been started.
    blocks: Range<usize>,
    runs: VecDeque<PendingRun>,
}

impl PendingRun {
    /// The blocks.
    pub fn blocks(&self) -> Range<usize> {
        self.blocks.clone()
    }

    /// The number of stored bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl PendingRange {
    /// The number of positions.
    pub(super) fn positions(&self) -> usize {
        (self.positions.end - self.positions.start) as usize
    }
}

/// Bytes of neighbouring blocks that are read at once without a map.
const RUN_BYTES: u64 = 256 << 10;

/// Bytes of a range that are being read, or were read and wait for a thread, at a time; at least a run. More
/// than a drive delivers within its latency.
const AHEAD_BYTES_MIN: usize = 4 << 20;
const AHEAD_BYTES_A_THREAD: usize = 256 << 10;

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
    /// cheaper than short ones; without a map the blocks of a long range are read ahead of their decoding.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first block that is; `out` then holds anything.
    ///
    /// # Panics
    /// If the range exceeds the file, or `out` does not have its length.
    pub fn read_range(&self, positions: Range<u64>, out: &mut [i8]) -> Result<()> {
        let mut range = self.range_of(positions);
        if !self.source.is_mapped() && range.blocks.len() > 1 {
            self.read_ahead(&mut range);
        }
        self.finish_range(range, out)
    }

    /// Starts to read consecutive positions: up to four megabytes of stored blocks, beside the caller. Nothing is
    /// read ahead of a map, or for a part of one block if parts can be read.
    ///
    /// # Panics
    /// If the range exceeds the file.
    pub fn start_range(&self, positions: Range<u64>) -> PendingRange {
        let mut range = self.range_of(positions);
        let is_of_parts = range.blocks.len() == 1 && self.entry(range.blocks.start).form == Form::Strips;
        if !self.source.is_mapped() && !is_of_parts {
            self.read_ahead(&mut range);
        }
        range
    }

    /// A range of which nothing is being read.
    fn range_of(&self, positions: Range<u64>) -> PendingRange {
        assert!(
            positions.start <= positions.end && positions.end <= self.shape().positions(),
            "there are no positions {positions:?}"
        );
        let blocks = if positions.is_empty() {
            0..0
        } else {
            self.block_of(positions.start)..self.block_of(positions.end - 1) + 1
        };
        PendingRange { positions, blocks, runs: VecDeque::new() }
    }

    /// Completes [`start_range`](Self::start_range), as [`read_range`](Self::read_range).
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    ///
    /// # Panics
    /// If `out` does not have the length of the range.
    pub fn finish_range(&self, range: PendingRange, out: &mut [i8]) -> Result<()> {
        if self.source.is_mapped() {
            // The whole range is of one edition of the file.
            return self.settled(|| self.read_mapped(range.positions.clone(), out));
        }
        let is_one_block = range.blocks.len() == 1;
        let decoder = self.decoder(range, out);
        if is_one_block {
            decoder.work()
        } else {
            threads::on_each(|| decoder.work())
        }
        decoder.finish()
    }

    /// Completes [`start_range`](Self::start_range) on the threads that call [`RangeDecoder::work`].
    ///
    /// # Panics
    /// If `out` does not have the length of the range.
    pub fn decoder<'a>(&'a self, range: PendingRange, out: &'a mut [i8]) -> RangeDecoder<'a> {
        let pieces = self.pieces(range.positions.clone(), out).collect::<Vec<_>>();
        let tasks = RangeTasks { range, pieces: pieces.into_iter(), run: None, failed: None };
        RangeDecoder { scores: self, tasks: Mutex::new(tasks) }
    }

    fn read_mapped(&self, positions: Range<u64>, out: &mut [i8]) -> Result<()> {
        let pieces = self.pieces(positions, out).collect::<Vec<_>>();
        let decode = |(block, first, piece): Piece<'_>| self.decode_stored(block, first, piece);
        threads::map(pieces, 1, decode).into_iter().collect()
    }

    /// Starts reads of a range until enough are in flight.
    fn read_ahead(&self, range: &mut PendingRange) {
        let most = AHEAD_BYTES_MIN.max(threads::count() * AHEAD_BYTES_A_THREAD);
        while range.runs.iter().map(PendingRun::length).sum::<usize>() < most && !range.blocks.is_empty() {
            let run = self.start_run(range.blocks.clone(), RUN_BYTES);
            range.blocks.start = run.blocks.end;
            range.runs.push_back(run);
        }
    }

    /// Reads stored blocks: the first of `blocks`, and those after it that lie within `bytes_max` bytes.
    ///
    /// # Errors
    /// [`StoreError::Disk`](crate::StoreError::Disk) if they cannot be read.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn read_run(&self, blocks: Range<usize>, bytes_max: u64) -> Result<BlockRun> {
        let (blocks, offset, bytes) = self.run_of(blocks, bytes_max);
        let bytes = self.source.copy(offset, bytes).map_err(|error| self.unread(blocks.start, error))?;
        Ok(BlockRun { blocks, offset, bytes: bytes.into() })
    }

    /// Starts to read the blocks of [`read_run`](Self::read_run), beside the caller.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn start_run(&self, blocks: Range<usize>, bytes_max: u64) -> PendingRun {
        let (blocks, offset, bytes) = self.run_of(blocks, bytes_max);
        PendingRun { blocks, offset, length: bytes, bytes: self.source.start_copy(offset, bytes) }
    }

    /// Completes [`start_run`](Self::start_run).
    ///
    /// # Errors
    /// As [`read_run`](Self::read_run).
    pub fn finish_run(&self, PendingRun { blocks, offset, bytes, .. }: PendingRun) -> Result<BlockRun> {
        let bytes = bytes.wait().map_err(|error| self.unread(blocks.start, error))?;
        Ok(BlockRun { blocks, offset, bytes })
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
    pub(super) fn run_end(&self, block: usize, bytes_max: u64) -> usize {
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

    /// The blocks of a run, their offset and their bytes.
    fn run_of(&self, blocks: Range<usize>, bytes_max: u64) -> (Range<usize>, u64, usize) {
        let blocks = blocks.start..self.run_end(blocks.start, bytes_max).min(blocks.end);
        let (first, last) = (self.entry(blocks.start), self.entry(blocks.end - 1));
        let bytes = (last.offset - first.offset) as usize + last.bytes as usize;
        (blocks, first.offset, bytes)
    }

    pub(super) fn decode_of_run(&self, run: &BlockRun, block: usize, first: usize, out: &mut [i8]) -> Result<()> {
        assert!(run.blocks.contains(&block), "block {block} of {:?}", run.blocks);
        let entry = self.entry(block);
        let stored = &run.bytes[(entry.offset - run.offset) as usize..][..entry.bytes as usize];
        if entry.form == Form::Strips {
            let head = self.head_of(block, &entry, stored, false)?;
            return self.decode_strips(block, &head, |bytes| Ok(Cow::Borrowed(&stored[bytes])), first, out);
        }
        let computed = checksum::of_block(self.header.hash(), block, stored);
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

/// Decoder of a range by several threads, each of which takes the next block, so that blocks are read in order and all
/// threads finish together.
#[derive(Debug)]
pub struct RangeDecoder<'a> {
    scores: &'a Scores,
    tasks: Mutex<RangeTasks<'a>>,
}

/// The pieces of a range that no thread has taken yet.
#[derive(Debug)]
struct RangeTasks<'a> {
    range: PendingRange,
    pieces: vec::IntoIter<Piece<'a>>,
    /// The run of the piece taken last.
    run: Option<Arc<SharedRun>>,
    /// The first block known to be damaged, and its error.
    failed: Option<(usize, StoreError)>,
}

/// A run that several threads decode. The first of them completes its read, while others take pieces of later runs.
#[derive(Debug)]
struct SharedRun {
    blocks: Range<usize>,
    pending: Mutex<Option<PendingRun>>,
    /// `None` if the read failed.
    read: OnceLock<Option<BlockRun>>,
}

impl SharedRun {
    fn new(pending: PendingRun) -> SharedRun {
        SharedRun { blocks: pending.blocks(), pending: Mutex::new(Some(pending)), read: OnceLock::new() }
    }

    /// Returns the run after blocking until it is read. One call returns the error if it cannot be read, others `None`.
    fn wait(&self, scores: &Scores) -> Result<Option<&BlockRun>> {
        let mut failed = None;
        let read = self.read.get_or_init(|| {
            let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            scores.finish_run(pending).map_err(|error| failed = Some(error)).ok()
        });
        failed.map_or(Ok(read.as_ref()), Err)
    }
}

impl<'a> RangeDecoder<'a> {
    /// Decodes blocks until no block is left that no thread has taken.
    pub fn work(&self) {
        loop {
            let next = self.tasks().next(self.scores);
            let Some((run, piece)) = next else { return };
            if let Err((block, error)) = self.decode(run, piece) {
                self.tasks().fail(block, error);
            }
        }
    }

    /// Decodes a piece. An error comes with the first block that it concerns.
    fn decode(&self, run: Option<Arc<SharedRun>>, (block, first, piece): Piece<'_>) -> Result<(), (usize, StoreError)> {
        let decoded = match run {
            Some(run) => match run.wait(self.scores).map_err(|error| (run.blocks.start, error))? {
                Some(run) => self.scores.decode_of_run(run, block, first, piece),
                None => Ok(()),
            },
            None => self.scores.settled(|| self.scores.decode_stored(block, first, piece)),
        };
        decoded.map_err(|error| (block, error))
    }

    /// Returns the result, after all calls of [`work`](Self::work).
    ///
    /// # Errors
    /// As [`Scores::read_range`].
    pub fn finish(self) -> Result<()> {
        let tasks = self.tasks.into_inner().unwrap_or_else(PoisonError::into_inner);
        tasks.failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn tasks(&self) -> MutexGuard<'_, RangeTasks<'a>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> RangeTasks<'a> {
    /// Takes the next piece, with the run that has its block; without a run if nothing was read ahead.
    fn next(&mut self, scores: &Scores) -> Option<(Option<Arc<SharedRun>>, Piece<'a>)> {
        let block = self.pieces.as_slice().first()?.0;
        if self.run.as_ref().is_none_or(|run| !run.blocks.contains(&block)) {
            self.run = self.range.runs.pop_front().map(|run| Arc::new(SharedRun::new(run)));
            if self.run.is_some() {
                scores.read_ahead(&mut self.range);
            }
        }
        self.pieces.next().map(|piece| (self.run.clone(), piece))
    }

    fn fail(&mut self, block: usize, error: StoreError) {
        if self.failed.as_ref().is_none_or(|&(first, _)| block < first) {
            self.failed = Some((block, error));
        }
    }
}
