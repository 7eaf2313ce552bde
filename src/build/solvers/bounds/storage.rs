//! Storage of planes: the traits between the driver and memory, caches and files.

use crate::huge_pages::Words;
use crate::kernels::bits::RowBits;
use crate::kernels::cpu;
use crate::layout::plane::{PlaneLayout, PlaneSlab};
use crate::word_update::WordUpdate;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// Storage of the plane of won positions, `OpponentMajor`. Any thread may set bits; none are cleared. Sets and reads
/// are sequentially consistent: of two threads, one that sets bits and then reads another variable, and one that writes
/// that variable and then reads the bits, at least one sees the write of the other.
///
/// [`Wins::check`] returns a failure of the storage. Until then reads may miss bits, which delays a win but proves
/// nothing wrong.
pub trait Wins<E>: Sync {
    /// Row that is read while other threads set bits in it.
    type Row<'a>: RowBits
    where
        Self: 'a;

    /// Returns a row, of which only these words will be read. `buffer` is scratch space for the storage.
    fn row<'a>(&'a self, slab: usize, row: usize, words: Range<usize>, buffer: &'a mut Vec<u64>) -> Self::Row<'a>;

    /// Hints that these words of a row will be read soon.
    fn expect(&self, _slab: usize, _row: usize, _words: Range<usize>) {}

    /// Hints that bits of these words of a row will be set soon.
    fn expect_bits(&self, _slab: usize, _row: usize, _bits: &[(u32, u64)]) {}

    /// Sets bits of a row, and passes the new ones to `notify` by word.
    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)], notify: impl FnMut(u32, u64));

    /// Reads whole rows of a slab.
    fn read(&self, slab: usize, rows: Range<usize>, into: &mut [u64]);

    /// Makes the current pool the one whose threads set bits.
    fn enter_pool(&mut self);

    /// Returns the first failure since the last call.
    fn check(&self) -> Result<(), E>;
}

/// Storage of a plane in units of whole rows, each visited by one thread at a time.
pub trait Units<E>: Sync {
    /// Passes the words of a unit to the visitor, and stores them if it returns true.
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), E>;

    /// Records that these bits of a row, by word, were found lost.
    fn lost(&self, _slab: usize, _row: usize, _bits: &[(u32, u64)]) {}
}

/// Plane of won positions in memory.
pub struct WinsInMemory {
    words: Words,
    slabs: Vec<PlaneSlab>,
    update: WordUpdate,
}

/// Plane in units, in memory.
#[derive(Debug)]
pub struct UnitsInMemory {
    units: Vec<Mutex<Vec<u64>>>,
}

impl WinsInMemory {
    /// Creates a plane without wins. Only threads of the current pool may set them, or of one that it enters later.
    pub fn none(layout: &PlaneLayout) -> WinsInMemory {
        WinsInMemory {
            words: Words::zeroed(layout.words()),
            slabs: layout.slabs().to_vec(),
            update: WordUpdate::for_pool(),
        }
    }
}

impl<E> Wins<E> for WinsInMemory {
    type Row<'a> = &'a [AtomicU64];

    fn enter_pool(&mut self) {
        self.update = WordUpdate::for_pool();
    }

    fn row<'a>(&'a self, slab: usize, row: usize, _: Range<usize>, _: &'a mut Vec<u64>) -> &'a [AtomicU64] {
        let slab = &self.slabs[slab];
        &self.words[slab.word(row)..][..slab.row_words]
    }

    fn expect(&self, slab: usize, row: usize, words: Range<usize>) {
        let slab = &self.slabs[slab];
        cpu::prefetch(&self.words[slab.word(row)..][words]);
    }

    fn expect_bits(&self, slab: usize, row: usize, bits: &[(u32, u64)]) {
        let slab = &self.slabs[slab];
        let words = &self.words[slab.word(row)..][..slab.row_words];
        let mut line = u32::MAX;
        for &(at, _) in bits {
            if at / 8 != line {
                line = at / 8;
                cpu::prefetch(&words[at as usize..=at as usize]);
            }
        }
    }

    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)], mut notify: impl FnMut(u32, u64)) {
        debug_assert_eq!(self.update, WordUpdate::for_pool());
        let slab = &self.slabs[slab];
        let words = &self.words[slab.word(row)..][..slab.row_words];
        for &(at, bits) in bits {
            let word = &words[at as usize];
            // Most are set already: testing first avoids the locked operation.
            if bits & !word.load(Relaxed) == 0 {
                continue;
            }
            let new = bits & !self.update.set(word, bits);
            if new != 0 {
                notify(at, new);
            }
        }
    }

    fn read(&self, slab: usize, rows: Range<usize>, into: &mut [u64]) {
        let slab = &self.slabs[slab];
        for (into, word) in into.iter_mut().zip(&self.words[slab.word(rows.start)..slab.word(rows.end)]) {
            *into = word.load(Relaxed);
        }
    }

    fn check(&self) -> Result<(), E> {
        Ok(())
    }
}

impl UnitsInMemory {
    /// Creates units of zeros with the given numbers of words.
    pub fn zeroed(units: impl Iterator<Item = Range<usize>>) -> UnitsInMemory {
        UnitsInMemory { units: units.map(|words| Mutex::new(vec![0; words.len()])).collect() }
    }
}

impl<E> Units<E> for UnitsInMemory {
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), E> {
        visitor(&mut self.units[unit].lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}
