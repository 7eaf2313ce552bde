//! The stages `sweep:n` and `counting:n` by all ranks of a job: each reads the captures of what it owns, solves it, and
//! writes a part of the database.
//!
//! A snapshot of `sweep` is one file a rank. Whoever goes on, as many ranks or not, takes what there is of what it owns.
//! One of `counting` is that too, but of one moment: see `counts.rs`.

use super::apart::Apart;
use super::counts::{self, Series};
use super::load::{self, Loads};
use super::parts::{Output, Sink};
use super::{Failure, Follower, Job, Order, PROCESSORS_MAX, RANKS_MAX, agree};
use crate::{Shared, files};
use disk::{Disk, Stopwatch};
use engines::counting::UPDATE_BYTES;
use engines::counting::distributed::{DistributedCountingReport, RankValues, counting, processors_a_rank};
use engines::distributed::{JobError, JobObserver, collect};
use engines::sweep::distributed::{DistributedSweepReport, RankCaptures, RankScores, ScorePartition, sweep};
use engines::{Bytes, EndedPass, Kernel, Tables};
use game::Index;
use messaging::{CommunicationError, Communicator, MessageTraffic};
use pipeline::{Snapshots, StageContext, StageError, StageReport};
use planner::Settings;
use rayon::prelude::*;
use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use store::{Codec, FileKind, Identity, Scores, Shape, SlabShape, StoreError, Writer};

/// Smaller databases are sooner swept again than saved.
const WORTH_A_SNAPSHOT_POSITIONS: u64 = 50_000_000;

/// Of a row of a snapshot.
const SNAPSHOT_COLUMNS: u32 = 1 << 16;

/// A database to solve and to write, from captures in a file, with snapshots in a directory: of counting, as planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    by: By,
    stones: u32,
    captures: PathBuf,
    database: PathBuf,
    snapshots: Option<PathBuf>,
    counts: Option<counts::Plan>,
    apart: Option<Apart>,
}

/// The methods that are work for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Sweep,
    /// With so many logical processors a rank.
    Counting {
        processors: usize,
    },
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::Sweep => f.write_str("sweep"),
            By::Counting { processors } => write!(f, "counting {processors}"),
        }
    }
}

impl FromStr for By {
    type Err = ();

    fn from_str(text: &str) -> Result<By, ()> {
        match text.split_once(' ') {
            None if text == "sweep" => Ok(By::Sweep),
            Some(("counting", processors)) => {
                let processors = processors.parse().ok().filter(|processors| (1..=PROCESSORS_MAX).contains(processors));
                processors.map(|processors| By::Counting { processors }).ok_or(())
            }
            _ => Err(()),
        }
    }
}

impl Task {
    /// Method, stones, captures, database; snapshots, counts, names of what is apart, or nothing each.
    pub(super) fn lines(&self) -> Vec<String> {
        let Task { by, stones, captures, database, snapshots, counts, apart } = self;
        let snapshots = snapshots.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let counts = counts.map(|plan| plan.to_string()).unwrap_or_default();
        let (captures, database) = (captures.display().to_string(), database.display().to_string());
        let [name, fingerprint] = Apart::lines(apart.as_ref());
        vec![by.to_string(), stones.to_string(), captures, database, snapshots, counts, name, fingerprint]
    }

    pub(super) fn of_lines(lines: &[&str]) -> Option<Task> {
        let &[by, stones, captures, database, snapshots, counts, name, fingerprint] = lines else { return None };
        let (by, stones) = (by.parse().ok()?, stones.parse().ok()?);
        let snapshots = Some(snapshots).filter(|path| !path.is_empty()).map(PathBuf::from);
        let counts = Some(counts).filter(|plan| !plan.is_empty()).map(str::parse).transpose().ok()?;
        let apart = Apart::of_lines([name, fingerprint])?;
        Some(Task { by, stones, captures: captures.into(), database: database.into(), snapshots, counts, apart })
    }
}

/// Takes part, on another rank than 0.
pub(super) fn follow(
    follower: &Follower,
    task: &Task,
    tables: &Tables,
    communicator: &mut dyn Communicator,
) -> Result<(), Failure> {
    let Follower { settings, disk, stop, .. } = *follower;
    let member = Member::new(settings, disk, tables, task, communicator)?;
    let (solved, _) = member.solve(communicator, &Following { member: &member, stop })?;
    member.write(&solved, communicator)?;
    member.leave();
    Ok(())
}

/// Runs the stage, on rank 0.
pub(crate) fn run(
    shared: &Shared,
    job: &Job,
    by: By,
    stones: u32,
    context: &StageContext,
) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let captures = context.input(&files::capture(stones));
    // Whoever asks for all that there can be gets them.
    let is_worth = context.snapshots().interval().is_zero() || index.positions() >= WORTH_A_SNAPSHOT_POSITIONS;
    let database = context.output(&files::database(stones));
    let apart = settings.scratch.is_some().then(|| Apart::new(context, &database));
    let snapshots = match (is_worth, &apart) {
        (true, None) => Some(context.snapshots().prepare()?.to_path_buf()),
        (true, Some(apart)) => Some(PathBuf::from(apart.name())),
        (false, _) => None,
    };
    let counts = match (&snapshots, by, &apart) {
        (Some(directory), By::Counting { .. }, None) => Some(counts::Plan::lead(context.disk(), directory)?),
        (Some(_), By::Counting { .. }, Some(_)) => Some(counts::Plan::apart()),
        _ => None,
    };
    let task = Task { by, stones, captures, database, snapshots, counts, apart };
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(Order::Solve(task.clone()).encode())).map_err(StageError::failed)?;
    let tables = shared.tables();
    let member = Member::new(settings, context.disk(), &tables, &task, &mut **communicator);
    let member = member.map_err(Failure::into_error)?;
    context.progress().begin(index.positions(), "positions");
    if let By::Sweep = by {
        context.progress().begin_passes(index.positions(), context.disk().clock().steady());
    }
    let watch = Leading { member: &member, context, last: Mutex::new(context.stopwatch()) };
    let solved = member.solve(&mut **communicator, &watch);
    context.progress().begin(0, "");
    let (solved, loads) = solved.map_err(Failure::into_error)?;
    member.write(&solved, &mut **communicator).map_err(Failure::into_error)?;
    member.leave();
    let report = solved.report(StageReport::new(index.positions()));
    Ok(loads.expect("rank 0 hears of all").report(report))
}

/// What a rank has of a solved database, and what the job did.
enum Solved {
    Swept(RankScores, DistributedSweepReport),
    /// And whether it went on from a snapshot.
    Counted(RankValues, DistributedCountingReport, bool),
}

impl Solved {
    fn collect(
        &self,
        ranges: &[Range<u64>],
        communicator: &mut dyn Communicator,
        sink: Sink,
    ) -> Result<bool, CommunicationError> {
        match self {
            Solved::Swept(part, _) => collect(part, ranges, communicator, sink),
            Solved::Counted(hand, ..) => collect(hand, ranges, communicator, sink),
        }
    }

    /// What all ranks did together.
    fn report(&self, report: StageReport) -> StageReport {
        match self {
            Solved::Swept(_, swept) => {
                let report = report.with("supersteps", swept.supersteps).with("recomputed", swept.recomputed);
                report.with("changed", swept.changed)
            }
            // Messages that held updates, and updates that went from rank to rank.
            Solved::Counted(_, counted, resumed) => {
                let report = report.with("processors", counted.processors).with("supersteps", counted.supersteps);
                let report = report.with("updates", counted.total.updates()).with("messages", counted.messages);
                let report = report.with("combining", counted.combining().unwrap_or(0.0));
                report.with("volume", counted.sent * UPDATE_BYTES).with("resumed", u64::from(*resumed))
            }
        }
    }

    /// What this rank sent and received, and how long it waited.
    fn traffic(&self) -> &MessageTraffic {
        match self {
            Solved::Swept(_, report) => &report.traffic,
            Solved::Counted(_, report, _) => &report.traffic,
        }
    }
}

/// What a rank needs to solve its part.
struct Member<'a> {
    settings: &'a Settings,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    task: &'a Task,
    /// Where snapshots are, if there are to be any.
    snapshots: Option<PathBuf>,
    /// Of counting, where there are snapshots.
    series: Option<Series>,
    /// The directory of its own, and what makes it one.
    apart: Option<(PathBuf, Snapshots<'a>)>,
}

impl<'a> Member<'a> {
    fn new(
        settings: &'a Settings,
        disk: &'a dyn Disk,
        tables: &'a Tables,
        task: &'a Task,
        communicator: &mut dyn Communicator,
    ) -> Result<Member<'a>, Failure> {
        let Task { by, stones, ref snapshots, counts, ref apart, .. } = *task;
        let claim = |apart: &Apart| apart.claim(settings, disk, stones, communicator);
        let apart = apart.as_ref().map(claim).transpose()?;
        let directory = apart.as_ref().map(|(directory, _)| directory.clone());
        let snapshots = snapshots.as_ref().map(|shared| directory.unwrap_or_else(|| shared.clone()));
        let counts = match (counts, &snapshots, &apart, by) {
            (Some(plan), Some(directory), Some(_), By::Counting { processors }) => {
                let index = Index::new(stones, settings.set);
                let processors = processors_a_rank(&index, communicator.size(), processors);
                Some(plan.settle(disk, directory, processors, communicator)?)
            }
            _ => counts,
        };
        Ok(Member { settings, disk, tables, task, snapshots, series: counts.map(Series::new), apart })
    }

    /// Once the database is there: nothing is left in the directory of its own.
    fn leave(&self) {
        if let Some((_, snapshots)) = &self.apart
            && let Err(error) = snapshots.remove()
        {
            tracing::warn!("cannot remove old snapshots: {error}");
        }
    }

    fn solve<W: JobObserver<RankScores> + JobObserver<RankValues>>(
        &self,
        communicator: &mut dyn Communicator,
        watch: &W,
    ) -> Result<(Solved, Option<Loads>), Failure> {
        let (set, stones, tables) = (self.settings.set, self.task.stones, self.tables);
        let index = Index::new(stones, set);
        let (ranks, rank) = (communicator.size(), communicator.rank());
        // Since all ranks have what they need.
        let started;
        let solved = match self.task.by {
            By::Sweep => {
                let prepared = self.prepare(&index, ranks, rank);
                let (mut part, captures) = agree(communicator, prepared)?;
                started = Instant::now();
                let swept = sweep(tables, &index, &captures, &mut part, Kernel::detect(), communicator, watch);
                swept.map(|report| Solved::Swept(part, report))
            }
            By::Counting { processors } => {
                let prepared = self.prepare_hand(&index, ranks, rank, processors);
                let (mut hand, captures, mut resumed) = agree(communicator, prepared)?;
                // All go on, or none does.
                let damaged = communicator.sum(&[u64::from(!resumed)]);
                resumed = damaged.map_err(Failure::lost)? == [0];
                if !resumed {
                    hand.values_mut().fill(0);
                }
                started = Instant::now();
                let mut counted = counting(tables, &index, &captures, &mut hand, communicator, watch);
                if resumed && matches!(counted, Err(JobError::Inconsistent)) {
                    tracing::warn!("ignoring the snapshot of counting:{stones}, which does not hold its counts");
                    resumed = false;
                    hand.values_mut().fill(0);
                    counted = counting(tables, &index, &captures, &mut hand, communicator, watch);
                }
                counted.map(|report| Solved::Counted(hand, report, resumed))
            }
        };
        let solved = solved.map_err(|error| match error {
            JobError::Stopped => Failure::Together(StageError::Stopped),
            error @ JobError::Inconsistent => Failure::Together(StageError::failed(error)),
            error => Failure::Alone(StageError::failed(error)),
        })?;
        let loads = load::gather(communicator, solved.traffic(), started.elapsed());
        Ok((solved, loads.map_err(Failure::lost)?))
    }

    /// Writes the database, together with the other ranks.
    fn write(&self, solved: &Solved, communicator: &mut dyn Communicator) -> Result<(), Failure> {
        let index = Index::new(self.task.stones, self.settings.set);
        let Member { settings, disk, .. } = *self;
        let scratch = self.apart.as_ref().map(|(directory, _)| &**directory);
        let output = Output { settings, disk, index: &index, path: &self.task.database, scratch };
        output.write(communicator, &mut |ranges, communicator, sink| solved.collect(ranges, communicator, sink))
    }

    /// What is dealt to this rank, its captures, and whether it comes from a snapshot.
    fn prepare_hand(
        &self,
        index: &Index,
        ranks: usize,
        rank: usize,
        processors: usize,
    ) -> Result<(RankValues, Bytes, bool), StageError> {
        let mut hand = RankValues::zeroed(index, ranks, rank, processors).map_err(StageError::failed)?;
        let resumed = match (&self.series, &self.snapshots) {
            (Some(series), Some(directory)) => {
                series.restore(self.disk, directory, &self.counts_of(index), index, &mut hand)?
            }
            _ => false,
        };
        let mut captures = Bytes::zeroed(hand.values().len()).map_err(StageError::failed)?;
        let file = self.captures(index)?;
        let mut rest = &mut captures[..];
        let run = |positions: Range<u64>| {
            let length = (positions.end - positions.start) as usize;
            (positions, rest.split_off_mut(..length).expect("there is room for the captures of all runs"))
        };
        let runs: Vec<_> = hand.runs().map(run).collect();
        let read = runs.into_par_iter().try_for_each(|(positions, to)| file.read_range(positions, to));
        read.map_err(|error| files::unreadable(&files::capture(self.task.stones), error))?;
        Ok((hand, captures, resumed))
    }

    /// What a snapshot of counting is of.
    fn counts_of(&self, index: &Index) -> counts::Kind {
        counts::Kind::new(self.settings.rules.name, index)
    }

    /// Publishes what this rank counts, as all others do.
    fn save_counts(&self, hand: &RankValues) {
        if let (Some(series), Some(directory)) = (&self.series, &self.snapshots) {
            let index = Index::new(self.task.stones, self.settings.set);
            series.save(self.disk, directory, &self.counts_of(&index), hand);
        }
    }

    /// The file of captures.
    fn captures(&self, index: &Index) -> Result<Scores, StageError> {
        let file = files::open_windowed(self.disk, &self.task.captures, self.settings, FileKind::Capture, index);
        file.map_err(|error| files::unreadable(&files::capture(self.task.stones), error))
    }

    /// What this rank owns, from a snapshot or 0, and its captures.
    fn prepare(&self, index: &Index, ranks: usize, rank: usize) -> Result<(RankScores, RankCaptures), StageError> {
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

    /// Takes what snapshots have of a part, whoever left them.
    fn restore(&self, directory: &Path, index: &Index, part: &mut RankScores) -> Result<(), StageError> {
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
                files::begin_anew(directory, error)?;
            }
        }
        Ok(())
    }

    /// Publishes what this rank owns.
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
            // Without a snapshot a crash costs more time, and that is all: no reason to give up the work.
            Err(error) => tracing::warn!("cannot save a snapshot of sweep:{}: {error}", self.task.stones),
        }
    }

    fn identity(&self) -> Identity {
        files::identity(self.settings.rules.name, self.settings.set, FileKind::Snapshot, self.task.stones)
    }
}

/// The shape of a file of so many scores of a part, in an order of their own: rows that mean nothing.
fn shape(positions: u64) -> Shape {
    let (rows, rest) = (positions / u64::from(SNAPSHOT_COLUMNS), positions % u64::from(SNAPSHOT_COLUMNS));
    let slabs = [(rows as u32, SNAPSHOT_COLUMNS), (1, rest as u32)];
    let slabs = slabs.into_iter().filter(|&(rows, columns)| rows > 0 && columns > 0);
    let slabs = slabs.map(|(rows, columns)| SlabShape { rows, columns });
    Shape::new(slabs.collect()).expect("a part has positions, and no more than a database")
}

/// Why a part has no captures.
enum Unprepared {
    Memory(io::Error),
    Captures(StoreError),
}

impl From<io::Error> for Unprepared {
    fn from(error: io::Error) -> Unprepared {
        Unprepared::Memory(error)
    }
}

/// Rank and ranks, of the name of a snapshot.
fn numbers(name: &str) -> Option<(usize, usize)> {
    let (rank, ranks) = name.strip_prefix("part-")?.split_once("-of-")?;
    let (rank, ranks) = (rank.parse().ok()?, ranks.parse().ok()?);
    (rank < ranks && ranks <= RANKS_MAX).then_some((rank, ranks))
}

/// Rank 0 at work.
struct Leading<'a> {
    member: &'a Member<'a>,
    context: &'a StageContext<'a>,
    /// When the last snapshot was due.
    last: Mutex<Stopwatch<'a>>,
}

impl Leading<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        if self.context.stop_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether it is time for a snapshot: then the next one is due later.
    fn is_time(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = last.elapsed() >= self.context.snapshots().interval();
        if is_time {
            last.restart();
        }
        is_time
    }
}

impl JobObserver<RankValues> for Leading<'_> {
    fn advance(&self, decided: u64) -> ControlFlow<()> {
        self.context.progress().set(decided);
        self.go_on()
    }

    fn begin_bound(&self, bound: u32, bounds: u32) {
        self.context.progress().begin_bound(bound, bounds);
    }

    fn is_due(&self) -> bool {
        self.member.series.is_some() && self.is_time()
    }

    fn checkpoint(&self, hand: &RankValues) {
        self.member.save_counts(hand);
    }
}

impl JobObserver<RankScores> for Leading<'_> {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        self.go_on()
    }

    fn end_pass(&self, pass: EndedPass) {
        let now = self.context.disk().clock().steady();
        self.context.progress().end_pass(pass.is_full, pass.is_next_full, pass.changed, now);
    }

    fn is_due(&self) -> bool {
        self.is_time()
    }

    fn checkpoint(&self, part: &RankScores) {
        self.member.save(part);
    }
}

/// Another rank at work.
struct Following<'a> {
    member: &'a Member<'a>,
    stop: &'a AtomicBool,
}

impl Following<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        if self.stop.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl JobObserver<RankValues> for Following<'_> {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        self.go_on()
    }

    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, hand: &RankValues) {
        self.member.save_counts(hand);
    }
}

impl JobObserver<RankScores> for Following<'_> {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        self.go_on()
    }

    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, part: &RankScores) {
        self.member.save(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_told_by_their_names() {
        assert_eq!(numbers("part-3-of-4"), Some((3, 4)));
        for name in ["part-4-of-4", "part-0-of-0", "part-1-of-9999999999", "part-1", "scores", "part--1-of-2"] {
            assert_eq!(numbers(name), None, "{name}");
        }
    }
}
