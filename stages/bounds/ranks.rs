//! The method two-bit by all ranks of a job: the stages `preprocess:n:b` and `process:n:b`.
//!
//! Rank 0 alone sorts seeds, transposes and merges planes, as streams; its `preprocess` reads the wins of higher bounds
//! from a scratch file. For `process` it sends a [`BoundTask`] to all ranks. Each loads its part of the planes, unless
//! it has the state after the bound above. The ranks solve the bound, and rank 0 writes its planes, which equal those
//! of one machine. They are the checkpoint: nothing is saved within a bound.

use super::bound_task::BoundTask;
use super::planes::{PlaneFile, PlanePortion, PlaneReader, PlaneWriter, SeedsReader, UnitGroup};
use super::planes_above::{CandidatesReader, UnionReader};
use super::state::{slot, stop};
use super::wins_by_capture::{ReadGroup, WritePortion, find_wins};
use crate::build_context::BuildContext;
use crate::distributed::{FollowerRank, JobLeader, RankLoads, RankResult, StageOrder, agree, gather_loads};
use crate::files;
use crate::solver_progress::SolverProgress;
use disk::{Disk, ScratchFile};
use game::{Index, Orientation};
use messaging::Communicator;
use pipeline::StageResult as Result;
use pipeline::{StageContext, StageError, StageReport};
use planner::{Method, Settings};
use solvers::bounds::distributed::{Decided, DistributedBoundReport, PlaneRun, RankPlanes, RowPartition};
use solvers::bounds::{BitKernel, PlaneLayout};
use solvers::{DriverObserver, Tables};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use store::StoreError;

/// Bytes of transposed rows that a rank keeps while it loads planes.
const TRANSPOSED_BYTES: usize = 8 << 20;

/// Returns the job, if all ranks solve the bounds of this database.
pub(super) fn job(build: &BuildContext, stones: u32) -> Option<&JobLeader> {
    build.job().filter(|_| build.plan(stones).method() == Method::TwoBit)
}

/// State of rank 0 between stages.
#[derive(Default)]
struct BoundsOfLeader {
    won: Mutex<Option<WonSoFar>>,
    share: Mutex<Option<BoundShare>>,
}

/// Part of a database that a rank holds, after some bound.
struct BoundShare {
    stones: u32,
    bound: u32,
    planes_of_rank: RankPlanes,
}

/// Inputs of one rank.
struct BoundRank<'a> {
    settings: &'a Settings,
    disk: &'a dyn Disk,
    tables: Arc<Tables>,
    task: &'a BoundTask,
    index: Index,
}

impl BoundRank<'_> {
    /// Solves the bound with the other ranks, from `share` if that is the state after the bound above.
    fn solve(
        &self,
        share: Option<BoundShare>,
        communicator: &mut dyn Communicator,
        progress: &dyn DriverObserver,
    ) -> RankResult<(RankPlanes, DistributedBoundReport, Option<RankLoads>)> {
        let started = Instant::now();
        let (ranks, rank) = (communicator.size(), communicator.rank());
        let BoundTask { stones, bound, .. } = *self.task;
        let share = share.filter(|share| (share.stones, share.bound) == (stones, bound + 1));
        let prepared = match share {
            Some(share) => Ok(share.planes_of_rank),
            None => self.load(ranks, rank),
        };
        let prepared = prepared.and_then(|planes_of_rank| self.seed(&planes_of_rank).map(|()| planes_of_rank));
        let mut planes_of_rank = agree(communicator, prepared)?;
        let report = planes_of_rank.solve(communicator, progress)?;
        let loads = gather_loads(communicator, &report.traffic, started.elapsed())?;
        Ok((planes_of_rank, report, loads))
    }

    /// Loads this rank's part of the planes of the bounds above.
    fn load(&self, ranks: usize, rank: usize) -> Result<RankPlanes> {
        let BoundTask { stones, bound, .. } = *self.task;
        let shares = RowPartition::new(stones, self.settings.set, ranks);
        let planes_of_rank =
            RankPlanes::empty(Arc::clone(&self.tables), &self.index, &shares, rank, BitKernel::detect());
        let (mut words, above) = (Vec::new(), bound + 1..=stones);
        let mut won = UnionReader::open(stones, above.clone().map(PlaneFile::Won), |plane| self.open(plane))?;
        for unit in planes_of_rank.wins_units().filter(|_| bound < stones) {
            won.read(unit.words.clone(), &mut words)?;
            planes_of_rank.add_wins_above(unit, &mut words);
        }
        drop(won);
        let groups = PlaneFile::CandidateSeeds.groups(&self.index);
        let seeds = self.candidate_seeds(&groups)?;
        let mut candidates =
            CandidatesReader::open(&self.index, above, seeds, TRANSPOSED_BYTES, |plane| self.open(plane))?;
        for (number, unit) in planes_of_rank.units().iter().enumerate().filter(|_| bound < stones) {
            candidates.read((unit.slab, unit.rows.clone()), unit.words.clone(), &mut words, || Ok(()))?;
            planes_of_rank.add_candidates(number, &words);
        }
        planes_of_rank.settle();
        Ok(planes_of_rank)
    }

    /// Adds the captures of the bound.
    fn seed(&self, planes_of_rank: &RankPlanes) -> Result<()> {
        let (plane, mut words) = (PlaneFile::Seed(self.task.bound), Vec::new());
        let mut reader = self.open(plane)?;
        for unit in planes_of_rank.wins_units() {
            words.resize(unit.words.len(), 0);
            if reader.read(unit.words.clone(), &mut words).map_err(|error| self.unreadable(plane, error))? {
                planes_of_rank.add_seeds(unit, &mut words);
            }
        }
        let groups = PlaneFile::CandidateSeeds.groups(&self.index);
        let mut seeds = self.candidate_seeds(&groups)?;
        for (number, unit) in planes_of_rank.units().iter().enumerate() {
            words.resize(unit.words.len(), 0);
            if seeds.read(self.task.bound, unit.words.clone(), &mut words)? {
                planes_of_rank.add_candidates(number, &words);
            }
        }
        Ok(())
    }

    fn candidate_seeds<'g>(&self, groups: &'g [UnitGroup]) -> Result<SeedsReader<'g>> {
        let name = PlaneFile::CandidateSeeds.name(self.task.stones);
        Ok(SeedsReader::new(name, self.open(PlaneFile::CandidateSeeds)?, self.task.stones, groups))
    }

    fn open(&self, plane: PlaneFile) -> Result<PlaneReader> {
        let mut planes = BoundTask::planes(self.task.stones, self.task.bound).zip(&self.task.paths);
        let (_, path) = planes.find(|&(of, _)| of == plane).expect("a bound begins from this plane");
        PlaneReader::open(self.disk, path, self.settings, &self.index, plane)
            .map_err(|error| self.unreadable(plane, error))
    }

    fn unreadable(&self, plane: PlaneFile, error: StoreError) -> StageError {
        files::unreadable(&plane.name(self.task.stones), error)
    }
}

/// Part of a database that a rank other than 0 keeps from one bound to the next.
type ShareOfFollower = Mutex<Option<BoundShare>>;

/// Runs the stage on a rank other than 0.
pub(super) fn follow(
    follower: &mut FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    let (task, tables): (BoundTask, _) = (order.task()?, follower.tables());
    if task.is_last() {
        // The tables for pushing wins are large, and not needed for other orders.
        follower.forget_tables();
    }
    let FollowerRank { plan, disk, stop, .. } = *follower;
    let (settings, share) = (plan.settings(), follower.kept::<ShareOfFollower>());
    let index = Index::new(task.stones, settings.set);
    let member = BoundRank { settings, disk, tables, task: &task, index };
    let (mut planes_of_rank, ..) = member.solve(take(&share), communicator, &StopFlag(stop))?;
    for decided in [Decided::Won, Decided::Lost] {
        let mut nothing = |_: PlaneRun| ControlFlow::Continue(());
        planes_of_rank.collect(decided, communicator, &mut nothing)?;
    }
    if !task.is_last() {
        put(&share, BoundShare { stones: task.stones, bound: task.bound, planes_of_rank });
    }
    Ok(())
}

/// Progress of a rank other than 0: only requests to stop.
struct StopFlag<'a>(&'a AtomicBool);

impl DriverObserver for StopFlag<'_> {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        if self.0.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs the stage `preprocess:n:b`, which rank 0 does alone.
pub(super) fn preprocess(build: &BuildContext, stones: u32, bound: u32, context: &StageContext) -> Result<StageReport> {
    let index = Index::new(stones, build.settings().set);
    let start = Instant::now();
    let report = find_wins(build, &index, bound, context, |wins, new| seed(build, &index, bound, context, wins, new))?;
    slot(build).note(stones, bound, 0, start.elapsed());
    Ok(report)
}

/// Runs the stage `process:n:b`, on rank 0.
pub(super) fn process(
    kind: &str,
    build: &BuildContext,
    job: &JobLeader,
    stones: u32,
    bound: u32,
    context: &StageContext,
) -> Result<StageReport> {
    let settings = build.settings();
    let index = Index::new(stones, settings.set);
    let start = Instant::now();
    let task = BoundTask::new(stones, bound, |plane| context.input(&plane.name(stones)));
    let mut communicator = job.order(kind, &task)?;
    let led = build.kept::<BoundsOfLeader>();
    let (share, won_so_far) = (take(&led.share), take(&led.won));
    let mut won_so_far = won_so_far.filter(|won| (won.stones, won.bound) == (stones, bound + 1));
    let tables = build.tables();
    let member = BoundRank { settings, disk: context.disk(), tables, task: &task, index: index.clone() };
    let watch = SolverProgress::bound(context, index.positions(), bound, stones);
    let solved = member.solve(share, &mut **communicator, &watch);
    watch.end();
    let (mut planes_of_rank, report, loads) = solved?;
    let mut counts = [0; 2];
    let mut failed = None;
    for ((decided, plane), count) in
        [(Decided::Won, PlaneFile::Won(bound)), (Decided::Lost, PlaneFile::Lost(bound))].into_iter().zip(&mut counts)
    {
        let created = PlaneWriter::output(context, settings, &index, plane);
        let mut writer = created.map_err(|error| failed.get_or_insert(error)).ok();
        let (mut at, kernel) = (0, BitKernel::detect());
        let mut append = |run: PlaneRun| {
            let Some(writer) = writer.as_mut() else { return Ok(()) };
            let portion = match run {
                PlaneRun::Zeros(words) => {
                    at += words;
                    PlanePortion::Zeros(words)
                }
                PlaneRun::Words(words) => {
                    if let Some(won) = won_so_far.as_mut().filter(|_| decided == Decided::Won) {
                        won.add(at, words)?;
                    }
                    at += words.len();
                    PlanePortion::Words(words)
                }
            };
            *count += portion.count(kernel);
            writer.append(portion)
        };
        // All ranks collect, even after an error on rank 0.
        let mut sink = |run: PlaneRun| {
            if failed.is_none()
                && let Err(error) = append(run)
            {
                failed = Some(error);
            }
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        planes_of_rank.collect(decided, &mut **communicator, &mut sink).map_err(StageError::failed)?;
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
    slot(build).note(stones, bound, 1, start.elapsed());
    if !task.is_last() {
        put(&led.share, BoundShare { stones, bound, planes_of_rank });
        if let Some(won) = won_so_far {
            put(&led.won, WonSoFar { bound, ..won });
        }
    }
    let [won, lost] = counts;
    let stage = StageReport::new(index.positions());
    Ok(loads
        .expect("rank 0 gathers the loads")
        .report(stage)
        .with("passes", report.supersteps)
        .with("bits in memory", 2u64)
        .with("rows tested", report.rows)
        .with("won", won)
        .with("lost", lost))
}

/// Passes the wins by captures that are new at `bound` to `new`, as `BoundState::seed` does, without a state.
fn seed(
    build: &BuildContext,
    index: &Index,
    bound: u32,
    context: &StageContext,
    wins: ReadGroup,
    new: WritePortion,
) -> Result<()> {
    let led = build.kept::<BoundsOfLeader>();
    let won = take(&led.won).filter(|won| (won.stones, won.bound) == (index.stones(), bound + 1));
    let won = match won {
        Some(won) => won,
        None => WonSoFar::load(build, index, bound, context)?,
    };
    let (mut words, mut before) = (Vec::new(), Vec::new());
    for group in PlaneFile::Won(bound).groups(index) {
        stop(context)?;
        words.resize(group.words.len(), 0);
        if !wins(&group, &mut words)? {
            new(PlanePortion::Zeros(words.len()))?;
            continue;
        }
        before.resize(group.words.len(), 0);
        won.file.read_at(group.words.start as u64 * 8, disk::bytes_of_words_mut(&mut before))?;
        words.iter_mut().zip(&before).for_each(|(word, before)| *word &= !before);
        new(PlanePortion::Words(&mut words))?;
    }
    put(&led.won, won);
    Ok(())
}

/// Wins at a bound and those above, in a scratch file.
struct WonSoFar {
    stones: u32,
    bound: u32,
    file: Box<dyn ScratchFile>,
    buffer: Vec<u64>,
}

impl WonSoFar {
    /// Loads the planes of the bounds above `bound`.
    fn load(build: &BuildContext, index: &Index, bound: u32, context: &StageContext) -> Result<WonSoFar> {
        let (settings, stones) = (build.settings(), index.stones());
        let layout = PlaneLayout::new(index, Orientation::OpponentMajor);
        let path = context.output(&PlaneFile::Won(0).name(stones)).with_file_name("won-so-far");
        let file = context.disk().scratch(&path, layout.words() as u64 * 8)?;
        let mut won = WonSoFar { stones, bound: bound + 1, file, buffer: Vec::new() };
        let open = |plane| PlaneReader::input(context, settings, index, plane);
        let mut planes = UnionReader::open(stones, (bound + 1..=stones).map(PlaneFile::Won), open)?;
        let mut words = Vec::new();
        for unit in layout.units() {
            stop(context)?;
            if planes.read(unit.words.clone(), &mut words)? {
                won.add(unit.words.start, &words)?;
            }
        }
        Ok(won)
    }

    /// Adds words of a plane, from word `at` on.
    fn add(&mut self, at: usize, words: &[u64]) -> Result<()> {
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
