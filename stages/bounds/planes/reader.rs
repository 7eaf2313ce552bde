//! Reader of a file of planes.

use super::PlaneFile;
use crate::files;
use disk::{Digest, Disk};
use game::Index;
use pipeline::StageContext;
use pipeline::StageResult as Result;
use planner::Settings;
use rayon::prelude::*;
use solvers::bounds::PlaneLayout;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use store::{BlockRun, PendingRun, Scores};

/// Compressed bytes that a reader holds, in addition to a decoded block.
const RUN_BYTES: u64 = 64 << 10;

/// The same for the only plane that a stage reads, in order: longer reads take less processor time.
const LONG_RUN_BYTES: u64 = 512 << 10;

/// The same for a file of seeds, of which one bound of a group is read: 15 KiB on average, 50 where most is decided.
/// Other bounds follow in the file and are not read.
const SEEDS_RUN_BYTES: u64 = 128 << 10;

/// Reader of a file of planes, mostly in order. It holds the blocks of the last read, and one of them decoded.
pub(crate) struct PlaneReader {
    scores: Arc<Scores>,
    held: HeldRuns,
    /// Whether reads are sequential, so that long ones pay.
    reads_on: bool,
    /// Whether blocks are decoded on all threads.
    is_parallel: bool,
    block: Option<usize>,
    bytes: Vec<i8>,
}

/// The stored blocks that a reader holds.
struct HeldRuns {
    run: Option<BlockRun>,
    /// A run that is being read.
    ahead: Option<PendingRun>,
    /// Bytes of a run, at most.
    bytes: u64,
    /// Whether each read starts the next one.
    reads_ahead: bool,
}

impl HeldRuns {
    fn of_bytes(bytes: u64) -> HeldRuns {
        HeldRuns { run: None, ahead: None, bytes, reads_ahead: false }
    }

    /// Returns the held run if it has the first of the blocks, else the run that was started if it has that, else reads
    /// the next run.
    fn with(&mut self, scores: &Scores, blocks: Range<usize>) -> store::Result<&BlockRun> {
        let has_first = |run: &Range<usize>| run.contains(&blocks.start);
        let run = match self.run.take() {
            Some(run) if has_first(&run.blocks()) => run,
            _ => {
                let run = match self.ahead.take() {
                    Some(run) if has_first(&run.blocks()) => scores.finish_run(run)?,
                    _ => scores.read_run(blocks.clone(), self.bytes)?,
                };
                if self.reads_ahead {
                    self.start(scores, run.blocks().end..blocks.end);
                }
                run
            }
        };
        Ok(self.run.insert(run))
    }

    /// Starts to read the first of the blocks that are not zeros.
    fn start(&mut self, scores: &Scores, blocks: Range<usize>) {
        let Some(blocks) = without_leading_zeros(scores, blocks) else { return };
        let is_there = self.run.as_ref().is_some_and(|run| run.blocks().contains(&blocks.start))
            || self.ahead.as_ref().is_some_and(|run| run.blocks().contains(&blocks.start));
        if !is_there {
            self.ahead = Some(scores.start_run(blocks, self.bytes));
        }
    }
}

/// Returns the blocks from the first on that is not zeros.
fn without_leading_zeros(scores: &Scores, mut blocks: Range<usize>) -> Option<Range<usize>> {
    let end = blocks.end;
    blocks.find(|&block| !scores.is_zeros(block)).map(|first| first..end)
}

impl PlaneReader {
    pub(crate) fn open(
        disk: &dyn Disk,
        path: &Path,
        settings: &Settings,
        index: &Index,
        plane: PlaneFile,
    ) -> store::Result<PlaneReader> {
        let layout = PlaneLayout::new(index, plane.orientation());
        let shape = plane.shape(&layout, index.stones());
        let file = match plane {
            // The next bound follows.
            PlaneFile::WinSeeds | PlaneFile::CandidateSeeds => Scores::open_scattered(disk, path)?,
            _ => Scores::open_windowed(disk, path)?,
        };
        let scores = file.expect(&plane.identity(settings, index.stones()), &shape)?;
        Ok(PlaneReader::of(Arc::new(scores)))
    }

    fn of(scores: Arc<Scores>) -> PlaneReader {
        PlaneReader {
            scores,
            held: HeldRuns::of_bytes(RUN_BYTES),
            reads_on: true,
            is_parallel: true,
            block: None,
            bytes: Vec::new(),
        }
    }

    /// Returns another reader of the file, with the same index.
    pub(crate) fn another(&self) -> PlaneReader {
        PlaneReader::of(Arc::clone(&self.scores))
    }

    /// Opens an input of a stage.
    pub(crate) fn input(context: &StageContext, settings: &Settings, index: &Index, plane: PlaneFile) -> Result<Self> {
        let name = plane.name(index.stones());
        PlaneReader::open(context.disk(), &context.input(&name), settings, index, plane)
            .map_err(|error| files::unreadable(&name, error))
    }

    /// Returns the digest of the content, from the header.
    pub(crate) fn digest(&self) -> Digest {
        self.scores.digest()
    }

    /// Returns the reader with its share of `bytes`, for a stage with this many readers that reads in order.
    /// It reads ahead.
    #[must_use]
    pub(crate) fn with_share(self, bytes: u64, readers: u32) -> PlaneReader {
        // One run is held, and one read ahead.
        let bytes = (bytes / 2 / u64::from(readers.max(1))).clamp(RUN_BYTES, LONG_RUN_BYTES);
        PlaneReader { held: HeldRuns { reads_ahead: true, ..HeldRuns::of_bytes(bytes) }, ..self }
    }

    /// Returns the reader with longer reads, for a stage with few readers that reads in order. It reads ahead.
    #[must_use]
    pub(crate) fn with_long_reads(self) -> PlaneReader {
        PlaneReader { held: HeldRuns { reads_ahead: true, ..HeldRuns::of_bytes(LONG_RUN_BYTES) }, ..self }
    }

    /// Returns the reader with reads of a file of seeds, which end with the wanted words: the next bound follows.
    pub(super) fn for_seeds(self) -> PlaneReader {
        PlaneReader { held: HeldRuns::of_bytes(SEEDS_RUN_BYTES), reads_on: false, ..self }
    }

    /// Returns the reader without threads of its own: blocks are decoded on the calling one.
    pub(super) fn on_one_thread(self) -> PlaneReader {
        PlaneReader { is_parallel: false, ..self }
    }

    /// Returns the blocks that have some words, at least one.
    fn blocks_of(&self, words: Range<usize>) -> Range<usize> {
        let [first, last] = [words.start, words.end - 1].map(|word| self.scores.block_of(word as u64 * 8));
        first..last + 1
    }

    /// Starts to read the first of the blocks of some words, as many as `bytes` hold; see [`hold_run`](Self::hold_run).
    pub(super) fn start_run(&self, words: Range<usize>, bytes: u64) -> PendingRun {
        self.scores.start_run(self.blocks_of(words), bytes)
    }

    /// As [`start_run`](Self::start_run), from the first block on that is not zeros, if there is one; as many bytes as
    /// this reader reads at a time.
    pub(super) fn start_run_without_zeros(&self, words: Range<usize>) -> Option<PendingRun> {
        let blocks = without_leading_zeros(&self.scores, self.blocks_of(words))?;
        Some(self.scores.start_run(blocks, self.held.bytes))
    }

    /// Completes a read, and holds its blocks.
    pub(super) fn hold_run(&mut self, run: PendingRun) -> store::Result<()> {
        self.held.run = Some(self.scores.finish_run(run)?);
        Ok(())
    }

    /// Reads words of a plane, and returns whether any may have a bit. Blocks of zeros are known from the index and not
    /// read; blocks that are needed whole are decoded on all threads.
    pub(crate) fn read(&mut self, words: Range<usize>, into: &mut [u64]) -> store::Result<bool> {
        let into = &mut into[..words.len()];
        let mut any = false;
        let mut bytes = disk::signed_of_words_mut(into);
        let (mut at, end) = (words.start as u64 * 8, words.end as u64 * 8);
        let blocks_end =
            if self.reads_on || at == end { self.scores.block_count() } else { self.scores.block_of(end - 1) + 1 };
        while at < end {
            let block = match self.block {
                Some(block) if self.scores.block_range(block).contains(&at) => block,
                _ => self.scores.block_of(at),
            };
            let range = self.scores.block_range(block);
            let upto = end.min(range.end);
            if self.scores.is_zeros(block) {
                let (now, after) = bytes.split_at_mut((upto - at) as usize);
                now.fill(0);
                (bytes, at) = (after, upto);
                continue;
            }
            any = true;
            if at > range.start || range.end > end {
                self.hold(block..blocks_end)?;
                let (now, after) = bytes.split_at_mut((upto - at) as usize);
                now.copy_from_slice(&self.bytes[(at - range.start) as usize..(upto - range.start) as usize]);
                (bytes, at) = (after, upto);
                continue;
            }
            let (scores, run) = (&self.scores, self.held.with(&self.scores, block..blocks_end)?);
            let blocks = (block..run.blocks().end).take_while(|&block| scores.block_range(block).end <= end);
            let pieces: Vec<_> = blocks
                .map(|block| {
                    let range = scores.block_range(block);
                    at = range.end;
                    let (now, after) = std::mem::take(&mut bytes).split_at_mut((range.end - range.start) as usize);
                    bytes = after;
                    (block, now)
                })
                .collect();
            let decode = |(block, now): (usize, &mut [i8])| scores.decode_block_of(run, block, now);
            if self.is_parallel {
                pieces.into_par_iter().try_for_each(decode)?
            } else {
                pieces.into_iter().try_for_each(decode)?
            }
        }
        into.iter_mut().for_each(|word| *word = u64::from_le(*word));
        Ok(any)
    }

    /// Decodes the first of the blocks, unless it is held; the others will be read next.
    fn hold(&mut self, blocks: Range<usize>) -> store::Result<()> {
        let block = blocks.start;
        if self.block != Some(block) {
            let range = self.scores.block_range(block);
            self.bytes.resize((range.end - range.start) as usize, 0);
            self.block = None;
            let run = self.held.with(&self.scores, blocks)?;
            self.scores.decode_block_of(run, block, &mut self.bytes)?;
            self.block = Some(block);
        }
        Ok(())
    }
}
