//! The driver of a bound: passes over the candidates until none is found lost.

use super::homes::{Units, Wins};
use super::plane::{PARTS, PlaneLayout, PlaneUnit};
use super::row::{BitKernel, Child};
use crate::tables::{RowMove, Tables};
use crate::{Progress, Stopped};
use game::sow::{Class, Ends};
use game::{HALF_PITS, Index, Orientation};
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// Solves bounds of one database, from planes that live anywhere.
///
/// Between calls the planes are sound: every win set is one, every candidate gone is lost or may be won by a capture.
pub struct Solver<W, U, E> {
    tables: Arc<Tables>,
    index: Index,
    kernel: BitKernel,
    wins: W,
    candidates: U,
    wins_layout: PlaneLayout,
    layout: PlaneLayout,
    wins_units: Vec<PlaneUnit>,
    units: Vec<PlaneUnit>,
    /// By row of the candidates, in eight bits each: the parts to be tested, those with new candidates or with children
    /// that win now; then for each move the parts that wait for its child. What was tested waits only for the children
    /// that kept a candidate from being lost: whatever else becomes a win changes nothing.
    needs: Vec<AtomicU64>,
    /// By unit of the wins, whether it has new ones since they were taken.
    won: Vec<AtomicBool>,
    /// By unit of the candidates, whether some were found lost since they were taken.
    lost: Vec<AtomicBool>,
    /// By slab, its first unit of the wins.
    first_units: Vec<usize>,
    errors: PhantomData<fn() -> E>,
}

/// The parts of a row to be tested, in what is known of it.
const TO_TEST: u64 = (1 << PARTS) - 1;
/// Times parts: these parts, waiting for the children of all six moves.
const WAITING: u64 = 0x0001_0101_0101_0100;

/// What a bound took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Passes over the candidates.
    pub passes: u64,
    /// Positions found lost.
    pub lost: u64,
    /// Rows tested.
    pub rows: u64,
    /// Units visited.
    pub units: u64,
}

/// Why a bound was not solved.
#[derive(Debug)]
pub enum Failure<E> {
    /// On request; the planes are sound, and solving may go on from them.
    Stopped,
    /// A home of a plane failed; what it holds is not to be used any more.
    Home(E),
}

impl<E> From<Stopped> for Failure<E> {
    fn from(_: Stopped) -> Failure<E> {
        Failure::Stopped
    }
}

/// What a thread keeps from row to row.
#[derive(Default)]
struct Workspace {
    buffers: [Vec<u64>; HALF_PITS],
    needs: Vec<u64>,
    lost: Vec<(u32, u64)>,
    won: Vec<(u32, u64)>,
    report: Report,
}

impl<W: Wins<E>, U: Units<E>, E: Send> Solver<W, U, E> {
    /// A solver that knows nothing of what changed: its first pass tests every candidate.
    ///
    /// # Panics
    /// When the tables serve fewer stones or another position set.
    pub fn new(tables: Arc<Tables>, index: Index, kernel: BitKernel, wins: W, candidates: U) -> Self {
        assert!(tables.set() == index.set() && tables.stones_max() >= index.stones());
        let wins_layout = PlaneLayout::new(&index, Orientation::OpponentMajor);
        let layout = PlaneLayout::new(&index, Orientation::MoverMajor);
        let (wins_units, units) = (wins_layout.units(), layout.units());
        let first = |slab: usize| wins_units.partition_point(|unit| unit.slab < slab);
        Solver {
            tables,
            index,
            kernel,
            wins,
            candidates,
            needs: (0..layout.rows()).map(|_| AtomicU64::new(u64::MAX)).collect(),
            won: wins_units.iter().map(|_| AtomicBool::new(false)).collect(),
            lost: units.iter().map(|_| AtomicBool::new(false)).collect(),
            first_units: (0..wins_layout.slabs().len()).map(first).collect(),
            wins_layout,
            layout,
            wins_units,
            units,
            errors: PhantomData,
        }
    }

    /// The units of the candidates.
    pub fn units(&self) -> &[PlaneUnit] {
        &self.units
    }

    /// The units of the wins.
    pub fn wins_units(&self) -> &[PlaneUnit] {
        &self.wins_units
    }

    /// The home of the wins.
    pub fn wins(&self) -> &W {
        &self.wins
    }

    /// The home of the candidates.
    pub fn candidates(&self) -> &U {
        &self.candidates
    }

    /// Adds wins, a unit's words.
    pub fn add_wins(&self, unit: &PlaneUnit, words: &[u64]) {
        let row_words = self.wins_layout.slabs()[unit.slab].row_words;
        let mut bits = Vec::new();
        for (row, words) in unit.rows.clone().zip(words.chunks(row_words)) {
            bits.clear();
            bits.extend(words.iter().enumerate().filter(|(_, word)| **word != 0).map(|(at, &word)| (at as u32, word)));
            if !bits.is_empty() {
                self.set(unit.slab, row, &bits);
            }
        }
    }

    /// Adds candidates, a unit's words; they will be tested. `then` sees the unit's words.
    pub fn add_candidates(&self, number: usize, new: &[u64], then: impl FnOnce(&[u64])) -> Result<(), E> {
        let unit = &self.units[number];
        let slab = &self.layout.slabs()[unit.slab];
        for (row, words) in unit.rows.clone().zip(new.chunks(slab.row_words)) {
            let parts = words.iter().enumerate().filter(|(_, word)| **word != 0);
            let parts = parts.fold(0, |parts, (at, _)| parts | 1 << (at >> slab.part_shift()));
            if parts != 0 {
                self.needs[slab.first_row + row].fetch_or(parts, Relaxed);
            }
        }
        let mut then = Some(then);
        self.candidates.visit(number, &mut |words| {
            words.iter_mut().zip(new).for_each(|(word, new)| *word |= new);
            if let Some(then) = then.take() {
                then(words);
            }
            true
        })
    }

    /// Takes candidates that are known to be lost out of a unit: all but `kept`. Whom they make win must be known too.
    pub fn remove_candidates(&self, number: usize, kept: &[u64]) -> Result<(), E> {
        self.lost[number].store(true, Relaxed);
        self.candidates.visit(number, &mut |words| {
            words.iter_mut().zip(kept).for_each(|(word, kept)| *word &= kept);
            true
        })
    }

    /// Whether a unit of the wins has new ones since this was last asked.
    pub fn take_won(&self, unit: usize) -> bool {
        self.won[unit].swap(false, Relaxed)
    }

    /// Whether a unit of the candidates has lost some since this was last asked.
    pub fn take_lost(&self, unit: usize) -> bool {
        self.lost[unit].swap(false, Relaxed)
    }

    /// Takes everything for changed: for planes that are at no fixpoint.
    pub fn unsettle(&self) {
        for need in &self.needs {
            need.store(u64::MAX, Relaxed);
        }
    }

    /// Forgets what changed: for planes that are known to be at a fixpoint.
    pub fn settle(&self) {
        for need in &self.needs {
            need.store(!TO_TEST, Relaxed);
        }
    }

    /// Passes until no candidate is found lost. `checkpoint` is called between passes, when nobody changes the planes.
    pub fn solve(
        &self,
        progress: &dyn Progress,
        checkpoint: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Report, Failure<E>> {
        let mut report = Report::default();
        loop {
            let turned = report.passes % 2 == 1;
            let any = AtomicBool::new(false);
            let next = AtomicUsize::new(0);
            let failure = Mutex::new(None);
            let done = Mutex::new(Report::default());
            rayon::broadcast(|_| {
                let mut workspace = Workspace::default();
                let fail = |with: Failure<E>| {
                    next.store(self.units.len(), Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(with);
                };
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    // Back and forth: what was read last is read first.
                    let place = if turned { self.units.len().wrapping_sub(number + 1) } else { number };
                    let Some(unit) = self.units.get(place) else { break };
                    if let Err(error) = self.test(unit, &mut workspace, &any) {
                        fail(Failure::Home(error));
                    }
                    if number.is_multiple_of(64) && progress.advance(number as u64, self.units.len() as u64).is_break()
                    {
                        fail(Failure::Stopped);
                    }
                }
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.lost += workspace.report.lost;
                done.rows += workspace.report.rows;
                done.units += workspace.report.units;
            });
            self.wins.check().map_err(Failure::Home)?;
            let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
            let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(failure) = failure {
                return Err(failure);
            }
            report.passes += 1;
            report.lost += done.lost;
            report.rows += done.rows;
            report.units += done.units;
            if !any.into_inner() {
                return Ok(report);
            }
            checkpoint().map_err(Failure::Home)?;
        }
    }

    /// Tests the candidates of a unit that something changed for.
    fn test(&self, unit: &PlaneUnit, workspace: &mut Workspace, any: &AtomicBool) -> Result<(), E> {
        let slab = &self.layout.slabs()[unit.slab];
        let moves = &self.tables.rows(unit.slab as u32)[unit.rows.clone()];
        workspace.needs.clear();
        let mut some = 0;
        for need in &self.needs[slab.first_row..][unit.rows.clone()] {
            let mut parts = need.load(Relaxed) & TO_TEST;
            if parts != 0 {
                // While they are tested they wait for every child.
                need.fetch_or(parts * WAITING, Relaxed);
                parts = need.fetch_and(!parts, Relaxed) & parts;
            }
            workspace.needs.push(parts);
            some |= parts;
        }
        if some == 0 {
            return Ok(());
        }
        // Whoever sets a win that is not seen below sees that the need was taken, and sets it again.
        fence(SeqCst);
        workspace.report.units += 1;
        let number = unit_number(&self.units, unit);
        self.candidates.visit(number, &mut |words| {
            let before = workspace.report.lost;
            for (at, words) in words.chunks_mut(slab.row_words).enumerate() {
                let need = workspace.needs[at];
                if need != 0 {
                    self.test_row(unit.slab, unit.rows.start + at, words, need, &moves[at], workspace, any);
                }
            }
            let lost = workspace.report.lost != before;
            if lost {
                self.lost[number].store(true, Relaxed);
            }
            lost
        })
    }

    #[expect(clippy::too_many_arguments)]
    fn test_row(
        &self,
        slab: usize,
        row: usize,
        candidates: &mut [u64],
        need: u64,
        moves: &[RowMove; HALF_PITS],
        workspace: &mut Workspace,
        any: &AtomicBool,
    ) {
        let opponent = self.index.stones() - slab as u32;
        workspace.report.rows += 1;
        let layout = &self.layout.slabs()[slab];
        let shift = layout.part_shift();
        let lost = &mut workspace.lost;
        lost.clear();
        let mut parts = need;
        while parts != 0 {
            let part = parts.trailing_zeros() as usize;
            parts &= parts - 1;
            let first = part << shift;
            for (at, &word) in candidates.iter().enumerate().take((part + 1) << shift).skip(first) {
                if word != 0 {
                    lost.push((at as u32, word));
                }
            }
        }
        let mut waiting = 0;
        for (slot, (&to, buffer)) in moves.iter().zip(&mut workspace.buffers).enumerate() {
            if to == RowMove::NONE || lost.is_empty() {
                break;
            }
            let child = Child {
                wins: self.wins.row((opponent + to.crossing()) as usize, to.rank() as usize, buffer),
                pull: self.tables.pull(opponent, to.crossing()),
                quiet: &self.tables.columns(opponent, to.class()).quiet,
            };
            waiting |= self.kernel.pull(lost, &child, shift) << (PARTS * (slot + 1));
        }
        for &(at, bits) in lost.iter() {
            candidates[at as usize] &= !bits;
        }
        let settled = (need * WAITING) & !waiting;
        if settled != 0 {
            self.needs[layout.first_row + row].fetch_and(!settled, Relaxed);
        }
        if !workspace.lost.is_empty() {
            workspace.report.lost += workspace.lost.iter().map(|(_, bits)| u64::from(bits.count_ones())).sum::<u64>();
            self.tell_parents(slab, row, workspace, any);
        }
    }

    /// Whoever can move, quietly, to one of the lost positions of a row wins.
    fn tell_parents(&self, slab: usize, row: usize, workspace: &mut Workspace, any: &AtomicBool) {
        // The parents' opponent has this half less what crossed. A move that leaves nothing is not quiet.
        let mut half = self.index.halves().unrank(slab as u32, row as u32);
        let after = half;
        let opponent = self.index.stones() - slab as u32;
        let crossings = if slab == 0 { 0..0 } else { 0..slab as u32 + 1 };
        for crossing in crossings {
            let last = (crossing as usize + HALF_PITS - 1) % HALF_PITS;
            if crossing > 0 {
                let Some(left) = half[last].checked_sub(1) else { return };
                half[last] = left;
            }
            let Some(parents) = self.index.opponent_rank(&half) else { continue };
            for ends in [Ends::Mover, Ends::Opponent] {
                let class = Class { crossing: crossing as u8, ends };
                let captures = ends == Ends::Opponent && self.tables.rules().captures(after[last]);
                if captures || !class.occurs() {
                    continue;
                }
                workspace.won.clear();
                let push = &self.tables.pushes(opponent + crossing)[class.number()];
                self.kernel.push(&workspace.lost, push, &mut workspace.won);
                let target = (opponent + crossing) as usize;
                if self.set(target, parents as usize, &workspace.won) {
                    any.store(true, Relaxed);
                }
            }
        }
    }

    /// Sets wins of a row, and has those tested who can move there. Whether any were new.
    fn set(&self, slab: usize, row: usize, bits: &[(u32, u64)]) -> bool {
        let layout = &self.wins_layout.slabs()[slab];
        let shift = layout.share_shift();
        let mut shares = 0u64;
        self.wins.set(slab, row, bits, |word| shares |= 1 << (word >> shift));
        if shares == 0 {
            return false;
        }
        self.won[self.first_units[slab] + row / layout.unit_rows()].store(true, Relaxed);
        // See `test`.
        fence(SeqCst);
        let stones = self.index.stones();
        for &parent in self.tables.parents(stones - slab as u32).of(row as u32) {
            let mover = stones - slab as u32 + parent.crossing();
            if mover > stones {
                break;
            }
            let dependents = &self.tables.pull(stones - mover, parent.crossing()).dependents;
            let (mut left, mut tested) = (shares, 0);
            while left != 0 {
                tested |= dependents[left.trailing_zeros() as usize];
                left &= left - 1;
            }
            let need = &self.needs[self.layout.slabs()[mover as usize].first_row + parent.rank() as usize];
            let now = need.load(Relaxed);
            let tested = tested & now >> (PARTS * (parent.slot() + 1));
            if tested & !now & TO_TEST != 0 {
                need.fetch_or(tested & TO_TEST, Relaxed);
            }
        }
        true
    }
}

/// The place of a unit in the list that it is an element of.
fn unit_number(units: &[PlaneUnit], unit: &PlaneUnit) -> usize {
    units.partition_point(|other| other.words.start < unit.words.start)
}
