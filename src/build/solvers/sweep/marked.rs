//! Passes over marked positions.
//!
//! A change marks its parents one by one. All columns of a chunk with marks are derived, since a vector does that
//! anyway, but only the marked ones are compared with the stored scores: each of the others would cost a cache line.

use super::PassCounts;
use super::pair::SlabPair;
use crate::kernels::apply::ChangedColumn;
use crate::kernels::scores::{Kernel, RowChunk, SlabWork};
use crate::kernels::tables::{CHUNK, Tables};
use crate::layout::rows::ScoreRows;
use crate::sweep::marks::{Marks, SlabRegion};
use crate::work_stealing::for_each_piece;
use game::Slab;
use std::ops::{Range, RangeInclusive};

/// Most rounds of a pair in one pass.
const ROUNDS_MAX: usize = 4;

/// Positions of a piece of work: few rows in slabs with long rows.
const POSITIONS_AT_ONCE: usize = 1 << 16;

/// Most rows of a piece of work.
const ROWS_AT_ONCE_MAX: usize = 512;

/// Distance, in row chunks, of prefetches.
const AHEAD: usize = 6;

/// New score.
struct ScoreChange {
    row: u32,
    column: u32,
    score: i8,
}

/// Result of a piece of work.
#[derive(Default)]
struct RecomputedRows {
    marked: u64,
    changes: Vec<ScoreChange>,
}

/// Passes over the marked positions of a database.
pub(crate) struct MarkedPasses<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) stones: u32,
    pub(crate) kernel: Kernel,
    pub(crate) marks: Marks,
    /// First slab with a mirror: positions whose mover has the larger half read the mirror.
    pub(crate) first_mirrored: usize,
}

impl MarkedPasses<'_> {
    /// Recomputes the marked positions of a pair, repeatedly while changes mark more of it. Calls `notify` with each
    /// change and its slab.
    pub(crate) fn pair(
        &self,
        pair: &SlabPair,
        values: &mut ScoreRows,
        notify: impl Fn(&Slab, &ChangedColumn) + Sync,
    ) -> PassCounts {
        let [high, low] = [&pair.high, &pair.low].map(|work| self.marks.own(work.slab.mover_stones as usize));
        let mut all = PassCounts::default();
        for _ in 0..ROUNDS_MAX {
            let mut done = self.slab(&pair.high, &high.rows, values, &notify);
            if !pair.is_one() {
                done = done.add(self.slab(&pair.low, &low.rows, values, &notify));
            }
            done = done.add(self.slab(&pair.low, &(0..low.rows_end), values, &notify));
            all = all.add(done);
            if done.changed == 0 {
                break;
            }
        }
        all
    }

    fn slab(
        &self,
        work: &SlabWork,
        rows: &Range<usize>,
        values: &mut ScoreRows,
        notify: &(impl Fn(&Slab, &ChangedColumn) + Sync),
    ) -> PassCounts {
        let old = values.bytes().padded();
        let rows_at_once = (POSITIONS_AT_ONCE / work.columns).clamp(1, ROWS_AT_ONCE_MAX);
        let mut found: Vec<_> =
            rows.clone().step_by(rows_at_once).map(|first| (first, RecomputedRows::default())).collect();
        for_each_piece(&mut found, |(first, found)| {
            let mut marked = Vec::new();
            for row in *first..rows.end.min(*first + rows_at_once) {
                self.marks.take(work.slab.mover_stones as usize, row, |chunk, lanes| {
                    marked.push(RowChunk { row: row as u32, chunk: chunk as u32, lanes });
                });
            }
            for at in 0..marked.len() {
                if let Some(&ahead) = marked.get(at + AHEAD) {
                    self.kernel.prefetch(work, ahead, old);
                }
                self.row_chunk(work, marked[at], old, &mut found.changes);
            }
            found.marked = marked.len() as u64;
        });
        let (to, array) = (work.to, values.bytes_mut());
        let mut done = PassCounts::default();
        for (_, found) in &found {
            done.recomputed += found.marked * (CHUNK as u64).min(work.columns as u64);
            done.changed += found.changes.len() as u64;
            for change in &found.changes {
                array[to.offset + change.column as usize * to.stride + change.row as usize] = change.score;
            }
        }
        for_each_piece(&mut found, |(_, found)| {
            for change in &found.changes {
                let first_row = change.row as usize / CHUNK * CHUNK;
                let rows = 1 << (change.row as usize - first_row);
                let change = ChangedColumn { column: change.column, first_row, rows };
                self.mark_parents(work.slab, &change, None);
                notify(work.slab, &change);
            }
        });
        done
    }

    /// Marks every position with a move to a change in a slab, except those in a region that is up to date and those
    /// that read the mirror.
    pub(crate) fn mark_parents(&self, slab: &Slab, change: &ChangedColumn, but: Option<&SlabRegion>) {
        let is_twice = slab.mover_stones as usize >= self.first_mirrored;
        self.mark(slab, change, 0..=if is_twice { self.stones / 2 } else { self.stones }, but);
    }

    /// Marks every position with a move to a change in the mirror of a slab.
    pub(crate) fn mark_parents_by_mirror(&self, slab: &Slab, change: &ChangedColumn) {
        self.mark(slab, change, self.stones.div_ceil(2)..=self.stones, None);
    }

    fn mark(&self, slab: &Slab, change: &ChangedColumn, movers: RangeInclusive<u32>, but: Option<&SlabRegion>) {
        self.marks.mark_parents(self.kernel, self.tables, slab.opponent_stones, change, &movers, but);
    }

    /// Derives a row chunk, and collects its changes.
    fn row_chunk(&self, work: &SlabWork, row_chunk: RowChunk, old: &[i8], changes: &mut Vec<ScoreChange>) {
        let scores = self.kernel.recompute_row_chunk(work, row_chunk, old);
        let mut lanes = row_chunk.lanes;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let column = row_chunk.chunk as usize * CHUNK + lane;
            let at = work.to.offset + column * work.to.stride + row_chunk.row as usize;
            if column < work.columns && old[at] != scores[lane] {
                changes.push(ScoreChange { row: row_chunk.row, column: column as u32, score: scores[lane] });
            }
        }
    }
}
