//! The two slabs in which the players have m and n - m stones, and how bands of ranks cut them into tiles.

use crate::kernels::scores::{RowUnit, STRAIGHT, SlabWork, UNIT_CHUNKS, UNIT_ROWS};
use crate::kernels::tables::{CHUNK, Tables, chunks};
use game::{PositionSet, Slab};
use std::ops::Range;

/// A slab whose mover has at least half of the stones, and the one whose opponent has as many.
pub(crate) struct SlabPair<'a> {
    /// Ranks of a band are rows of this slab.
    pub(crate) high: SlabWork<'a>,
    /// Ranks of a band are columns of this slab. The same slab if both have half of the stones.
    pub(crate) low: SlabWork<'a>,
    /// Where chunks of rows of `high` begin among the chunks of columns of `low`.
    columns_of_rows: Cuts,
    /// Where chunks of rows of `low` begin among the chunks of columns of `high`.
    columns_of_low: Cuts,
}

/// For each chunk of halves, and behind the last, the first chunk of columns with those halves or later ones, and the
/// end of those with earlier ones. They differ where the position set leaves out halves of the opponent: a chunk of
/// columns may have halves of two chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cuts(Vec<(usize, usize)>);

/// Some ranks: rows of `high` and columns of `low`; and some others: columns of `high` and rows of `low`. All in chunks.
#[derive(Clone, Debug)]
pub(crate) struct PairTile {
    pub(crate) high_rows: Range<usize>,
    pub(crate) high_columns: Range<usize>,
    pub(crate) low_rows: Range<usize>,
    pub(crate) low_columns: Range<usize>,
}

impl<'a> SlabPair<'a> {
    pub(crate) fn new(tables: &Tables, high: SlabWork<'a>, low: SlabWork<'a>) -> SlabPair<'a> {
        let columns_of_rows = Cuts::new(tables, low.slab, chunks(high.slab.mover_halves));
        let columns_of_low = Cuts::new(tables, high.slab, chunks(low.slab.mover_halves));
        SlabPair { high, low, columns_of_rows, columns_of_low }
    }

    /// Both players have half of the stones.
    pub(crate) fn is_one(&self) -> bool {
        self.high.slab == self.low.slab
    }

    /// Chunks of rows of `high`.
    pub(crate) fn row_chunks(&self) -> usize {
        chunks(self.high.slab.mover_halves)
    }

    /// Chunks of the other ranks that a band is taken with.
    pub(crate) fn others(&self, band: &Range<usize>) -> usize {
        if self.is_one() { band.end.min(self.row_chunks()) } else { chunks(self.low.slab.mover_halves) }
    }

    /// What a band of chunks of ranks cuts out of the pair: the given part of so many, of which those of the highest
    /// other ranks come first. Where both slabs are one, a position is taken as a row or as a column, not as both.
    pub(crate) fn tile(&self, band: &Range<usize>, part: usize, parts: usize) -> Option<PairTile> {
        let high_rows = band.start..band.end.min(self.row_chunks());
        if high_rows.is_empty() {
            return None;
        }
        let others = self.others(band);
        let cut = |part: usize| others * part / parts;
        let others = cut(parts - 1 - part)..cut(parts - part);
        let last = if self.is_one() { high_rows.start } else { others.end };
        let tile = PairTile {
            high_columns: self.columns_of_low.of(&others),
            // Taken twice is less than not up to date.
            low_columns: self.columns_of_rows.touching(&high_rows),
            low_rows: others.start.min(last)..others.end.min(last),
            high_rows,
        };
        (!tile.high_columns.is_empty() || !tile.low_rows.is_empty()).then_some(tile)
    }
}

impl Cuts {
    /// Where so many chunks of halves begin among the columns of a slab.
    pub(crate) fn new(tables: &Tables, slab: &Slab, halves: usize) -> Cuts {
        let columns = chunks(slab.opponent_halves);
        if tables.set() == PositionSet::All {
            return Cuts((0..=halves).map(|chunk| (chunk, chunk)).collect());
        }
        let inverse = &tables.gather(slab.opponent_stones, STRAIGHT).inverse;
        let mut cuts = vec![(columns, 0); halves + 1];
        // A chunk of which the position set has no half has no columns.
        for (chunk, &(first, _)) in inverse.iter().enumerate().rev() {
            cuts[chunk].0 = cuts[chunk + 1].0.min(first as usize);
        }
        for (chunk, &(_, end)) in inverse.iter().enumerate() {
            cuts[chunk + 1].1 = cuts[chunk].1.max(end as usize);
        }
        // An opponent without stones is starved by such moves, and so nowhere among the columns they lead from.
        (cuts[0].0, cuts[halves].1) = (0, columns);
        Cuts(cuts)
    }

    /// The chunks of columns of which some half is among `halves`.
    pub(crate) fn touching(&self, halves: &Range<usize>) -> Range<usize> {
        self.0[halves.start].0..self.0[halves.end].1
    }

    /// Those of them without halves before: each chunk of columns is of one of several ranges.
    pub(crate) fn of(&self, halves: &Range<usize>) -> Range<usize> {
        self.0[halves.start].1..self.0[halves.end].1
    }
}

/// All units of some chunks of rows by some chunks of columns of a slab, everything wanted.
pub(super) fn units(work: &SlabWork, rows: &Range<usize>, columns: Range<usize>) -> impl Iterator<Item = RowUnit> {
    let rows_end = (rows.end * CHUNK).min(work.slab.mover_halves as usize);
    (rows.start * CHUNK..rows_end).step_by(UNIT_ROWS).flat_map(move |row| {
        let columns_end = columns.end;
        let chunks = columns.clone().step_by(UNIT_CHUNKS);
        chunks.map(move |chunk| RowUnit::whole(row, rows_end, chunk..columns_end.min(chunk + UNIT_CHUNKS)))
    })
}
