//! The driver of stages that solve a database in one stage, with all scores in memory, by a [`OneStageSolver`]:
//! the ranks of a team read the captures of their positions, solve them, and write the database together.
//!
//! Between passes or bounds a stage saves snapshots at the interval of the manifest, and when it is asked to stop.

mod rank;

use crate::build_context::BuildContext;
use crate::distributed::{DatabaseTask, LocalScratch, RankResult, StageOrder, StageTask, agree};
use crate::snapshot_timer::SnapshotTimer;
use crate::solver_progress::{PassLimit, SolverProgress};
use crate::team::{self, FollowerRank};
use crate::thread_pool::thread_pool;
use crate::{files, opening};
use game::{Index, Score};
use messaging::Communicator;
use pipeline::{StageContext, StageError, StageReport, StageResult as Result};
use rayon::ThreadPool;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use solvers::ranks::{JobError, JobObserver};
use solvers::{DriverObserver, EndedPass};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use rank::SolveRank;

/// Positions of a database below which several ranks solve it again faster than they save it.
const WORTH_A_SNAPSHOT_POSITIONS: u64 = 50_000_000;

/// A solver that makes the scores of a database in one stage. Rank 0 sends its value to all ranks.
pub(crate) trait OneStageSolver: Serialize + DeserializeOwned + Sync {
    /// The kind of its stages.
    const KIND: &str;

    /// Returns the solver of a stage, on rank 0. `place` is where ranks save snapshots; `None` if they save none.
    fn new(context: &StageContext, place: Option<SnapshotPlace>) -> Result<Self>;

    /// Whether a received value is within its limits.
    fn is_valid(&self) -> bool;

    /// Solves and writes the database with the other ranks, all of which call it.
    ///
    /// It agrees with them on errors of its preparation, and goes on from what it finds in the [directory of
    /// snapshots](SolveRank::snapshot_directory), which any number of ranks may have saved. The solver
    /// reports to a [`SolveObserver`], which saves more of them; after its [`end`](SolveObserver::end) come
    /// [`write`](SolveRank::write) or [`write_rows`](SolveRank::write_rows). A machine
    /// [alone](SolveRank::alone) gives arrays back to the stage cache.
    fn solve(&self, rank: &SolveRank<Self>, communicator: &mut dyn Communicator) -> RankResult<StageReport>;
}

/// Where the ranks of a stage save snapshots.
pub(crate) enum SnapshotPlace<'a> {
    /// In one directory that all of them see.
    Shared(&'a Path),
    /// In a directory of each rank.
    Local,
}

/// A database to solve and write: its captures, and its snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SolveTask<S> {
    solver: S,
    stones: u32,
    captures: PathBuf,
    database: PathBuf,
    /// Directory of snapshots; `None` if solving again is faster than saving.
    snapshots: Option<PathBuf>,
    scratch: Option<LocalScratch>,
    /// Best capture of the opening, if the database has the opening and it has captures.
    opening_capture: Option<Score>,
}

impl<S: OneStageSolver> DatabaseTask for SolveTask<S> {
    fn stones(&self) -> u32 {
        self.stones
    }
}

impl<S: OneStageSolver> StageTask for SolveTask<S> {
    fn is_valid(&self) -> bool {
        self.solver.is_valid()
            && self.stones <= game::STONES_MAX
            && self.scratch.as_ref().is_none_or(LocalScratch::is_valid)
    }
}

/// Runs the stage on a rank other than 0.
pub(crate) fn follow<S: OneStageSolver>(
    follower: &FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    team::follow(follower, order, communicator, |member, communicator| {
        SolveRank::<S>::new(member, None, communicator)?.solve(communicator)
    })
}

/// Runs a stage that solves the database of some stones, alone or on rank 0.
pub(crate) fn run<S: OneStageSolver>(build: &BuildContext, stones: u32, context: &StageContext) -> Result<StageReport> {
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
    let place = snapshots.as_deref().map(|directory| match &scratch {
        None => SnapshotPlace::Shared(directory),
        Some(_) => SnapshotPlace::Local,
    });
    let solver = S::new(context, place)?;
    let captures = context.input(&files::capture(stones));
    let opening_capture = opening::best_capture(settings, stones, context.disk(), |name| context.input(name), 0)?;
    let task = SolveTask { solver, stones, captures, database, snapshots, scratch, opening_capture };
    let (report, loads) = team::lead(S::KIND, build, job, &task, context, |member, communicator| {
        SolveRank::new(member, Some(context), communicator)?.solve(communicator)
    })?;
    Ok(team::report(report, loads))
}

/// Observer of the solver on one rank, which saves its values by a function of a directory.
pub(crate) struct SolveObserver<'a, S, F> {
    rank: &'a SolveRank<'a, S>,
    save: F,
    /// On rank 0, which reports progress and decides when snapshots are due.
    leader: Option<(SolverProgress<'a>, Mutex<SnapshotTimer<'a>>)>,
    pub(crate) limit: PassLimit,
    /// A pool with more threads than the stage began with, once it may use them.
    grown: Mutex<Option<Arc<ThreadPool>>>,
    /// The error of the last snapshot.
    unsaved: Mutex<Option<StageError>>,
}

impl<'a, S: OneStageSolver, F> SolveObserver<'a, S, F> {
    pub(crate) fn new(
        rank: &'a SolveRank<'a, S>,
        progress: impl FnOnce(&'a StageContext<'a>) -> SolverProgress<'a>,
        limit: PassLimit,
        save: F,
    ) -> SolveObserver<'a, S, F> {
        let leader = rank.leader.map(|context| (progress(context), Mutex::new(SnapshotTimer::start(context))));
        SolveObserver { rank, save, leader, limit, grown: Mutex::default(), unsaved: Mutex::default() }
    }

    /// Returns the pool with more threads than the stage began with, if the solver went on there.
    pub(crate) fn grown(&self) -> Option<Arc<ThreadPool>> {
        self.grown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn timer(&self) -> Option<MutexGuard<'_, SnapshotTimer<'a>>> {
        self.leader.as_ref().map(|(_, timer)| timer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_worth_a_snapshot(&self) -> bool {
        self.timer().is_some_and(|timer| timer.is_worth_a_snapshot())
    }

    /// Ends the progress of the solver. If it was stopped, all ranks have saved what they had, or the error
    /// says why not.
    pub(crate) fn end<R>(self, solved: Result<R, JobError>, communicator: &mut dyn Communicator) -> RankResult<R> {
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

impl<S: OneStageSolver, F: Sync> DriverObserver for SolveObserver<'_, S, F> {
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

impl<P, S, F> JobObserver<P> for SolveObserver<'_, S, F>
where
    S: OneStageSolver,
    F: Fn(&Path, &P) -> store::Result<()> + Sync,
{
    fn is_due(&self) -> bool {
        self.rank.snapshot_directory().is_some() && self.timer().is_some_and(|mut timer| timer.is_due())
    }

    fn larger_pool(&self) -> Option<Arc<ThreadPool>> {
        let (_, context) = self.rank.alone()?;
        let mut grown = self.grown.lock().unwrap_or_else(PoisonError::into_inner);
        let now = grown.as_ref().map_or_else(rayon::current_num_threads, |pool| pool.current_num_threads());
        let threads = context.threads();
        if threads <= now {
            return None;
        }
        match thread_pool(threads) {
            Ok(pool) => {
                tracing::info!("goes on with {threads} threads");
                *grown = Some(Arc::new(pool));
                grown.clone()
            }
            Err(error) => {
                tracing::warn!("goes on with {now} threads, not {threads}: {error}");
                None
            }
        }
    }

    fn checkpoint(&self, part: &P) {
        let is_stopped = self.rank.member.stop().is_err();
        // Ranks of several cannot tell whether the others save.
        let is_needless = is_stopped && self.rank.alone().is_some() && !self.is_worth_a_snapshot();
        let save = |directory: &Path| (self.save)(directory, part);
        let saved = if is_needless || self.limit.is_over() { Ok(()) } else { self.rank.save(save) };
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
