//! A plane as it was when a bound began, by unit: what the bound decided is what differs.
//!
//! In memory where the budget has room for it, else in a scratch file.

use disk::{Disk, DiskError, ScratchFile};
use engines::bounds::{PlaneLayout, PlaneUnit, Units, UnitsInMemory};
use std::ops::Range;
use std::path::Path;

/// The plane, all zeros at first.
pub(super) struct Before {
    units: Vec<PlaneUnit>,
    home: Home,
}

enum Home {
    Memory(UnitsInMemory),
    Disk(Box<dyn ScratchFile>),
}

impl Before {
    /// A plane in memory.
    pub(super) fn in_memory(layout: &PlaneLayout) -> Before {
        let units = layout.units();
        let home = Home::Memory(UnitsInMemory::zeroed(units.iter().map(|unit| unit.words.clone())));
        Before { units, home }
    }

    /// A plane in a scratch file at `path`.
    pub(super) fn on_disk(layout: &PlaneLayout, disk: &dyn Disk, path: &Path) -> Result<Before, DiskError> {
        let home = Home::Disk(disk.scratch(path, layout.words() as u64 * 8)?);
        Ok(Before { units: layout.units(), home })
    }

    /// Whether it is in memory.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.home, Home::Memory(_))
    }

    /// Makes these the words of a unit.
    pub(super) fn set(&self, unit: usize, words: &[u64]) -> Result<(), DiskError> {
        match &self.home {
            Home::Memory(units) => units.visit(unit, &mut |before| {
                before.copy_from_slice(words);
                true
            }),
            Home::Disk(file) => file.write_at(self.place(unit), disk::bytes_of_words(words)),
        }
    }

    /// Leaves in `now`, a unit's words, those bits that were not there before, and takes it as it was for the next time.
    /// `buffer` has room for as many.
    pub(super) fn gained(&self, unit: usize, now: &mut [u64], buffer: &mut Vec<u64>) -> Result<(), DiskError> {
        let exchange = |before: &mut [u64], now: &mut [u64]| {
            for (before, now) in before.iter_mut().zip(now) {
                (*before, *now) = (*now, *now & !*before);
            }
        };
        match &self.home {
            Home::Memory(units) => units.visit(unit, &mut |before| {
                exchange(before, now);
                true
            }),
            Home::Disk(file) => {
                buffer.resize(now.len(), 0);
                file.read_at(self.place(unit), disk::bytes_of_words_mut(buffer))?;
                exchange(buffer, now);
                file.write_at(self.place(unit), disk::bytes_of_words(buffer))
            }
        }
    }

    /// Fills `lost`, a unit's words, with those bits that are not in `now` any more. In memory, what was before becomes that;
    /// either way it must be set again before the next time.
    pub(super) fn lost(&self, unit: usize, now: &[u64], lost: &mut [u64]) -> Result<(), DiskError> {
        match &self.home {
            Home::Memory(units) => units.visit(unit, &mut |before| {
                for ((before, now), lost) in before.iter_mut().zip(now).zip(&mut *lost) {
                    *before &= !now;
                    *lost = *before;
                }
                true
            }),
            Home::Disk(file) => {
                file.read_at(self.place(unit), disk::bytes_of_words_mut(lost))?;
                lost.iter_mut().zip(now).for_each(|(lost, now)| *lost &= !now);
                Ok(())
            }
        }
    }

    /// Words of a plane in memory, of those of its units that `has` any bit, and whether there are such.
    pub(super) fn read(&self, words: Range<usize>, into: &mut [u64], has: impl Fn(usize) -> bool) -> bool {
        let Home::Memory(units) = &self.home else { unreachable!("only a plane in memory is read") };
        let first = self.units.partition_point(|unit| unit.words.end <= words.start);
        let inside = self.units[first..].iter().take_while(|unit| unit.words.start < words.end);
        let (mut rest, mut any) = (&mut into[..words.len()], false);
        for (number, unit) in (first..).zip(inside) {
            let part = words.start.max(unit.words.start)..words.end.min(unit.words.end);
            let (now, after) = std::mem::take(&mut rest).split_at_mut(part.len());
            rest = after;
            if !has(number) {
                now.fill(0);
                continue;
            }
            any = true;
            let part = part.start - unit.words.start..part.end - unit.words.start;
            let Ok(()) = Units::<std::convert::Infallible>::visit(units, number, &mut |words| {
                now.copy_from_slice(&words[part.clone()]);
                false
            });
        }
        any
    }

    fn place(&self, unit: usize) -> u64 {
        self.units[unit].words.start as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;
    use game::{Index, Orientation, PositionSet};

    /// Both homes tell the same.
    #[test]
    fn homes_agree() {
        let layout = PlaneLayout::new(&Index::new(13, PositionSet::All), Orientation::MoverMajor);
        let units = layout.units();
        let (disk, path) = (MemoryDisk::new(), Path::new("/before"));
        let both = [Before::in_memory(&layout), Before::on_disk(&layout, &disk, path).unwrap()];
        let noise = |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let words = |unit: &PlaneUnit, with: usize| unit.words.clone().map(|at| noise(at + with)).collect::<Vec<_>>();
        for (number, unit) in units.iter().enumerate() {
            for round in 0..2 {
                let told = both.each_ref().map(|before| {
                    let mut gained = words(unit, round);
                    before.gained(number, &mut gained, &mut Vec::new()).unwrap();
                    gained
                });
                assert_eq!(told[0], told[1]);
                let before = |at: usize| if round == 0 { 0 } else { noise(at) };
                let expected: Vec<_> = unit.words.clone().map(|at| noise(at + round) & !before(at)).collect();
                assert_eq!(told[0], expected);
            }
            let told = both.each_ref().map(|before| {
                before.set(number, &words(unit, 5)).unwrap();
                let mut lost = vec![0; unit.words.len()];
                before.lost(number, &words(unit, 9), &mut lost).unwrap();
                lost
            });
            assert_eq!(told[0], told[1]);
            let expected: Vec<_> = unit.words.clone().map(|at| noise(at + 5) & !noise(at + 9)).collect();
            assert_eq!(told[0], expected);
        }
        // Across units, of which every third counts as one without a bit.
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
