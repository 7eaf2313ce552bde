//! The method two-bit by all ranks of a job: the stages `process:n:b`, and what rank 0 does differently around them.
//!
//! Rank 0 sorts seeds, turns planes and merges them, in streams; its `preprocess` asks a scratch file what is won already.
//! Then it tells all ranks which files a bound begins from. Each takes what it owns and keeps of them, or has it from the
//! bound before. The ranks solve the bound, and rank 0 writes its planes, which are those of one machine. They are the
//! checkpoint: within a bound nothing is saved.

use super::planes::{Group, Plane, PlaneReader, PlaneWriter, Portion, SeedsReader};
use super::state::{stop, zeroed};
use crate::cluster::load::{self, Loads};
use crate::cluster::{Failure, Job, Order, agree};
use crate::{Shared, files, watch::Watch};
use disk::{Disk, ScratchFile};
use engines::bounds::distributed::{Decided, DistributedBoundReport, PlaneRun, RankPlanes, RowPartition};
use engines::bounds::{BitKernel, PlaneLayout};
use engines::distributed::JobError;
use engines::{DriverObserver, Tables};
use game::{Index, Orientation};
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageReport};
use planner::{Method, Settings};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use store::StoreError;

/// The job whose ranks solve the bounds of a database, if they do.
pub(super) fn job(shared: &Shared, stones: u32) -> Option<&Job> {
    shared.job.as_deref().filter(|_| shared.plan(stones).method() == Method::TwoBit)
}

/// What rank 0 keeps from stage to stage.
#[derive(Default)]
pub(crate) struct Led {
    won: Mutex<Option<WonSoFar>>,
    share: Mutex<Option<Share>>,
}

/// What a rank has of a database, as far as some bound.
pub(crate) struct Share {
    stones: u32,
    bound: u32,
    holding: RankPlanes,
}

/// A bound to solve, and the files that it begins from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    stones: u32,
    bound: u32,
    /// In the order of [`Task::planes`].
    paths: Vec<PathBuf>,
}

impl Task {
    fn new(stones: u32, bound: u32, path: impl Fn(Plane) -> PathBuf) -> Task {
        Task { stones, bound, paths: Task::planes(stones, bound).map(path).collect() }
    }

    /// What a bound begins from: the first two, and what the bounds above decided.
    fn planes(stones: u32, bound: u32) -> impl Iterator<Item = Plane> {
        let above = (bound + 1..=stones).rev().flat_map(|above| [Plane::Won(above), Plane::Lost(above)]);
        [Plane::CandidateSeeds, Plane::Seed(bound)].into_iter().chain(above)
    }

    /// Stones, bound, a path each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let paths = self.paths.iter().map(|path| path.display().to_string());
        [self.stones.to_string(), self.bound.to_string()].into_iter().chain(paths).collect()
    }

    pub(crate) fn of_lines(lines: &[&str]) -> Option<Task> {
        let [stones, bound, paths @ ..] = lines else { return None };
        let (stones, bound) = (stones.parse().ok()?, bound.parse().ok()?);
        let is_bound = stones <= game::STONES_MAX && (1..=stones).contains(&bound);
        let is_whole = is_bound && Task::planes(stones, bound).count() == paths.len();
        is_whole.then(|| Task { stones, bound, paths: paths.iter().map(PathBuf::from).collect() })
    }

    /// Whether the ranks need nothing of the database any more.
    pub(crate) fn is_last(&self) -> bool {
        self.bound == 1
    }
}

/// What a rank needs to take part.
struct Member<'a> {
    settings: &'a Settings,
    disk: &'a dyn Disk,
    tables: Arc<Tables>,
    task: &'a Task,
    index: Index,
}

impl Member<'_> {
    /// Solves the bound together with the others, from what this rank has, should that be what the bound begins from.
    fn solve(
        &self,
        share: Option<Share>,
        communicator: &mut dyn Communicator,
        progress: &dyn DriverObserver,
    ) -> Result<(RankPlanes, DistributedBoundReport, Option<Loads>), Failure> {
        let started = Instant::now();
        let (ranks, rank) = (communicator.size(), communicator.rank());
        let Task { stones, bound, .. } = *self.task;
        let share = share.filter(|share| (share.stones, share.bound) == (stones, bound + 1));
        let prepared = match share {
            Some(share) => Ok(share.holding),
            None => self.load(ranks, rank),
        };
        let prepared = prepared.and_then(|holding| self.seed(&holding).map(|()| holding));
        let mut holding = agree(communicator, prepared)?;
        match holding.solve(communicator, progress) {
            Ok(report) => {
                let loads = load::gather(communicator, &report.traffic, started.elapsed());
                Ok((holding, report, loads.map_err(Failure::lost)?))
            }
            Err(JobError::Stopped) => Err(Failure::Together(StageError::Stopped)),
            Err(error) => Err(Failure::Alone(StageError::failed(error))),
        }
    }

    /// What this rank has of the bounds above, from their planes.
    fn load(&self, ranks: usize, rank: usize) -> Result<RankPlanes, StageError> {
        let Task { stones, bound, .. } = *self.task;
        let shares = RowPartition::new(stones, self.settings.set, ranks);
        let holding = RankPlanes::empty(Arc::clone(&self.tables), &self.index, &shares, rank, BitKernel::detect());
        let (mut buffer, mut all) = (Vec::new(), Vec::new());
        let above = || bound + 1..=stones;
        let mut won = above().map(|bound| self.open(Plane::Won(bound))).collect::<Result<Vec<_>, _>>()?;
        for unit in holding.wins_units().filter(|_| bound < stones) {
            zeroed(&mut all, unit.words.len());
            zeroed(&mut buffer, unit.words.len());
            for (bound, won) in above().zip(&mut won) {
                let read = won.read(unit.words.clone(), &mut buffer);
                if read.map_err(|error| self.unreadable(Plane::Won(bound), error))? {
                    all.iter_mut().zip(&buffer).for_each(|(all, new)| *all |= new);
                }
            }
            holding.add_wins_above(unit, &mut all);
        }
        drop(won);
        let groups = self.groups();
        let mut seeds = self.candidate_seeds(&groups)?;
        let mut lost = above().map(|bound| self.open(Plane::Lost(bound))).collect::<Result<Vec<_>, _>>()?;
        for (number, unit) in holding.units().iter().enumerate().filter(|_| bound < stones) {
            zeroed(&mut all, unit.words.len());
            zeroed(&mut buffer, unit.words.len());
            for bound in above() {
                if seeds.read(bound, unit.words.clone(), &mut buffer)? {
                    all.iter_mut().zip(&buffer).for_each(|(all, new)| *all |= new);
                }
            }
            for (bound, lost) in above().zip(&mut lost) {
                let read = lost.read(unit.words.clone(), &mut buffer);
                if read.map_err(|error| self.unreadable(Plane::Lost(bound), error))? {
                    all.iter_mut().zip(&buffer).for_each(|(all, lost)| *all &= !lost);
                }
            }
            holding.add_candidates(number, &all);
        }
        holding.settle();
        Ok(holding)
    }

    /// Adds what captures say at the bound.
    fn seed(&self, holding: &RankPlanes) -> Result<(), StageError> {
        let (plane, mut words) = (Plane::Seed(self.task.bound), Vec::new());
        let mut reader = self.open(plane)?;
        for unit in holding.wins_units() {
            words.resize(unit.words.len(), 0);
            if reader.read(unit.words.clone(), &mut words).map_err(|error| self.unreadable(plane, error))? {
                holding.add_seeds(unit, &mut words);
            }
        }
        let groups = self.groups();
        let mut seeds = self.candidate_seeds(&groups)?;
        for (number, unit) in holding.units().iter().enumerate() {
            words.resize(unit.words.len(), 0);
            if seeds.read(self.task.bound, unit.words.clone(), &mut words)? {
                holding.add_candidates(number, &words);
            }
        }
        Ok(())
    }

    fn groups(&self) -> Vec<Group> {
        Group::all(&PlaneLayout::new(&self.index, Plane::CandidateSeeds.orientation()).units())
    }

    fn candidate_seeds<'g>(&self, groups: &'g [Group]) -> Result<SeedsReader<'g>, StageError> {
        let name = Plane::CandidateSeeds.name(self.task.stones);
        Ok(SeedsReader::new(name, self.open(Plane::CandidateSeeds)?, self.task.stones, groups))
    }

    fn open(&self, plane: Plane) -> Result<PlaneReader, StageError> {
        let mut planes = Task::planes(self.task.stones, self.task.bound).zip(&self.task.paths);
        let (_, path) = planes.find(|&(of, _)| of == plane).expect("a bound begins from this plane");
        PlaneReader::open(self.disk, path, self.settings, &self.index, plane)
            .map_err(|error| self.unreadable(plane, error))
    }

    fn unreadable(&self, plane: Plane, error: StoreError) -> StageError {
        files::unreadable(&plane.name(self.task.stones), error)
    }
}

/// Takes part in a bound, on another rank than 0. `share` is what this rank has, and then what it has at the bound.
pub(crate) fn follow(
    settings: &Settings,
    disk: &dyn Disk,
    tables: Arc<Tables>,
    task: &Task,
    share: &mut Option<Share>,
    communicator: &mut dyn Communicator,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let index = Index::new(task.stones, settings.set);
    let member = Member { settings, disk, tables, task, index };
    let (mut holding, ..) = member.solve(share.take(), communicator, &Following(stop))?;
    for decided in [Decided::Won, Decided::Lost] {
        let mut nothing = |_: PlaneRun| ControlFlow::Continue(());
        let collected = holding.collect(decided, communicator, &mut nothing);
        collected.map_err(Failure::lost)?;
    }
    if !task.is_last() {
        *share = Some(Share { stones: task.stones, bound: task.bound, holding });
    }
    Ok(())
}

/// Asks another rank than 0 whether to go on.
struct Following<'a>(&'a AtomicBool);

impl DriverObserver for Following<'_> {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        if self.0.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs the stage `process:n:b`, on rank 0.
pub(super) fn process(
    shared: &Shared,
    job: &Job,
    stones: u32,
    bound: u32,
    context: &StageContext,
) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let task = Task::new(stones, bound, |plane| context.input(&plane.name(stones)));
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(Order::Bound(task.clone()).encode())).map_err(StageError::failed)?;
    let led = shared.slot().led();
    let (share, won_so_far) = (take(&led.share), take(&led.won));
    let mut won_so_far = won_so_far.filter(|won| (won.stones, won.bound) == (stones, bound + 1));
    let tables = shared.tables();
    let member = Member { settings, disk: context.disk(), tables, task: &task, index: index.clone() };
    let watch = Watch::bound(context, index.positions(), bound, stones);
    let solved = member.solve(share, &mut **communicator, &watch);
    watch.end();
    let (mut holding, report, loads) = solved.map_err(Failure::into_error)?;
    let mut counts = [0; 2];
    let mut failed = None;
    for ((decided, plane), count) in
        [(Decided::Won, Plane::Won(bound)), (Decided::Lost, Plane::Lost(bound))].into_iter().zip(&mut counts)
    {
        let created = PlaneWriter::output(context, settings, &index, plane);
        let mut writer = created.map_err(|error| failed.get_or_insert(error)).ok();
        let (mut at, kernel) = (0, BitKernel::detect());
        let mut append = |run: PlaneRun| {
            let Some(writer) = writer.as_mut() else { return Ok(()) };
            let portion = match run {
                PlaneRun::Zeros(words) => {
                    at += words;
                    Portion::Zeros(words)
                }
                PlaneRun::Words(words) => {
                    if let Some(won) = won_so_far.as_mut().filter(|_| decided == Decided::Won) {
                        won.add(at, words)?;
                    }
                    at += words.len();
                    Portion::Words(words)
                }
            };
            *count += portion.count(kernel);
            writer.append(portion)
        };
        // All ranks take part in this, whatever went wrong before.
        let mut sink = |run: PlaneRun| {
            if failed.is_none()
                && let Err(error) = append(run)
            {
                failed = Some(error);
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        holding.collect(decided, &mut **communicator, &mut sink).map_err(StageError::failed)?;
        if failed.is_none()
            && let Some(Err(error)) = writer.map(PlaneWriter::finish)
        {
            failed = Some(error);
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    tracing::info!(
        supersteps = report.supersteps,
        rows = report.rows,
        "solved after {:.3} s",
        start.elapsed().as_secs_f64()
    );
    shared.slot().note(stones, bound, 1, start.elapsed());
    if !task.is_last() {
        put(&led.share, Share { stones, bound, holding });
        if let Some(won) = won_so_far {
            put(&led.won, WonSoFar { bound, ..won });
        }
    }
    let [won, lost] = counts;
    let stage = StageReport::new(index.positions());
    Ok(loads
        .expect("rank 0 hears of all")
        .report(stage)
        .with("passes", report.supersteps)
        .with("bits in memory", 2u64)
        .with("rows tested", report.rows)
        .with("won", won)
        .with("lost", lost))
}

/// Finds what captures win at `bound`, the next, and nothing won before: as
/// [`State::seed`](super::state::State::seed), without a state.
pub(super) fn seed(
    shared: &Shared,
    index: &Index,
    bound: u32,
    context: &StageContext,
    mut wins: impl FnMut(&Group, &mut [u64]) -> Result<bool, StageError>,
    mut new: impl FnMut(Portion<'_>) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let led = shared.slot().led();
    let won = take(&led.won).filter(|won| (won.stones, won.bound) == (index.stones(), bound + 1));
    let won = match won {
        Some(won) => won,
        None => WonSoFar::load(shared, index, bound, context)?,
    };
    let (mut words, mut before) = (Vec::new(), Vec::new());
    for group in Group::all(&PlaneLayout::new(index, Orientation::OpponentMajor).units()) {
        stop(context)?;
        words.resize(group.words.len(), 0);
        if !wins(&group, &mut words)? {
            new(Portion::Zeros(words.len()))?;
            continue;
        }
        before.resize(group.words.len(), 0);
        won.file.read_at(group.words.start as u64 * 8, disk::bytes_of_words_mut(&mut before))?;
        words.iter_mut().zip(&before).for_each(|(word, before)| *word &= !before);
        new(Portion::Words(&mut words))?;
    }
    put(&led.won, won);
    Ok(())
}

/// What is won at a bound and those above, in a scratch file.
struct WonSoFar {
    stones: u32,
    bound: u32,
    file: Box<dyn ScratchFile>,
    buffer: Vec<u64>,
}

impl WonSoFar {
    /// From the planes of the bounds above `bound`.
    fn load(shared: &Shared, index: &Index, bound: u32, context: &StageContext) -> Result<WonSoFar, StageError> {
        let (settings, stones) = (shared.settings(), index.stones());
        let layout = PlaneLayout::new(index, Orientation::OpponentMajor);
        let path = context.output(&Plane::Won(0).name(stones)).with_file_name("won-so-far");
        let file = context.disk().scratch(&path, layout.words() as u64 * 8)?;
        let mut won = WonSoFar { stones, bound: bound + 1, file, buffer: Vec::new() };
        let above = || bound + 1..=stones;
        let readers = above().map(|bound| PlaneReader::input(context, settings, index, Plane::Won(bound)));
        let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
        let mut words = Vec::new();
        for unit in layout.units().iter().filter(|_| bound < stones) {
            stop(context)?;
            words.resize(unit.words.len(), 0);
            for (bound, reader) in above().zip(&mut readers) {
                let read = reader.read(unit.words.clone(), &mut words);
                if read.map_err(|error| files::unreadable(&Plane::Won(bound).name(stones), error))? {
                    won.add(unit.words.start, &words)?;
                }
            }
        }
        Ok(won)
    }

    /// Adds words of a plane, from a place on.
    fn add(&mut self, at: usize, words: &[u64]) -> Result<(), StageError> {
        let place = at as u64 * 8;
        self.buffer.resize(words.len(), 0);
        self.file.read_at(place, disk::bytes_of_words_mut(&mut self.buffer))?;
        self.buffer.iter_mut().zip(words).for_each(|(all, new)| *all |= new);
        Ok(self.file.write_at(place, disk::bytes_of_words(&self.buffer))?)
    }
}

fn take<T>(kept: &Mutex<Option<T>>) -> Option<T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn put<T>(kept: &Mutex<Option<T>>, what: T) {
    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_understood() {
        let task = Task::new(7, 5, |plane| PathBuf::from(format!("/runs/a b/{}", plane.name(7))));
        assert_eq!(task.paths.len(), 6);
        let lines = task.lines();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(Task::of_lines(&lines), Some(task));
        assert_eq!(Task::of_lines(&lines[..lines.len() - 1]), None);
        for lines in [&["7"][..], &["7", "8"], &["7", "0", "a", "b"], &["x", "7", "a", "b"], &["4000000000", "1"]] {
            assert_eq!(Task::of_lines(lines), None, "{lines:?}");
        }
    }
}
