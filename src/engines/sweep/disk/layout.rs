//! The working file: slabs cut into cells, each some rows by some columns with its checksum.
//!
//! Slabs follow each other, `OpponentMajor`: those of scores, by the mover's stones; where both players may have half of
//! the stones, a second copy of that slab; and for each slab whose mover has at least half of them, the bases of its
//! positions (see `plan.rs`). A slab is cut into groups of columns and groups of rows; a cell is what a
//! group of columns has of a group of rows:
//!
//! | bytes | what |
//! |---|---|
//! | height * width | scores, row by row; zeros beyond the last row or column of the slab |
//! | the rest but 8 | zeros |
//! | 8 | checksum of the cell with its number in this place, little-endian |
//!
//! The cells of a group of columns follow each other, so that some columns of all rows are one long run, and some whole
//! rows are a run in each group of columns. Cells are of 4 to 64 KiB, a power of two. The shape of everything depends on
//! the number of stones and the position set alone. A cell whose checksum is wrong means zeros.
//!
//! Behind the cells come best captures, in an order that one process makes for itself (see [`super::captures`]).

use game::{Orientation, PositionSet};
use std::ops::Range;

/// Bytes of the smallest and the largest cell. Drives read 64 KiB at once as fast as a stream; what is smaller than a
/// block of theirs cannot be written without reading.
const CELL_BYTES: [usize; 2] = [4 << 10, 64 << 10];

/// A slab has about so many cells, if they have a size between the bounds.
const CELLS_A_SLAB: usize = 4096;

/// A cell has its scores times this share of columns to a row, to the half: narrow cells are read with less that is not
/// wanted beside some columns, high ones are written in whole rows of more memory. At 24 stones with arenas of 20 MiB
/// 6.2 bytes are read a position and pass; 8.6 with cells four times as large and twice as wide.
const WIDTH_SHARE: f64 = 0.125;

/// Where little is read anyway, memory counts: cells of slabs with fewer positions are as high as they are wide, if the
/// slab is.
const NARROW_FROM: usize = 1 << 20;

/// Bytes of the checksum of a cell.
pub(crate) const SUM_BYTES: usize = 8;

/// Where the cells of a database are.
#[derive(Clone, Debug)]
pub struct CellLayout {
    pub(crate) stones: u32,
    pub(crate) set: PositionSet,
    /// Scores by the mover's stones, then the others.
    pub(crate) slabs: Vec<CellSlab>,
    pub(crate) cells: usize,
    bytes: u64,
}

/// Where the cells of a slab are.
#[derive(Clone, Debug)]
pub(crate) struct CellSlab {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Columns of a cell.
    pub(crate) width: usize,
    /// Rows of a cell.
    pub(crate) height: usize,
    pub(crate) cell_bytes: usize,
    pub(crate) row_groups: usize,
    pub(crate) column_groups: usize,
    /// The number of the first cell.
    first: usize,
    /// Where it is in the file.
    offset: u64,
}

impl CellLayout {
    /// The layout of the positions of a set with `stones` stones.
    pub fn new(stones: u32, set: PositionSet) -> CellLayout {
        let mut layout = CellLayout { stones, set, slabs: Vec::new(), cells: 0, bytes: 0 };
        let slabs = set.slabs(stones);
        let half = stones.div_ceil(2) as usize;
        let second = if stones.is_multiple_of(2) { half..half + 1 } else { 0..0 };
        for slab in slabs.iter().chain(&slabs[second]).chain(&slabs[half..]) {
            let (rows, columns) = slab.rows_columns(Orientation::OpponentMajor);
            let cells = CellSlab::new(rows as usize, columns as usize, layout.cells, layout.bytes);
            layout.cells += cells.row_groups * cells.column_groups;
            layout.bytes += (cells.row_groups * cells.column_groups * cells.cell_bytes) as u64;
            layout.slabs.push(cells);
        }
        layout
    }

    /// Of the pair whose one player has so many stones, at least half: the slab of his positions, and of their bases.
    pub(crate) fn pair(stones: usize, mover: usize) -> (usize, usize) {
        let half = stones.div_ceil(2);
        let is_even = stones.is_multiple_of(2);
        let high = if is_even && mover == half { stones + 1 } else { mover };
        (high, stones + 1 + usize::from(is_even) + mover - half)
    }

    /// Bytes of all cells.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the largest cell.
    pub(crate) fn cell_bytes_max(&self) -> usize {
        self.slabs.iter().map(|slab| slab.cell_bytes).max().unwrap_or(0)
    }
}

impl CellSlab {
    fn new(rows: usize, columns: usize, first: usize, offset: u64) -> CellSlab {
        let [least, most] = CELL_BYTES;
        let cell_bytes = (rows * columns / CELLS_A_SLAB).next_power_of_two().clamp(least, most);
        let scores = cell_bytes - SUM_BYTES;
        let share = if rows * columns < NARROW_FROM { 1.0 } else { WIDTH_SHARE };
        let square = (scores as f64 * columns as f64 / rows as f64 * share).sqrt() as usize;
        // As many columns as fill the cell where there are not rows enough.
        let width = square.max(scores / rows).clamp(1, columns.min(scores));
        let height = (scores / width).min(rows);
        CellSlab {
            rows,
            columns,
            width,
            height,
            cell_bytes,
            row_groups: rows.div_ceil(height),
            column_groups: columns.div_ceil(width),
            first,
            offset,
        }
    }

    /// The number of a cell.
    pub(crate) fn cell(&self, column_group: usize, row_group: usize) -> usize {
        self.first + column_group * self.row_groups + row_group
    }

    /// Where a cell is in the file.
    pub(crate) fn place(&self, cell: usize) -> u64 {
        self.offset + ((cell - self.first) * self.cell_bytes) as u64
    }

    /// The columns of a group.
    pub(crate) fn columns_of(&self, group: usize) -> Range<usize> {
        group * self.width..self.columns.min((group + 1) * self.width)
    }

    /// The groups that have some columns.
    pub(crate) fn groups_of(&self, columns: &Range<usize>) -> Range<usize> {
        columns.start / self.width..columns.end.div_ceil(self.width)
    }

    /// The rows of some groups.
    pub(crate) fn rows_of(&self, groups: &Range<usize>) -> Range<usize> {
        groups.start * self.height..self.rows.min(groups.end * self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mover's stones of a slab behind those of scores.
    fn other(stones: usize, number: usize) -> usize {
        let half = stones.div_ceil(2);
        if stones.is_multiple_of(2) { half + number.saturating_sub(1) } else { half + number }
    }

    #[test]
    fn every_position_has_one_cell() {
        for set in [PositionSet::All, PositionSet::Reachable] {
            for stones in 0..=48 {
                let layout = CellLayout::new(stones, set);
                let mut next = (0, 0);
                let slabs = set.slabs(stones);
                let all = |number: usize| match number.checked_sub(stones as usize + 1) {
                    None => &slabs[number],
                    // The second copy, then the bases.
                    Some(more) => &slabs[other(stones as usize, more)],
                };
                for (number, slab) in layout.slabs.iter().enumerate() {
                    let of = all(number);
                    assert_eq!((slab.first, slab.offset), next);
                    assert_eq!((slab.rows * slab.columns) as u64, of.positions());
                    assert!(slab.width * slab.height + SUM_BYTES <= slab.cell_bytes);
                    assert!(slab.cell_bytes.is_power_of_two() && slab.cell_bytes >= 4096);
                    let groups: usize = (0..slab.column_groups).map(|group| slab.columns_of(group).len()).sum();
                    assert_eq!((groups, slab.rows_of(&(0..slab.row_groups)).len()), (slab.columns, slab.rows));
                    let cells = slab.row_groups * slab.column_groups;
                    next = (slab.first + cells, slab.offset + (cells * slab.cell_bytes) as u64);
                }
                assert_eq!(next, (layout.cells, layout.bytes()));
                if stones >= 24 {
                    let positions = set.positions(stones);
                    assert!(layout.bytes() < positions * 7 / 4, "{stones}: {}", layout.bytes());
                }
            }
        }
    }
}
