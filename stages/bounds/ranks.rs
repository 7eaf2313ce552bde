//! The bounds of a database solved by all ranks of a job.
//!
//! Each rank keeps its planes from bound to bound. For a resumed run, or a stage that is run alone, each loads its part from
//! the planes, which are those of one machine. They are the checkpoint: nothing is saved within a bound.

use super::declaration;
use super::planes::{PlaneFile, PlanePortion, PlaneReader, UnitGroup};
use super::planes_above::{CandidatesReader, UnionReader};
use super::rank_solver::{self, RankSolver};
use super::state::slot;
use super::team::{PlaneMember, PlaneTask};
use super::wins_by_capture;
use crate::build_context::BuildContext;
use crate::distributed::{JobLeader, RankResult, StageOrder, agree};
use crate::files;
use crate::solver_progress::SolverProgress;
use crate::team::{self, FollowerRank};
use disk::ScratchFile;
use game::Index;
use messaging::Communicator;
use pipeline::StageResult as Result;
use pipeline::{StageContext, StageError, StageReport};
use solvers::bounds::BitKernel;
use solvers::bounds::ranks::{Decided, DistributedBoundReport, PlaneRun};
use solvers::ranks::JobError;
use solvers::{DriverObserver, Tables};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Bytes of transposed rows that a rank keeps while it loads planes.
const TRANSPOSED_BYTES: usize = 8 << 20;

/// Returns the job, if all ranks solve the bounds of this database.
pub(super) fn job(build: &BuildContext, stones: u32) -> Option<&JobLeader> {
    build.job_that_shares(stones).filter(|_| build.plan(stones).method().has_bounds())
}

/// What a rank keeps from one bound to the next.
#[derive(Default)]
pub(super) struct KeptBound {
    planes: Mutex<Option<PlanesAt>>,
    won: Mutex<Option<WonSoFar>>,
}

/// Planes of a rank after some bound.
struct PlanesAt {
    stones: u32,
    bound: u32,
    planes: Box<dyn RankSolver>,
}

/// Finds the words of `BB.seed` of a rank, and returns the number of positions of all.
pub(super) fn find_wins(member: &PlaneMember, communicator: &mut dyn Communicator) -> RankResult<u64> {
    let kept = member.build.kept::<KeptBound>();
    wins_by_capture::find_wins(member, communicator, |groups, wins, new| {
        let words = UnitGroup::words_of_all(groups);
        let (stones, bound) = (member.task.stones, member.task.bound);
        let won = take(&kept.won).filter(|won| won.is_at(stones, bound + 1, &words));
        let won = won.map_or_else(|| WonSoFar::load(member, words), Ok)?;
        let (mut words, mut before) = (Vec::new(), Vec::new());
        for group in groups {
            member.stop()?;
            words.resize(group.words.len(), 0);
            if !wins(group, &mut words)? {
                new(PlanePortion::Zeros(words.len()))?;
                continue;
            }
            before.resize(group.words.len(), 0);
            won.read(group.words.start, &mut before)?;
            words.iter_mut().zip(&before).for_each(|(word, before)| *word &= !before);
            new(PlanePortion::Words(&mut words))?;
        }
        put(&kept.won, won);
        Ok(())
    })
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
    let index = Index::new(stones, build.settings().set);
    let task = task(context, stones, bound);
    let watch = SolverProgress::bound(context, index.positions(), bound, stones);
    let start = Instant::now();
    let solved =
        team::lead(kind, build, Some(job), &task, context, |member, communicator| solve(member, communicator, &watch));
    watch.end();
    let (SolvedBound { report, won, lost }, loads) = solved?;
    slot(build).note(stones, bound, 1, start.elapsed());
    let stage = team::report(StageReport::new(index.positions()), loads);
    Ok(stage
        .with("passes", report.supersteps)
        .with("bits in memory", declaration::planes_in_memory(build.plan(stones)).bits())
        .with("rows tested", report.rows)
        .with("won", won)
        .with("lost", lost))
}

/// Runs the stage on a rank other than 0.
pub(super) fn follow(
    follower: &FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    team::follow(follower, order, communicator, |member: &PlaneMember, communicator| {
        let solved = solve(member, communicator, &StopsOnly(member));
        if member.task.is_last() {
            // The tables for pushing wins are large, and not needed for other orders.
            follower.build.forget_tables();
        }
        solved
    })
}

/// Returns the task of a bound: its inputs are those of the declaration of the stage.
fn task(context: &StageContext, stones: u32, bound: u32) -> PlaneTask {
    let inputs = [PlaneFile::CandidateSeeds, PlaneFile::Seed(bound)].into_iter();
    let inputs = inputs.chain(declaration::decided_above(stones, bound)).map(|plane| plane.name(stones));
    let outputs = [PlaneFile::Won(bound), PlaneFile::Lost(bound)].map(|plane| plane.name(stones));
    PlaneTask::new(context, (stones, bound), inputs, outputs)
}

/// A solved bound, with the numbers of positions won and lost.
struct SolvedBound {
    report: DistributedBoundReport,
    won: u64,
    lost: u64,
}

/// Solves a bound with the other ranks, and writes its planes.
fn solve(
    member: &PlaneMember,
    communicator: &mut dyn Communicator,
    progress: &dyn DriverObserver,
) -> RankResult<SolvedBound> {
    let (started, kept) = (Instant::now(), member.build.kept::<KeptBound>());
    let PlaneTask { stones, bound, .. } = *member.task;
    let before = take(&kept.planes).filter(|before| (before.stones, before.bound) == (stones, bound + 1));
    let prepared = match before {
        Some(before) => Ok(before.planes),
        None => load(member, member.build.tables(), communicator),
    };
    let prepared = prepared.and_then(|planes| seed(member, &*planes).map(|()| planes));
    let mut planes = agree(communicator, prepared)?;
    let report = match planes.solve(communicator, progress) {
        // All ranks were asked to stop, or the storage of one failed.
        Err(JobError::Stopped) => {
            agree(communicator, Err::<(), _>(planes.check().map_or_else(StageError::Disk, |()| StageError::Stopped)))?;
            unreachable!("no rank succeeded")
        }
        report => report?,
    };
    agree(communicator, planes.check())?;
    tracing::info!(
        supersteps = report.supersteps,
        rows = report.rows,
        "solved after {:.3} s",
        started.elapsed().as_secs_f64()
    );
    let won_so_far = take(&kept.won).filter(|won| (won.stones, won.bound) == (stones, bound + 1));
    let by_capture = agree(communicator, member.open(PlaneFile::Seed(bound)))?;
    let won = (PlaneFile::Won(bound), Decided::Won);
    let (won, won_so_far) = write(member, won, Some(by_capture), &mut planes, won_so_far, communicator)?;
    let lost = (PlaneFile::Lost(bound), Decided::Lost);
    let (lost, _) = write(member, lost, None, &mut planes, None, communicator)?;
    let counts = communicator.sum(&[won, lost])?;
    if !member.task.is_last() {
        put(&kept.planes, PlanesAt { stones, bound, planes });
        if let Some(won) = won_so_far {
            put(&kept.won, WonSoFar { bound, ..won });
        }
    }
    Ok(SolvedBound { report, won: counts[0], lost: counts[1] })
}

/// Writes the words of this rank of a plane: what was decided, and the bits of `known`. Adds them to the wins so far. Returns the
/// number of their positions.
fn write(
    member: &PlaneMember,
    (plane, decided): (PlaneFile, Decided),
    mut known: Option<PlaneReader>,
    planes: &mut Box<dyn RankSolver>,
    mut won: Option<WonSoFar>,
    communicator: &mut dyn Communicator,
) -> RankResult<(u64, Option<WonSoFar>)> {
    let mut writer = member.create(plane, communicator)?;
    let (ranges, kernel) = (writer.words_of_all(), BitKernel::detect());
    let (mut at, mut count) = (writer.words().start, 0);
    let mut read = |words: Range<usize>, into: &mut Vec<u64>| match &mut known {
        Some(reader) => {
            into.resize(words.len(), 0);
            let name = || PlaneFile::Seed(member.task.bound).name(member.task.stones);
            reader.read(words, into).map_err(|error| files::unreadable(&name(), error))
        }
        None => Ok(false),
    };
    let mut append = |portion: PlanePortion| {
        match &portion {
            PlanePortion::Zeros(words) => at += words,
            PlanePortion::Words(words) => {
                if let Some(won) = &mut won {
                    won.add(at, words)?;
                }
                at += words.len();
            }
        }
        count += writer.append_and_count(portion, kernel)?;
        Ok::<_, StageError>(())
    };
    let (mut next, mut bits) = (ranges[communicator.rank()].start, Vec::new());
    let mut take = |run: PlaneRun| {
        match run {
            PlaneRun::Zeros(words) => {
                let end = next + words;
                while next < end {
                    let piece = next..end.min(next + UNION_WORDS);
                    next = piece.end;
                    let portion = if read(piece.clone(), &mut bits)? {
                        PlanePortion::Words(&mut bits)
                    } else {
                        PlanePortion::Zeros(piece.len())
                    };
                    append(portion)?;
                }
            }
            PlaneRun::Words(words) => {
                let piece = next..next + words.len();
                next = piece.end;
                if read(piece, &mut bits)? {
                    words.iter_mut().zip(&bits).for_each(|(word, known)| *word |= known);
                }
                append(PlanePortion::Words(words))?;
            }
        }
        Ok(())
    };
    let mut taken = Ok(());
    let mut sink = |run: PlaneRun| {
        taken = take(run);
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    if !planes.collect(decided, &ranges, communicator, &mut sink)? && taken.is_ok() {
        // The rank whose sink broke reports the error.
        taken = Err(StageError::Stopped);
    }
    writer.finish_with(taken, communicator)?;
    Ok((count, won))
}

/// Loads this rank's part of the planes of the bounds above.
fn load(member: &PlaneMember, tables: Arc<Tables>, communicator: &dyn Communicator) -> Result<Box<dyn RankSolver>> {
    let PlaneTask { stones, bound, .. } = *member.task;
    let path = member.path(&PlaneFile::Won(bound).name(stones))?;
    let directory = path.parent().unwrap_or(path);
    let planes = rank_solver::empty(member, tables, (communicator.rank(), communicator.size()), directory)?;
    let (mut words, above) = (Vec::new(), bound + 1..=stones);
    let mut won = UnionReader::open(stones, above.clone().map(PlaneFile::Won), |plane| member.open(plane))?;
    for run in planes.kept_runs().filter(|_| bound < stones) {
        won.read(run.words.clone(), &mut words)?;
        planes.add_wins_above(&run, &mut words);
    }
    drop(won);
    let groups = PlaneFile::CandidateSeeds.groups(&member.index);
    let seeds = member.open_seeds(PlaneFile::CandidateSeeds, &groups)?;
    let mut candidates =
        CandidatesReader::open(&member.index, above, seeds, TRANSPOSED_BYTES, |plane| member.open(plane))?;
    for (number, unit) in planes.units().iter().enumerate().filter(|_| bound < stones) {
        candidates.read((unit.slab, unit.rows.clone()), unit.words.clone(), &mut words, || Ok(()))?;
        planes.add_candidates(number, &words)?;
    }
    planes.settle();
    Ok(planes)
}

/// Adds the captures of the bound.
fn seed(member: &PlaneMember, planes: &dyn RankSolver) -> Result<()> {
    let PlaneTask { stones, bound, .. } = *member.task;
    let (plane, mut words) = (PlaneFile::Seed(bound), Vec::new());
    let mut reader = member.open(plane)?.with_long_reads();
    for run in planes.kept_runs() {
        words.resize(run.words.len(), 0);
        let read = reader.read(run.words.clone(), &mut words);
        if read.map_err(|error| files::unreadable(&plane.name(stones), error))? {
            planes.add_seeds(&run, &mut words);
        }
    }
    let groups = PlaneFile::CandidateSeeds.groups(&member.index);
    let mut seeds = member.open_seeds(PlaneFile::CandidateSeeds, &groups)?;
    for (number, unit) in planes.units().iter().enumerate() {
        words.resize(unit.words.len(), 0);
        if seeds.read(bound, unit.words.clone(), &mut words)? {
            planes.add_candidates(number, &words)?;
        }
    }
    Ok(())
}

/// Progress of a rank other than 0: only requests to stop.
struct StopsOnly<'a>(&'a PlaneMember<'a>);

impl DriverObserver for StopsOnly<'_> {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        if self.0.stop().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Wins at a bound and those above, in the words of this rank of a plane, in a scratch file.
struct WonSoFar {
    stones: u32,
    bound: u32,
    words: Range<usize>,
    file: Box<dyn ScratchFile>,
    buffer: Vec<u64>,
}

impl WonSoFar {
    /// Loads the planes of the bounds above that of the task.
    fn load(member: &PlaneMember, words: Range<usize>) -> Result<WonSoFar> {
        let PlaneTask { stones, bound, .. } = *member.task;
        let planes = member.path(&PlaneFile::Seed(bound).name(stones))?;
        let path = member.settings().scratch.as_deref().or(planes.parent()).unwrap_or(planes).join("won-so-far");
        let file = member.disk.scratch(&path, words.len() as u64 * 8)?;
        let mut won = WonSoFar { stones, bound: bound + 1, words: words.clone(), file, buffer: Vec::new() };
        let mut planes =
            UnionReader::open(stones, (bound + 1..=stones).map(PlaneFile::Won), |plane| member.open(plane))?;
        let mut read = Vec::new();
        for first in words.clone().step_by(UNION_WORDS) {
            member.stop()?;
            if planes.read(first..words.end.min(first + UNION_WORDS), &mut read)? {
                won.add(first, &read)?;
            }
        }
        Ok(won)
    }

    /// Whether it has these words, at this bound.
    fn is_at(&self, stones: u32, bound: u32, words: &Range<usize>) -> bool {
        (self.stones, self.bound, &self.words) == (stones, bound, words)
    }

    /// Reads words, from word `first` on.
    fn read(&self, first: usize, into: &mut [u64]) -> Result<()> {
        let place = (first - self.words.start) as u64 * 8;
        Ok(self.file.read_at(place, disk::bytes_of_words_mut(into))?)
    }

    /// Adds words of a plane, from word `first` on.
    fn add(&mut self, first: usize, words: &[u64]) -> Result<()> {
        let mut all = std::mem::take(&mut self.buffer);
        all.resize(words.len(), 0);
        self.read(first, &mut all)?;
        all.iter_mut().zip(words).for_each(|(all, new)| *all |= new);
        let place = (first - self.words.start) as u64 * 8;
        self.file.write_at(place, disk::bytes_of_words(&all))?;
        self.buffer = all;
        Ok(())
    }
}

/// Words of planes that are read at a time.
const UNION_WORDS: usize = 64 << 10;

fn take<T>(kept: &Mutex<Option<T>>) -> Option<T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn put<T>(kept: &Mutex<Option<T>>, what: T) {
    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}
