//! The bounds of a database solved by all ranks of a job.
//!
//! Each rank keeps its planes from bound to bound. For a resumed run, or a stage that is run alone, each
//! loads its part from the planes, which are those of one machine. They are the checkpoint: nothing is saved
//! within a bound.

use super::capture_counts::CaptureCounts;
use super::decided::{self, DecidedPlane, WonSoFar};
use super::declaration;
use super::planes::{PlaneFile, PlanePortion, PlaneReader, UnitGroup};
use super::planes_above::{CandidatesReader, UnionReader};
use super::rank_solver;
use super::state::slot;
use super::team::{PlaneMember, PlaneTask};
use super::wins_by_capture;
use crate::build_context::BuildContext;
use crate::distributed::{JobLeader, RankResult, StageOrder, agree};
use crate::files;
use crate::solver_progress::SolverProgress;
use crate::team::{self, FollowerRank};
use disk::DiskError;
use game::Index;
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use solvers::bounds::BitKernel;
use solvers::bounds::ranks::{DistributedBoundReport, RankSolver};
use solvers::ranks::JobError;
use solvers::{DriverObserver, Tables};
use std::ops::ControlFlow;
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
    captures: Mutex<Option<CountsAt>>,
}

/// What a rank has counted in all bounds down to some bound: positions without a capture in the rows that it
/// owns, others in the words that it writes.
struct CountsAt {
    stones: u32,
    bound: u32,
    counts: CaptureCounts,
}

/// Planes of a rank after some bound.
struct PlanesAt {
    stones: u32,
    bound: u32,
    planes: Box<dyn RankSolver<DiskError>>,
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
    let (SolvedBound { report, won, lost, captures }, loads) = solved?;
    if let Some((captures, not_won)) = captures
        && let Some(choice) =
            captures.choice(index.slab_positions(), not_won, solvers::offered_choices(&build.tables(), &index))
        && let Ok(seeds) = PlaneReader::input(context, build.settings(), &index, PlaneFile::CandidateSeeds)
    {
        slot(build).put_choice(stones, seeds.digest(), choice);
    }
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
    /// After the last bound, the captures of all ranks and the candidates that are not won, if all bounds
    /// were solved in this job.
    captures: Option<(CaptureCounts, u64)>,
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
    let captures = take(&kept.captures).filter(|it| (it.stones, it.bound) == (stones, bound + 1));
    let mut captures = captures.map(|it| it.counts);
    let prepared = prepared.and_then(|planes| {
        let candidates = seed(member, &*planes)?;
        if bound == stones {
            let counts = captures.insert(CaptureCounts::default());
            counts.add_without_capture(candidates);
        }
        Ok(planes)
    });
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
    let won = DecidedPlane::Won { by_capture, so_far: won_so_far };
    let won = decided::write(member, won, &mut *planes, communicator)?;
    let groups = PlaneFile::CandidateSeeds.groups(&member.index);
    let mut candidates = None;
    // Of the highest bound they are positions without captures.
    if captures.is_some() && bound < stones {
        candidates = member.open_seeds(PlaneFile::CandidateSeeds, &groups).ok();
        captures = captures.filter(|_| candidates.is_some());
    }
    let lost = decided::write(member, DecidedPlane::Lost { candidates }, &mut *planes, communicator)?;
    let captures = captures.and_then(|mut counts: CaptureCounts| {
        counts.add_best_captures(won.best_captures? + lost.best_captures?);
        // Those lost are among the candidates that are not won.
        counts.add_decided(won.count);
        Some(counts)
    });
    let sums = communicator.sum(&[won.count, lost.count])?;
    let mut solved = SolvedBound { report, won: sums[0], lost: sums[1], captures: None };
    if member.task.is_last() {
        // A failure is no reason to lose the bound, nor is a request to stop: the choices are then counted
        // from the files.
        let so_far = won.so_far.filter(|_| captures.is_some());
        let not_won = so_far.and_then(|so_far| so_far.count_other_candidates(member, won.words).ok());
        solved.captures = CaptureCounts::of_ranks(captures.zip(not_won), communicator)?;
        return Ok(solved);
    }
    put(&kept.planes, PlanesAt { stones, bound, planes });
    if let Some(so_far) = won.so_far {
        put(&kept.won, so_far);
    }
    if let Some(counts) = captures {
        put(&kept.captures, CountsAt { stones, bound, counts });
    }
    Ok(solved)
}

/// Loads this rank's part of the planes of the bounds above.
fn load(
    member: &PlaneMember,
    tables: Arc<Tables>,
    communicator: &dyn Communicator,
) -> Result<Box<dyn RankSolver<DiskError>>> {
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

/// Adds the captures of the bound, and returns how many candidates of this rank they make.
fn seed(member: &PlaneMember, planes: &dyn RankSolver<DiskError>) -> Result<u64> {
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
    let (mut candidates, kernel) = (0, BitKernel::detect());
    for (number, unit) in planes.units().iter().enumerate() {
        words.resize(unit.words.len(), 0);
        if seeds.read(bound, unit.words.clone(), &mut words)? {
            candidates += kernel.count(&words);
            planes.add_candidates(number, &words)?;
        }
    }
    Ok(candidates)
}

/// Progress of a rank other than 0: only requests to stop.
struct StopsOnly<'a>(&'a PlaneMember<'a>);

impl DriverObserver for StopsOnly<'_> {
    fn advance(&self, _: u64, _: u64) -> ControlFlow<()> {
        if self.0.stop().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn take<T>(kept: &Mutex<Option<T>>) -> Option<T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn put<T>(kept: &Mutex<Option<T>>, what: T) {
    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}
