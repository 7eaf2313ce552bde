//! Writing staged scores back: the transpose from `MoverMajor` units into the `OpponentMajor` array.
//!
//! Units of one slab own disjoint bytes of the array (their rows are its columns), interleaved at the stride of a row.
//! A slice cannot say that, so this is the one place that writes through a shared pointer.

use crate::kernel::{Destination, Kernel, UNIT_ROWS, Unit};
use crate::simd;
use crate::tables::CHUNK;
use game::Slab;
use rayon::prelude::*;

/// A unit, and its staged rows.
pub(crate) type Staged<'a> = (&'a Unit, &'a mut [i8]);

/// Something changed in a column: the rank of the opponent's half, and the first of the 64 rows it is among.
pub(crate) struct Changed {
    pub(crate) column: u32,
    pub(crate) first_row: usize,
}

/// An array that several threads write to at once, each in places of its own.
struct Shared {
    start: *mut i8,
    len: usize,
}

// SAFETY: all access goes through `Shared::write`, whose callers write disjoint places.
unsafe impl Sync for Shared {}

/// Writes the wanted chunks of staged units of a slab into `array`, in parallel, and tells what changed where.
///
/// Returns the number of changes.
///
/// # Panics
/// When the units are not in ascending order, or reach beyond the slab.
pub(crate) fn apply(
    kernel: Kernel,
    slab: &Slab,
    batch: &[Staged],
    array: &mut [i8],
    tell: impl Fn(Changed) + Sync,
) -> u64 {
    // Ascending in steps of whole units: no two share a position.
    assert!(batch.iter().all(|(unit, _)| unit.row.is_multiple_of(UNIT_ROWS) && unit.rows <= UNIT_ROWS));
    assert!(batch.is_sorted_by(|(a, _), (b, _)| a.row < b.row || a.row == b.row && a.chunk + a.chunks <= b.chunk));
    let stride = slab.mover_halves as usize;
    let shared = Shared { start: array.as_mut_ptr(), len: array.len() };
    let one = |(unit, staged): &Staged| {
        let mut changes = 0;
        for at in 0..unit.chunks {
            let wanted = unit.wanted_rows(at);
            if wanted == 0 {
                continue;
            }
            let column = (unit.chunk + at) * CHUNK;
            let to = Destination {
                offset: slab.offset as usize + column * stride + unit.row,
                stride,
                columns: CHUNK.min(slab.opponent_halves as usize - column),
                rows: unit.rows,
            };
            let mut changed = [0; CHUNK];
            // SAFETY: the units share no position, see above, and `array` is ours alone.
            unsafe { shared.write(kernel, &staged[at * CHUNK..], unit.stride(), wanted, to, &mut changed) };
            for (lane, &rows) in changed.iter().enumerate().filter(|&(_, &rows)| rows != 0) {
                changes += u64::from(rows.count_ones());
                tell(Changed { column: (column + lane) as u32, first_row: unit.row });
            }
        }
        changes
    };
    batch.par_iter().map(one).sum()
}

impl Shared {
    /// Writes the wanted rows of one staged chunk, and sets for each column which rows changed.
    ///
    /// # Safety
    /// No other thread is given a destination that shares a byte with this one while the call lasts.
    unsafe fn write(
        &self,
        kernel: Kernel,
        staged: &[i8],
        staged_stride: usize,
        wanted: u64,
        to: Destination,
        changed: &mut [u64; CHUNK],
    ) {
        assert!(to.rows <= to.stride && to.columns <= CHUNK && to.columns > 0);
        assert!(to.offset + (to.columns - 1) * to.stride + to.rows <= self.len, "a unit lies inside its slab");
        match kernel {
            // SAFETY: inside the array by the assertions, alone by the caller's word.
            Kernel::Avx512 => unsafe { simd::apply_avx512(staged, staged_stride, wanted, self.start, to, changed) },
            // SAFETY: as above.
            Kernel::Avx2 if to.rows == UNIT_ROWS => unsafe {
                simd::apply_avx2(staged, staged_stride, wanted, self.start, to, changed);
            },
            Kernel::Portable | Kernel::Avx2 => {
                for (column, changed) in changed.iter_mut().enumerate().take(to.columns) {
                    for row in (0..to.rows).filter(|&row| wanted >> row & 1 == 1) {
                        let new = staged[row * staged_stride + column];
                        // SAFETY: as above.
                        unsafe {
                            let old = self.start.add(to.offset + column * to.stride + row);
                            if *old != new {
                                *old = new;
                                *changed |= 1 << row;
                            }
                        }
                    }
                }
            }
        }
    }
}
