//! The stages `sweep:n` and `counting:n` by all ranks of a job; for `process:n:b` of two-bit see `bounds/ranks.rs`.
//!
//! Rank 0 leads: it alone runs the pipeline, writes the journal and publishes files; of the stages only these are
//! work for all. The others follow: they wait for orders, read the captures of what they own, solve it, and send it to
//! rank 0, which publishes the database. All ranks see the run directory.
//!
//! A snapshot of `sweep` is one file a rank. Whoever goes on, as many ranks or not, takes what there is of what it owns.
//! One of `counting` is that too, but of one moment: see `cluster/counts.rs`.

mod counts;
pub(crate) mod load;

use crate::{Settings, Shared, bounds, files};
use counts::Series;
use disk::Disk;
use engines::cluster::counting::{self, Hand, counting};
use engines::cluster::{self, Part, PartCaptures, Territories, Unsolved, Watch, sweep};
use engines::counting::UPDATE_BYTES;
use engines::{Bytes, Kernel, Tables};
use game::Index;
use load::Loads;
use pipeline::{StageContext, StageError, StageReport};
use ranks::{CommunicationError, Communicator, Traffic};
use rayon::prelude::*;
use std::fmt;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use store::{Codec, Identity, Kind, Scores, Shape, SlabShape, StoreError, Writer};

/// Smaller databases are sooner swept again than saved.
const WORTH_A_SNAPSHOT_POSITIONS: u64 = 50_000_000;

/// More ranks than any job has.
const RANKS_MAX: usize = 1 << 16;

/// More logical processors than a rank has threads.
const PROCESSORS_MAX: usize = 1 << 16;

/// How often a position is recomputed, about.
const USUAL_RECOMPUTATIONS: u64 = 16;

/// Of a row of a snapshot.
const SNAPSHOT_COLUMNS: u32 = 1 << 16;

/// How often a leader that does something else shows that it lives.
const PULSE: Duration = Duration::from_secs(1);

/// The other ranks, as rank 0 sees them.
pub struct Job {
    communicator: Arc<Mutex<Box<dyn Communicator>>>,
    ranks: usize,
}

/// What the leader wants of the others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// To solve a database.
    Solve(Task),
    /// To solve a bound.
    Bound(bounds::Task),
    /// To leave.
    Leave,
}

/// A database to solve, from captures in a file, with snapshots in a directory: of counting, as planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    by: By,
    stones: u32,
    captures: PathBuf,
    snapshots: Option<PathBuf>,
    counts: Option<counts::Plan>,
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

impl Order {
    /// One line each, and none is in a path.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let text = match self {
            Order::Solve(Task { by, stones, captures, snapshots, counts }) => {
                let snapshots = snapshots.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
                let counts = counts.map(|plan| plan.to_string()).unwrap_or_default();
                format!("{by}\n{stones}\n{}\n{snapshots}\n{counts}", captures.display())
            }
            Order::Bound(task) => task.encode(),
            Order::Leave => "leave".to_owned(),
        };
        text.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Result<Order, CommunicationError> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        let order = match lines[..] {
            [bounds::Task::WORD, ref lines @ ..] => bounds::Task::decode(lines).map(Order::Bound),
            [by, stones, captures, snapshots, counts] => {
                let snapshots = Some(snapshots).filter(|path| !path.is_empty()).map(PathBuf::from);
                let counts = Some(counts).filter(|plan| !plan.is_empty()).map(str::parse).transpose();
                let numbers = by.parse().ok().zip(stones.parse().ok()).zip(counts.ok());
                numbers.map(|((by, stones), counts)| {
                    Order::Solve(Task { by, stones, captures: captures.into(), snapshots, counts })
                })
            }
            ["leave"] => Some(Order::Leave),
            _ => None,
        };
        let (expected, found) = ("an order".to_owned(), format!("{text:?}"));
        order.ok_or(CommunicationError::Unexpected { rank: 0, expected, found })
    }
}

impl Job {
    /// A job that this process leads.
    ///
    /// # Panics
    /// On another rank than 0.
    pub fn lead(communicator: Box<dyn Communicator>) -> Job {
        assert_eq!(communicator.rank(), 0, "rank 0 leads");
        let ranks = communicator.size();
        let communicator = Arc::new(Mutex::new(communicator));
        let weak = Arc::downgrade(&communicator);
        std::thread::spawn(move || pulse(&weak));
        Job { communicator, ranks }
    }

    /// Ranks, the leader among them.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Lets the others leave. A rank that has gone already is no reason to complain.
    pub fn dismiss(&self) {
        let _ = self.communicator().broadcast(0, Some(Order::Leave.encode()));
    }

    pub(crate) fn communicator(&self) -> MutexGuard<'_, Box<dyn Communicator>> {
        self.communicator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}

/// Sees to the messages while the leader is at something else, until there is no job any more.
fn pulse(communicator: &Weak<Mutex<Box<dyn Communicator>>>) {
    while let Some(communicator) = communicator.upgrade() {
        if let Ok(mut communicator) = communicator.try_lock() {
            // Whoever waits for a message next is told what is wrong.
            let _ = communicator.poll();
        }
        drop(communicator);
        std::thread::sleep(PULSE);
    }
}

/// Does what rank 0 wants, until that is to leave. `settings` are those of the same manifest, or why
/// there are none.
///
/// # Errors
/// If a rank cannot be reached any more.
pub fn follow(
    settings: Result<&Settings, String>,
    disk: &dyn Disk,
    communicator: &mut dyn Communicator,
    stop: &AtomicBool,
) -> Result<(), StageError> {
    let mut tables: Option<Arc<Tables>> = None;
    let mut share: Option<bounds::Share> = None;
    loop {
        let order = communicator.broadcast(0, None).map_err(StageError::failed)?;
        let order = Order::decode(&order).map_err(StageError::failed)?;
        let settings = match &settings {
            Ok(settings) => *settings,
            Err(_) if order == Order::Leave => return Ok(()),
            Err(why) => {
                agree::<()>(communicator, Err(StageError::failed(why.clone()))).err();
                continue;
            }
        };
        let Settings { rules, set, .. } = *settings;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build();
        let pool = pool.map_err(StageError::failed)?;
        match order {
            Order::Leave => return Ok(()),
            Order::Bound(task) => {
                let made = || Arc::new(Tables::new(rules, set, settings.stones_max()));
                let tables = match task.is_last() {
                    // Large ones, for pushing wins, are not needed afterwards.
                    true => tables.take().unwrap_or_else(made),
                    false => Arc::clone(tables.get_or_insert_with(made)),
                };
                let followed =
                    pool.install(|| bounds::follow(settings, disk, tables, &task, &mut share, communicator, stop));
                if let Err(Failure::Alone(error)) = followed {
                    return Err(error);
                }
            }
            Order::Solve(task) => {
                let tables = tables.get_or_insert_with(|| Arc::new(Tables::new(rules, set, settings.stones_max())));
                let member = Member { settings, disk, tables, task: &task, series: task.counts.map(Series::new) };
                let watch = Following { member: &member, stop };
                match pool.install(|| member.solve(communicator, &watch)) {
                    Ok((solved, _)) => {
                        let mut nothing = |_: &[i8]| ControlFlow::Continue(());
                        solved.collect(communicator, &mut nothing).map_err(StageError::failed)?;
                    }
                    Err(Failure::Alone(error)) => return Err(error),
                    Err(Failure::Together(_)) => {}
                }
            }
        }
    }
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
    // Sets of counts are a few for a database, so whoever asks for all of them gets them.
    let always = by != By::Sweep && context.snapshots().interval().is_zero();
    let snapshots = match always || index.positions() >= WORTH_A_SNAPSHOT_POSITIONS {
        true => Some(context.snapshots().prepare()?.to_path_buf()),
        false => None,
    };
    let counts = match (&snapshots, by) {
        (Some(directory), By::Counting { .. }) => Some(counts::Plan::lead(context.disk(), directory)?),
        _ => None,
    };
    let task = Task { by, stones, captures, snapshots, counts };
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(Order::Solve(task.clone()).encode())).map_err(StageError::failed)?;
    let tables = shared.tables();
    let series = counts.map(Series::new);
    let member = Member { settings, disk: context.disk(), tables: &tables, task: &task, series };
    context.progress().begin(index.positions(), "positions");
    let watch = Leading { member: &member, context, last: Mutex::new(Instant::now()), positions: index.positions() };
    let solved = member.solve(&mut **communicator, &watch);
    let (solved, loads) = solved.map_err(|(Failure::Alone(error) | Failure::Together(error))| error)?;
    let path = context.output(&files::database(stones));
    let mut writer =
        files::create(context.disk(), &path, settings, Kind::Database, &index, settings.codec).map_err(Some);
    let mut failed = None;
    let mut sink = |run: &[i8]| match &mut writer {
        Ok(writer) => match writer.append(run) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(files::unwritable(error));
                ControlFlow::Break(())
            }
        },
        Err(error) => {
            failed = error.take();
            ControlFlow::Break(())
        }
    };
    let all = solved.collect(&mut **communicator, &mut sink).map_err(StageError::failed)?;
    if let Some(error) = failed {
        return Err(error);
    }
    assert!(all, "only a sink that failed takes less");
    let writer = writer.map_err(|error| error.expect("whoever took the error returned it"))?;
    writer.finish().map_err(files::unwritable)?;
    let report = solved.report(StageReport::new(index.positions()));
    Ok(loads.expect("rank 0 hears of all").report(report))
}

/// What a rank has of a solved database, and what the job did.
enum Solved {
    Swept(Part, cluster::Report),
    /// And whether it went on from a snapshot.
    Counted(Hand, counting::Report, bool),
}

impl Solved {
    fn collect(
        &self,
        communicator: &mut dyn Communicator,
        sink: &mut dyn FnMut(&[i8]) -> ControlFlow<()>,
    ) -> Result<bool, CommunicationError> {
        match self {
            Solved::Swept(part, _) => cluster::collect(part, communicator, sink),
            Solved::Counted(hand, ..) => counting::collect(hand, communicator, sink),
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
    fn traffic(&self) -> &Traffic {
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
    /// Of counting, where there are snapshots.
    series: Option<Series>,
}

/// Why a task came to nothing.
pub(crate) enum Failure {
    /// All ranks know, and go on together.
    Together(StageError),
    /// This rank has lost the others.
    Alone(StageError),
}

impl Member<'_> {
    fn solve<W: Watch<Part> + Watch<Hand>>(
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
                resumed = damaged.map_err(|error| Failure::Alone(StageError::failed(error)))? == [0];
                if !resumed {
                    hand.values_mut().fill(0);
                }
                started = Instant::now();
                let mut counted = counting(tables, &index, &captures, &mut hand, communicator, watch);
                if resumed && matches!(counted, Err(Unsolved::Inconsistent)) {
                    tracing::warn!("the snapshot of counting:{stones} is none of its counts, and is not used");
                    resumed = false;
                    hand.values_mut().fill(0);
                    counted = counting(tables, &index, &captures, &mut hand, communicator, watch);
                }
                counted.map(|report| Solved::Counted(hand, report, resumed))
            }
        };
        let solved = solved.map_err(|error| match error {
            Unsolved::Stopped => Failure::Together(StageError::Stopped),
            error @ Unsolved::Inconsistent => Failure::Together(StageError::failed(error)),
            error => Failure::Alone(StageError::failed(error)),
        })?;
        let loads = load::gather(communicator, solved.traffic(), started.elapsed());
        Ok((solved, loads.map_err(|error| Failure::Alone(StageError::failed(error)))?))
    }

    /// What is dealt to this rank, its captures, and whether it comes from a snapshot.
    fn prepare_hand(
        &self,
        index: &Index,
        ranks: usize,
        rank: usize,
        processors: usize,
    ) -> Result<(Hand, Bytes, bool), StageError> {
        let mut hand = Hand::zeroed(index, ranks, rank, processors).map_err(StageError::failed)?;
        let resumed = match (&self.series, &self.task.snapshots) {
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
    fn save_counts(&self, hand: &Hand) {
        if let (Some(series), Some(directory)) = (&self.series, &self.task.snapshots) {
            let index = Index::new(self.task.stones, self.settings.set);
            series.save(self.disk, directory, &self.counts_of(&index), hand);
        }
    }

    /// The file of captures.
    fn captures(&self, index: &Index) -> Result<Scores, StageError> {
        let file = files::open_windowed(self.disk, &self.task.captures, self.settings, Kind::Capture, index);
        file.map_err(|error| files::unreadable(&files::capture(self.task.stones), error))
    }

    /// What this rank owns, from a snapshot or 0, and its captures.
    fn prepare(&self, index: &Index, ranks: usize, rank: usize) -> Result<(Part, PartCaptures), StageError> {
        let territories = Arc::new(Territories::new(self.tables, index.slabs(), ranks));
        let mut part = Part::zeroed(self.tables, territories, rank).map_err(StageError::failed)?;
        if let Some(directory) = &self.task.snapshots {
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
    fn restore(&self, directory: &Path, index: &Index, part: &mut Part) -> Result<(), StageError> {
        for path in self.disk.list(directory)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((rank, ranks)) = numbers(name) else { continue };
            let territories = Territories::new(self.tables, index.slabs(), ranks);
            if territories.positions(rank) == 0 {
                continue;
            }
            let (identity, shape) = (self.identity(), shape(territories.positions(rank)));
            let read = Scores::open_windowed(self.disk, &path)
                .and_then(|file| file.expect(&identity, &shape))
                .and_then(|file| part.take_over(&territories, rank, |positions, to| file.read_range(positions, to)));
            if let Err(error) = read {
                tracing::warn!("a snapshot is not used to its end: {error}");
                files::begin_anew(directory, error)?;
            }
        }
        Ok(())
    }

    /// Publishes what this rank owns.
    fn save(&self, part: &Part) {
        let Some(directory) = self.task.snapshots.as_ref().filter(|_| part.positions() > 0) else { return };
        let path = directory.join(format!("part-{}-of-{}", part.rank(), part.territories().ranks()));
        let (identity, shape) = (self.identity(), shape(part.positions()));
        let range = files::range(Kind::Snapshot, self.task.stones);
        let written =
            Writer::create(self.disk, &path, &identity, &shape, range, Codec::Packed).and_then(|mut writer| {
                part.runs().try_for_each(|run| writer.append(run))?;
                writer.finish()
            });
        match written {
            Ok(_) => tracing::info!("snapshot of rank {}", part.rank()),
            // Without a snapshot a crash costs more time, and that is all: no reason to give up the work.
            Err(error) => tracing::warn!("no snapshot of sweep:{}: {error}", self.task.stones),
        }
    }

    fn identity(&self) -> Identity {
        files::identity(self.settings.rules.name, self.settings.set, Kind::Snapshot, self.task.stones)
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

/// Whether all ranks could do what each of them tried: else an error for all. Each has its own, the leader those of all.
pub(crate) fn agree<T>(communicator: &mut dyn Communicator, mine: Result<T, StageError>) -> Result<T, Failure> {
    let lost = |error: CommunicationError| Failure::Alone(StageError::failed(error));
    let told = mine.as_ref().err().map(|error| format!("rank {}: {error}", communicator.rank()));
    let all = communicator.gather(0, told.unwrap_or_default().into_bytes()).map_err(lost)?;
    let verdict = all.map(|all| {
        let said: Vec<_> =
            all.iter().filter(|text| !text.is_empty()).map(|text| String::from_utf8_lossy(text)).collect();
        said.join("; ").into_bytes()
    });
    let verdict = communicator.broadcast(0, verdict).map_err(lost)?;
    match mine {
        Err(error) => Err(Failure::Together(error)),
        Ok(_) if !verdict.is_empty() => {
            Err(Failure::Together(StageError::failed(String::from_utf8_lossy(&verdict).into_owned())))
        }
        Ok(mine) => Ok(mine),
    }
}

/// Rank 0 at work.
struct Leading<'a> {
    member: &'a Member<'a>,
    context: &'a StageContext<'a>,
    /// When the last snapshot was due.
    last: Mutex<Instant>,
    positions: u64,
}

impl Leading<'_> {
    /// So many positions are as good as solved; whether to go on.
    fn tell(&self, solved: u64) -> ControlFlow<()> {
        self.context.progress().set(solved);
        if self.context.stop_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether it is time for a snapshot: then the next one is due later.
    fn is_time(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = last.elapsed() >= self.context.snapshots().interval();
        if is_time {
            *last = Instant::now();
        }
        is_time
    }
}

impl Watch<Hand> for Leading<'_> {
    fn advance(&self, decided: u64) -> ControlFlow<()> {
        self.tell(decided)
    }

    fn is_due(&self) -> bool {
        self.member.series.is_some() && self.is_time()
    }

    fn checkpoint(&self, hand: &Hand) {
        self.member.save_counts(hand);
    }
}

impl Watch<Part> for Leading<'_> {
    fn advance(&self, recomputed: u64) -> ControlFlow<()> {
        let share = recomputed as f64 / (self.positions * USUAL_RECOMPUTATIONS).max(recomputed).max(1) as f64;
        self.tell((share * self.positions as f64) as u64)
    }

    fn is_due(&self) -> bool {
        self.is_time()
    }

    fn checkpoint(&self, part: &Part) {
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

impl Watch<Hand> for Following<'_> {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        self.go_on()
    }

    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, hand: &Hand) {
        self.member.save_counts(hand);
    }
}

impl Watch<Part> for Following<'_> {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        self.go_on()
    }

    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, part: &Part) {
        self.member.save(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood() {
        let order = |by: By, snapshots: Option<&str>| {
            let captures = "/runs/a b/captures/24.cap".into();
            let counts = matches!(by, By::Counting { processors: 4.. }).then(|| "5 6 7 8 9 10 11".parse().unwrap());
            Order::Solve(Task { by, stones: 24, captures, snapshots: snapshots.map(PathBuf::from), counts })
        };
        for order in [
            order(By::Sweep, None),
            order(By::Sweep, Some("/runs/a b/snapshots/sweep-24")),
            order(By::Counting { processors: 3 }, None),
            order(By::Counting { processors: 4 }, Some("/runs/a b/snapshots/counting-24")),
            Order::Leave,
        ] {
            assert_eq!(Order::decode(&order.encode()).unwrap(), order);
        }
        for bytes in [
            &b""[..],
            b"leave\n1",
            b"sweep\n1",
            b"sweep\nx\na\nb\n",
            b"sweep\n1\na\nb",
            b"counting\n1\na\nb\n",
            b"counting 0\n1\na\nb\n",
            b"counting 65537\n1\na\nb\n",
            b"counting 1\n1\na\nb\n1",
            b"\xff\n\n\n\n",
        ] {
            assert!(Order::decode(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn snapshots_are_told_by_their_names() {
        assert_eq!(numbers("part-3-of-4"), Some((3, 4)));
        for name in ["part-4-of-4", "part-0-of-0", "part-1-of-9999999999", "part-1", "scores", "part--1-of-2"] {
            assert_eq!(numbers(name), None, "{name}");
        }
    }
}
