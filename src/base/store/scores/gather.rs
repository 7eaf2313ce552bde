//! Reading scattered scores in the order of a file.

use super::Scores;
use super::ranges::PendingRun;
use crate::error::Result;
use std::collections::VecDeque;
use std::ops::Range;

/// Stored bytes that a thread reads ahead of its decoding; at least a run.
const AHEAD_BYTES: usize = 1 << 20;

/// Bytes of neighbouring blocks that are read at once.
const RUN_BYTES: u64 = 256 << 10;

/// Positions in one block.
struct WantedBlock {
    block: usize,
    /// Their numbers in the list of all.
    wanted: Range<usize>,
}

impl Scores {
    /// Whether [`gather`](Self::gather) reads the file: not if scores are read in place, nor if a part of a
    /// block can be decoded alone, which a cache serves better.
    pub(crate) fn is_gathered(&self) -> bool {
        !self.source.is_mapped() && !self.codec().has_bands()
    }

    /// Reads the scores of ascending positions. Each block is read and decoded once, on this thread, and
    /// blocks are read ahead of their decoding.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first block that is; `out` then holds anything.
    ///
    /// # Panics
    /// If there is no such position, or `out` does not have as many scores.
    pub(crate) fn gather(&self, positions: &[u64], out: &mut [i8]) -> Result<()> {
        assert_eq!(out.len(), positions.len(), "as many scores as positions");
        let mut reader = BlocksAhead { scores: self, positions, next: 0, pending: VecDeque::new() };
        let mut values = Vec::new();
        while let Some((blocks, run)) = reader.next() {
            let run = self.finish_run(run)?;
            for WantedBlock { block, wanted } in blocks {
                let (positions, out) = (&positions[wanted.clone()], &mut out[wanted]);
                let start = self.block_range(block).start;
                let (first, last) = (positions[0], positions[positions.len() - 1]);
                values.resize((last - first + 1) as usize, 0);
                self.decode_of_run(&run, block, (first - start) as usize, &mut values)?;
                for (position, score) in positions.iter().zip(out) {
                    *score = values[(position - first) as usize];
                }
            }
        }
        Ok(())
    }
}

/// Runs of wanted blocks, in order, read ahead.
struct BlocksAhead<'a> {
    scores: &'a Scores,
    positions: &'a [u64],
    /// The first position whose block is not being read.
    next: usize,
    pending: VecDeque<(Vec<WantedBlock>, PendingRun)>,
}

impl BlocksAhead<'_> {
    fn next(&mut self) -> Option<(Vec<WantedBlock>, PendingRun)> {
        while self.pending.iter().map(|(_, run)| run.length()).sum::<usize>() < AHEAD_BYTES
            && let Some(started) = self.start()
        {
            self.pending.push_back(started);
        }
        self.pending.pop_front()
    }

    /// Starts to read the next wanted block, and those that follow it in the file, as many as are wanted too.
    fn start(&mut self) -> Option<(Vec<WantedBlock>, PendingRun)> {
        let mut block = self.scores.block_of(*self.positions.get(self.next)?);
        let most = self.scores.run_end(block, RUN_BYTES);
        let mut blocks = Vec::new();
        let mut at = self.next;
        while block < most {
            let end = self.scores.block_range(block).end;
            let wanted = at..at + self.positions[at..].partition_point(|&position| position < end);
            if wanted.is_empty() {
                break;
            }
            at = wanted.end;
            blocks.push(WantedBlock { block, wanted });
            block += 1;
        }
        self.next = at;
        let run = self.scores.start_run(blocks[0].block..block, RUN_BYTES);
        Some((blocks, run))
    }
}
