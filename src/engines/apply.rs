//! Writing staged scores back: the transpose from `MoverMajor` units into the `OpponentMajor` array.
//!
//! Units of one slab own disjoint bytes of the array (their rows are its columns), interleaved at the stride of a row.
//! A slice cannot say that, so this is the one place that writes through a shared pointer.

use crate::kernel::{Destination, Kernel, Unit};
use crate::simd;
use crate::tables::CHUNK;
use std::marker::PhantomData;

/// An array that several threads write to at once, each in places of its own.
pub(crate) struct Shared<'a> {
    start: *mut i8,
    len: usize,
    array: PhantomData<&'a mut [i8]>,
}

// SAFETY: all access goes through `Shared::apply`, whose callers write disjoint places.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub(crate) fn new(array: &'a mut [i8]) -> Shared<'a> {
        Shared { start: array.as_mut_ptr(), len: array.len(), array: PhantomData }
    }

    /// Writes the rows of chunk `at` of a staged unit that are in `wanted`, and sets for each column which rows changed.
    ///
    /// # Safety
    /// No other thread is given a destination that shares a byte with this one while the call lasts.
    pub(crate) unsafe fn apply(
        &self,
        kernel: Kernel,
        unit: &Unit,
        staged: &[i8],
        at: usize,
        wanted: u64,
        to: Destination,
        changed: &mut [u64; CHUNK],
    ) {
        assert!(to.rows <= to.stride && to.columns <= CHUNK && to.columns > 0);
        assert!(to.offset + (to.columns - 1) * to.stride + to.rows <= self.len, "a unit lies inside its slab");
        let staged = &staged[at * CHUNK..];
        match kernel {
            // SAFETY: inside the array by the assertions, alone by the caller's word.
            Kernel::Avx512 => unsafe { simd::apply(staged, unit.stride(), wanted, self.start, to, changed) },
            Kernel::Portable => {
                for (column, changed) in changed.iter_mut().enumerate().take(to.columns) {
                    *changed = 0;
                    for row in (0..to.rows).filter(|&row| wanted >> row & 1 == 1) {
                        let new = staged[row * unit.stride() + column];
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
