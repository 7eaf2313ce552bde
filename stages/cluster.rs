//! The stages `sweep:n` and `counting:n` by all ranks of a job.
//!
//! Rank 0 leads: it alone runs the pipeline, writes the journal and publishes files; of the stages only these two are
//! work for all. The others follow: they wait for orders, read the captures of what they own, solve it, and send it to
//! rank 0, which publishes the database. All ranks see the run directory.
//!
//! A snapshot of `sweep` is one file a rank. Whoever goes on, as many ranks or not, takes what there is of what it owns.
//! `counting` has none here, and begins a database anew: counts of different times do not go together.

use crate::files;
use crate::{Settings, Shared};
use disk::Disk;
use engines::cluster::counting::{self, Hand, counting};
use engines::cluster::{self, Part, Shares, Unsolved, Watch, sweep};
use engines::counting::UPDATE_BYTES;
use engines::{Bytes, Kernel, Tables};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use ranks::{CommunicationError, Communicator};
use rayon::prelude::*;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use store::{Codec, Identity, Kind, Scores, Shape, SlabShape, Writer};

/// Smaller databases are sooner swept again than saved.
const WORTH_A_SNAPSHOT_POSITIONS: u64 = 50_000_000;

/// More ranks than any job has.
const RANKS_MAX: usize = 1 << 16;

/// More logical processors than a rank has threads.
const PROCESSORS_MAX: usize = 1 << 16;

/// How often a position is recomputed, about.
const USUAL_RECOMPUTATIONS: u64 = 25;

/// How often a leader that does something else shows that it lives.
const PULSE: Duration = Duration::from_secs(1);

/// The other ranks, as rank 0 sees them.
pub struct Job {
    communicator: Arc<Mutex<Box<dyn Communicator>>>,
    ranks: usize,
}

/// What the leader wants of the others.
#[derive(Debug, PartialEq, Eq)]
enum Order {
    /// To solve a database.
    Solve(Task),
    /// To leave.
    Leave,
}

/// A database to solve, from captures in a file, with snapshots in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Task {
    by: By,
    stones: u32,
    captures: PathBuf,
    snapshots: Option<PathBuf>,
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
    /// One line each; paths stand last, and have no line of their own.
    fn encode(&self) -> Vec<u8> {
        let text = match self {
            Order::Solve(Task { by, stones, captures, snapshots }) => {
                let snapshots = snapshots.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
                format!("{by}\n{stones}\n{}\n{snapshots}", captures.display())
            }
            Order::Leave => "leave".to_owned(),
        };
        text.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Result<Order, CommunicationError> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        let order = match lines[..] {
            [by, stones, captures, snapshots] => by.parse().ok().zip(stones.parse().ok()).map(|(by, stones)| {
                let snapshots = Some(snapshots).filter(|path| !path.is_empty()).map(PathBuf::from);
                Order::Solve(Task { by, stones, captures: captures.into(), snapshots })
            }),
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

    fn communicator(&self) -> MutexGuard<'_, Box<dyn Communicator>> {
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
    let mut tables: Option<Tables> = None;
    loop {
        let order = communicator.broadcast(0, None).map_err(StageError::failed)?;
        match Order::decode(&order).map_err(StageError::failed)? {
            Order::Leave => return Ok(()),
            Order::Solve(task) => {
                let settings = match &settings {
                    Ok(settings) => *settings,
                    Err(why) => {
                        agree::<()>(communicator, Err(StageError::failed(why.clone()))).err();
                        continue;
                    }
                };
                let Settings { rules, set, .. } = *settings;
                let tables = tables.get_or_insert_with(|| Tables::new(rules, set, settings.stones_max()));
                let member = Member { settings, disk, tables, task: &task };
                let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build();
                let pool = pool.map_err(StageError::failed)?;
                let watch = Following { member: &member, stop };
                match pool.install(|| member.solve(communicator, &watch)) {
                    Ok(solved) => {
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
    let snapshots = match by == By::Sweep && index.positions() >= WORTH_A_SNAPSHOT_POSITIONS {
        true => Some(context.snapshots().prepare()?.to_path_buf()),
        false => None,
    };
    let task = Task { by, stones, captures, snapshots };
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(Order::Solve(task.clone()).encode())).map_err(StageError::failed)?;
    let tables = shared.tables();
    let member = Member { settings, disk: context.disk(), tables: &tables, task: &task };
    context.progress().begin(index.positions(), "positions");
    let watch = Leading { member: &member, context, last: Mutex::new(Instant::now()), positions: index.positions() };
    let solved = member.solve(&mut **communicator, &watch);
    let solved = solved.map_err(|(Failure::Alone(error) | Failure::Together(error))| error)?;
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
    Ok(solved.report(StageReport::new(index.positions()).with("ranks", job.ranks() as u64)))
}

/// What a rank has of a solved database, and what the job did.
enum Solved {
    Swept(Part, cluster::Report),
    Counted(Hand, counting::Report),
}

impl Solved {
    fn collect(
        &self,
        communicator: &mut dyn Communicator,
        sink: &mut dyn FnMut(&[i8]) -> ControlFlow<()>,
    ) -> Result<bool, CommunicationError> {
        match self {
            Solved::Swept(part, _) => cluster::collect(part, communicator, sink),
            Solved::Counted(hand, _) => counting::collect(hand, communicator, sink),
        }
    }

    /// Messages and bytes of a sweep are those of this rank; of counting, updates that went from rank to rank.
    fn report(&self, report: StageReport) -> StageReport {
        let (report, traffic) = match self {
            Solved::Swept(_, swept) => {
                let report = report.with("supersteps", swept.supersteps).with("recomputed", swept.recomputed);
                (report.with("changed", swept.changed).with("messages", swept.traffic.messages_sent), &swept.traffic)
            }
            Solved::Counted(_, counted) => {
                let report = report.with("processors", counted.processors).with("supersteps", counted.supersteps);
                let report = report.with("updates", counted.total.updates()).with("messages", counted.messages);
                let report = report.with("combining", counted.combining().unwrap_or(0.0));
                (report.with("volume", counted.sent * UPDATE_BYTES), &counted.traffic)
            }
        };
        report.with("bytes_sent", traffic.bytes_sent).with("seconds_waited", traffic.seconds_waited)
    }
}

/// What a rank needs to solve its part.
struct Member<'a> {
    settings: &'a Settings,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    task: &'a Task,
}

/// Why a task came to nothing.
enum Failure {
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
    ) -> Result<Solved, Failure> {
        let (set, stones, tables) = (self.settings.set, self.task.stones, self.tables);
        let index = Index::new(stones, set);
        let (ranks, rank) = (communicator.size(), communicator.rank());
        let solved = match self.task.by {
            By::Sweep => {
                let prepared = self.prepare(&index, Shares::new(stones, set, ranks), rank);
                let (mut part, captures) = agree(communicator, prepared)?;
                let swept = sweep(tables, &index, &captures, &mut part, Kernel::detect(), communicator, watch);
                swept.map(|report| Solved::Swept(part, report))
            }
            By::Counting { processors } => {
                let prepared = self.prepare_hand(&index, ranks, rank, processors);
                let (mut hand, captures) = agree(communicator, prepared)?;
                let counted = counting(tables, &index, &captures, &mut hand, communicator, watch);
                counted.map(|report| Solved::Counted(hand, report))
            }
        };
        solved.map_err(|error| match error {
            Unsolved::Stopped => Failure::Together(StageError::Stopped),
            error @ Unsolved::Inconsistent => Failure::Together(StageError::failed(error)),
            error => Failure::Alone(StageError::failed(error)),
        })
    }

    /// What is dealt to this rank, 0, and its captures.
    fn prepare_hand(
        &self,
        index: &Index,
        ranks: usize,
        rank: usize,
        processors: usize,
    ) -> Result<(Hand, Bytes), StageError> {
        let hand = Hand::zeroed(index, ranks, rank, processors).map_err(StageError::failed)?;
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
        Ok((hand, captures))
    }

    /// The file of captures.
    fn captures(&self, index: &Index) -> Result<Scores, StageError> {
        let file = files::open_windowed(self.disk, &self.task.captures, self.settings, Kind::Capture, index);
        file.map_err(|error| files::unreadable(&files::capture(self.task.stones), error))
    }

    /// What this rank owns, from a snapshot or 0, and its captures.
    fn prepare(&self, index: &Index, shares: Shares, rank: usize) -> Result<(Part, Bytes), StageError> {
        let mut part = Part::zeroed(shares, rank).map_err(StageError::failed)?;
        if let Some(directory) = &self.task.snapshots {
            self.restore(directory, &mut part)?;
        }
        let mut captures = Bytes::zeroed(part.scores().len()).map_err(StageError::failed)?;
        let file = self.captures(index)?;
        let mut rest = &mut captures[..];
        for slab in index.slabs() {
            let rows = part.shares().rows(rank, slab.mover_stones);
            let columns = u64::from(slab.opponent_halves);
            let positions = slab.offset + u64::from(rows.start) * columns..slab.offset + u64::from(rows.end) * columns;
            let (to, others) = rest.split_at_mut((positions.end - positions.start) as usize);
            rest = others;
            if !to.is_empty() {
                let read = file.read_range(positions, to);
                read.map_err(|error| files::unreadable(&files::capture(self.task.stones), error))?;
            }
        }
        Ok((part, captures))
    }

    /// Takes what snapshots have of a part, whoever left them.
    fn restore(&self, directory: &Path, part: &mut Part) -> Result<(), StageError> {
        for path in self.disk.list(directory)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((rank, ranks)) = numbers(name) else { continue };
            let shares = Shares::new(self.task.stones, self.settings.set, ranks);
            if (0..=self.task.stones)
                .all(|mover| !overlap(&shares.rows(rank, mover), &part.shares().rows(part.rank(), mover)))
            {
                continue;
            }
            let mut found = Part::zeroed(shares, rank).map_err(StageError::failed)?;
            let (identity, positions) = (self.identity(), 0..found.scores().len() as u64);
            let read = Scores::open_windowed(self.disk, &path)
                .and_then(|file| file.expect(&identity, &shape(&found)))
                .and_then(|file| file.read_range(positions, found.scores_mut()));
            match read {
                Ok(()) => part.take_over(&found),
                Err(error) => {
                    tracing::warn!("a snapshot is not used: {error}");
                    files::begin_anew(directory, error)?;
                }
            }
        }
        Ok(())
    }

    /// Publishes what this rank owns.
    fn save(&self, part: &Part) {
        let Some(directory) = self.task.snapshots.as_ref().filter(|_| !part.scores().is_empty()) else { return };
        let path = directory.join(format!("part-{}-of-{}", part.rank(), part.shares().ranks()));
        let (identity, shape) = (self.identity(), shape(part));
        let range = files::range(Kind::Snapshot, self.task.stones);
        let written =
            Writer::create(self.disk, &path, &identity, &shape, range, Codec::Packed).and_then(|mut writer| {
                writer.append(part.scores())?;
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

/// The shape of a file of a part: its rows of every slab of which it has some.
fn shape(part: &Part) -> Shape {
    let slabs = part.slabs().into_iter().filter(|slab| slab.positions() > 0);
    let slabs = slabs.map(|slab| SlabShape { rows: slab.mover_halves, columns: slab.opponent_halves });
    Shape::new(slabs.collect()).expect("a part with positions has a slab, and no more than there are")
}

/// Rank and ranks, of the name of a snapshot.
fn numbers(name: &str) -> Option<(usize, usize)> {
    let (rank, ranks) = name.strip_prefix("part-")?.split_once("-of-")?;
    let (rank, ranks) = (rank.parse().ok()?, ranks.parse().ok()?);
    (rank < ranks && ranks <= RANKS_MAX).then_some((rank, ranks))
}

fn overlap(one: &Range<u32>, other: &Range<u32>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

/// Whether all ranks could do what each of them tried: else an error for all. Each has its own, the leader those of all.
fn agree<T>(communicator: &mut dyn Communicator, mine: Result<T, StageError>) -> Result<T, Failure> {
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
}

impl Watch<Hand> for Leading<'_> {
    fn advance(&self, decided: u64) -> ControlFlow<()> {
        self.tell(decided)
    }

    fn is_due(&self) -> bool {
        false
    }

    fn checkpoint(&self, _: &Hand) {}
}

impl Watch<Part> for Leading<'_> {
    fn advance(&self, recomputed: u64) -> ControlFlow<()> {
        let share = recomputed as f64 / (self.positions * USUAL_RECOMPUTATIONS).max(recomputed).max(1) as f64;
        self.tell((share * self.positions as f64) as u64)
    }

    fn is_due(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.elapsed() >= self.context.snapshots().interval();
        if is_due {
            *last = Instant::now();
        }
        is_due
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

    fn checkpoint(&self, _: &Hand) {}
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
            Order::Solve(Task { by, stones: 24, captures, snapshots: snapshots.map(PathBuf::from) })
        };
        for order in [
            order(By::Sweep, None),
            order(By::Sweep, Some("/runs/a b/snapshots/sweep-24")),
            order(By::Counting { processors: 3 }, None),
            Order::Leave,
        ] {
            assert_eq!(Order::decode(&order.encode()).unwrap(), order);
        }
        for bytes in [
            &b""[..],
            b"leave\n1",
            b"sweep\n1",
            b"sweep\nx\na\nb",
            b"counting\n1\na\nb",
            b"counting 0\n1\na\nb",
            b"counting 65537\n1\na\nb",
            b"\xff\n\n\n",
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
