//! The stages `sweep:n` and `counting:n` by all ranks of a job: each rank reads the captures of its positions, solves
//! them, and writes a part of the database.
//!
//! A snapshot of `sweep` is one file per rank, written at any time; any number of ranks resumes from the files that
//! exist. Snapshots of `counting` must be taken at the same time, see
//! [`counting_snapshots`](super::counting_snapshots).

use super::agreement::{RankResult, agree};
use super::counting_snapshots::{ResumePlan, SnapshotSeries};
use super::job::JobLeader;
use super::limits::RANKS_MAX;
use super::local_scratch::LocalScratch;
use super::order::StageOrder;
use super::solve_task::{DistributedMethod, SolveTask};
use crate::build_context::BuildContext;
use crate::files::CountsFormat;
use crate::snapshot_timer::SnapshotTimer;
use crate::solver::{DatabaseOutput, DatabaseWriter};
use crate::team::{self, FollowerRank, TeamMember};
use crate::{files, opening};
use disk::Disk;
use game::Index;
use messaging::Communicator;
use pipeline::StageResult as Result;
use pipeline::{Snapshots, StageContext, StageError, StageReport};
use planner::{Method, Settings};
use rayon::prelude::*;
use solvers::counting::UPDATE_BYTES;
use solvers::counting::distributed::{DistributedCountingReport, RankValues, counting, processors_a_rank};
use solvers::distributed::{JobError, JobObserver, collect};
use solvers::sweep::distributed::{DistributedSweepReport, RankCaptures, RankScores, ScorePartition, sweep};
use solvers::{Bytes, EndedPass, Kernel, Tables};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Codec, FileKind, Identity, Scores, Shape, SlabShape, StoreError, Writer};

/// Positions of a database below which solving it again is faster than saving it.
const WORTH_A_SNAPSHOT_POSITIONS: u64 = 50_000_000;

/// Columns of a row of a snapshot.
const SNAPSHOT_COLUMNS: u32 = 1 << 16;

/// Runs the stage on a rank other than 0.
pub(crate) fn follow(
    follower: &FollowerRank,
    order: &StageOrder,
    communicator: &mut dyn Communicator,
) -> RankResult<()> {
    team::follow(follower, order, communicator, |member, communicator| solve(member, None, communicator))
}

/// Runs a stage of the kind, on rank 0.
pub(crate) fn run(
    kind: &str,
    build: &BuildContext,
    job: &JobLeader,
    stones: u32,
    context: &StageContext,
) -> Result<StageReport> {
    let settings = build.settings();
    let by = match build.plan(stones).method() {
        Method::Counting => DistributedMethod::Counting { processors: context.threads() },
        _ => DistributedMethod::Sweep,
    };
    let index = Index::new(stones, settings.set);
    let captures = context.input(&files::capture(stones));
    // An interval of zero asks for snapshots of every database.
    let is_worth = context.snapshots().interval().is_zero() || index.positions() >= WORTH_A_SNAPSHOT_POSITIONS;
    let database = context.output(&files::database(stones));
    let scratch = settings.scratch.is_some().then(|| LocalScratch::new(context, &database));
    let snapshots = match (is_worth, &scratch) {
        (true, None) => Some(context.snapshots().prepare()?.to_path_buf()),
        (true, Some(scratch)) => Some(PathBuf::from(scratch.name())),
        (false, _) => None,
    };
    let counts = match (&snapshots, by, &scratch) {
        (Some(directory), DistributedMethod::Counting { .. }, None) => {
            Some(ResumePlan::lead(context.disk(), directory)?)
        }
        (Some(_), DistributedMethod::Counting { .. }, Some(_)) => Some(ResumePlan::on_local_disks()),
        _ => None,
    };
    let opening_capture = opening::best_capture(settings, stones, context.disk(), |name| context.input(name), 0)?;
    let task = SolveTask { by, stones, captures, database, snapshots, counts, scratch, opening_capture };
    let (solved, loads) = team::lead(kind, build, Some(job), &task, context, |member, communicator| {
        solve(member, Some(context), communicator)
    })?;
    Ok(team::report(solved.report(StageReport::new(index.positions())), loads))
}

/// Solves and writes the database with the other ranks. Rank 0 has the context of the stage.
fn solve(
    member: &TeamMember<SolveTask>,
    leader: Option<&StageContext>,
    communicator: &mut dyn Communicator,
) -> RankResult<SolvedPart> {
    let tables = member.build.tables();
    let rank = SolveRank::new(member, &tables, communicator)?;
    if let Some(context) = leader {
        let positions = member.index.slab_positions();
        context.progress().begin(positions, "positions");
        if let DistributedMethod::Sweep = member.task.by {
            context.progress().begin_passes(positions, context.disk().clock().steady());
        }
    }
    let leader = leader.map(|context| (context, Mutex::new(SnapshotTimer::start(context))));
    let observer = SolveObserver { rank: &rank, member, leader };
    let solved = rank.solve(communicator, &observer);
    if let Some((context, _)) = observer.leader {
        context.progress().begin(0, "");
    }
    let solved = solved?;
    rank.write(&solved, communicator)?;
    rank.leave();
    Ok(solved)
}

/// Part of a solved database on a rank, and the report of the solver.
enum SolvedPart {
    Swept(RankScores, DistributedSweepReport),
    /// The flag says whether it resumed from a snapshot.
    Counted(RankValues, DistributedCountingReport, bool),
}

impl SolvedPart {
    fn collect(
        &self,
        ranges: &[Range<u64>],
        communicator: &mut dyn Communicator,
        sink: &mut dyn FnMut(&[i8]) -> ControlFlow<()>,
    ) -> messaging::Result<bool> {
        match self {
            SolvedPart::Swept(part, _) => collect(part, ranges, communicator, sink),
            SolvedPart::Counted(rank_values, ..) => collect(rank_values, ranges, communicator, sink),
        }
    }

    /// Adds the figures of all ranks to a report.
    fn report(&self, report: StageReport) -> StageReport {
        match self {
            SolvedPart::Swept(_, swept) => {
                let report = report.with("supersteps", swept.supersteps).with("recomputed", swept.recomputed);
                report.with("changed", swept.changed)
            }
            // Messages with updates, and updates sent between ranks.
            SolvedPart::Counted(_, counted, resumed) => {
                let report = report.with("processors", counted.processors).with("supersteps", counted.supersteps);
                let report = report.with("updates", counted.total.updates()).with("messages", counted.messages);
                let report = report.with("combining", counted.combining().unwrap_or(0.0));
                report.with("volume", counted.sent * UPDATE_BYTES).with("resumed", u64::from(*resumed))
            }
        }
    }
}

/// Inputs of one rank.
struct SolveRank<'a> {
    settings: &'a Settings,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    task: &'a SolveTask,
    /// Directory of snapshots; `None` if solving again is faster than saving.
    snapshots: Option<PathBuf>,
    /// Snapshots of counting.
    series: Option<SnapshotSeries>,
    /// Rank-local scratch directory, and its snapshots.
    scratch: Option<(PathBuf, Snapshots<'a>)>,
}

impl<'a> SolveRank<'a> {
    fn new(
        member: &'a TeamMember<'a, SolveTask>,
        tables: &'a Tables,
        communicator: &mut dyn Communicator,
    ) -> RankResult<SolveRank<'a>> {
        let (settings, disk, task) = (member.settings(), member.disk, member.task);
        let SolveTask { by, stones, ref snapshots, counts, ref scratch, .. } = *task;
        let claim = |scratch: &LocalScratch| scratch.claim(settings, disk, stones, communicator);
        let scratch = scratch.as_ref().map(claim).transpose()?;
        let directory = scratch.as_ref().map(|(directory, _)| directory.clone());
        let snapshots = snapshots.as_ref().map(|build| directory.unwrap_or_else(|| build.clone()));
        let counts = match (counts, &snapshots, &scratch, by) {
            (Some(plan), Some(directory), Some(_), DistributedMethod::Counting { processors }) => {
                let index = Index::new(stones, settings.set);
                let processors = processors_a_rank(&index, communicator.size(), processors);
                Some(plan.settle(disk, directory, processors, communicator)?)
            }
            _ => counts,
        };
        Ok(SolveRank { settings, disk, tables, task, snapshots, series: counts.map(SnapshotSeries::new), scratch })
    }

    /// Removes the files in the rank-local directory, once the database is published.
    fn leave(&self) {
        if let Some((_, snapshots)) = &self.scratch
            && let Err(error) = snapshots.remove()
        {
            tracing::warn!("cannot remove old snapshots: {error}");
        }
    }

    fn solve(&self, communicator: &mut dyn Communicator, observer: &SolveObserver) -> RankResult<SolvedPart> {
        let (set, stones, tables) = (self.settings.set, self.task.stones, self.tables);
        let index = Index::new(stones, set);
        let (ranks, rank) = (communicator.size(), communicator.rank());
        Ok(match self.task.by {
            DistributedMethod::Sweep => {
                let prepared = self.prepare(&index, ranks, rank);
                let (mut part, captures) = agree(communicator, prepared)?;
                let report = sweep(tables, &index, &captures, &mut part, Kernel::detect(), communicator, observer)?;
                SolvedPart::Swept(part, report)
            }
            DistributedMethod::Counting { processors } => {
                let prepared = self.prepare_values(&index, ranks, rank, processors);
                let (mut rank_values, captures, mut resumed) = agree(communicator, prepared)?;
                // All ranks resume, or none does.
                resumed = communicator.sum(&[u64::from(!resumed)])? == [0];
                if !resumed {
                    rank_values.values_mut().fill(0);
                }
                let mut counted = counting(tables, &index, &captures, &mut rank_values, communicator, observer);
                if resumed && matches!(counted, Err(JobError::Inconsistent)) {
                    tracing::warn!("ignoring the snapshot of counting:{stones}, which does not hold its counts");
                    resumed = false;
                    rank_values.values_mut().fill(0);
                    counted = counting(tables, &index, &captures, &mut rank_values, communicator, observer);
                }
                SolvedPart::Counted(rank_values, counted?, resumed)
            }
        })
    }

    /// Writes the database with the other ranks.
    fn write(&self, solved: &SolvedPart, communicator: &mut dyn Communicator) -> RankResult<()> {
        let index = Index::new(self.task.stones, self.settings.set);
        let SolveRank { settings, disk, .. } = *self;
        let scratch = self.scratch.as_ref().map(|(directory, _)| &**directory);
        let SolveTask { ref database, opening_capture, .. } = *self.task;
        let output = DatabaseOutput { settings, disk, index: &index, path: database, scratch, opening_capture };
        let mut writer = DatabaseWriter::begin(&output, communicator)?;
        let (ranges, mut appended) = (writer.positions_of_all(), Ok(()));
        let mut append = |scores: &[i8]| {
            appended = writer.append(scores);
            if appended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        if !solved.collect(&ranges, communicator, &mut append)? && appended.is_ok() {
            // The rank that stopped the collection reports the error.
            appended = Err(StageError::Stopped);
        }
        writer.finish_with(appended, communicator).map(drop)
    }

    /// Returns the counts of this rank, its captures, and whether the counts come from a snapshot.
    fn prepare_values(
        &self,
        index: &Index,
        ranks: usize,
        rank: usize,
        processors: usize,
    ) -> Result<(RankValues, Bytes, bool)> {
        let mut rank_values = RankValues::zeroed(index, ranks, rank, processors).map_err(StageError::failed)?;
        let resumed = match (&self.series, &self.snapshots) {
            (Some(series), Some(directory)) => {
                series.restore(self.disk, directory, &self.counts_of(index), index, &mut rank_values)?
            }
            _ => false,
        };
        let mut captures = Bytes::zeroed(rank_values.values().len()).map_err(StageError::failed)?;
        let file = self.captures(index)?;
        let mut rest = &mut captures[..];
        let run = |positions: Range<u64>| {
            let length = (positions.end - positions.start) as usize;
            (positions, rest.split_off_mut(..length).expect("there is room for the captures of all runs"))
        };
        let runs: Vec<_> = rank_values.runs().map(run).collect();
        let read = runs.into_par_iter().try_for_each(|(positions, to)| file.read_range(positions, to));
        read.map_err(|error| files::unreadable(&files::capture(self.task.stones), error))?;
        Ok((rank_values, captures, resumed))
    }

    /// Returns the format of snapshots of counting.
    fn counts_of(&self, index: &Index) -> CountsFormat {
        CountsFormat::new(self.settings.rules.name, index)
    }

    /// Saves the counts of this rank, as all others do.
    fn save_counts(&self, rank_values: &RankValues) {
        if let (Some(series), Some(directory)) = (&self.series, &self.snapshots) {
            let index = Index::new(self.task.stones, self.settings.set);
            series.save(self.disk, directory, &self.counts_of(&index), rank_values);
        }
    }

    /// Opens the file of captures.
    fn captures(&self, index: &Index) -> Result<Scores> {
        let file = files::open_windowed(self.disk, &self.task.captures, self.settings, FileKind::Capture, index);
        file.map_err(|error| files::unreadable(&files::capture(self.task.stones), error))
    }

    /// Returns the part of this rank, from a snapshot or all zeros, and its captures.
    fn prepare(&self, index: &Index, ranks: usize, rank: usize) -> Result<(RankScores, RankCaptures)> {
        let partition = Arc::new(ScorePartition::new(self.tables, index.slabs(), ranks));
        let mut part = RankScores::zeroed(self.tables, partition, rank).map_err(StageError::failed)?;
        if let Some(directory) = &self.snapshots {
            self.restore(directory, index, &mut part)?;
        }
        let file = self.captures(index)?;
        let captures = part.captures(|positions, to| file.read_range(positions, to).map_err(Unprepared::Captures));
        match captures {
            Ok(captures) => Ok((part, captures)),
            Err(Unprepared::Memory(error)) => Err(StageError::failed(error)),
            Err(Unprepared::Captures(error)) => Err(files::unreadable(&files::capture(self.task.stones), error)),
        }
    }

    /// Reads all scores of a part that any snapshots have.
    fn restore(&self, directory: &Path, index: &Index, part: &mut RankScores) -> Result<()> {
        for path in self.disk.list(directory)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((rank, ranks)) = numbers(name) else { continue };
            let partition = ScorePartition::new(self.tables, index.slabs(), ranks);
            if partition.positions(rank) == 0 {
                continue;
            }
            let (identity, shape) = (self.identity(), shape(partition.positions(rank)));
            let read = Scores::open_windowed(self.disk, &path)
                .and_then(|file| file.expect(&identity, &shape))
                .and_then(|file| part.take_over(&partition, rank, |positions, to| file.read_range(positions, to)));
            if let Err(error) = read {
                tracing::warn!("ignoring the rest of a snapshot: {error}");
                files::ignore_snapshot(directory, error)?;
            }
        }
        Ok(())
    }

    /// Saves the part of this rank.
    fn save(&self, part: &RankScores) {
        let Some(directory) = self.snapshots.as_ref().filter(|_| part.positions() > 0) else { return };
        let path = directory.join(format!("part-{}-of-{}", part.rank(), part.partition().ranks()));
        let (identity, shape) = (self.identity(), shape(part.positions()));
        let range = files::range(FileKind::Snapshot, self.task.stones);
        let written =
            Writer::create(self.disk, &path, &identity, &shape, range, Codec::Packed).and_then(|mut writer| {
                part.runs().try_for_each(|run| writer.append(run))?;
                writer.finish()
            });
        match written {
            Ok(_) => tracing::info!("snapshot of rank {}", part.rank()),
            // Without a snapshot a crash costs more time, which is no reason to lose the work.
            Err(error) => tracing::warn!("cannot save a snapshot of sweep:{}: {error}", self.task.stones),
        }
    }

    fn identity(&self) -> Identity {
        files::identity(self.settings.rules.name, self.settings.set, FileKind::Snapshot, self.task.stones)
    }
}

/// Returns the shape of a file with the scores of a part. Its rows have no meaning.
fn shape(positions: u64) -> Shape {
    let (rows, rest) = (positions / u64::from(SNAPSHOT_COLUMNS), positions % u64::from(SNAPSHOT_COLUMNS));
    let slabs = [(rows as u32, SNAPSHOT_COLUMNS), (1, rest as u32)];
    let slabs = slabs.into_iter().filter(|&(rows, columns)| rows > 0 && columns > 0);
    let slabs = slabs.map(|(rows, columns)| SlabShape { rows, columns });
    Shape::new(slabs.collect()).expect("a part has positions, and no more than a database")
}

/// Error while preparing the part of a rank.
enum Unprepared {
    Memory(io::Error),
    Captures(StoreError),
}

impl From<io::Error> for Unprepared {
    fn from(error: io::Error) -> Unprepared {
        Unprepared::Memory(error)
    }
}

/// Returns rank and number of ranks from the name of a snapshot.
fn numbers(name: &str) -> Option<(usize, usize)> {
    let (rank, ranks) = name.strip_prefix("part-")?.split_once("-of-")?;
    let (rank, ranks) = (rank.parse().ok()?, ranks.parse().ok()?);
    (rank < ranks && ranks <= RANKS_MAX).then_some((rank, ranks))
}

/// Values of a rank that a snapshot saves.
trait Checkpoint {
    fn save(&self, rank: &SolveRank);
}

impl Checkpoint for RankScores {
    fn save(&self, rank: &SolveRank) {
        rank.save(self);
    }
}

impl Checkpoint for RankValues {
    fn save(&self, rank: &SolveRank) {
        rank.save_counts(self);
    }
}

/// Observer of the solver on one rank.
struct SolveObserver<'a> {
    rank: &'a SolveRank<'a>,
    member: &'a TeamMember<'a, SolveTask>,
    /// On rank 0, which reports progress and decides when snapshots are due.
    leader: Option<(&'a StageContext<'a>, Mutex<SnapshotTimer<'a>>)>,
}

impl<P: Checkpoint> JobObserver<P> for SolveObserver<'_> {
    fn advance(&self, done: u64) -> ControlFlow<()> {
        if let (Some((context, _)), DistributedMethod::Counting { .. }) = (&self.leader, self.rank.task.by) {
            context.progress().set(done);
        }
        if self.member.stop().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn end_pass(&self, pass: EndedPass) {
        if let Some((context, _)) = &self.leader {
            let now = context.disk().clock().steady();
            context.progress().end_pass(pass.is_full, pass.is_next_full, pass.changed, now);
        }
    }

    fn begin_bound(&self, bound: u32, bounds: u32) {
        if let Some((context, _)) = &self.leader {
            context.progress().begin_bound(bound, bounds);
        }
    }

    fn is_due(&self) -> bool {
        let is_due = |timer: &Mutex<SnapshotTimer>| timer.lock().unwrap_or_else(PoisonError::into_inner).is_due();
        self.rank.snapshots.is_some() && self.leader.as_ref().is_some_and(|(_, timer)| is_due(timer))
    }

    fn checkpoint(&self, values: &P) {
        values.save(self.rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_snapshots_are_decoded() {
        assert_eq!(numbers("part-3-of-4"), Some((3, 4)));
        for name in ["part-4-of-4", "part-0-of-0", "part-1-of-9999999999", "part-1", "scores", "part--1-of-2"] {
            assert_eq!(numbers(name), None, "{name}");
        }
    }
}
