//! The state of a database under way: what is won and lost at the bounds so far, from stage to stage.

use super::before::Before;
use super::homes::{self, Counted};
use super::planes::{Group, Plane, PlaneReader, Portion, SeedsReader};
use super::ranks::Led;
use crate::{Shared, files};
use disk::{Digest, DiskError};
use engines::DriverObserver;
use engines::bounds::{BoundReport, PlaneLayout, PlaneUnit, Solver, SolverError, Units, Wins};
use game::{Index, Orientation};
use pipeline::{StageContext, StageError};
use planner::Method;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use store::{PageCounts, StoreError};

/// A solver, wherever its planes live.
pub(crate) trait Solve: Send + Sync {
    fn units(&self) -> &[PlaneUnit];
    fn wins_units(&self) -> &[PlaneUnit];
    fn add_wins(&self, unit: &PlaneUnit, words: &mut [u64]);
    fn read_wins(&self, unit: &PlaneUnit, into: &mut [u64]);
    fn add_candidates(&self, unit: usize, new: &[u64], then: &mut dyn FnMut(&[u64])) -> Result<(), DiskError>;
    fn remove_candidates(&self, unit: usize, kept: &[u64]) -> Result<(), DiskError>;
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), DiskError>;
    fn has_won(&self, unit: usize) -> bool;
    fn take_won(&self, unit: usize) -> bool;
    fn has_lost(&self, unit: usize) -> bool;
    fn take_lost(&self, unit: usize) -> bool;
    fn settle(&self);
    fn unsettle(&self);
    fn solve(
        &self,
        progress: &dyn DriverObserver,
        checkpoint: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<BoundReport, SolverError<DiskError>>;
    fn check(&self) -> Result<(), DiskError>;
    fn counts(&self) -> Option<PageCounts>;
}

impl<W: Wins<DiskError> + Counted + Send, U: Units<DiskError> + Send> Solve for Solver<W, U, DiskError> {
    fn units(&self) -> &[PlaneUnit] {
        self.units()
    }

    fn wins_units(&self) -> &[PlaneUnit] {
        self.wins_units()
    }

    fn add_wins(&self, unit: &PlaneUnit, words: &mut [u64]) {
        self.add_wins(unit, words);
    }

    fn read_wins(&self, unit: &PlaneUnit, into: &mut [u64]) {
        self.wins().read(unit.slab, unit.rows.clone(), into);
    }

    fn add_candidates(&self, unit: usize, new: &[u64], then: &mut dyn FnMut(&[u64])) -> Result<(), DiskError> {
        self.add_candidates(unit, new, then)
    }

    fn remove_candidates(&self, unit: usize, kept: &[u64]) -> Result<(), DiskError> {
        self.remove_candidates(unit, kept)
    }

    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), DiskError> {
        self.candidates().visit(unit, visitor)
    }

    fn has_won(&self, unit: usize) -> bool {
        self.has_won(unit)
    }

    fn take_won(&self, unit: usize) -> bool {
        self.take_won(unit)
    }

    fn has_lost(&self, unit: usize) -> bool {
        self.has_lost(unit)
    }

    fn take_lost(&self, unit: usize) -> bool {
        self.take_lost(unit)
    }

    fn settle(&self) {
        self.settle();
    }

    fn unsettle(&self) {
        self.unsettle();
    }

    fn solve(
        &self,
        progress: &dyn DriverObserver,
        checkpoint: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<BoundReport, SolverError<DiskError>> {
        self.solve(progress, checkpoint)
    }

    fn check(&self) -> Result<(), DiskError> {
        self.wins().check()
    }

    fn counts(&self) -> Option<PageCounts> {
        self.wins().counts()
    }
}

/// How far a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// All is decided that is at this bound and those above.
    Done(u32),
    /// Besides, what captures say at the bound below is known.
    Seeded(u32),
}

/// The state of a database under way.
///
/// Besides, it has the planes as they were when a bound began, so that what the bound decided can be told; only units that
/// changed are read and written there.
pub(crate) struct State {
    stones: u32,
    pub(crate) at: At,
    pub(crate) solver: Box<dyn Solve>,
    wins_before: Before,
    candidates_before: Before,
    /// By unit of the candidates, whether `candidates_before` is not what it should be when the next bound begins: what was
    /// lost at the last one, if it is in memory.
    stale: Vec<bool>,
    /// The content of the plane that was lost at the last bound, once it is written.
    lost: Option<Digest>,
    groups: Vec<Group>,
    wins_groups: Vec<Group>,
}

/// Keeps the state from one stage to the next, and how long they took.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<Option<State>>,
    /// By stones and bound, the time of preprocess and process.
    times: Mutex<BTreeMap<(u32, u32), [Duration; 2]>>,
    led: Led,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Slot {
    /// Takes the state if it is of this database and as far as that; any other is dropped.
    pub(crate) fn take(&self, stones: u32, at: At) -> Option<State> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        state.filter(|state| state.stones == stones && state.at == at)
    }

    /// Takes the state if it has in memory what was lost at a bound, content with this digest.
    pub(crate) fn take_lost(&self, stones: u32, bound: u32, lost: Digest) -> Option<State> {
        let mut slot = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let has_lost = |state: &&mut State| {
            let is_there = state.candidates_before.is_in_memory() && state.lost == Some(lost);
            is_there && state.stones == stones && state.at == At::Done(bound)
        };
        slot.as_mut().filter(has_lost)?;
        slot.take()
    }

    /// Drops the state.
    pub(crate) fn clear(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn put(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }

    /// What rank 0 keeps where the ranks of a job have the state.
    pub(super) fn led(&self) -> &Led {
        &self.led
    }

    /// Notes how long preprocess (0) or process (1) took.
    pub(crate) fn note(&self, stones: u32, bound: u32, stage: usize, time: Duration) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry((stones, bound)).or_default()[stage] = time;
    }

    /// How long preprocess and process took, where they ran in this process.
    pub(crate) fn times(&self, stones: u32, bound: u32) -> [Duration; 2] {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.remove(&(stones, bound)).unwrap_or_default()
    }
}

impl State {
    /// The state in which the bounds above `bound` are done: from memory, else from the planes.
    pub(crate) fn done_above(
        shared: &Shared,
        index: &Index,
        bound: u32,
        context: &StageContext,
    ) -> Result<State, StageError> {
        match shared.slot().take(index.stones(), At::Done(bound + 1)) {
            Some(state) => Ok(state),
            None => State::load(shared, index, bound, context),
        }
    }

    fn load(shared: &Shared, index: &Index, bound: u32, context: &StageContext) -> Result<State, StageError> {
        let stones = index.stones();
        let directory = context.output(&Plane::WinSeeds.name(stones));
        let directory = directory.parent().unwrap_or(&directory);
        let solver = homes::empty(shared, index, context.disk(), directory)?;
        let layouts = [Orientation::OpponentMajor, Orientation::MoverMajor].map(|to| PlaneLayout::new(index, to));
        let bytes: u64 = layouts.iter().map(|layout| layout.words() as u64 * 8).sum();
        let plan = shared.plan(stones);
        let memory_bytes = plan.memory().planes_bytes + shared.handed().memory_bytes(plan);
        let has_room = plan.method() == Method::TwoBit && memory_bytes + bytes <= plan.memory().budget_bytes;
        let before = |name: &str, layout| match has_room {
            true => Ok(Before::in_memory(layout)),
            false => Before::on_disk(layout, context.disk(), &directory.join(name)),
        };
        let state = State {
            stones,
            at: At::Done(bound + 1),
            wins_before: before("wins-before", &layouts[0])?,
            candidates_before: before("candidates-before", &layouts[1])?,
            stale: vec![false; solver.units().len()],
            lost: None,
            groups: Group::all(solver.units()),
            wins_groups: Group::all(solver.wins_units()),
            solver,
        };
        if bound < stones {
            state.read_planes(shared, index, bound, context)?;
        }
        state.solver.settle();
        Ok(state)
    }

    /// Adds what the planes of the bounds above `bound` say.
    fn read_planes(
        &self,
        shared: &Shared,
        index: &Index,
        bound: u32,
        context: &StageContext,
    ) -> Result<(), StageError> {
        let settings = shared.settings();
        let open = |plane| PlaneReader::input(context, settings, index, plane);
        let damaged = |plane: Plane| move |error: StoreError| files::unreadable(&plane.name(index.stones()), error);
        let (mut buffer, mut all) = (Vec::new(), Vec::new());
        let above = bound + 1..=self.stones;
        let mut won = above.clone().map(|bound| open(Plane::Won(bound))).collect::<Result<Vec<_>, _>>()?;
        for group in &self.wins_groups {
            stop(context)?;
            zeroed(&mut all, group.words.len());
            zeroed(&mut buffer, group.words.len());
            for (bound, won) in above.clone().zip(&mut won) {
                if won.read(group.words.clone(), &mut buffer).map_err(damaged(Plane::Won(bound)))? {
                    all.iter_mut().zip(&buffer).for_each(|(all, new)| *all |= new);
                }
            }
            for (number, unit, words) in group.split(self.solver.wins_units(), &mut all) {
                self.wins_before.set(number, words)?;
                self.solver.add_wins(unit, words);
                self.solver.take_won(number);
            }
        }
        drop(won);
        let mut seeds = SeedsReader::input(context, settings, index, Plane::CandidateSeeds, &self.groups)?;
        let mut lost = above.clone().map(|bound| open(Plane::Lost(bound))).collect::<Result<Vec<_>, _>>()?;
        for group in &self.groups {
            stop(context)?;
            zeroed(&mut all, group.words.len());
            zeroed(&mut buffer, group.words.len());
            for bound in above.clone() {
                if seeds.read(bound, group.words.clone(), &mut buffer)? {
                    all.iter_mut().zip(&buffer).for_each(|(all, new)| *all |= new);
                }
            }
            for (bound, lost) in above.clone().zip(&mut lost) {
                if lost.read(group.words.clone(), &mut buffer).map_err(damaged(Plane::Lost(bound)))? {
                    all.iter_mut().zip(&buffer).for_each(|(all, lost)| *all &= !lost);
                }
            }
            for (number, _, words) in group.split(self.solver.units(), &mut all) {
                self.solver.add_candidates(number, words, &mut |_| {})?;
                self.candidates_before.set(number, words)?;
            }
        }
        Ok(self.solver.check()?)
    }

    /// Adds what captures say at `bound`, the next. `wins` reads the winning captures of a group of the wins and tells
    /// whether there may be any, `new` is given those among them that were not won before.
    pub(crate) fn seed(
        &mut self,
        shared: &Shared,
        index: &Index,
        bound: u32,
        context: &StageContext,
        mut wins: impl FnMut(&Group, &mut [u64]) -> Result<bool, StageError> + Send,
        mut new: impl FnMut(Portion<'_>) -> Result<(), StageError> + Send,
    ) -> Result<(), StageError> {
        let solver = &*self.solver;
        let add_wins = || -> Result<(), StageError> {
            let mut words = Vec::new();
            for group in &self.wins_groups {
                stop(context)?;
                words.resize(group.words.len(), 0);
                if !wins(group, &mut words)? {
                    new(Portion::Zeros(words.len()))?;
                    continue;
                }
                let units = group.split(solver.wins_units(), &mut words).into_par_iter();
                units.for_each(|(_, unit, words)| solver.add_wins(unit, words));
                new(Portion::Words(&mut words))?;
            }
            Ok(())
        };
        let (stale, before) = (&mut self.stale, &self.candidates_before);
        let add_candidates = || -> Result<(), StageError> {
            let mut words = Vec::new();
            let mut seeds = SeedsReader::input(context, shared.settings(), index, Plane::CandidateSeeds, &self.groups)?;
            for group in &self.groups {
                stop(context)?;
                words.resize(group.words.len(), 0);
                let stale = &mut stale[group.units.clone()];
                if !seeds.read(bound, group.words.clone(), &mut words)? && !stale.contains(&true) {
                    continue;
                }
                let units = group.split(solver.units(), &mut words).into_par_iter().zip(stale);
                units.try_for_each(|((number, _, words), stale)| {
                    if !std::mem::take(stale) && words.iter().all(|&word| word == 0) {
                        return Ok(());
                    }
                    let mut written = Ok(());
                    solver.add_candidates(number, words, &mut |words| {
                        written = before.set(number, words);
                    })?;
                    written
                })?;
            }
            Ok(())
        };
        let (wins, candidates) = rayon::join(add_wins, add_candidates);
        wins.and(candidates)?;
        solver.check()?;
        self.at = At::Seeded(bound);
        Ok(())
    }

    /// Tells what the bound decided: group by group the wins that are new, then the candidates that are lost.
    pub(crate) fn harvest(
        &mut self,
        bound: u32,
        mut won: impl FnMut(Portion<'_>) -> Result<(), StageError> + Send,
        mut lost: impl FnMut(Portion<'_>) -> Result<(), StageError> + Send,
    ) -> Result<(), StageError> {
        let solver = &*self.solver;
        let before = &self.wins_before;
        let harvest_wins = || -> Result<(), StageError> {
            let (mut words, buffers) = (Vec::new(), Mutex::new(Vec::new()));
            for group in &self.wins_groups {
                if !group.units.clone().any(|number| solver.has_won(number)) {
                    won(Portion::Zeros(group.words.len()))?;
                    continue;
                }
                words.resize(group.words.len(), 0);
                let units = group.split(solver.wins_units(), &mut words).into_par_iter();
                units.try_for_each(|(number, unit, words)| {
                    if !solver.take_won(number) {
                        words.fill(0);
                        return Ok(());
                    }
                    let buffers = || buffers.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut buffer: Vec<u64> = buffers().pop().unwrap_or_default();
                    solver.read_wins(unit, words);
                    before.gained(number, words, &mut buffer)?;
                    buffers().push(buffer);
                    Ok::<_, DiskError>(())
                })?;
                won(Portion::Words(&mut words))?;
            }
            Ok(solver.check()?)
        };
        let (stale, before) = (&mut self.stale, &self.candidates_before);
        let harvest_losses = || -> Result<(), StageError> {
            let mut words = Vec::new();
            for group in &self.groups {
                if !group.units.clone().any(|number| solver.has_lost(number)) {
                    lost(Portion::Zeros(group.words.len()))?;
                    continue;
                }
                words.resize(group.words.len(), 0);
                let units = group.split(solver.units(), &mut words).into_par_iter();
                units.zip(&mut stale[group.units.clone()]).try_for_each(|((number, _, words), stale)| {
                    if !solver.take_lost(number) {
                        words.fill(0);
                        return Ok(());
                    }
                    *stale = true;
                    let mut told = Ok(());
                    solver.visit(number, &mut |now| {
                        told = before.lost(number, now, words);
                        false
                    })?;
                    told
                })?;
                lost(Portion::Words(&mut words))?;
            }
            Ok(())
        };
        let (wins, losses) = rayon::join(harvest_wins, harvest_losses);
        wins.and(losses)?;
        self.at = At::Done(bound);
        self.lost = None;
        Ok(())
    }

    /// Tells what the content is that was lost at the last bound.
    pub(crate) fn note_lost(&mut self, lost: Digest) {
        self.lost = Some(lost);
    }

    /// Words of what was lost at the last bound, which is in memory, and whether they may have a bit.
    pub(crate) fn read_lost(&self, words: Range<usize>, into: &mut [u64]) -> bool {
        self.candidates_before.read(words, into, |unit| self.stale[unit])
    }
}

/// Makes a buffer so many zeros.
pub(super) fn zeroed(buffer: &mut Vec<u64>, words: usize) {
    buffer.clear();
    buffer.resize(words, 0);
}

/// Leaves a stage that was asked to stop.
pub(crate) fn stop(context: &StageContext) -> Result<(), StageError> {
    if context.stop_requested() { Err(StageError::Stopped) } else { Ok(()) }
}
