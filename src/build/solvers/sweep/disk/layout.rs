//! Layout of the working file: slabs cut into cells, each a rectangle of scores with a checksum.
//!
//! The file has the slabs of scores, `OpponentMajor`, by the mover's stones; then, if both players can have half of the
//! stones, a second copy of that slab; then, for each slab whose mover has at least half of the stones, the bases of
//! its positions (see `plan.rs`). A slab is cut into groups of columns and groups of rows. A cell is the intersection
//! of a group of columns with a group of rows:
//!
//! | bytes | content |
//! |---|---|
//! | height * width | scores, row by row; zeros beyond the last row or column of the slab |
//! | up to the last 8 | zeros |
//! | 8 | checksum of the cell with its number in this place, little-endian |
//!
//! The cells of a group of columns are consecutive, so that columns of all rows are one long run, and whole rows are
//! one run in each group of columns. Cells have 4 to 64 KiB, a power of two. The layout depends on the number of stones
//! and the position set alone. A cell with a wrong checksum counts as zeros.
//!
//! Behind the cells are best captures, in an order private to one process (see [`super::captures`]).

use game::{Orientation, PositionSet};
use std::ops::Range;

/// Bytes of the smallest and the largest cell. Drives read random 64 KiB as fast as a stream, and cannot write less
/// than a block without reading it.
const CELL_BYTES: [usize; 2] = [4 << 10, 64 << 10];

/// Target number of cells of a slab, within the bounds on their size.
const CELLS_A_SLAB: usize = 4096;

/// The width of a cell is the square root of its scores times this share. Narrow cells read fewer unwanted columns;
/// high cells take more memory when whole rows are written. At 24 stones with arenas of 20 MiB, 6.2 bytes are read a
/// position and pass; with cells four times as large and twice as wide, 8.6.
const WIDTH_SHARE: f64 = 0.125;

/// Slabs with fewer positions have square cells, if the slab allows it: there memory counts more than the bytes read.
const NARROW_FROM: usize = 1 << 20;

/// Bytes of the checksum of a cell.
pub(crate) const SUM_BYTES: usize = 8;

/// Locations of the cells of a database.
#[derive(Clone, Debug)]
pub struct CellLayout {
    pub(crate) stones: u32,
    pub(crate) set: PositionSet,
    /// Scores by the mover's stones, then the others.
    pub(crate) slabs: Vec<CellSlab>,
    pub(crate) cells: usize,
    bytes: u64,
}

/// Locations of the cells of a slab.
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
    /// Number of the first cell.
    first: usize,
    /// Position in the file.
    offset: u64,
}

impl CellLayout {
    /// Computes the layout of the positions of a set with `stones` stones.
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

    /// Returns the high slab of the pair with `stones` stones of one player, at least half of all, and the slab of its
    /// bases.
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
        // If there are too few rows, as many columns as fill the cell.
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

    /// Returns the number of a cell.
    pub(crate) fn cell(&self, column_group: usize, row_group: usize) -> usize {
        self.first + column_group * self.row_groups + row_group
    }

    /// Returns the position of a cell in the file.
    pub(crate) fn offset_of(&self, cell: usize) -> u64 {
        self.offset + ((cell - self.first) * self.cell_bytes) as u64
    }

    /// Returns the columns of a group.
    pub(crate) fn columns_of(&self, group: usize) -> Range<usize> {
        group * self.width..self.columns.min((group + 1) * self.width)
    }

    /// Returns the groups of a range of columns.
    pub(crate) fn groups_of(&self, columns: &Range<usize>) -> Range<usize> {
        columns.start / self.width..columns.end.div_ceil(self.width)
    }

    /// Returns the rows of a range of groups.
    pub(crate) fn rows_of(&self, groups: &Range<usize>) -> Range<usize> {
        groups.start * self.height..self.rows.min(groups.end * self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mover's stones of a slab behind those of scores.
    fn other(stones: usize, number: usize) -> usize {
        let half = stones.div_ceil(2);
        if stones.is_multiple_of(2) { half + number.saturating_sub(1) } else { half + number }
    }

    #[test]
    fn every_position_has_one_cell() {
        for set in [PositionSet::All, PositionSet::REACHABLE] {
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
                    let positions = set.slab_positions(stones);
                    assert!(layout.bytes() < positions * 7 / 4, "{stones}: {}", layout.bytes());
                }
            }
        }
    }
}
