//! The state of a database under way: what is won and lost at the bounds so far, from stage to stage.

use super::homes::{self, Counted};
use super::planes::{Group, Plane, PlaneReader};
use crate::{Method, Shared, files};
use disk::{DiskError, Scratch};
use engines::Progress;
use engines::bound::{Failure, PlaneLayout, PlaneUnit, Report, Solver, Units, Wins};
use game::{Index, Orientation};
use pipeline::{StageContext, StageError};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use store::{PageCounts, StoreError};

/// A solver, wherever its planes live.
pub(crate) trait Solve: Send {
    fn units(&self) -> &[PlaneUnit];
    fn wins_units(&self) -> &[PlaneUnit];
    fn add_wins(&self, unit: &PlaneUnit, words: &[u64]);
    fn read_wins(&self, unit: &PlaneUnit, into: &mut [u64]);
    fn add_candidates(&self, unit: usize, new: &[u64], then: &mut dyn FnMut(&[u64])) -> Result<(), DiskError>;
    fn remove_candidates(&self, unit: usize, kept: &[u64]) -> Result<(), DiskError>;
    fn visit(&self, unit: usize, visitor: &mut dyn FnMut(&mut [u64]) -> bool) -> Result<(), DiskError>;
    fn take_won(&self, unit: usize) -> bool;
    fn take_lost(&self, unit: usize) -> bool;
    fn settle(&self);
    fn unsettle(&self);
    fn solve(
        &self,
        progress: &dyn Progress,
        checkpoint: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<Report, Failure<DiskError>>;
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

    fn add_wins(&self, unit: &PlaneUnit, words: &[u64]) {
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

    fn take_won(&self, unit: usize) -> bool {
        self.take_won(unit)
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
        progress: &dyn Progress,
        checkpoint: &mut dyn FnMut() -> Result<(), DiskError>,
    ) -> Result<Report, Failure<DiskError>> {
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
/// Two scratch files hold the planes as they were when a bound began, so that what the bound decided can be told; only
/// units that changed are read and written there.
pub(crate) struct State {
    stones: u32,
    pub(crate) at: At,
    pub(crate) solver: Box<dyn Solve>,
    wins_before: Box<dyn Scratch>,
    candidates_before: Box<dyn Scratch>,
    /// By unit of the candidates, whether `candidates_before` is not what it should be when the next bound begins.
    stale: Vec<bool>,
    groups: Vec<Group>,
}

/// Keeps the state from one stage to the next, and how long they took.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<Option<State>>,
    /// By stones and bound, the time of preprocess and process.
    times: Mutex<BTreeMap<(u32, u32), [Duration; 2]>>,
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

    pub(crate) fn put(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
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
        method: Method,
        context: &StageContext,
    ) -> Result<State, StageError> {
        match shared.slot().take(index.stones(), At::Done(bound + 1)) {
            Some(state) => Ok(state),
            None => State::load(shared, index, bound, method, context),
        }
    }

    fn load(
        shared: &Shared,
        index: &Index,
        bound: u32,
        method: Method,
        context: &StageContext,
    ) -> Result<State, StageError> {
        let stones = index.stones();
        let directory = context.output(&Plane::WinSeeds.name(stones));
        let directory = directory.parent().unwrap_or(&directory);
        let solver = homes::empty(shared, index, method, context.disk(), directory)?;
        let bytes = |orientation| PlaneLayout::new(index, orientation).words() as u64 * 8;
        let scratch = |name: &str, orientation| context.disk().scratch(&directory.join(name), bytes(orientation));
        let layout = PlaneLayout::new(index, Orientation::MoverMajor);
        let state = State {
            stones,
            at: At::Done(bound + 1),
            wins_before: scratch("wins-before", Orientation::OpponentMajor)?,
            candidates_before: scratch("candidates-before", Orientation::MoverMajor)?,
            stale: vec![false; solver.units().len()],
            groups: Group::all(&layout, solver.units()),
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
        for (number, unit) in self.solver.wins_units().iter().enumerate() {
            stop(context)?;
            all.clear();
            all.resize(unit.words.len(), 0);
            buffer.resize(unit.words.len(), 0);
            for (bound, won) in above.clone().zip(&mut won) {
                won.read(unit.words.clone(), &mut buffer).map_err(damaged(Plane::Won(bound)))?;
                all.iter_mut().zip(&buffer).for_each(|(all, new)| *all |= new);
            }
            self.solver.add_wins(unit, &all);
            self.solver.take_won(number);
            self.wins_before.write_at(unit.words.start as u64 * 8, disk::bytes_of_words(&all))?;
        }
        drop(won);
        let mut seeds = open(Plane::CandidateSeeds)?;
        let mut lost = above.clone().map(|bound| open(Plane::Lost(bound))).collect::<Result<Vec<_>, _>>()?;
        for group in &self.groups {
            for number in group.units.clone() {
                stop(context)?;
                let unit = &self.solver.units()[number];
                all.clear();
                all.resize(unit.words.len(), 0);
                buffer.resize(unit.words.len(), 0);
                for bound in above.clone() {
                    let place = group.seeds(unit, bound, self.stones);
                    seeds.read(place, &mut buffer).map_err(damaged(Plane::CandidateSeeds))?;
                    all.iter_mut().zip(&buffer).for_each(|(all, new)| *all |= new);
                }
                for (bound, lost) in above.clone().zip(&mut lost) {
                    lost.read(unit.words.clone(), &mut buffer).map_err(damaged(Plane::Lost(bound)))?;
                    all.iter_mut().zip(&buffer).for_each(|(all, lost)| *all &= !lost);
                }
                self.solver.add_candidates(number, &all, &mut |_| {})?;
                self.candidates_before.write_at(unit.words.start as u64 * 8, disk::bytes_of_words(&all))?;
            }
        }
        Ok(self.solver.check()?)
    }

    /// Adds what captures say at `bound`, the next: `new_wins` gives the new wins of a unit of the wins.
    pub(crate) fn seed(
        &mut self,
        shared: &Shared,
        index: &Index,
        bound: u32,
        context: &StageContext,
        mut new_wins: impl FnMut(&dyn Solve, &PlaneUnit, &mut [u64]) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let mut words = Vec::new();
        for unit in self.solver.wins_units() {
            stop(context)?;
            words.resize(unit.words.len(), 0);
            new_wins(&*self.solver, unit, &mut words)?;
            self.solver.add_wins(unit, &words);
        }
        let mut seeds = PlaneReader::input(context, shared.settings(), index, Plane::CandidateSeeds)?;
        for group in &self.groups {
            for number in group.units.clone() {
                stop(context)?;
                let unit = &self.solver.units()[number];
                words.resize(unit.words.len(), 0);
                seeds
                    .read(group.seeds(unit, bound, self.stones), &mut words)
                    .map_err(|error| files::unreadable(&Plane::CandidateSeeds.name(self.stones), error))?;
                if words.iter().any(|&word| word != 0) || std::mem::take(&mut self.stale[number]) {
                    let mut written = Ok(());
                    self.solver.add_candidates(number, &words, &mut |words| {
                        let place = unit.words.start as u64 * 8;
                        written = self.candidates_before.write_at(place, disk::bytes_of_words(words));
                    })?;
                    written?;
                    self.stale[number] = false;
                }
            }
        }
        self.solver.check()?;
        self.at = At::Seeded(bound);
        Ok(())
    }

    /// Tells what the bound decided: for each unit of the wins those that are new, then of the candidates those lost.
    pub(crate) fn harvest(
        &mut self,
        bound: u32,
        mut won: impl FnMut(&mut [u64]) -> Result<(), StageError>,
        mut lost: impl FnMut(&mut [u64]) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let (mut before, mut now) = (Vec::new(), Vec::new());
        for (number, unit) in self.solver.wins_units().iter().enumerate() {
            before.clear();
            before.resize(unit.words.len(), 0);
            if self.solver.take_won(number) {
                let place = unit.words.start as u64 * 8;
                now.resize(unit.words.len(), 0);
                self.wins_before.read_at(place, disk::bytes_of_words_mut(&mut before))?;
                self.solver.read_wins(unit, &mut now);
                self.wins_before.write_at(place, disk::bytes_of_words(&now))?;
                before.iter_mut().zip(&now).for_each(|(before, now)| *before = now & !*before);
            }
            won(&mut before)?;
        }
        self.solver.check()?;
        for (number, unit) in self.solver.units().iter().enumerate() {
            before.clear();
            before.resize(unit.words.len(), 0);
            if self.solver.take_lost(number) {
                self.candidates_before.read_at(unit.words.start as u64 * 8, disk::bytes_of_words_mut(&mut before))?;
                self.solver.visit(number, &mut |now| {
                    before.iter_mut().zip(now).for_each(|(before, now)| *before &= !*now);
                    false
                })?;
                self.stale[number] = true;
            }
            lost(&mut before)?;
        }
        self.at = At::Done(bound);
        Ok(())
    }
}

/// Leaves a stage that was asked to stop.
pub(crate) fn stop(context: &StageContext) -> Result<(), StageError> {
    if context.stop_requested() { Err(StageError::Stopped) } else { Ok(()) }
}
