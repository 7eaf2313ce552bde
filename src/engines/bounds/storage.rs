//! Where bits live: the seam between the driver and memory, caches and files.

use crate::huge_pages::Words;
use crate::kernels::bits::RowBits;
use crate::kernels::cpu;
use crate::layout::plane::{PlaneLayout, PlaneSlab};
use crate::word_update::WordUpdate;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// The plane of won positions, `OpponentMajor`. Bits are set from any thread, and never cleared. Setting and reading them
/// is in one order with all else that is sequentially consistent, so that of two threads, one that sets bits and then
/// looks at something else and one that writes that and then reads the bits, one sees what the other did.
///
/// A failure of a home shows in [`Wins::check`]; until then it may leave out bits, which delays a win and proves
/// nothing wrong.
pub trait Wins<E>: Sync {
    /// A row, to be read while others set bits in it.
    type Row<'a>: RowBits
    where
        Self: 'a;

    /// A row, of which these words will be read. `buffer` is the home's to use.
    fn row<'a>(&'a self, slab: usize, row: usize, words: Range<usize>, buffer: &'a mut Vec<u64>) -> Self::Row<'a>;

    /// These words of a row will be read soon.
    fn expect(&self, _slab: usize, _row: usize, _words: Range<usize>) {}

    /// Bits of these words of a row will be set soon.
    fn expect_bits(&self, _slab: usize, _row: usize, _bits: &[(u32, u64)]) {}

    /// Sets bits of a row, and tells by word which were not set before.
    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)], notify: impl FnMut(u32, u64));

    /// Reads whole rows of a slab.
    fn read(&self, slab: usize, rows: Range<usize>, into: &mut [u64]);

    /// The first failure since the last call.
    fn check(&self) -> Result<(), E>;
}

/// A plane in units of whole rows, each visited by one thread at a time.
pub trait Units<E>: Sync {
    /// Shows the words of a unit; they are kept if the visitor says that it changed them.
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), E>;

    /// These bits of a row, by word, were found lost.
    fn lost(&self, _slab: usize, _row: usize, _bits: &[(u32, u64)]) {}
}

/// A plane of won positions in memory.
#[derive(Debug)]
pub struct WinsInMemory {
    words: Words,
    slabs: Vec<PlaneSlab>,
    update: WordUpdate,
}

/// Units in memory.
#[derive(Debug)]
pub struct UnitsInMemory {
    units: Vec<Mutex<Vec<u64>>>,
}

impl WinsInMemory {
    /// No wins. The current pool is the one whose threads will set them.
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
            // Most are set already: looking first spares the locked operation.
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
    /// Units of zeros with so many words.
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
