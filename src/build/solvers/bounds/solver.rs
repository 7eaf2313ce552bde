//! Driver of a bound: passes over the candidates until no more are found lost.

use super::storage::{Units, Wins};
use crate::huge_pages::Words;
use crate::kernels::bits::{self, BitKernel, ChildWins, WonRow};
use crate::kernels::cpu;
use crate::kernels::tables::{PackedMove, Tables};
use crate::layout::plane::{PARTS, PlaneLayout, PlaneUnit};
use crate::observer::{DriverObserver, EndedPass, Stopped};
use crate::word_update::WordUpdate;
use game::sow::{Ends, SowClass};
use game::{HALF_PITS, Index, Orientation};
use std::cmp::Reverse;
use std::marker::PhantomData;
use std::mem::{swap, take};
use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};

/// Solver of the bounds of one database, generic over the storage of its planes.
///
/// Between calls the planes are sound: each win that is set is a win, and each removed candidate is lost or has a
/// capture that scores more than -b.
pub struct Solver<W, U, E> {
    tables: Arc<Tables>,
    index: Index,
    kernel: BitKernel,
    pub(crate) wins: W,
    pub(crate) candidates: U,
    wins_layout: PlaneLayout,
    layout: PlaneLayout,
    wins_units: Vec<PlaneUnit>,
    units: Vec<PlaneUnit>,
    /// By slab, the runs of rows of the candidates.
    tested_rows: Vec<Vec<Range<u32>>>,
    /// By row of the candidates, eight bits each: the parts to be tested, because they have new candidates or children
    /// with new wins; then, for each move, the parts that wait for its child. A tested part waits only for those
    /// children that kept a candidate from being lost: other new wins change nothing.
    needs: Words,
    /// By unit of the wins, whether it has new ones since the last `take_won`.
    won: Vec<AtomicBool>,
    /// By unit of the candidates, whether some were found lost since the last `take_lost`.
    lost: Vec<AtomicBool>,
    /// By slab, its first unit of the wins.
    first_units: Vec<usize>,
    /// The units of the candidates, in the order of a pass.
    order: Vec<usize>,
    update: WordUpdate,
    errors: PhantomData<fn() -> E>,
}

/// Mask of the parts to be tested, in `needs`.
const TO_TEST: u64 = (1 << PARTS) - 1;
/// Multiplied by a mask of parts: these parts wait for the children of all six moves.
const WAITING: u64 = 0x0001_0101_0101_0100;

/// Number of rows with wins from outside the solver that are collected before their parents are queued.
const QUEUED_ROWS: usize = 64;

/// Most words of a row that are prefetched; longer runs are left to the hardware prefetcher.
const PREFETCH_WORDS: usize = 128;

/// Work done for a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoundReport {
    /// Passes over the candidates.
    pub passes: u64,
    /// Positions found lost.
    pub lost: u64,
    /// Rows tested.
    pub rows: u64,
    /// Units visited.
    pub units: u64,
}

/// Reason why a bound was not solved.
#[derive(Debug)]
pub enum SolverError<E> {
    /// The observer stopped it. The planes are sound, and solving may continue from them.
    Stopped,
    /// The storage of a plane failed. Its content must not be used.
    Storage(E),
}

impl<E> From<Stopped> for SolverError<E> {
    fn from(_: Stopped) -> SolverError<E> {
        SolverError::Stopped
    }
}

/// Buffers of a thread.
#[derive(Default)]
struct SolverBuffers {
    buffer: Vec<u64>,
    left: Vec<u64>,
    lost: Vec<(u32, u64)>,
    wins: WonRow,
    /// Wins of the row that was last prefetched.
    won: Vec<(u32, u64)>,
    /// Wins of the next row.
    found: Vec<(u32, u64)>,
    changed: Vec<ChangedRow>,
    report: BoundReport,
}

/// Row with new wins.
struct ChangedRow {
    slab: usize,
    row: usize,
    /// Mask of the groups of words with new wins.
    shares: u64,
}

impl<W: Wins<E>, U: Units<E>, E: Send> Solver<W, U, E> {
    /// Creates a solver whose first pass tests every candidate. It must be used in the current thread pool, or
    /// [enter](Self::enter_pool) another one.
    ///
    /// # Panics
    /// If the tables serve fewer stones or another position set.
    pub fn new(tables: Arc<Tables>, index: Index, kernel: BitKernel, wins: W, candidates: U) -> Self {
        // Threads that test candidates would wait for each other, and one compute each table.
        tables.prepare_rows(index.stones());
        tables.prepare_pushes(index.stones());
        let units = PlaneLayout::new(&index, Orientation::MoverMajor).units();
        Solver::of_units(tables, index, kernel, wins, candidates, units)
    }

    /// As [`new`](Self::new), restricted to some units or parts of units, ascending: other candidates are never tested.
    pub(crate) fn of_units(
        tables: Arc<Tables>,
        index: Index,
        kernel: BitKernel,
        wins: W,
        candidates: U,
        units: Vec<PlaneUnit>,
    ) -> Self {
        assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
        let wins_layout = PlaneLayout::new(&index, Orientation::OpponentMajor);
        let layout = PlaneLayout::new(&index, Orientation::MoverMajor);
        let wins_units = wins_layout.units();
        let first = |slab: usize| wins_units.partition_point(|unit| unit.slab < slab);
        let solver = Solver {
            tables,
            index,
            kernel,
            wins,
            candidates,
            tested_rows: runs_by_slab(&layout, &units),
            needs: Words::zeroed(layout.rows()),
            won: wins_units.iter().map(|_| AtomicBool::new(false)).collect(),
            lost: units.iter().map(|_| AtomicBool::new(false)).collect(),
            first_units: (0..wins_layout.slabs().len()).map(first).collect(),
            order: pass_order(&units),
            wins_layout,
            layout,
            wins_units,
            units,
            update: WordUpdate::for_pool(),
            errors: PhantomData,
        };
        solver.set_needs(u64::MAX);
        solver
    }

    /// Makes the current thread pool the one in which it is used.
    pub fn enter_pool(&mut self) {
        self.update = WordUpdate::for_pool();
        self.wins.enter_pool();
    }

    /// The units of the candidates.
    pub fn units(&self) -> &[PlaneUnit] {
        &self.units
    }

    /// The units of the wins.
    pub fn wins_units(&self) -> &[PlaneUnit] {
        &self.wins_units
    }

    /// The storage of the wins.
    pub fn wins(&self) -> &W {
        &self.wins
    }

    /// The storage of the candidates.
    pub fn candidates(&self) -> &U {
        &self.candidates
    }

    /// Adds wins, given the words of a unit, and leaves only the new ones in `words`.
    pub fn add_wins(&self, unit: &PlaneUnit, words: &mut [u64]) {
        let row_words = self.wins_layout.slabs()[unit.slab].row_words;
        let (mut bits, mut changed) = (Vec::new(), Vec::new());
        let mut row = 0;
        while let Some(first) = next_of(words, row * row_words) {
            row = first / row_words;
            let words = &mut words[row * row_words..][..row_words];
            bits.clear();
            bits.extend((0..).zip(words.iter_mut()).filter(|(_, word)| **word != 0).map(|(at, word)| (at, take(word))));
            self.set(unit.slab, unit.rows.start + row, &bits, &mut changed, |at, new| words[at as usize] = new);
            row += 1;
        }
        self.queue_parents(&mut changed);
    }

    /// Adds candidates to a unit; they will be tested. `then` gets the resulting words of the unit.
    pub fn add_candidates(&self, number: usize, new: &[u64], then: impl FnOnce(&[u64])) -> Result<(), E> {
        let unit = &self.units[number];
        let slab = &self.layout.slabs()[unit.slab];
        let needs = &self.needs[slab.first_row + unit.rows.start..];
        let mut then = Some(then);
        self.candidates.visit(number, &mut |words| {
            let mut row = 0;
            while let Some(first) = next_of(new, row * slab.row_words) {
                row = first / slab.row_words;
                let range = row * slab.row_words..(row + 1) * slab.row_words;
                let mut parts = 0;
                for (at, (word, &new)) in words[range.clone()].iter_mut().zip(&new[range]).enumerate() {
                    *word |= new;
                    parts |= u64::from(new != 0) << (at >> slab.part_shift());
                }
                if parts & !needs[row].load(Relaxed) != 0 {
                    needs[row].fetch_or(parts, Relaxed);
                }
                row += 1;
            }
            if let Some(then) = then.take() {
                then(words);
            }
            true
        })
    }

    /// Removes the candidates of a unit that are not in `kept`: known losses, whose winning parents are known too.
    pub fn remove_candidates(&self, number: usize, kept: &[u64]) -> Result<(), E> {
        self.lost[number].store(true, Relaxed);
        self.candidates.visit(number, &mut |words| {
            words.iter_mut().zip(kept).for_each(|(word, kept)| *word &= kept);
            true
        })
    }

    /// Whether a unit of the wins has new ones since the last [`take_won`](Self::take_won).
    pub fn has_won(&self, unit: usize) -> bool {
        self.won[unit].load(Relaxed)
    }

    /// Whether candidates of a unit were found lost since the last [`take_lost`](Self::take_lost).
    pub fn has_lost(&self, unit: usize) -> bool {
        self.lost[unit].load(Relaxed)
    }

    /// Returns whether a unit of the wins has new ones since the last call.
    pub fn take_won(&self, unit: usize) -> bool {
        self.won[unit].swap(false, Relaxed)
    }

    /// Returns whether candidates of a unit were found lost since the last call.
    pub fn take_lost(&self, unit: usize) -> bool {
        self.lost[unit].swap(false, Relaxed)
    }

    /// Adds the wins that `give_rows` passes on, by slab, row and word.
    pub(crate) fn add_rows<T>(&self, give_rows: impl FnOnce(&mut dyn FnMut(usize, usize, &[(u32, u64)])) -> T) -> T {
        let mut changed = Vec::new();
        // Prefetches the words of a row while those of the one before are set.
        let (mut prefetched, mut won) = (None, Vec::new());
        let result = give_rows(&mut |slab, row, bits| {
            self.wins.expect_bits(slab, row, bits);
            if let Some((slab, row)) = prefetched.replace((slab, row)) {
                self.set(slab, row, &won, &mut changed, |_, _| {});
            }
            won.clear();
            won.extend_from_slice(bits);
            if changed.len() >= QUEUED_ROWS {
                self.queue_parents(&mut changed);
            }
        });
        if let Some((slab, row)) = prefetched {
            self.set(slab, row, &won, &mut changed, |_, _| {});
        }
        self.queue_parents(&mut changed);
        result
    }

    /// Marks everything as changed, for planes that are not at a fixpoint.
    pub fn unsettle(&self) {
        self.set_needs(u64::MAX);
    }

    /// Clears all change marks, for planes that are known to be at a fixpoint.
    pub fn settle(&self) {
        self.set_needs(!TO_TEST);
    }

    /// Sets the needs of all rows of candidates.
    fn set_needs(&self, to: u64) {
        for unit in &self.units {
            let first = self.layout.slabs()[unit.slab].first_row;
            self.needs[first..][unit.rows.clone()].iter().for_each(|need| need.store(to, Relaxed));
        }
    }

    /// Runs passes until no candidate is found lost. `checkpoint` is called between passes, when no thread changes the
    /// planes.
    ///
    /// # Panics
    /// As [`pass`](Self::pass).
    pub fn solve(
        &self,
        progress: &dyn DriverObserver,
        checkpoint: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<BoundReport, SolverError<E>> {
        let mut report = BoundReport::default();
        loop {
            let (done, any) = self.pass(progress)?;
            report.passes += done.passes;
            report.lost += done.lost;
            report.rows += done.rows;
            report.units += done.units;
            if !any {
                return Ok(report);
            }
            progress.end_pass(EndedPass { is_full: false, is_next_full: false, changed: done.lost });
            checkpoint().map_err(SolverError::Storage)?;
        }
    }

    /// Runs one pass over the candidates, and returns whether any win was found.
    ///
    /// # Panics
    /// If the solver is in a pool of one thread and the current pool has more.
    pub(crate) fn pass(&self, progress: &dyn DriverObserver) -> Result<(BoundReport, bool), SolverError<E>> {
        assert!(
            self.update == WordUpdate::Atomic || WordUpdate::for_pool() == WordUpdate::Plain,
            "a solver stays in its pool"
        );
        let any = AtomicBool::new(false);
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let done = Mutex::new(BoundReport { passes: 1, ..BoundReport::default() });
        rayon::broadcast(|_| {
            let mut workspace = SolverBuffers::default();
            let fail = |with: SolverError<E>| {
                next.store(self.units.len(), Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(with);
            };
            loop {
                let number = next.fetch_add(1, Relaxed);
                let Some(&place) = self.order.get(number) else { break };
                if let Err(error) = self.test(place, &mut workspace, &any) {
                    fail(SolverError::Storage(error));
                }
                if progress.advance(number as u64, self.units.len() as u64).is_break() {
                    fail(SolverError::Stopped);
                }
            }
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.lost += workspace.report.lost;
            done.rows += workspace.report.rows;
            done.units += workspace.report.units;
        });
        self.wins.check().map_err(SolverError::Storage)?;
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok((done.into_inner().unwrap_or_else(PoisonError::into_inner), any.into_inner())),
        }
    }

    /// Tests the candidates of a unit with changed children, last rows first.
    fn test(&self, number: usize, workspace: &mut SolverBuffers, any: &AtomicBool) -> Result<(), E> {
        let unit = &self.units[number];
        let slab = &self.layout.slabs()[unit.slab];
        let needs = &self.needs[slab.first_row..][unit.rows.clone()];
        let to_test = |needs: &[AtomicU64]| needs.iter().rposition(|need| need.load(Relaxed) & TO_TEST != 0);
        let Some(last) = to_test(needs) else { return Ok(()) };
        let moves = &self.tables.rows(unit.slab as u32)[unit.rows.clone()];
        workspace.report.units += 1;
        self.candidates.visit(number, &mut |words| {
            let before = workspace.report.lost;
            let mut prefetched = None;
            for (at, need) in needs[..=last].iter().enumerate().rev() {
                let mut parts = need.load(Relaxed) & TO_TEST;
                if parts != 0 {
                    // Prefetches the inputs of the next row while this one is tested.
                    let next = to_test(&needs[..at]);
                    for at in [(prefetched != Some(at)).then_some(at), next].into_iter().flatten() {
                        let parts = needs[at].load(Relaxed) & TO_TEST;
                        self.prefetch(unit.slab, &words[at * slab.row_words..][..slab.row_words], parts, &moves[at]);
                    }
                    prefetched = next;
                    // While tested, the parts wait for every child. A thread that sets a win too late to be read below
                    // sees that the need was cleared, and sets it again: these operations are sequentially consistent.
                    self.update.set(need, parts * WAITING);
                    parts &= self.update.clear(need, parts);
                    let words = &mut words[at * slab.row_words..][..slab.row_words];
                    self.test_row(unit.slab, unit.rows.start + at, words, parts, &moves[at], workspace, any);
                }
            }
            let lost = workspace.report.lost != before;
            if lost {
                self.lost[number].store(true, Relaxed);
            }
            lost
        })
    }

    /// Prefetches the inputs of a test of some parts of a row.
    fn prefetch(&self, slab: usize, candidates: &[u64], parts: u64, moves: &[PackedMove; HALF_PITS]) {
        if parts == 0 {
            return;
        }
        let shift = self.layout.slabs()[slab].part_shift();
        let first = (parts.trailing_zeros() as usize) << shift;
        let end = ((u64::BITS - parts.leading_zeros()) as usize) << shift;
        let words = first..end.min(candidates.len()).min(first + PREFETCH_WORDS);
        if words.is_empty() {
            return;
        }
        cpu::prefetch(&candidates[words.clone()]);
        let opponent = self.index.stones() - slab as u32;
        for to in moves.iter().take_while(|&&to| to != PackedMove::NONE) {
            let child_words = self.tables.pull(opponent, to.crossing()).child_words(&words);
            self.wins.expect((opponent + to.crossing()) as usize, to.rank() as usize, child_words);
        }
    }

    #[expect(clippy::too_many_arguments)]
    fn test_row(
        &self,
        slab: usize,
        row: usize,
        candidates: &mut [u64],
        parts: u64,
        moves: &[PackedMove; HALF_PITS],
        workspace: &mut SolverBuffers,
        any: &AtomicBool,
    ) {
        workspace.report.rows += 1;
        let layout = &self.layout.slabs()[slab];
        let shift = layout.part_shift();
        let mut waiting = 0;
        workspace.lost.clear();
        let mut untested = parts;
        while untested != 0 {
            // The next parts without a gap.
            let first = untested.trailing_zeros();
            let end = first + (!(untested >> first)).trailing_zeros();
            untested &= !0 << end;
            let words = (first as usize) << shift..((end as usize) << shift).min(layout.row_words);
            if !words.is_empty() {
                waiting |= self.test_words(slab, words, shift, candidates, moves, workspace);
            }
        }
        let settled = (parts * WAITING) & !waiting;
        if settled != 0 {
            self.update.clear(&self.needs[layout.first_row + row], settled);
        }
        if !workspace.lost.is_empty() {
            workspace.report.lost += workspace.lost.iter().map(|(_, bits)| u64::from(bits.count_ones())).sum::<u64>();
            self.candidates.lost(slab, row, &workspace.lost);
            self.notify_parents(slab, row, workspace, any);
        }
    }

    /// Removes the lost candidates from some words of a row, and lists them. Returns the children that the others wait
    /// for.
    fn test_words(
        &self,
        slab: usize,
        words: Range<usize>,
        shift: u32,
        candidates: &mut [u64],
        moves: &[PackedMove; HALF_PITS],
        workspace: &mut SolverBuffers,
    ) -> u64 {
        let opponent = self.index.stones() - slab as u32;
        let candidates = &mut candidates[words.clone()];
        let left = &mut workspace.left;
        left.clear();
        left.extend_from_slice(candidates);
        let mut waiting = 0;
        let moves = || moves.iter().enumerate().take_while(|&(_, &to)| to != PackedMove::NONE);
        let crossing = |&(_, to): &(usize, &PackedMove)| to.crossing() > 0;
        // Crossing moves last: they cost more, and then find fewer candidates left.
        for (slot, to) in moves().filter(|to| !crossing(to)).chain(moves().filter(crossing)) {
            if left.iter().all(|&word| word == 0) {
                return waiting;
            }
            let pull = self.tables.pull(opponent, to.crossing());
            let (child_slab, child_row) = ((opponent + to.crossing()) as usize, to.rank() as usize);
            let child = ChildWins {
                wins: self.wins.row(child_slab, child_row, pull.child_words(&words), &mut workspace.buffer),
                pull,
                quiet: &self.tables.columns(opponent, to.class()).quiet,
            };
            waiting |= self.kernel.pull(left, words.start, &child, shift) << (PARTS * (slot + 1));
        }
        candidates.iter_mut().zip(&*left).for_each(|(candidates, lost)| *candidates &= !lost);
        bits::list(words.start as u32, left, &mut workspace.lost);
        waiting
    }

    /// Adds the wins of the parents that have a quiet move to one of the lost positions of a row.
    fn notify_parents(&self, slab: usize, row: usize, workspace: &mut SolverBuffers, any: &AtomicBool) {
        // The parents' opponent has this half minus the stones that crossed. A move that leaves no stones is not quiet.
        let mut half = self.index.halves().unrank(slab as u32, row as u32);
        let after = half;
        let opponent = self.index.stones() - slab as u32;
        let crossings = if slab == 0 { 0..0 } else { 0..slab as u32 + 1 };
        // Prefetches the words of one row while the wins of the next are computed.
        let mut prefetched: Option<(usize, usize)> = None;
        for crossing in crossings {
            let last = (crossing as usize + HALF_PITS - 1) % HALF_PITS;
            if crossing > 0 {
                let Some(left) = half[last].checked_sub(1) else { break };
                half[last] = left;
            }
            let Some(parents) = self.index.rank_opponent(&half) else { continue };
            let target = (opponent + crossing) as usize;
            workspace.wins.resize(self.wins_layout.slabs()[target].row_words);
            for ends in [Ends::Mover, Ends::Opponent] {
                let class = SowClass { crossing: crossing as u8, ends };
                if class.occurs() && self.tables.is_quiet_into(class, &after) {
                    let push = &self.tables.pushes(opponent + crossing)[class.number()];
                    self.kernel.push(&workspace.lost, push, &mut workspace.wins);
                }
            }
            workspace.wins.take(&mut workspace.found);
            if !workspace.found.is_empty() {
                self.wins.expect_bits(target, parents as usize, &workspace.found);
                self.set_prefetched(prefetched.replace((target, parents as usize)), workspace);
                swap(&mut workspace.found, &mut workspace.won);
            }
        }
        self.set_prefetched(prefetched, workspace);
        if !workspace.changed.is_empty() {
            any.store(true, Relaxed);
            self.queue_parents(&mut workspace.changed);
        }
    }

    /// Sets the wins of the row that was prefetched.
    #[inline(always)]
    fn set_prefetched(&self, prefetched: Option<(usize, usize)>, workspace: &mut SolverBuffers) {
        if let Some((slab, row)) = prefetched {
            self.set(slab, row, &workspace.won, &mut workspace.changed, |_, _| {});
        }
    }

    /// Sets wins of a row. New ones are passed to `notify` by word, and add the row to `changed`.
    fn set(
        &self,
        slab: usize,
        row: usize,
        bits: &[(u32, u64)],
        changed: &mut Vec<ChangedRow>,
        mut notify: impl FnMut(u32, u64),
    ) {
        let layout = &self.wins_layout.slabs()[slab];
        let shift = layout.share_shift();
        let mut shares = 0u64;
        self.wins.set(slab, row, bits, |word, new| {
            shares |= 1 << (word >> shift);
            notify(word, new);
        });
        if shares != 0 {
            self.won[self.first_units[slab] + row / layout.unit_rows()].store(true, Relaxed);
            changed.push(ChangedRow { slab, row, shares });
        }
    }

    /// Queues the parents that wait for the changed rows, and clears the list.
    fn queue_parents(&self, rows: &mut Vec<ChangedRow>) {
        let stones = self.index.stones();
        let parents = |row: &ChangedRow| self.tables.parents(stones - row.slab as u32).of(row.row as u32);
        for (at, row) in rows.iter().enumerate() {
            if let Some(next) = rows.get(at + 1) {
                cpu::prefetch(parents(next));
            }
            let &ChangedRow { slab, shares, .. } = row;
            let (mut crossing, mut changed, mut first_row) = (u32::MAX, 0, 0);
            let mut tested_rows: &[Range<u32>] = &[];
            for &parent in parents(row) {
                if parent.crossing() != crossing {
                    crossing = parent.crossing();
                    let mover = stones - slab as u32 + crossing;
                    if mover > stones {
                        break;
                    }
                    changed = self.tables.pull(stones - mover, crossing).dependents_of(shares);
                    first_row = self.layout.slabs()[mover as usize].first_row;
                    tested_rows = &self.tested_rows[mover as usize];
                }
                if !tested_rows.iter().any(|rows| rows.contains(&parent.rank())) {
                    continue;
                }
                let need = &self.needs[first_row + parent.rank() as usize];
                // See `test`.
                let now = need.load(SeqCst);
                let tested = changed & now >> (PARTS * (parent.slot() + 1));
                if tested & !now & TO_TEST != 0 {
                    self.update.set(need, tested & TO_TEST);
                }
            }
        }
        rows.clear();
    }
}

/// Returns the first nonzero word from `from` on.
#[inline(always)]
fn next_of(words: &[u64], from: usize) -> Option<usize> {
    let ahead = &words[from..];
    // Often the next one; otherwise skips eight at a time.
    if ahead.first().is_some_and(|&word| word != 0) {
        return Some(from);
    }
    let mut at = from;
    for words in ahead.chunks(8) {
        if words.iter().fold(0, |any, word| any | word) != 0 {
            return words.iter().position(|&word| word != 0).map(|place| at + place);
        }
        at += words.len();
    }
    None
}

/// Returns, by slab, the runs of rows of some units, which are ascending.
fn runs_by_slab(layout: &PlaneLayout, units: &[PlaneUnit]) -> Vec<Vec<Range<u32>>> {
    let mut runs: Vec<Vec<Range<u32>>> = vec![Vec::new(); layout.slabs().len()];
    for unit in units {
        let (start, end) = (unit.rows.start as u32, unit.rows.end as u32);
        match runs[unit.slab].last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => runs[unit.slab].push(start..end),
        }
    }
    runs
}

/// Returns the order of the units in a pass: slab by slab, in each the last rows first. A move that stays in the
/// mover's half raises the half's rank and leaves the other half alone, so whole lines of such moves of both players
/// settle in one pass, as does much of what crosses from players with few stones.
fn pass_order(units: &[PlaneUnit]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|&unit| (units[unit].slab, Reverse(unit)));
    order
}
