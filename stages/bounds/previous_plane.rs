//! A copy of a plane from the start of a bound, to find the positions that the bound decided.
//!
//! The copy is in memory if the budget has room, otherwise in a scratch file.

use disk::{Disk, DiskError, ScratchFile};
use rayon::prelude::*;
use solvers::bounds::{PlaneLayout, PlaneUnit, Units, UnitsInMemory};
use std::ops::Range;
use std::path::Path;

/// Previous state of a plane, all zeros at first, by unit.
pub(super) struct PreviousPlane {
    units: Vec<PlaneUnit>,
    location: PlaneLocation,
}

enum PlaneLocation {
    Memory(UnitsInMemory),
    Disk(Box<dyn ScratchFile>),
}

impl PreviousPlane {
    /// Returns a plane in memory.
    pub(super) fn in_memory(layout: &PlaneLayout) -> PreviousPlane {
        let units = layout.units();
        let location = PlaneLocation::Memory(UnitsInMemory::zeroed(units.iter().map(|unit| unit.words.clone())));
        PreviousPlane { units, location }
    }

    /// Returns a plane in a scratch file at `path`.
    pub(super) fn on_disk(layout: &PlaneLayout, disk: &dyn Disk, path: &Path) -> Result<PreviousPlane, DiskError> {
        let location = PlaneLocation::Disk(disk.scratch(path, layout.words() as u64 * 8)?);
        Ok(PreviousPlane { units: layout.units(), location })
    }

    /// Whether the plane is in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.location, PlaneLocation::Memory(_))
    }

    /// Sets the words of a unit.
    pub(super) fn set(&self, unit: usize, words: &[u64]) -> Result<(), DiskError> {
        match &self.location {
            PlaneLocation::Memory(units) => units.visit(unit, &mut |previous| {
                previous.copy_from_slice(words);
                true
            }),
            PlaneLocation::Disk(file) => file.write_at(self.offset(unit), disk::bytes_of_words(words)),
        }
    }

    /// Sets the words of a unit to `now`, and leaves in `now` the bits that are new. `buffer` is scratch space.
    pub(super) fn gained(&self, unit: usize, now: &mut [u64], buffer: &mut Vec<u64>) -> Result<(), DiskError> {
        let exchange = |previous: &mut [u64], now: &mut [u64]| {
            for (previous, now) in previous.iter_mut().zip(now) {
                (*previous, *now) = (*now, *now & !*previous);
            }
        };
        match &self.location {
            PlaneLocation::Memory(units) => units.visit(unit, &mut |previous| {
                exchange(previous, now);
                true
            }),
            PlaneLocation::Disk(file) => {
                buffer.resize(now.len(), 0);
                file.read_at(self.offset(unit), disk::bytes_of_words_mut(buffer))?;
                exchange(buffer, now);
                file.write_at(self.offset(unit), disk::bytes_of_words(buffer))
            }
        }
    }

    /// Fills `lost` with the bits of a unit that are missing from `now`. A plane in memory becomes `lost`; either way
    /// the unit must be set before the next call.
    pub(super) fn lost(&self, unit: usize, now: &[u64], lost: &mut [u64]) -> Result<(), DiskError> {
        match &self.location {
            PlaneLocation::Memory(units) => units.visit(unit, &mut |previous| {
                for ((previous, now), lost) in previous.iter_mut().zip(now).zip(&mut *lost) {
                    *previous &= !now;
                    *lost = *previous;
                }
                true
            }),
            PlaneLocation::Disk(file) => {
                file.read_at(self.offset(unit), disk::bytes_of_words_mut(lost))?;
                lost.iter_mut().zip(now).for_each(|(lost, now)| *lost &= !now);
                Ok(())
            }
        }
    }

    /// Reads words of the units for which `has` is true, and zeros for others; returns whether there are any such
    /// units. The plane must be in memory.
    pub(super) fn read(&self, words: Range<usize>, into: &mut [u64], has: impl Fn(usize) -> bool + Sync) -> bool {
        let PlaneLocation::Memory(units) = &self.location else { unreachable!("only a plane in memory is read") };
        let first = self.units.partition_point(|unit| unit.words.end <= words.start);
        let inside = self.units[first..].iter().take_while(|unit| unit.words.start < words.end);
        let mut rest = &mut into[..words.len()];
        let parts = (first..).zip(inside).map(|(number, unit)| {
            let part = words.start.max(unit.words.start)..words.end.min(unit.words.end);
            let (now, after) = std::mem::take(&mut rest).split_at_mut(part.len());
            rest = after;
            (number, part.start - unit.words.start..part.end - unit.words.start, now)
        });
        let read = |(number, part, now): (usize, Range<usize>, &mut [u64])| {
            if !has(number) {
                now.fill(0);
                return false;
            }
            let Ok(()) = Units::<std::convert::Infallible>::visit(units, number, &mut |words| {
                now.copy_from_slice(&words[part.clone()]);
                false
            });
            true
        };
        parts.collect::<Vec<_>>().into_par_iter().map(read).reduce(|| false, |any, other| any | other)
    }

    fn offset(&self, unit: usize) -> u64 {
        self.units[unit].words.start as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;
    use game::{Index, Orientation, PositionSet};

    /// A plane in memory and one on disk agree.
    #[test]
    fn memory_and_disk_agree() {
        let layout = PlaneLayout::new(&Index::new(13, PositionSet::All), Orientation::MoverMajor);
        let units = layout.units();
        let (disk, path) = (MemoryDisk::new(), Path::new("/previous"));
        let both = [PreviousPlane::in_memory(&layout), PreviousPlane::on_disk(&layout, &disk, path).unwrap()];
        let noise = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let words = |unit: &PlaneUnit, with: usize| unit.words.clone().map(|at| noise(at + with)).collect::<Vec<_>>();
        for (number, unit) in units.iter().enumerate() {
            for round in 0..2 {
                let found = both.each_ref().map(|previous| {
                    let mut gained = words(unit, round);
                    previous.gained(number, &mut gained, &mut Vec::new()).unwrap();
                    gained
                });
                assert_eq!(found[0], found[1]);
                let previous = |at: usize| if round == 0 { 0 } else { noise(at) };
                let expected: Vec<_> = unit.words.clone().map(|at| noise(at + round) & !previous(at)).collect();
                assert_eq!(found[0], expected);
            }
            let found = both.each_ref().map(|previous| {
                previous.set(number, &words(unit, 5)).unwrap();
                let mut lost = vec![0; unit.words.len()];
                previous.lost(number, &words(unit, 9), &mut lost).unwrap();
                lost
            });
            assert_eq!(found[0], found[1]);
            let expected: Vec<_> = unit.words.clone().map(|at| noise(at + 5) & !noise(at + 9)).collect();
            assert_eq!(found[0], expected);
        }
        // Across units, every third of which counts as empty.
        let has = |number: usize| number % 3 != 1;
        let unit_of = |at: usize| units.partition_point(|unit| unit.words.end <= at);
        for first in [0, 1, 777, layout.words() / 2] {
            let range = first..layout.words().min(first + 20_000);
            let mut read = vec![9; range.len()];
            assert!(both[0].read(range.clone(), &mut read, has));
            let expected = |at: usize| if has(unit_of(at)) { noise(at + 5) & !noise(at + 9) } else { 0 };
            assert!(range.zip(read).all(|(at, word)| word == expected(at)));
        }
        assert!(!both[0].read(0..layout.words(), &mut vec![9; layout.words()], |_| false));
    }
}
