//! Runs the solver of bounds and records its accesses to pages of wins, under both indexings.
//!
//! The order of operations is that of the stages of one-bit-dual on one thread: for each bound, wins by captures are set,
//! the bound is solved, and new wins are read. A test compares the counts with those of the stages.

use crate::distances::{Access, AccessCounts, Distances};
use game::{Index, Orientation, Score};
use solvers::bounds::{
    BitKernel, BoundReport, PlaneLayout, PlaneSlab, RowBits, Solver, UnitsInMemory, Wins, WinsInMemory,
    in_both_orientations, plane,
};
use solvers::{Bytes, Tables, capture};
use std::convert::Infallible;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Page accesses of a phase.
#[derive(Clone, Debug)]
pub struct Use {
    /// With wins indexed by their opponent's half first, other than the candidates.
    pub dual: AccessCounts,
    /// With wins indexed like the candidates.
    pub single: AccessCounts,
}

/// Page accesses of one bound.
#[derive(Clone, Debug)]
pub struct RecordedBound {
    /// The bound.
    pub bound: u32,
    /// Counters of the solver.
    pub report: BoundReport,
    /// By pass.
    pub passes: Vec<Use>,
    /// Accesses before the first pass: reading the wins of the bound before, and setting wins by captures.
    pub before: Use,
}

impl Use {
    /// Sum of phases; `None` without any.
    pub fn all<'a>(mut uses: impl Iterator<Item = &'a Use>) -> Option<Use> {
        let mut all = uses.next()?.clone();
        for other in uses {
            all.dual.add(&other.dual);
            all.single.add(&other.single);
        }
        Some(all)
    }
}

/// Wins in memory that record page accesses.
struct RecordedWins {
    wins: WinsInMemory,
    /// `OpponentMajor`.
    dual: Vec<PlaneSlab>,
    /// `MoverMajor`.
    single: Vec<PlaneSlab>,
    page_shift: u32,
    record: Mutex<RowRecorder>,
}

struct RowRecorder {
    is_on: bool,
    dual: Distances,
    single: Distances,
}

impl RecordedWins {
    fn record(&self) -> MutexGuard<'_, RowRecorder> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a run of words in `OpponentMajor`: one access to each page.
    fn note_words(&self, record: &mut RowRecorder, words: Range<usize>) {
        for page in words.start >> self.page_shift..=(words.end - 1) >> self.page_shift {
            record.dual.access(page, Access::Read, 1);
        }
    }

    /// Records bits of a word in `MoverMajor`, where columns are rows: one access to each bit.
    #[inline]
    fn note_bits(&self, record: &mut RowRecorder, slab: usize, row: usize, word: usize, mask: u64, access: Access) {
        if mask == 0 {
            return;
        }
        let slab = &self.single[slab];
        let page = |bit: u32| (slab.word(word * 64 + bit as usize) + row / 64) >> self.page_shift;
        let (first, last) = (page(mask.trailing_zeros()), page(63 - mask.leading_zeros()));
        if first == last {
            record.single.access(first, access, u64::from(mask.count_ones()));
            return;
        }
        let mut left = mask;
        while left != 0 {
            record.single.access(page(left.trailing_zeros()), access, 1);
            left &= left - 1;
        }
    }
}

/// A row whose bits are recorded as they are read.
#[derive(Clone, Copy)]
struct RecordedRow<'a> {
    wins: &'a RecordedWins,
    words: &'a [AtomicU64],
    slab: usize,
    row: usize,
}

impl RowBits for RecordedRow<'_> {
    fn bits(self, word: usize, mask: u64) -> u64 {
        let mut record = self.wins.record();
        if record.is_on {
            self.wins.note_bits(&mut record, self.slab, self.row, word, mask, Access::Read);
        }
        self.words[word].load(Relaxed)
    }
}

impl Wins<Infallible> for RecordedWins {
    type Row<'a> = RecordedRow<'a>;

    fn row<'a>(&'a self, slab: usize, row: usize, words: Range<usize>, buffer: &'a mut Vec<u64>) -> RecordedRow<'a> {
        let mut record = self.record();
        if record.is_on {
            let first = self.dual[slab].word(row);
            self.note_words(&mut record, first + words.start..first + words.end);
        }
        let words = Wins::<Infallible>::row(&self.wins, slab, row, words, buffer);
        RecordedRow { wins: self, words, slab, row }
    }

    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)], tell: impl FnMut(u32, u64)) {
        let mut record = self.record();
        if record.is_on {
            let first = self.dual[slab].word(row);
            for &(word, bits) in bits {
                record.dual.access((first + word as usize) >> self.page_shift, Access::Set, 1);
                self.note_bits(&mut record, slab, row, word as usize, bits, Access::Set);
            }
        }
        drop(record);
        Wins::<Infallible>::set(&self.wins, slab, row, bits, tell);
    }

    fn read(&self, slab: usize, rows: Range<usize>, into: &mut [u64]) {
        let mut record = self.record();
        if record.is_on {
            let of = &self.dual[slab];
            self.note_words(&mut record, of.word(rows.start)..of.word(rows.end));
            for row in rows.clone() {
                for word in 0..of.row_words {
                    let columns = (of.columns - word * 64).min(64);
                    self.note_bits(&mut record, slab, row, word, u64::MAX >> (64 - columns), Access::Read);
                }
            }
        }
        drop(record);
        Wins::<Infallible>::read(&self.wins, slab, rows, into);
    }

    fn check(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Solves a database in memory from its best captures, and records the page accesses of some bounds, the highest first.
/// Caches are empty before the first.
///
/// # Panics
/// When a bound decides other positions than those with this score, when the pool has several threads, so that the order
/// would be random, or when `page_bytes` is not a power of two of at least eight.
pub fn record(
    tables: &Arc<Tables>,
    index: &Index,
    captures: &Bytes,
    scores: &[Score],
    page_bytes: usize,
    bounds: &RangeInclusive<u32>,
    mut each: impl FnMut(RecordedBound),
) {
    assert!(rayon::current_num_threads() == 1, "the order of accesses is that of one thread");
    assert!(page_bytes >= 8 && page_bytes.is_power_of_two(), "a page is a power of two of words");
    let stones = index.stones();
    let layout = PlaneLayout::new(index, Orientation::MoverMajor);
    let wins_layout = PlaneLayout::new(index, Orientation::OpponentMajor);
    let pages = [&wins_layout, &layout].map(|layout| (layout.words() * 8).div_ceil(page_bytes));
    let wins = RecordedWins {
        wins: WinsInMemory::none(&wins_layout),
        dual: wins_layout.slabs().to_vec(),
        single: layout.slabs().to_vec(),
        page_shift: (page_bytes / 8).trailing_zeros(),
        record: Mutex::new(RowRecorder {
            is_on: false,
            dual: Distances::new(pages[0]),
            single: Distances::new(pages[1]),
        }),
    };
    let candidates = UnitsInMemory::zeroed(layout.units().into_iter().map(|unit| unit.words));
    let solver = Solver::new(Arc::clone(tables), index.clone(), BitKernel::detect(), wins, candidates);
    solver.settle();
    let take = || {
        let mut record = solver.wins().record();
        Use { dual: record.dual.take(), single: record.single.take() }
    };
    let [captures, turned] = in_both_orientations(index, captures);
    let mut won = vec![0; solver.wins_units().len()];
    for bound in (1..=stones as Score).rev() {
        solver.wins().record().is_on = bounds.contains(&(bound as u32));
        let mut words = Vec::new();
        for unit in solver.wins_units() {
            let mut new = plane(&wins_layout, unit, &turned, |best| best == bound);
            if new.iter().any(|&word| word != 0) {
                solver.add_wins(unit, &mut new);
            }
        }
        let free = |best| best == -bound || bound == stones as Score && best == capture::none(stones);
        for (number, unit) in solver.units().iter().enumerate() {
            let Ok(()) = solver.add_candidates(number, &plane(&layout, unit, &captures, free), |_| {});
        }
        let before = take();
        let mut passes = Vec::new();
        let report = solver.solve(&(), &mut || {
            passes.push(take());
            Ok(())
        });
        let report = report.unwrap_or_else(|failure| panic!("no observer stops it: {failure:?}"));
        passes.push(take());
        for (number, unit) in solver.wins_units().iter().enumerate() {
            if solver.take_won(number) {
                words.resize(unit.words.len(), 0);
                solver.wins().read(unit.slab, unit.rows.clone(), &mut words);
                won[number] = words.iter().map(|word| u64::from(word.count_ones())).sum();
            }
        }
        let expected = [count(scores, |score| score == -bound), count(scores, |score| score >= bound)];
        assert_eq!([report.lost, won.iter().sum()], expected, "lost, and won, of bound {bound}");
        if bounds.contains(&(bound as u32)) {
            each(RecordedBound { bound: bound as u32, report, passes, before });
        }
    }
}

fn count(scores: &[Score], wanted: impl Fn(Score) -> bool) -> u64 {
    scores.iter().filter(|&&score| wanted(score)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Largest, build};
    use disk::MemoryDisk;
    use game::PositionSet;
    use pipeline::Counter;
    use std::path::Path;

    const STONES: u32 = 11;
    const BLOCK_BYTES: usize = 4 << 10;

    /// Returns passes, hits and misses of each bound of a build by one-bit-dual, the highest first.
    fn of_a_build(index: &str, cache_bytes: usize) -> Vec<[u64; 3]> {
        let overrides = [
            ("build.stones", format!("0..{STONES}")),
            ("build.method", "sweep".to_owned()),
            ("build.methods", format!("{{ \"{STONES}\" = \"one-bit-dual\" }}")),
            ("build.threads", "1".to_owned()),
            ("dual.index", index.to_owned()),
            ("dual.cache", format!("{cache_bytes} B")),
            ("dual.block", format!("{BLOCK_BYTES} B")),
        ];
        let summary = build(&MemoryDisk::new(), Path::new("run"), 1, &overrides);
        let bounds = summary.ran.iter().filter(|ran| ran.stage.kind() == "process");
        let counters = bounds.map(|ran| {
            ["passes", "cache hits", "cache misses"].map(|name| match ran.measured.report.counters[name] {
                Counter::Integer(count) => count,
                Counter::Real(_) => unreachable!("{name} is counted"),
            })
        });
        counters.collect()
    }

    /// The counts from the record are those of the caches of real builds, at each bound.
    #[test]
    fn misses_are_those_of_the_stages() {
        let mut recorded = Vec::new();
        crate::pool(1).install(|| {
            let Largest { tables, index, captures, scores, .. } = Largest::new(PositionSet::All, STONES);
            record(&tables, &index, &captures, &scores, BLOCK_BYTES, &(1..=STONES), |bound| recorded.push(bound));
        });
        let of_all = |of: fn(&Use) -> &AccessCounts, capacity| -> Vec<[u64; 3]> {
            let bounds = recorded.iter().map(|bound| {
                let all = Use::all(bound.passes.iter()).unwrap();
                let counts = of(&all);
                let misses = counts.all_misses(capacity);
                let accesses = counts.accesses(Access::Read) + counts.accesses(Access::Set);
                [bound.report.passes, accesses - misses, misses]
            });
            bounds.collect()
        };
        for capacity in [3, 20] {
            assert_eq!(of_all(|all| &all.dual, capacity), of_a_build("dual", capacity * BLOCK_BYTES));
            assert_eq!(of_all(|all| &all.single, capacity), of_a_build("single", capacity * BLOCK_BYTES));
        }
    }
}
