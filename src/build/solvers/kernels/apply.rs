//! Applies staged scores: transposes `MoverMajor` units into the `OpponentMajor` array.

use super::scores::{Destination, Kernel, RowUnit, SlabWork, StagedChunk, UNIT_ROWS, x86_64};
use super::tables::CHUNK;

/// Changed scores of one column, among 64 rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangedColumn {
    /// Rank of the opponent's half.
    pub(crate) column: u32,
    /// First of the 64 rows.
    pub(crate) first_row: usize,
    /// Bit mask of the changed rows.
    pub(crate) rows: u64,
}

/// Changed scores of the columns of a chunk, among 64 rows.
pub(crate) struct ChangedChunk<'a> {
    first: usize,
    first_row: usize,
    /// By column, the bit mask of the changed rows.
    rows: &'a [u64],
}

impl ChangedChunk<'_> {
    /// Ors `mark` into the marks of the changed columns; `marks` starts at `first_column`.
    #[inline]
    pub(crate) fn mark(&self, marks: &mut [u64], first_column: usize, mark: u64) {
        let marks = &mut marks[self.first - first_column..][..self.rows.len()];
        for (to, &rows) in marks.iter_mut().zip(self.rows) {
            *to |= if rows == 0 { 0 } else { mark };
        }
    }

    /// Iterates over the changed columns.
    pub(crate) fn each(&self) -> impl Iterator<Item = ChangedColumn> {
        let changed = self.rows.iter().enumerate().filter(|&(_, &rows)| rows != 0);
        changed.map(|(at, &rows)| ChangedColumn { column: (self.first + at) as u32, first_row: self.first_row, rows })
    }
}

/// Writes the wanted chunks of a staged unit into `array`, passes the changes of each chunk to `notify`, and returns
/// the number of changes. The array lacks the columns of the slab before `first_column`.
///
/// # Panics
/// If the unit reaches beyond the slab or the array.
pub(crate) fn apply(
    kernel: Kernel,
    work: &SlabWork,
    unit: &RowUnit,
    staged: &[i8],
    array: &mut [i8],
    first_column: usize,
    mut notify: impl FnMut(&ChangedChunk),
) -> u64 {
    let slab = work.to;
    assert!(unit.row + unit.rows <= slab.columns, "a unit lies inside its slab");
    let mut changes = 0;
    for at in 0..unit.chunks {
        let wanted = unit.wanted_rows(at);
        if wanted == 0 {
            continue;
        }
        let column = (unit.chunk + at) * CHUNK;
        assert!(first_column <= column && column < slab.rows, "a unit lies inside its slab");
        let left_out = if first_column > 0 { first_column * slab.stride + slab.lead } else { 0 };
        let to = Destination {
            offset: slab.offset + column * slab.stride + unit.row - left_out,
            stride: slab.stride,
            columns: CHUNK.min(slab.rows - column),
            rows: unit.rows,
        };
        let mut changed = [0; CHUNK];
        let from = StagedChunk { scores: &staged[at * CHUNK..], stride: unit.stride(), wanted };
        let here = write(kernel, from, array, to, &mut changed);
        if here > 0 {
            notify(&ChangedChunk { first: column, first_row: unit.row, rows: &changed[..to.columns] });
        }
        changes += here;
    }
    changes
}

/// Writes the wanted rows of one staged chunk, records the changed rows of each column, and returns the number of
/// changes.
fn write(kernel: Kernel, from: StagedChunk, array: &mut [i8], to: Destination, changed: &mut [u64; CHUNK]) -> u64 {
    assert!(to.rows <= to.stride && to.columns <= CHUNK && to.columns > 0);
    assert!(to.offset + (to.columns - 1) * to.stride + to.rows <= array.len(), "a unit lies inside its slab");
    match kernel {
        // SAFETY: inside the array by the assertions.
        Kernel::Avx512 => unsafe { x86_64::apply_avx512(from, array.as_mut_ptr(), to, changed) },
        // SAFETY: as above.
        Kernel::Avx2 if to.rows == UNIT_ROWS => unsafe { x86_64::apply_avx2(from, array.as_mut_ptr(), to, changed) },
        Kernel::Portable | Kernel::Avx2 => {
            for (column, changed) in changed.iter_mut().enumerate().take(to.columns) {
                let array = &mut array[to.offset + column * to.stride..][..to.rows];
                for (row, old) in array.iter_mut().enumerate().filter(|&(row, _)| from.wanted >> row & 1 == 1) {
                    let new = from.scores[row * from.stride + column];
                    if *old != new {
                        *old = new;
                        *changed |= 1 << row;
                    }
                }
            }
            changed.iter().map(|rows| u64::from(rows.count_ones())).sum()
        }
    }
}
