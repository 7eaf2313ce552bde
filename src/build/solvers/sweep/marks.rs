//! Marks of the positions to be recomputed because a child changed.
//!
//! One bit a position, `MoverMajor`. A superfluous mark costs a recomputation, a missing one a wrong score. So every
//! change marks all parents, and marks are cleared before the recomputation.

use crate::huge_pages::Words;
use crate::kernels::apply::ChangedColumn;
use crate::kernels::scores::{Kernel, STRAIGHT};
use crate::kernels::tables::{CHUNK, Tables, chunks};
use crate::word_update::WordUpdate;
use game::Slab;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) struct Marks {
    /// A word for each chunk of columns, row by row and slab by slab.
    words: Words,
    /// By the mover's stones.
    slabs: Vec<SlabMarks>,
    update: WordUpdate,
}

struct SlabMarks {
    /// Index that the first word would have if the first row had words for all chunks.
    first: usize,
    /// Words of a row.
    stride: usize,
    /// Chunks that have words.
    chunks: Range<usize>,
    /// The positions recomputed here: no others are marked.
    own: Own,
    /// By row, whether it may have marks.
    rows: Vec<AtomicBool>,
}

/// Range of rows of a slab by a range of chunks of columns.
#[derive(Clone, Debug)]
pub(crate) struct SlabRegion {
    pub(crate) slab: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) chunks: Range<usize>,
}

/// The positions of a slab that are recomputed here, `MoverMajor`: `rows` up to chunk `chunks_end`, and `chunks` of
/// columns in the rows before `rows_end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) rows: Range<usize>,
    pub(crate) chunks_end: usize,
    pub(crate) chunks: Range<usize>,
    pub(crate) rows_end: usize,
}

impl Own {
    #[inline(always)]
    pub(crate) fn has(&self, row: usize, chunk: usize) -> bool {
        self.rows.contains(&row) && chunk < self.chunks_end || row < self.rows_end && self.chunks.contains(&chunk)
    }
}

impl Marks {
    /// Creates marks for slabs of which `own` is recomputed by the threads of the current pool.
    pub(crate) fn none(slabs: &[Slab], own: impl IntoIterator<Item = Own>) -> Marks {
        let mut words = 0;
        let marks = |(slab, own): (&Slab, Own)| {
            let (rows, chunks) = rows_chunks(slab);
            // Rows of others are never touched.
            let chunks = if own.rows.is_empty() { own.chunks.clone() } else { 0..chunks };
            let (first, stride) = (words, chunks.len());
            words += chunks.start + rows * stride;
            SlabMarks { first, stride, chunks, own, rows: (0..rows).map(|_| AtomicBool::new(false)).collect() }
        };
        let slabs = slabs.iter().zip(own).map(marks).collect();
        Marks { words: Words::zeroed(words), slabs, update: WordUpdate::for_pool() }
    }

    /// Makes the current pool the one whose threads mark.
    pub(crate) fn enter_pool(&mut self) {
        self.update = WordUpdate::for_pool();
    }

    /// Bytes of the marks of whole slabs.
    pub(crate) fn bytes(slabs: &[Slab]) -> u64 {
        let bytes = |(rows, chunks): (usize, usize)| rows * (chunks * size_of::<u64>() + 1);
        slabs.iter().map(|slab| bytes(rows_chunks(slab)) as u64).sum()
    }

    /// Bytes of memory that the marks of `own` take once touched.
    pub(crate) fn own_bytes(slabs: &[Slab], own: impl IntoIterator<Item = Own>) -> u64 {
        let bytes = |(slab, own): (&Slab, Own)| {
            let words = own.rows.len() * own.chunks_end + own.rows_end * own.chunks.len();
            (words * size_of::<u64>() + slab.mover_halves as usize) as u64
        };
        slabs.iter().zip(own).map(bytes).sum()
    }

    /// Returns the positions of a slab that are recomputed here.
    pub(crate) fn own(&self, slab: usize) -> &Own {
        &self.slabs[slab].own
    }

    /// Clears the marks of a row, and visits each chunk that had any.
    pub(crate) fn take(&self, slab: usize, row: usize, mut visit: impl FnMut(usize, u64)) {
        let slab = &self.slabs[slab];
        if !slab.rows[row].load(Relaxed) {
            return;
        }
        slab.rows[row].store(false, Relaxed);
        let words = &self.words[slab.first + row * slab.stride..][slab.chunks.clone()];
        for (chunk, word) in slab.chunks.clone().zip(words) {
            if word.load(Relaxed) != 0 {
                visit(chunk, self.update.take(word));
            }
        }
    }

    /// Marks every position with a move to a change, if its opponent has `opponent_stones` and the stones of its mover
    /// are in `movers`. Positions in the region `again` with moves that stay in the mover's half are up to date.
    pub(crate) fn mark_parents(
        &self,
        kernel: Kernel,
        tables: &Tables,
        opponent_stones: u32,
        change: &ChangedColumn,
        movers: &RangeInclusive<u32>,
        but: Option<&SlabRegion>,
    ) {
        let child = change.first_row / CHUNK;
        for &parent in tables.parents(opponent_stones).of(change.column) {
            let mover_stones = opponent_stones + parent.crossing();
            if mover_stones > *movers.end() {
                break;
            }
            if mover_stones < *movers.start() {
                continue;
            }
            let gather = tables.gather(self.slabs.len() as u32 - 1 - mover_stones, parent.class());
            let (slab, row) = (mover_stones as usize, parent.rank() as usize);
            let own = &self.slabs[slab].own;
            let but = but.filter(|but| parent.class() == STRAIGHT && but.slab == slab && but.rows.contains(&row));
            let (from, to) = gather.inverse[child];
            for chunk in from as usize..to as usize {
                if !own.has(row, chunk) || but.is_some_and(|but| but.chunks.contains(&chunk)) {
                    continue;
                }
                let lanes = kernel.reached(gather, chunk, child, change.rows);
                if lanes != 0 {
                    self.set(slab, row, chunk, lanes);
                }
            }
        }
    }

    fn set(&self, slab: usize, row: usize, chunk: usize, lanes: u64) {
        let slab = &self.slabs[slab];
        let word = &self.words[slab.first + row * slab.stride + chunk];
        // Many are set already: testing first avoids the locked operation.
        if word.load(Relaxed) & lanes != lanes {
            self.update.set(word, lanes);
        }
        if !slab.rows[row].load(Relaxed) {
            slab.rows[row].store(true, Relaxed);
        }
    }
}

fn rows_chunks(slab: &Slab) -> (usize, usize) {
    (slab.mover_halves as usize, chunks(slab.opponent_halves))
}
