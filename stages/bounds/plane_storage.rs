//! Storage of the planes of a state: memory, a scratch file, or a page cache over one.

use super::bound_solver::{BoundSolver, HasPageCounts};
use super::declaration;
use crate::build_context::BuildContext;
use disk::{Disk, DiskError, ScratchFile};
use game::{Index, Orientation};
use planner::{DualIndex, PlanesInMemory};
use solvers::bounds::ranks::KeptWords;
use solvers::bounds::{
    BitKernel, PlaneLayout, PlaneSlab, PlaneUnit, RowBits, Solver, Units, UnitsInMemory, Wins, WinsInMemory,
};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use store::{PageCache, PageCounts};

/// Candidates in a scratch file, read and rewritten by unit.
pub(super) struct UnitsOnDisk {
    file: Box<dyn ScratchFile>,
    /// By unit, its words in the file.
    words: Vec<Range<usize>>,
    buffers: Mutex<Vec<Vec<u64>>>,
}

impl UnitsOnDisk {
    /// Creates units in a file of zeros, one after the other.
    pub(super) fn new(file: Box<dyn ScratchFile>, units: &[PlaneUnit]) -> UnitsOnDisk {
        let mut end = 0;
        let words = units.iter().map(|unit| {
            let start = end;
            end += unit.words.len();
            start..end
        });
        UnitsOnDisk { file, words: words.collect(), buffers: Mutex::default() }
    }
}

impl Units<DiskError> for UnitsOnDisk {
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), DiskError> {
        let words = self.words[unit].clone();
        let buffers = || self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = buffers().pop().unwrap_or_default();
        buffer.resize(words.len(), 0);
        let offset = words.start as u64 * 8;
        self.file.read_at(offset, disk::bytes_of_words_mut(&mut buffer))?;
        if visitor(&mut buffer) {
            self.file.write_at(offset, disk::bytes_of_words(&buffer))?;
        }
        buffers().push(buffer);
        Ok(())
    }
}

/// Wins behind a page cache, `OpponentMajor`: a row is contiguous.
struct CachedWins {
    cache: PageCache,
    slabs: Vec<PlaneSlab>,
}

impl Wins<DiskError> for CachedWins {
    type Row<'a> = &'a [u64];

    /// Any thread may set bits: a page has a lock.
    fn enter_pool(&mut self) {}

    fn row<'a>(&'a self, slab: usize, row: usize, words: Range<usize>, buffer: &'a mut Vec<u64>) -> &'a [u64] {
        let slab = &self.slabs[slab];
        if buffer.len() < slab.row_words {
            buffer.resize(slab.row_words, 0);
        }
        self.cache.lock().read(slab.word(row) + words.start, &mut buffer[words]);
        buffer
    }

    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)], mut notify: impl FnMut(u32, u64)) {
        let first = self.slabs[slab].word(row);
        let mut pages = self.cache.lock();
        for &(at, bits) in bits {
            let new = pages.set(first + at as usize, bits);
            if new != 0 {
                notify(at, new);
            }
        }
    }

    fn read(&self, slab: usize, rows: Range<usize>, into: &mut [u64]) {
        self.cache.lock().read(self.slabs[slab].word(rows.start), into);
    }

    fn check(&self) -> Result<(), DiskError> {
        self.cache.check()
    }
}

impl HasPageCounts for CachedWins {
    fn page_counts(&self) -> Option<PageCounts> {
        Some(self.cache.page_counts())
    }
}

/// Words of wins that a rank keeps, behind a page cache.
pub(super) struct PagedWords {
    cache: PageCache,
}

impl PagedWords {
    /// Wraps a file of zeros, which is cached in `cache_bytes` bytes of pages.
    pub(super) fn new(file: Box<dyn ScratchFile>, page_bytes: usize, cache_bytes: u64) -> PagedWords {
        PagedWords { cache: PageCache::new(file, page_bytes, cache_bytes) }
    }
}

impl KeptWords<DiskError> for PagedWords {
    type Row<'a> = &'a [u64];

    /// Any thread may set bits: a page has a lock.
    fn enter_pool(&mut self) {}

    fn row<'a>(&'a self, first: usize, words: Range<usize>, buffer: &'a mut Vec<u64>) -> &'a [u64] {
        if buffer.len() < words.end {
            buffer.resize(words.end, 0);
        }
        self.cache.lock().read(first + words.start, &mut buffer[words]);
        buffer
    }

    fn has(&self, first: usize, bits: &[(u32, u64)]) -> bool {
        let mut pages = self.cache.lock();
        bits.iter().all(|&(at, bits)| bits & !pages.word(first + at as usize) == 0)
    }

    fn set(&self, word: usize, bits: u64) -> u64 {
        self.cache.lock().set(word, bits)
    }

    fn read(&self, words: Range<usize>, into: &mut [u64]) {
        self.cache.lock().read(words.start, &mut into[..words.len()]);
    }

    fn check(&self) -> Result<(), DiskError> {
        self.cache.check()
    }
}

/// Wins behind a page cache, `MoverMajor` like the candidates: a row of wins is one bit in each of many rows.
/// The baseline for dual indexing.
struct SingleIndexWins {
    cache: PageCache,
    /// `MoverMajor`.
    slabs: Vec<PlaneSlab>,
}

#[derive(Clone, Copy)]
struct SingleIndexRow<'a> {
    wins: &'a SingleIndexWins,
    slab: PlaneSlab,
    row: usize,
}

impl SingleIndexRow<'_> {
    fn location(self, column: usize) -> (usize, u32) {
        (self.slab.word(column) + self.row / 64, self.row as u32 % 64)
    }
}

impl RowBits for SingleIndexRow<'_> {
    fn bits(self, word: usize, mask: u64) -> u64 {
        let mut pages = self.wins.cache.lock();
        let (mut left, mut bits) = (mask, 0);
        while left != 0 {
            let bit = left.trailing_zeros();
            let (at, shift) = self.location(word * 64 + bit as usize);
            bits |= (pages.word(at) >> shift & 1) << bit;
            left &= left - 1;
        }
        bits
    }
}

impl Wins<DiskError> for SingleIndexWins {
    type Row<'a> = SingleIndexRow<'a>;

    /// Any thread may set bits: a page has a lock.
    fn enter_pool(&mut self) {}

    fn row<'a>(&'a self, slab: usize, row: usize, _: Range<usize>, _: &'a mut Vec<u64>) -> SingleIndexRow<'a> {
        SingleIndexRow { wins: self, slab: self.slabs[slab], row }
    }

    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)], mut notify: impl FnMut(u32, u64)) {
        let row = SingleIndexRow { wins: self, slab: self.slabs[slab], row };
        let mut pages = self.cache.lock();
        for &(word, bits) in bits {
            let (mut left, mut new) = (bits, 0);
            while left != 0 {
                let bit = left.trailing_zeros();
                let (at, shift) = row.location(word as usize * 64 + bit as usize);
                new |= u64::from(pages.set(at, 1 << shift) != 0) << bit;
                left &= left - 1;
            }
            if new != 0 {
                notify(word, new);
            }
        }
    }

    fn read(&self, slab: usize, rows: Range<usize>, into: &mut [u64]) {
        let slab = self.slabs[slab];
        let row_words = slab.rows.div_ceil(64);
        for (row, words) in rows.zip(into.chunks_mut(row_words)) {
            let row = SingleIndexRow { wins: self, slab, row };
            for (word, into) in words.iter_mut().enumerate() {
                let columns = (slab.rows - word * 64).min(64);
                *into = row.bits(word, u64::MAX >> (64 - columns));
            }
        }
    }

    fn check(&self) -> Result<(), DiskError> {
        self.cache.check()
    }
}

impl HasPageCounts for SingleIndexWins {
    fn page_counts(&self) -> Option<PageCounts> {
        Some(self.cache.page_counts())
    }
}

/// Returns the solver of a database with empty planes, in the planned storage. Scratch files go to `directory`.
pub(crate) fn empty(
    build: &BuildContext,
    index: &Index,
    disk: &dyn Disk,
    directory: &Path,
) -> Result<Box<dyn BoundSolver>, DiskError> {
    let layout = PlaneLayout::new(index, Orientation::MoverMajor);
    let wins_layout = PlaneLayout::new(index, Orientation::OpponentMajor);
    let settings = build.settings();
    let scratch = |name: &str, layout: &PlaneLayout| disk.scratch(&directory.join(name), layout.words() as u64 * 8);
    let on_disk =
        || -> Result<UnitsOnDisk, DiskError> { Ok(UnitsOnDisk::new(scratch("candidates", &layout)?, &layout.units())) };
    let (block_bytes, plan) = (settings.dual.block_bytes as usize, build.plan(index.stones()));
    let cache = |file| PageCache::new(file, block_bytes, plan.memory().page_cache_bytes);
    let (tables, kernel) = (build.tables(), BitKernel::detect());
    let index = index.clone();
    Ok(match declaration::planes_in_memory(plan) {
        PlanesInMemory::WinsAndCandidates => {
            let candidates = UnitsInMemory::zeroed(layout.units().into_iter().map(|unit| unit.words));
            Box::new(Solver::new(tables, index, kernel, WinsInMemory::none(&wins_layout), candidates))
        }
        PlanesInMemory::Wins => {
            Box::new(Solver::new(tables, index, kernel, WinsInMemory::none(&wins_layout), on_disk()?))
        }
        PlanesInMemory::None if settings.dual.index == DualIndex::Single => {
            let wins = SingleIndexWins { cache: cache(scratch("wins", &layout)?), slabs: layout.slabs().to_vec() };
            Box::new(Solver::new(tables, index, kernel, wins, on_disk()?))
        }
        PlanesInMemory::None => {
            let cache = cache(scratch("wins", &wins_layout)?);
            let wins = CachedWins { cache, slabs: wins_layout.slabs().to_vec() };
            Box::new(Solver::new(tables, index, kernel, wins, on_disk()?))
        }
    })
}
