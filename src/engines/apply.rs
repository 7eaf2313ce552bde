//! Writing staged scores back: the transpose from `MoverMajor` units into the `OpponentMajor` array.
//!
//! Units of one slab own disjoint bytes of the array (their rows are its columns), interleaved at the stride of a row.
//! A slice cannot say that, so this is the one place that writes through a shared pointer.

use crate::kernel::{Destination, Kernel, SlabWork, UNIT_ROWS, Unit};
use crate::rows::SlabRows;
use crate::simd;
use crate::tables::CHUNK;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Fewer chunks of rows than this take a thread some 20 microseconds.
const SMALL_CHUNKS: u32 = 512;

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
    rows: SlabRows,
    batch: &[Staged],
    array: &mut [i8],
    tell: impl Fn(Changed) + Sync,
) -> u64 {
    assert_apart(batch.iter().map(|(unit, _)| *unit));
    let shared = Shared { start: array.as_mut_ptr(), len: array.len() };
    // SAFETY: the units share no position, and `array` is ours alone.
    let one = |(unit, staged): &Staged| unsafe { shared.apply(kernel, rows, unit, staged, &tell) };
    if is_small(batch.iter().map(|(unit, _)| *unit)) {
        batch.iter().map(one).sum()
    } else {
        batch.par_iter().map(one).sum()
    }
}

/// Recomputes units of a slab that reads nothing of `array`, and writes each at once, in parallel.
///
/// `buffers` has one for each thread. Returns the number of changes.
///
/// # Panics
/// When the units are not in ascending order, or reach beyond the slab.
#[expect(clippy::too_many_arguments, reason = "what is recomputed, and where from and to")]
pub(crate) fn recompute_and_apply(
    kernel: Kernel,
    rows: SlabRows,
    units: &[Unit],
    work: &SlabWork,
    buffers: &[Mutex<Vec<i8>>],
    values: &[i8],
    array: &mut [i8],
    tell: impl Fn(Changed) + Sync,
) -> u64 {
    assert_apart(units.iter());
    let shared = Shared { start: array.as_mut_ptr(), len: array.len() };
    let one = |unit: &Unit| {
        let mut staged =
            buffers[rayon::current_thread_index().unwrap_or(0)].lock().unwrap_or_else(PoisonError::into_inner);
        kernel.recompute(work, unit, values, &mut staged);
        // SAFETY: the units share no position, and `array` is ours alone: `values` is not part of it.
        unsafe { shared.apply(kernel, rows, unit, &staged, &tell) }
    };
    if is_small(units.iter()) { units.iter().map(one).sum() } else { units.par_iter().map(one).sum() }
}

/// Whether the calling thread is done with these sooner than another would be awake.
pub(crate) fn is_small<'a>(units: impl Iterator<Item = &'a Unit>) -> bool {
    let chunks: u32 = units.flat_map(|unit| unit.wanted).map(u16::count_ones).sum();
    chunks < SMALL_CHUNKS
}

/// Ascending in steps of whole units: no two share a position.
fn assert_apart<'a>(units: impl Iterator<Item = &'a Unit> + Clone) {
    assert!(units.clone().all(|unit| unit.row.is_multiple_of(UNIT_ROWS) && unit.rows <= UNIT_ROWS));
    assert!(units.is_sorted_by(|a, b| a.row < b.row || a.row == b.row && a.chunk + a.chunks <= b.chunk));
}

impl Shared {
    /// Writes the wanted chunks of one staged unit; the number of changes.
    ///
    /// # Safety
    /// No other thread is given a unit that shares a position with this one while the call lasts.
    unsafe fn apply(&self, kernel: Kernel, slab: SlabRows, unit: &Unit, staged: &[i8], tell: impl Fn(Changed)) -> u64 {
        let mut changes = 0;
        for at in 0..unit.chunks {
            let wanted = unit.wanted_rows(at);
            if wanted == 0 {
                continue;
            }
            let column = (unit.chunk + at) * CHUNK;
            assert!(column < slab.rows, "a unit lies inside its slab");
            let to = Destination {
                offset: slab.offset + column * slab.stride + unit.row,
                stride: slab.stride,
                columns: CHUNK.min(slab.rows - column),
                rows: unit.rows,
            };
            assert!(unit.row + unit.rows <= slab.columns, "a unit lies inside its slab");
            let mut changed = [0; CHUNK];
            // SAFETY: the caller's word.
            unsafe { self.write(kernel, &staged[at * CHUNK..], unit.stride(), wanted, to, &mut changed) };
            for (lane, &rows) in changed.iter().enumerate().filter(|&(_, &rows)| rows != 0) {
                changes += u64::from(rows.count_ones());
                tell(Changed { column: (column + lane) as u32, first_row: unit.row });
            }
        }
        changes
    }

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
