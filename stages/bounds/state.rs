//! The state of a database between the stages of its bounds: the positions won and lost at the solved bounds.

use super::batches::{in_batches, one_by_one};
use super::bound_solver::BoundSolver;
use super::capture_counts::CaptureCounts;
use super::plane_storage;
use super::planes::{PlaneFile, PlanePortion, PlaneReader, SeedsReader, UnitGroup};
use super::planes_above::{CandidatesReader, UnionReader};
use super::previous_plane::PreviousPlane;
use super::transpose::TransposedReader;
use crate::build_context::BuildContext;
use disk::Digest;
use game::{Index, Orientation};
use pipeline::{StageContext, StageError, StageResult as Result};
use solvers::ChoiceCounts;
use solvers::bounds::{BitKernel, PlaneLayout, PlaneUnit};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Last step that a state includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundProgress {
    /// This bound and all higher ones are decided.
    Done(u32),
    /// The bounds above are decided, and the captures of this bound are added.
    Seeded(u32),
}

/// State of a database between the stages of its bounds.
///
/// It also keeps copies of the planes from the start of the bound, to find the positions that the bound decides. Only
/// changed units of them are read and written.
pub(crate) struct BoundState {
    stones: u32,
    pub(crate) at: BoundProgress,
    pub(crate) solver: Box<dyn BoundSolver>,
    wins_before: PreviousPlane,
    candidates_before: PreviousPlane,
    /// By unit of the candidates, whether `candidates_before` must be set before the next bound: in memory it has the
    /// positions lost at the last one.
    stale: Vec<AtomicBool>,
    /// Digest of the plane lost at the last bound, once it is written.
    lost: Option<Digest>,
    /// Absent if some of the bounds above were read from planes, or not all wins are in memory.
    pub(crate) captures: Option<CaptureCounts>,
    groups: Vec<UnitGroup>,
    wins_groups: Vec<UnitGroup>,
}

/// Returns the slot of a build.
pub(super) fn slot(build: &BuildContext) -> Arc<StateSlot> {
    build.kept()
}

/// Slot for the states between stages, and their times.
#[derive(Default)]
pub(crate) struct StateSlot {
    /// By stones: stages of two databases may run in turn.
    states: Mutex<BTreeMap<u32, BoundState>>,
    /// Times of preprocess and process, by stones and bound.
    times: Mutex<BTreeMap<(u32, u32), [Duration; 2]>>,
    /// By stones, the digest of the candidate seeds of a solved database, and the choices counted on the way.
    choices: Mutex<BTreeMap<u32, (Digest, ChoiceCounts)>>,
}

impl StateSlot {
    /// Takes the state of a database if it is of this step, else drops it. If only one stage runs at a time,
    /// the states of other databases are dropped too: no stage will take them.
    pub(crate) fn take(&self, context: &StageContext, stones: u32, at: BoundProgress) -> Option<BoundState> {
        let mut states = self.states();
        let state = states.remove(&stones);
        if context.is_alone() {
            states.clear();
        }
        state.filter(|state| state.at == at).map(BoundState::in_pool)
    }

    /// Takes the state if it has the plane lost at a bound in memory, with this digest.
    pub(crate) fn take_lost(&self, stones: u32, bound: u32, lost: Digest) -> Option<BoundState> {
        let mut states = self.states();
        let has_lost = |state: &&BoundState| {
            let is_there = state.candidates_before.is_in_memory() && state.lost == Some(lost);
            is_there && state.at == BoundProgress::Done(bound)
        };
        states.get(&stones).filter(has_lost)?;
        states.remove(&stones).map(BoundState::in_pool)
    }

    /// Drops the state of a database, and all if only one stage runs at a time.
    pub(crate) fn clear(&self, context: &StageContext, stones: u32) {
        self.states().retain(|&other, _| !context.is_alone() && other != stones);
    }

    pub(crate) fn put(&self, state: BoundState) {
        self.states().insert(state.stones, state);
    }

    /// Keeps the choices of a solved database, whose candidate seeds have this digest.
    pub(crate) fn put_choice(&self, stones: u32, seeds: Digest, choice: ChoiceCounts) {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner).insert(stones, (seeds, choice));
    }

    /// Takes the choices of a solved database, and the digest of its candidate seeds.
    pub(crate) fn take_choice(&self, stones: u32) -> Option<(Digest, ChoiceCounts)> {
        self.choices.lock().unwrap_or_else(PoisonError::into_inner).remove(&stones)
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<u32, BoundState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the time of preprocess (0) or process (1).
    pub(crate) fn note(&self, stones: u32, bound: u32, stage: usize, time: Duration) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry((stones, bound)).or_default()[stage] = time;
    }

    /// Takes the times of preprocess and process; zero if they ran in another process.
    pub(crate) fn times(&self, stones: u32, bound: u32) -> [Duration; 2] {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.remove(&(stones, bound)).unwrap_or_default()
    }
}

impl BoundState {
    /// Returns the state, which a stage with other threads may have made, for those of the current pool.
    fn in_pool(mut self) -> BoundState {
        self.solver.enter_pool();
        self
    }

    /// Returns the state after the bounds above `bound`, from the slot, else from the planes.
    pub(crate) fn done_above(build: &BuildContext, index: &Index, bound: u32, context: &StageContext) -> Result<Self> {
        match slot(build).take(context, index.stones(), BoundProgress::Done(bound + 1)) {
            Some(state) => Ok(state),
            None => BoundState::load(build, index, bound, context),
        }
    }

    fn load(build: &BuildContext, index: &Index, bound: u32, context: &StageContext) -> Result<BoundState> {
        let stones = index.stones();
        let directory = context.output(&PlaneFile::WinSeeds.name(stones));
        let directory = directory.parent().unwrap_or(&directory);
        let solver = plane_storage::empty(build, index, context.disk(), directory)?;
        let layouts = [Orientation::OpponentMajor, Orientation::MoverMajor].map(|to| PlaneLayout::new(index, to));
        let before = |name: &str, layout| {
            if build.plan(stones).memory().previous_in_memory {
                Ok(PreviousPlane::in_memory(layout))
            } else {
                PreviousPlane::on_disk(layout, context.disk(), &directory.join(name))
            }
        };
        let state = BoundState {
            stones,
            at: BoundProgress::Done(bound + 1),
            wins_before: before("wins-before", &layouts[0])?,
            candidates_before: before("candidates-before", &layouts[1])?,
            stale: solver.units().iter().map(|_| AtomicBool::new(false)).collect(),
            lost: None,
            captures: None,
            groups: UnitGroup::all(solver.units()),
            wins_groups: UnitGroup::all(solver.wins_units()),
            solver,
        };
        if bound < stones {
            state.read_planes(build, index, bound, context)?;
        }
        state.solver.settle();
        Ok(state)
    }

    /// Adds the planes of the bounds above `bound`.
    fn read_planes(&self, build: &BuildContext, index: &Index, bound: u32, context: &StageContext) -> Result<()> {
        let settings = build.settings();
        let open = |plane| PlaneReader::input(context, settings, index, plane);
        let (mut words, above) = (Vec::new(), bound + 1..=self.stones);
        let mut won = UnionReader::open(self.stones, above.clone().map(PlaneFile::Won), open)?;
        for group in &self.wins_groups {
            stop(context)?;
            won.read(group.words.clone(), &mut words)?;
            for (number, unit, words) in group.split(self.solver.wins_units(), &mut words) {
                self.wins_before.set(number, words)?;
                self.solver.add_wins(unit, words);
                self.solver.take_won(number);
            }
        }
        drop(won);
        let seeds = SeedsReader::input(context, settings, index, PlaneFile::CandidateSeeds, &self.groups)?;
        let bytes = build.plan(self.stones).memory().transposed_bytes as usize;
        let mut candidates = CandidatesReader::open(index, above, seeds, bytes, open)?;
        for group in &self.groups {
            stop(context)?;
            let rows = (group.slab, group.rows.clone());
            candidates.read(rows, group.words.clone(), &mut words, || stop(context))?;
            for (number, _, words) in group.split(self.solver.units(), &mut words) {
                self.solver.add_candidates(number, words, &mut |_| {})?;
                self.candidates_before.set(number, words)?;
            }
        }
        Ok(self.solver.check()?)
    }

    /// Adds the captures of `bound`, the next one. `wins` reads the winning captures of a group, and returns whether
    /// there may be any; `new` receives those that were not won at a higher bound.
    pub(crate) fn seed(
        &mut self,
        build: &BuildContext,
        index: &Index,
        bound: u32,
        context: &StageContext,
        mut wins: impl FnMut(&UnitGroup, &mut [u64]) -> Result<bool> + Send,
        mut new: impl FnMut(PlanePortion<'_>) -> Result<()> + Send,
    ) -> Result<()> {
        let solver = &*self.solver;
        let add_wins = || {
            let compute = |group: &UnitGroup, words: &mut [u64]| {
                let units = group.split(solver.wins_units(), words).into_iter();
                units.for_each(|(_, unit, words)| solver.add_wins(unit, words));
                Ok(())
            };
            in_batches(&self.wins_groups, || stop(context), one_by_one(&mut wins), compute, &mut new)
        };
        let (stale, before) = (&self.stale, &self.candidates_before);
        let (without_capture, is_highest, kernel) = (AtomicU64::new(0), bound == self.stones, BitKernel::detect());
        let add_candidates = || {
            let settings = build.settings();
            let seeds = SeedsReader::input(context, settings, index, PlaneFile::CandidateSeeds, &self.groups)?;
            let prepare = |groups: &[UnitGroup], words: &mut [u64]| {
                let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return Ok(Vec::new()) };
                let has_seeds = seeds.read_on(bound, first.words.start..last.words.end, words)?;
                let is_stale = |group: &UnitGroup| stale[group.units.clone()].iter().any(|stale| stale.load(Relaxed));
                Ok(groups.iter().zip(has_seeds).map(|(group, has_seeds)| has_seeds || is_stale(group)).collect())
            };
            let compute = |group: &UnitGroup, words: &mut [u64]| {
                if is_highest {
                    without_capture.fetch_add(kernel.count(words), Relaxed);
                }
                for (number, _, words) in group.split(solver.units(), words) {
                    if !stale[number].swap(false, Relaxed) && words.iter().all(|&word| word == 0) {
                        continue;
                    }
                    let mut written = Ok(());
                    solver.add_candidates(number, words, &mut |words| {
                        written = before.set(number, words);
                    })?;
                    written?;
                }
                Ok(())
            };
            in_batches(&self.groups, || stop(context), prepare, compute, |_| Ok(()))
        };
        let (wins, candidates) = rayon::join(add_wins, add_candidates);
        wins.and(candidates)?;
        solver.check()?;
        if let Some(captures) = &mut self.captures {
            captures.add_without_capture(without_capture.into_inner());
        }
        self.at = BoundProgress::Seeded(bound);
        Ok(())
    }

    /// Passes the new wins to `won` and the new losses to `lost`, group by group.
    pub(crate) fn harvest(
        &mut self,
        bound: u32,
        seeds: Option<&SeedsReader>,
        mut won: impl FnMut(PlanePortion<'_>) -> Result<()> + Send,
        mut lost: impl FnMut(PlanePortion<'_>) -> Result<()> + Send,
    ) -> Result<()> {
        let solver = &*self.solver;
        let before = &self.wins_before;
        let harvest_wins = || {
            let buffers = Mutex::new(Vec::new());
            let prepare = |group: &UnitGroup, _: &mut [u64]| Ok(group.units.clone().any(|unit| solver.has_won(unit)));
            let compute = |group: &UnitGroup, words: &mut [u64]| {
                for (number, unit, words) in group.split(solver.wins_units(), words) {
                    if !solver.take_won(number) {
                        words.fill(0);
                        continue;
                    }
                    let buffers = || buffers.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut buffer: Vec<u64> = buffers().pop().unwrap_or_default();
                    solver.read_wins(unit, words);
                    before.gained(number, words, &mut buffer)?;
                    buffers().push(buffer);
                }
                Ok(())
            };
            in_batches(&self.wins_groups, || Ok(()), one_by_one(prepare), compute, &mut won)?;
            Ok(solver.check()?)
        };
        let (stale, before) = (&self.stale, &self.candidates_before);
        let (lost_by_capture, is_counted) = (AtomicU64::new(0), AtomicBool::new(true));
        let kernel = BitKernel::detect();
        let harvest_losses = || {
            let prepare = |group: &UnitGroup, _: &mut [u64]| Ok(group.units.clone().any(|unit| solver.has_lost(unit)));
            let compute = |group: &UnitGroup, words: &mut [u64]| {
                for (number, _, words) in group.split(solver.units(), words) {
                    if !solver.take_lost(number) {
                        words.fill(0);
                        continue;
                    }
                    stale[number].store(true, Relaxed);
                    let mut read = Ok(());
                    solver.visit(number, &mut |now| {
                        read = before.lost(number, now, words);
                        false
                    })?;
                    read?;
                }
                if let Some(seeds) = seeds {
                    let mut seeded = vec![0; words.len()];
                    match seeds.read_some(bound, group.words.clone(), &mut seeded) {
                        Ok(()) => {
                            seeded.iter_mut().zip(&*words).for_each(|(seeded, lost)| *seeded &= lost);
                            lost_by_capture.fetch_add(kernel.count(&seeded), Relaxed);
                        }
                        // No reason to lose the bound: the statistics are then counted from the files.
                        Err(_) => is_counted.store(false, Relaxed),
                    }
                }
                Ok(())
            };
            in_batches(&self.groups, || Ok(()), one_by_one(prepare), compute, &mut lost)
        };
        let (wins, losses) = rayon::join(harvest_wins, harvest_losses);
        wins.and(losses)?;
        if !is_counted.into_inner() {
            self.captures = None;
        }
        if let Some(captures) = &mut self.captures {
            captures.add_best_captures(lost_by_capture.into_inner());
        }
        self.at = BoundProgress::Done(bound);
        self.lost = None;
        Ok(())
    }

    /// Returns the choices in the slabs when all bounds are done, if they were counted.
    pub(crate) fn choice(&self, build: &BuildContext, index: &Index) -> Option<ChoiceCounts> {
        let captures = self.captures?;
        // As above, a failure is no reason to lose the bound, nor is a request to stop.
        let open = self.count_open_candidates(build, index).ok()?;
        captures.choice(index.slab_positions(), open, solvers::offered_choices(&build.tables(), index))
    }

    /// Counts the candidates that are not won.
    fn count_open_candidates(&self, build: &BuildContext, index: &Index) -> Result<u64> {
        let solver = &*self.solver;
        let from = PlaneLayout::new(index, Orientation::OpponentMajor);
        let read = |words: Range<usize>, into: &mut [u64]| {
            let slab = from.slabs().partition_point(|slab| slab.first_word <= words.start) - 1;
            let rows = from.slabs()[slab].rows_with(&words);
            solver.read_wins(&PlaneUnit { slab, rows, words }, into);
            Ok(true)
        };
        let bytes = build.plan(self.stones).memory().transposed_bytes as usize;
        let mut transposed = TransposedReader::new(index, Orientation::MoverMajor, bytes);
        let (mut won, mut open, kernel) = (Vec::new(), 0, BitKernel::detect());
        for group in &self.groups {
            won.resize(group.words.len(), 0);
            transposed.read(group.slab, group.rows.clone(), &mut won, || Ok(()), read)?;
            for (number, _, won) in group.split(solver.units(), &mut won) {
                solver.visit(number, &mut |candidates| {
                    won.iter_mut().zip(&*candidates).for_each(|(won, candidates)| *won = candidates & !*won);
                    open += kernel.count(won);
                    false
                })?;
            }
        }
        solver.check()?;
        Ok(open)
    }

    /// Records the digest of the plane lost at the last bound.
    pub(crate) fn note_lost(&mut self, lost: Digest) {
        self.lost = Some(lost);
    }

    /// Reads words of the plane lost at the last bound, which must be in memory, and returns whether any may have a
    /// bit.
    pub(crate) fn read_lost(&self, words: Range<usize>, into: &mut [u64]) -> bool {
        self.candidates_before.read(words, into, |unit| self.stale[unit].load(Relaxed))
    }
}

/// Returns an error if the stage was asked to stop.
pub(crate) fn stop(context: &StageContext) -> Result<()> {
    if context.stop_requested() { Err(StageError::Stopped) } else { Ok(()) }
}
