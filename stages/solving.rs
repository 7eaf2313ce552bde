//! The stages `sweep:n` and `counting:n`, with all scores in memory: the ranks of a team read the captures of their
//! positions, solve them, and write the database together.
//!
//! Between passes or bounds the stage saves snapshots at the interval of the manifest, and when it is asked to stop. One of
//! `sweep` is a file per rank, written at any time, since any mixture of passes converges to the same scores; those of
//! `counting` must be taken at the same time, see [`counting_snapshots`]. Any number of ranks resumes from either, a machine
//! alone too.

mod counting_snapshots;
mod rank;
mod task;

use crate::build_context::BuildContext;
use crate::distributed::{LocalScratch, RankResult, StageOrder, agree};
use crate::snapshot_timer::SnapshotTimer;
use crate::solver_progress::{PassLimit, SolverProgress};
use crate::team::{self, FollowerRank, TeamMember};
use crate::{files, opening};
use counting_snapshots::ResumePlan;
use game::Index;
use messaging::Communicator;
use pipeline::StageResult as Result;
use pipeline::{StageContext, StageError, StageReport};
use rank::{Checkpoint, SolveRank};
use solvers::counting::{CountingReport, UPDATE_BYTES, counting};
use solvers::ranks::{JobError, JobObserver};
use solvers::sweep::{self, RankScores};
use solvers::{DriverObserver, EndedPass, Kernel};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use task::SolveTask;

pub(crate) use task::SolvingMethod;

/// Positions of a database below which several ranks solve it again faster than they save it.
const WORTH_A_SNAPSHOT_POSITIONS: u64 = 50_000_000;

/// Runs the stage on a rank other than 0.
pub(crate) fn follow(
    follower: &FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    team::follow(follower, order, communicator, |member, communicator| solve(member, None, communicator))
}

/// Runs a stage of the kind, alone or on rank 0.
pub(crate) fn run(
    kind: &str,
    by: SolvingMethod,
    build: &BuildContext,
    stones: u32,
    context: &StageContext,
) -> Result<StageReport> {
    let (settings, job) = (build.settings(), build.job());
    let index = Index::new(stones, settings.set);
    let database = context.output(&files::database(stones));
    let scratch = settings.scratch.as_ref().filter(|_| job.is_some()).map(|_| LocalScratch::new(context, &database));
    // An interval of zero asks for snapshots of every database.
    let is_worth = context.snapshots().interval().is_zero() || index.positions() >= WORTH_A_SNAPSHOT_POSITIONS;
    let snapshots = match (job, &scratch) {
        // Whether one is worth it is decided when the stage is stopped, by its time.
        (None, _) => Some(context.snapshots().directory().to_path_buf()),
        (Some(_), None) if is_worth => Some(context.snapshots().prepare()?.to_path_buf()),
        (Some(_), Some(scratch)) if is_worth => Some(PathBuf::from(scratch.name())),
        (Some(_), _) => None,
    };
    let counts = match (by, &snapshots) {
        (SolvingMethod::Counting { .. }, Some(directory)) => Some(match &scratch {
            None => ResumePlan::lead(context.disk(), directory)?,
            Some(_) => ResumePlan::on_local_disks(context.disk()),
        }),
        (SolvingMethod::Counting { .. }, None) | (SolvingMethod::Sweep, _) => None,
    };
    let captures = context.input(&files::capture(stones));
    let opening_capture = opening::best_capture(settings, stones, context.disk(), |name| context.input(name), 0)?;
    let task = SolveTask { by, stones, captures, database, snapshots, counts, scratch, opening_capture };
    let (report, loads) = team::lead(kind, build, job, &task, context, |member, communicator| {
        solve(member, Some(context), communicator)
    })?;
    Ok(team::report(report, loads))
}

/// Solves and writes the database with the other ranks. Rank 0 has the context of the stage.
fn solve(
    member: &TeamMember<SolveTask>,
    leader: Option<&StageContext>,
    communicator: &mut dyn Communicator,
) -> RankResult<StageReport> {
    let rank = SolveRank::new(member, leader, communicator)?;
    let report = match member.task.by {
        SolvingMethod::Sweep => swept(&rank, communicator)?,
        SolvingMethod::Counting { processors } => counted(&rank, processors, communicator)?,
    };
    rank.remove_local_snapshots();
    Ok(report)
}

/// Solves the database by sweep.
fn swept(rank: &SolveRank, communicator: &mut dyn Communicator) -> RankResult<StageReport> {
    let (member, tables) = (rank.member, &rank.tables);
    let index = &member.index;
    let prepared = rank.scores(communicator);
    let (mut scores, captures) = agree(communicator, prepared)?;
    let mut resumed = communicator.sum(&[u64::from(!scores.is_fresh())])? != [0];
    let progress = |context| SolverProgress::passes(context, index.slab_positions(), index.slab_positions());
    let observer = SolveObserver::new(rank, progress, PassLimit::new(resumed));
    let solve = |scores: &mut RankScores, communicator: &mut dyn Communicator| {
        sweep::sweep(tables, index, &captures.values, scores, Kernel::detect(), communicator, &observer)
    };
    let mut solved = solve(&mut scores, communicator);
    if observer.limit.is_over() && matches!(solved, Err(JobError::Stopped)) {
        tracing::warn!("ignoring the snapshot of sweep:{}, which does not converge", index.stones());
        resumed = false;
        scores.clear();
        observer.limit.lift();
        solved = solve(&mut scores, communicator);
    }
    let report = observer.end(solved, communicator)?;
    match rank.alone() {
        Some((build, _)) => {
            let choice = solvers::choice_of(tables, index, &captures.values, scores.rows());
            build.stage_cache().give_back(captures.values);
            let rows = scores.into_rows();
            let digest = rank.write_rows(&rows, communicator)?;
            build.stage_cache().keep_choice(captures.digest, digest, choice);
            build.stage_cache().keep_database(build.plans(), index.stones(), digest, &rows);
            build.stage_cache().give_back(rows.into_bytes());
        }
        None => {
            drop(captures);
            rank.write(&scores, communicator)?;
        }
    }
    Ok(StageReport::new(index.positions())
        .with("passes", report.passes)
        .with("recomputed", report.recomputed)
        .with("changed", report.changed)
        .with("resumed", u64::from(resumed)))
}

/// Solves the database by counting, with some logical processors on each rank.
fn counted(rank: &SolveRank, processors: usize, communicator: &mut dyn Communicator) -> RankResult<StageReport> {
    let (member, tables) = (rank.member, &rank.tables);
    let index = &member.index;
    let prepared = rank.values(processors, communicator);
    let (mut values, captures, mut resumed) = agree(communicator, prepared)?;
    // All ranks resume, or none does.
    if communicator.sum(&[u64::from(!resumed)])? != [0] && resumed {
        resumed = false;
        values.values_mut().fill(0);
    }
    let observer =
        SolveObserver::new(rank, |context| SolverProgress::new(context, index.slab_positions()), PassLimit::new(false));
    let mut solved = counting(tables, index, &captures, &mut values, communicator, &observer);
    if resumed && matches!(solved, Err(JobError::Inconsistent)) {
        tracing::warn!("ignoring the snapshot of counting:{}, which does not hold its counts", index.stones());
        resumed = false;
        values.values_mut().fill(0);
        solved = counting(tables, index, &captures, &mut values, communicator, &observer);
    }
    let CountingReport { processors, supersteps, total, sent, messages, .. } = observer.end(solved, communicator)?;
    match rank.alone() {
        Some((build, _)) => build.stage_cache().give_back(captures),
        None => drop(captures),
    }
    rank.write(&values, communicator)?;
    // Messages with updates: on a machine alone between its processors, else between ranks.
    let (sent, messages) = if communicator.size() == 1 { (total.sent, total.messages) } else { (sent, messages) };
    Ok(StageReport::new(index.positions())
        .with("processors", processors)
        .with("supersteps", supersteps)
        .with("updates", total.updates())
        .with("messages", messages)
        .with("combining", if messages > 0 { sent as f64 / messages as f64 } else { 0.0 })
        .with("volume", sent * UPDATE_BYTES)
        .with("resumed", u64::from(resumed)))
}

/// Observer of the solver on one rank.
struct SolveObserver<'a> {
    rank: &'a SolveRank<'a>,
    /// On rank 0, which reports progress and decides when snapshots are due.
    leader: Option<(SolverProgress<'a>, Mutex<SnapshotTimer<'a>>)>,
    limit: PassLimit,
    /// The error of the last snapshot.
    unsaved: Mutex<Option<StageError>>,
}

impl<'a> SolveObserver<'a> {
    fn new(
        rank: &'a SolveRank,
        progress: impl FnOnce(&'a StageContext<'a>) -> SolverProgress<'a>,
        limit: PassLimit,
    ) -> SolveObserver<'a> {
        let leader = rank.leader.map(|context| (progress(context), Mutex::new(SnapshotTimer::start(context))));
        SolveObserver { rank, leader, limit, unsaved: Mutex::default() }
    }

    fn timer(&self) -> Option<MutexGuard<'_, SnapshotTimer<'a>>> {
        self.leader.as_ref().map(|(_, timer)| timer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_worth_a_snapshot(&self) -> bool {
        self.timer().is_some_and(|timer| timer.is_worth_a_snapshot())
    }

    /// Ends the progress of the solver. If it was stopped, all ranks have saved what they had, or the error says why not.
    fn end<R>(self, solved: Result<R, JobError>, communicator: &mut dyn Communicator) -> RankResult<R> {
        if let Err(JobError::Stopped) = solved {
            let unsaved = self.unsaved.into_inner().unwrap_or_else(PoisonError::into_inner);
            agree(communicator, unsaved.map_or(Ok(()), Err))?;
        }
        let solved = solved?;
        if let Some((progress, timer)) = self.leader {
            let timer = timer.into_inner().unwrap_or_else(PoisonError::into_inner);
            tracing::info!("solved after {:.3} s", timer.elapsed().as_secs_f64());
            progress.end();
        }
        Ok(solved)
    }
}

impl DriverObserver for SolveObserver<'_> {
    fn advance(&self, done: u64, total: u64) -> ControlFlow<()> {
        let is_stopped = match &self.leader {
            Some((progress, _)) => progress.advance(done, total).is_break(),
            None => self.rank.member.stop().is_err(),
        };
        if is_stopped || self.limit.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end_pass(&self, pass: EndedPass) {
        self.limit.end_pass();
        if let Some((progress, _)) = &self.leader {
            progress.end_pass(pass);
        }
    }

    fn begin_bound(&self, bound: u32, bounds: u32) {
        if let Some((progress, _)) = &self.leader {
            progress.begin_bound(bound, bounds);
        }
    }
}

impl<P: Checkpoint> JobObserver<P> for SolveObserver<'_> {
    fn is_due(&self) -> bool {
        self.rank.has_snapshots() && self.timer().is_some_and(|mut timer| timer.is_due())
    }

    fn checkpoint(&self, part: &P) {
        let is_stopped = self.rank.member.stop().is_err();
        // Ranks of several cannot tell whether the others save.
        let is_needless = is_stopped && self.rank.alone().is_some() && !self.is_worth_a_snapshot();
        let saved = if is_needless || self.limit.is_over() { Ok(()) } else { self.rank.save(part) };
        if let Err(error) = &saved {
            // Without a snapshot a crash costs more time, which is no reason to lose the work.
            tracing::warn!("cannot save a snapshot: {error}");
        }
        *self.unsaved.lock().unwrap_or_else(PoisonError::into_inner) = saved.err();
        // Not from when it was due: saving may take longer than the interval.
        if let Some(mut timer) = self.timer() {
            timer.restart();
        }
    }
}
