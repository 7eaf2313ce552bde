//! The division of a band of rows into strips, and of a strip into lanes.
//!
//! A strip is a rectangle of some 8,192 values that is decoded independently. It is divided into [`LANES`] equal cells,
//! side by side where the band is wide and on top of each other where it is narrow, each some 16 rows of 32 values. All
//! cells of a strip are coded in step, so that the latency of one value, which waits for its left neighbour, is hidden
//! behind fifteen others. Neighbours are taken from the same cell only. Cells at the lower and right edges may reach
//! beyond the band and are padded.
//!
//! The division is a function of the rows and columns of the band.

use std::ops::Range;

/// Cells in a strip.
pub(crate) const LANES: usize = 16;

/// Codes of one step.
pub(crate) type Step = [u8; LANES];

/// Columns of a cell where the band is wide enough.
const CELL_COLUMNS: usize = 32;

/// Values in a cell, about.
const CELL_VALUES: usize = 512;

/// Values in a cell of a large strip, for files without probes: fewer states are stored, and more values have
/// neighbours.
const LARGE_CELL_VALUES: usize = 1280;

/// The division of a band into strips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    rows: usize,
    columns: usize,
    lanes_across: usize,
    across: Cut,
    down: Cut,
}

/// A number of units divided into about equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    units: usize,
    parts: usize,
}

/// A strip of a band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strip {
    /// Its rows within the band.
    pub(crate) rows: Range<usize>,
    /// Its columns within the band.
    pub(crate) columns: Range<usize>,
    /// Rows of a cell.
    pub(crate) cell_rows: usize,
    /// Columns of a cell.
    pub(crate) cell_columns: usize,
    /// Cells side by side.
    pub(crate) lanes_across: usize,
}

impl Cut {
    fn new(units: usize, part: usize) -> Self {
        Cut { units, parts: ((units + part / 2) / part).max(1) }
    }

    fn part(self, number: usize) -> Range<usize> {
        number * self.units / self.parts..(number + 1) * self.units / self.parts
    }

    /// The part of a unit.
    fn part_of(self, unit: usize) -> usize {
        ((unit + 1) * self.parts - 1) / self.units
    }
}

impl Tiling {
    /// Divides a band into strips of some 8,192 values.
    ///
    /// # Panics
    /// If it has no row or no column.
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Tiling::of_cells(rows, columns, CELL_VALUES)
    }

    /// Divides a band into strips of some 20,480 values.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub(crate) fn large(rows: usize, columns: usize) -> Self {
        Tiling::of_cells(rows, columns, LARGE_CELL_VALUES)
    }

    fn of_cells(rows: usize, columns: usize, cell_values: usize) -> Self {
        assert!(rows > 0 && columns > 0, "a band has rows and columns");
        let mut lanes_across = LANES;
        while lanes_across > 1 && columns < lanes_across * CELL_COLUMNS {
            lanes_across /= 2;
        }
        let across = Cut::new(columns.div_ceil(lanes_across), CELL_COLUMNS);
        // Narrow bands are one strip wide.
        let across = if lanes_across < LANES { Cut { parts: 1, ..across } } else { across };
        let cell_rows = (cell_values * across.parts / across.units).max(1);
        let down = Cut::new(rows.div_ceil(LANES / lanes_across), cell_rows);
        Tiling { rows, columns, lanes_across, across, down }
    }

    /// The number of strips.
    pub(crate) fn strips(&self) -> usize {
        self.across.parts * self.down.parts
    }

    /// A strip.
    pub(crate) fn strip(&self, number: usize) -> Strip {
        let across = self.across.part(number % self.across.parts);
        let down = self.down.part(number / self.across.parts);
        let lanes_down = LANES / self.lanes_across;
        let within = |units: &Range<usize>, lanes: usize, end: usize| units.start * lanes..(units.end * lanes).min(end);
        Strip {
            rows: within(&down, lanes_down, self.rows),
            columns: within(&across, self.lanes_across, self.columns),
            cell_rows: down.len(),
            cell_columns: across.len(),
            lanes_across: self.lanes_across,
        }
    }

    /// The strip that contains a value of the band.
    pub(crate) fn strip_of(&self, row: usize, column: usize) -> usize {
        let down = self.down.part_of(row / (LANES / self.lanes_across));
        down * self.across.parts + self.across.part_of(column / self.lanes_across)
    }

    /// The strips that contain values of a range of rows.
    pub(crate) fn strips_of_rows(&self, rows: Range<usize>) -> Range<usize> {
        let last = self.strip_of(rows.end - 1, 0) / self.across.parts;
        self.strip_of(rows.start, 0)..(last + 1) * self.across.parts
    }
}

impl Strip {
    /// Values without padding.
    pub(crate) fn values(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// Values of a cell, padding included: the steps that decode the strip.
    pub(crate) fn steps(&self) -> usize {
        self.cell_rows * self.cell_columns
    }

    /// Rows and columns of a cell, clipped to the band.
    pub(crate) fn cell(&self, lane: usize) -> (Range<usize>, Range<usize>) {
        let part = |all: &Range<usize>, number: usize, length: usize| {
            let start = (all.start + number * length).min(all.end);
            start..(start + length).min(all.end)
        };
        let rows = part(&self.rows, lane / self.lanes_across, self.cell_rows);
        (rows, part(&self.columns, lane % self.lanes_across, self.cell_columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_and_cells_cover_every_value_once() {
        let bands = [
            (1, 1),
            (1, 5),
            (5, 1),
            (3, 7),
            (17, 6),
            (1000, 1),
            (300, 21),
            (40, 56),
            (41, 126),
            (16, 252),
            (35, 462),
            (16, 511),
            (16, 512),
            (33, 792),
            (16, 3003),
            (50, 1287),
            (1, 20_000),
            (16, 11_628),
            (2000, 56),
        ];
        for (rows, columns) in bands {
            for (tiling, steps_max) in [(Tiling::new(rows, columns), 1024), (Tiling::large(rows, columns), 2048)] {
                let mut seen = vec![0; rows * columns];
                for number in 0..tiling.strips() {
                    let strip = tiling.strip(number);
                    assert!(strip.values() > 0 && strip.steps() <= steps_max, "{rows} x {columns}: {strip:?}");
                    assert!(strip.values() <= strip.steps() * LANES);
                    let mut values = 0;
                    for lane in 0..LANES {
                        let (rows, cell_columns) = strip.cell(lane);
                        for row in rows {
                            for column in cell_columns.clone() {
                                seen[row * columns + column] += 1;
                                values += 1;
                                assert_eq!(tiling.strip_of(row, column), number);
                                assert!(tiling.strips_of_rows(row..row + 1).contains(&number));
                            }
                        }
                    }
                    assert_eq!(values, strip.values());
                }
                assert!(seen.iter().all(|&times| times == 1), "{rows} x {columns}");
                assert_eq!(tiling.strips_of_rows(0..rows), 0..tiling.strips());
            }
        }
    }

    /// Pins the format: blocks of strips cannot be decoded with other cells.
    #[test]
    fn cells_are_those_of_the_format() {
        let mut hasher = blake3::Hasher::new();
        for (rows, columns) in (1..=600).flat_map(|columns| [1, 16, 17, 250].map(|rows| (rows, columns))) {
            for tiling in [Tiling::new(rows, columns), Tiling::large(rows, columns)] {
                for strip in (0..tiling.strips()).map(|number| tiling.strip(number)) {
                    for (rows, columns) in (0..LANES).map(|lane| strip.cell(lane)) {
                        for bound in [rows.start, rows.end, columns.start, columns.end] {
                            hasher.update(&(bound as u32).to_le_bytes());
                        }
                    }
                }
            }
        }
        assert_eq!(hasher.finalize().to_hex()[..16], *"cab38b8366a1b890");
    }

    #[test]
    fn strips_of_large_bands_have_about_8_ki_values() {
        for columns in [1, 6, 21, 56, 126, 252, 462, 792, 1287, 3003, 26_334, 118_755, 324_632] {
            let rows = ((1 << 20) / columns).max(16);
            let tiling = Tiling::new(rows, columns);
            let (mut padded, mut most) = (0, 0);
            for number in 0..tiling.strips() {
                let strip = tiling.strip(number);
                padded += strip.steps() * LANES;
                most = most.max(strip.steps() * LANES);
            }
            assert!(padded - rows * columns <= rows * columns / 64, "{columns}: {padded}");
            assert!((6000..12_000).contains(&most), "{columns}: {most}");
        }
    }
}
