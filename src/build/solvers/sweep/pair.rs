//! Pairs of slabs in which the players have m and n - m stones, and their tiles, cut by bands of halves.

use crate::kernels::scores::{RowUnit, STRAIGHT, SlabWork, UNIT_CHUNKS, UNIT_ROWS};
use crate::kernels::tables::{CHUNK, Tables, chunks};
use game::{PositionSet, Slab};
use std::ops::Range;

/// A slab whose mover has at least half of the stones, and the slab whose opponent has as many.
pub(crate) struct SlabPair<'a> {
    /// Slab in which the halves of a band are rows.
    pub(crate) high: SlabWork<'a>,
    /// Slab in which the halves of a band are columns. The same slab if both players have half of the stones.
    pub(crate) low: SlabWork<'a>,
    /// Cuts of the columns of `low` at the chunks of rows of `high`.
    columns_of_rows: Cuts,
    /// Cuts of the columns of `high` at the chunks of rows of `low`.
    columns_of_low: Cuts,
}

/// Map from chunks of halves to chunks of columns: for each chunk, and the end, the first chunk of columns with these
/// or later halves, and the end of those with earlier ones. They differ if the position set omits halves of the
/// opponent: then a chunk of columns may have halves of two chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cuts(Vec<(usize, usize)>);

/// Tile of a pair: a band of halves (rows of `high`, columns of `low`) by a range of other halves (columns of `high`,
/// rows of `low`). In chunks.
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

    /// Whether both players have half of the stones.
    pub(crate) fn is_one(&self) -> bool {
        self.high.slab == self.low.slab
    }

    /// Chunks of rows of `high`.
    pub(crate) fn row_chunks(&self) -> usize {
        chunks(self.high.slab.mover_halves)
    }

    /// Chunks of the other halves of a band.
    pub(crate) fn others(&self, band: &Range<usize>) -> usize {
        if self.is_one() { band.end.min(self.row_chunks()) } else { chunks(self.low.slab.mover_halves) }
    }

    /// Cuts a tile out of the pair: a band of chunks of halves by part `part` of the other halves, highest first. If
    /// both slabs are one, each position is in a row or in a column of the tile, not in both.
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
            // Recomputing twice costs less than stale children.
            low_columns: self.columns_of_rows.touching(&high_rows),
            low_rows: others.start.min(last)..others.end.min(last),
            high_rows,
        };
        (!tile.high_columns.is_empty() || !tile.low_rows.is_empty()).then_some(tile)
    }
}

impl Cuts {
    /// Computes the cuts of the columns of a slab at chunks of halves.
    pub(crate) fn new(tables: &Tables, slab: &Slab, halves: usize) -> Cuts {
        let columns = chunks(slab.opponent_halves);
        if tables.set() == PositionSet::All {
            return Cuts((0..=halves).map(|chunk| (chunk, chunk)).collect());
        }
        let inverse = &tables.gather(slab.opponent_stones, STRAIGHT).inverse;
        let mut cuts = vec![(columns, 0); halves + 1];
        // A chunk without halves in the position set has no columns.
        for (chunk, &(first, _)) in inverse.iter().enumerate().rev() {
            cuts[chunk].0 = cuts[chunk + 1].0.min(first as usize);
        }
        for (chunk, &(_, end)) in inverse.iter().enumerate() {
            cuts[chunk + 1].1 = cuts[chunk].1.max(end as usize);
        }
        // Such moves starve an opponent without stones, so its column is not among those they lead from.
        (cuts[0].0, cuts[halves].1) = (0, columns);
        Cuts(cuts)
    }

    /// Returns the chunks of columns with any half among `halves`.
    pub(crate) fn touching(&self, halves: &Range<usize>) -> Range<usize> {
        self.0[halves.start].0..self.0[halves.end].1
    }

    /// Returns the chunks of columns without halves before `halves`: this assigns each chunk to one of adjacent ranges.
    pub(crate) fn of(&self, halves: &Range<usize>) -> Range<usize> {
        self.0[halves.start].1..self.0[halves.end].1
    }
}

/// Returns the units of a range of chunks of rows by chunks of columns, with everything wanted.
pub(super) fn units(work: &SlabWork, rows: &Range<usize>, columns: Range<usize>) -> impl Iterator<Item = RowUnit> {
    let rows_end = (rows.end * CHUNK).min(work.slab.mover_halves as usize);
    (rows.start * CHUNK..rows_end).step_by(UNIT_ROWS).flat_map(move |row| {
        let columns_end = columns.end;
        let chunks = columns.clone().step_by(UNIT_CHUNKS);
        chunks.map(move |chunk| RowUnit::whole(row, rows_end, chunk..columns_end.min(chunk + UNIT_CHUNKS)))
    })
}
