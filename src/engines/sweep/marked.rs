//! Passes over what is marked.
//!
//! A change marks its parents one by one. Of a chunk with marks all columns are derived, for that is what a vector
//! does, but only those marked are compared with what is there: the others would each be a line of memory.

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

/// How often a pair is taken in one pass, at most.
const ROUNDS_MAX: usize = 4;

/// Positions whose marks a thread takes at a time, roughly: in slabs with long rows these are few rows.
const POSITIONS_AT_ONCE: usize = 1 << 16;

/// And their rows, at most.
const ROWS_AT_ONCE_MAX: usize = 512;

/// Spots between the one that is asked for and the one that is derived.
const AHEAD: usize = 6;

/// A new score.
struct ScoreChange {
    row: u32,
    column: u32,
    score: i8,
}

/// What some rows come to.
#[derive(Default)]
struct RecomputedRows {
    marked: u64,
    changes: Vec<ScoreChange>,
}

/// What is marked.
pub(crate) struct MarkedPasses<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) stones: u32,
    pub(crate) kernel: Kernel,
    pub(crate) marks: Marks,
    /// Slabs from this on are there twice: positions whose mover has the larger half look at the mirror.
    pub(crate) first_mirrored: usize,
}

impl MarkedPasses<'_> {
    /// Takes what is marked of a pair, again and again while that marks more of it. Tells what changed in which slab.
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

    /// Marks every position with a move to what changed in a slab, but for a region that is looked after, and those that
    /// look at the mirror.
    pub(crate) fn mark_parents(&self, slab: &Slab, change: &ChangedColumn, but: Option<&SlabRegion>) {
        let is_twice = slab.mover_stones as usize >= self.first_mirrored;
        self.mark(slab, change, 0..=if is_twice { self.stones / 2 } else { self.stones }, but);
    }

    /// Marks every position with a move to what changed in the mirror of a slab.
    pub(crate) fn mark_parents_by_mirror(&self, slab: &Slab, change: &ChangedColumn) {
        self.mark(slab, change, self.stones.div_ceil(2)..=self.stones, None);
    }

    fn mark(&self, slab: &Slab, change: &ChangedColumn, movers: RangeInclusive<u32>, but: Option<&SlabRegion>) {
        self.marks.mark_parents(self.kernel, self.tables, slab.opponent_stones, change, &movers, but);
    }

    /// Derives a spot, and what is new of it.
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
