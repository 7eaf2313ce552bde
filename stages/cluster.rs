//! The stage `sweep:n` by all ranks of a job.
//!
//! Rank 0 leads: it alone runs the pipeline, writes the journal and publishes files; of the stages only `sweep` is work
//! for all. The others follow: they wait for orders, read their rows of the captures, sweep what they own, and send it to
//! rank 0, which publishes the database. All ranks see the run directory.
//!
//! A snapshot is one file a rank. Whoever goes on, as many ranks or not, takes what there is of what it owns.

use crate::files;
use crate::{Settings, Shared};
use disk::Disk;
use engines::cluster::{Part, Report, Shares, Unsolved, Watch, collect, sweep};
use engines::{Bytes, Kernel, Tables};
use game::Index;
use pipeline::{StageContext, StageError, StageReport};
use ranks::{CommunicationError, Communicator};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use store::{Codec, Identity, Kind, Scores, Shape, SlabShape, Writer};

/// Smaller databases are sooner swept again than saved.
const WORTH_A_SNAPSHOT_POSITIONS: u64 = 50_000_000;

/// More ranks than any job has.
const RANKS_MAX: usize = 1 << 16;

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
    /// To sweep a database, from captures in a file, with snapshots in a directory.
    Sweep { stones: u32, captures: PathBuf, snapshots: Option<PathBuf> },
    /// To leave, with an exit code.
    Leave { code: u8 },
}

impl Order {
    /// One line each; paths stand last, and have no line of their own.
    fn encode(&self) -> Vec<u8> {
        let text = match self {
            Order::Sweep { stones, captures, snapshots } => {
                let snapshots = snapshots.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
                format!("sweep\n{stones}\n{}\n{snapshots}", captures.display())
            }
            Order::Leave { code } => format!("leave\n{code}"),
        };
        text.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Result<Order, CommunicationError> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        let order = match lines[..] {
            ["sweep", stones, captures, snapshots] => stones.parse().ok().map(|stones| Order::Sweep {
                stones,
                captures: captures.into(),
                snapshots: Some(snapshots).filter(|path| !path.is_empty()).map(PathBuf::from),
            }),
            ["leave", code] => code.parse().ok().map(|code| Order::Leave { code }),
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

    /// Lets the others leave, with an exit code. A rank that has gone already is no reason to complain.
    pub fn dismiss(&self, code: u8) {
        let _ = self.communicator().broadcast(0, Some(Order::Leave { code }.encode()));
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

/// Does what rank 0 wants, until that is to leave; then the exit code. `settings` are those of the same manifest, or why
/// there are none.
///
/// # Errors
/// If a rank cannot be reached any more.
pub fn follow(
    settings: Result<&Settings, String>,
    disk: &dyn Disk,
    communicator: &mut dyn Communicator,
    stop: &AtomicBool,
) -> Result<u8, StageError> {
    let mut tables: Option<Tables> = None;
    loop {
        let order = communicator.broadcast(0, None).map_err(StageError::failed)?;
        match Order::decode(&order).map_err(StageError::failed)? {
            Order::Leave { code } => return Ok(code),
            Order::Sweep { stones, captures, snapshots } => {
                let settings = match &settings {
                    Ok(settings) => *settings,
                    Err(why) => {
                        agree::<()>(communicator, Err(StageError::failed(why.clone()))).err();
                        continue;
                    }
                };
                let Settings { rules, set, .. } = *settings;
                let tables = tables.get_or_insert_with(|| Tables::new(rules, set, settings.stones_max()));
                let member = Member { settings, disk, tables, stones, captures: &captures, snapshots };
                let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build();
                let pool = pool.map_err(StageError::failed)?;
                let watch = Following { member: &member, stop };
                match pool.install(|| member.sweep(communicator, &watch)) {
                    Ok((part, _)) => {
                        let mut nothing = |_: &[i8]| ControlFlow::Continue(());
                        collect(&part, communicator, &mut nothing).map_err(StageError::failed)?;
                    }
                    Err(Failure::Alone(error)) => return Err(error),
                    Err(Failure::Together(_)) => {}
                }
            }
        }
    }
}

/// Runs the stage, on rank 0.
pub(crate) fn run(shared: &Shared, job: &Job, stones: u32, context: &StageContext) -> Result<StageReport, StageError> {
    let settings = shared.settings();
    let index = Index::new(stones, settings.set);
    let captures = context.input(&files::capture(stones));
    let snapshots = match index.positions() >= WORTH_A_SNAPSHOT_POSITIONS {
        true => Some(context.snapshots().prepare()?.to_path_buf()),
        false => None,
    };
    let order = Order::Sweep { stones, captures: captures.clone(), snapshots: snapshots.clone() };
    let mut communicator = job.communicator();
    communicator.broadcast(0, Some(order.encode())).map_err(StageError::failed)?;
    let tables = shared.tables();
    let member = Member { settings, disk: context.disk(), tables: &tables, stones, captures: &captures, snapshots };
    context.progress().begin(index.positions(), "positions");
    let watch = Leading { member: &member, context, last: Mutex::new(Instant::now()), positions: index.positions() };
    let swept = member.sweep(&mut **communicator, &watch);
    let (part, report) = swept.map_err(|(Failure::Alone(error) | Failure::Together(error))| error)?;
    let traffic = report.traffic;
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
    let all = collect(&part, &mut **communicator, &mut sink).map_err(StageError::failed)?;
    if let Some(error) = failed {
        return Err(error);
    }
    assert!(all, "only a sink that failed takes less");
    let writer = writer.map_err(|error| error.expect("whoever took the error returned it"))?;
    writer.finish().map_err(files::unwritable)?;
    Ok(StageReport::new(index.positions())
        .with("ranks", job.ranks() as u64)
        .with("supersteps", report.supersteps)
        .with("recomputed", report.recomputed)
        .with("changed", report.changed)
        .with("messages", traffic.messages_sent)
        .with("bytes_sent", traffic.bytes_sent)
        .with("seconds_waited", traffic.seconds_waited))
}

/// What a rank needs to sweep its part.
struct Member<'a> {
    settings: &'a Settings,
    disk: &'a dyn Disk,
    tables: &'a Tables,
    stones: u32,
    captures: &'a Path,
    snapshots: Option<PathBuf>,
}

/// Why a sweep came to nothing.
enum Failure {
    /// All ranks know, and go on together.
    Together(StageError),
    /// This rank has lost the others.
    Alone(StageError),
}

impl Member<'_> {
    fn sweep(&self, communicator: &mut dyn Communicator, watch: &dyn Watch) -> Result<(Part, Report), Failure> {
        let set = self.settings.set;
        let index = Index::new(self.stones, set);
        let shares = Shares::new(self.stones, set, communicator.size());
        let prepared = self.prepare(&index, shares, communicator.rank());
        let (mut part, captures) = agree(communicator, prepared)?;
        let kernel = Kernel::detect();
        let swept = sweep(self.tables, &index, &captures, &mut part, kernel, communicator, watch);
        match swept {
            Ok(report) => Ok((part, report)),
            Err(Unsolved::Stopped) => Err(Failure::Together(StageError::Stopped)),
            Err(error) => Err(Failure::Alone(StageError::failed(error))),
        }
    }

    /// What this rank owns, from a snapshot or 0, and its captures.
    fn prepare(&self, index: &Index, shares: Shares, rank: usize) -> Result<(Part, Bytes), StageError> {
        let mut part = Part::zeroed(shares, rank).map_err(StageError::failed)?;
        if let Some(directory) = &self.snapshots {
            self.restore(directory, &mut part)?;
        }
        let mut captures = Bytes::zeroed(part.scores().len()).map_err(StageError::failed)?;
        let unreadable = |error| files::unreadable(&files::capture(self.stones), error);
        let file = files::open_windowed(self.disk, self.captures, self.settings, Kind::Capture, index);
        let file = file.map_err(unreadable)?;
        let mut rest = &mut captures[..];
        for slab in index.slabs() {
            let rows = part.shares().rows(rank, slab.mover_stones);
            let columns = u64::from(slab.opponent_halves);
            let positions = slab.offset + u64::from(rows.start) * columns..slab.offset + u64::from(rows.end) * columns;
            let (to, others) = rest.split_at_mut((positions.end - positions.start) as usize);
            rest = others;
            if !to.is_empty() {
                file.read_range(positions, to).map_err(unreadable)?;
            }
        }
        Ok((part, captures))
    }

    /// Takes what snapshots have of a part, whoever left them.
    fn restore(&self, directory: &Path, part: &mut Part) -> Result<(), StageError> {
        for path in self.disk.list(directory)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((rank, ranks)) = numbers(name) else { continue };
            let shares = Shares::new(self.stones, self.settings.set, ranks);
            if (0..=self.stones)
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
        let Some(directory) = self.snapshots.as_ref().filter(|_| !part.scores().is_empty()) else { return };
        let path = directory.join(format!("part-{}-of-{}", part.rank(), part.shares().ranks()));
        let (identity, shape) = (self.identity(), shape(part));
        let range = files::range(Kind::Snapshot, self.stones);
        let written =
            Writer::create(self.disk, &path, &identity, &shape, range, Codec::Packed).and_then(|mut writer| {
                writer.append(part.scores())?;
                writer.finish()
            });
        match written {
            Ok(_) => tracing::info!("snapshot of rank {}", part.rank()),
            // Without a snapshot a crash costs more time, and that is all: no reason to give up the work.
            Err(error) => tracing::warn!("no snapshot of sweep:{}: {error}", self.stones),
        }
    }

    fn identity(&self) -> Identity {
        files::identity(self.settings.rules.name, self.settings.set, Kind::Snapshot, self.stones)
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

impl Watch for Leading<'_> {
    fn advance(&self, recomputed: u64) -> ControlFlow<()> {
        let share = recomputed as f64 / (self.positions * USUAL_RECOMPUTATIONS).max(recomputed).max(1) as f64;
        self.context.progress().set((share * self.positions as f64) as u64);
        if self.context.stop_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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

impl Watch for Following<'_> {
    fn advance(&self, _: u64) -> ControlFlow<()> {
        if self.stop.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
        let order = |snapshots: Option<&str>| Order::Sweep {
            stones: 24,
            captures: "/runs/a b/captures/24.cap".into(),
            snapshots: snapshots.map(PathBuf::from),
        };
        for order in [order(None), order(Some("/runs/a b/snapshots/sweep-24")), Order::Leave { code: 75 }] {
            assert_eq!(Order::decode(&order.encode()).unwrap(), order);
        }
        for bytes in [&b""[..], b"leave", b"leave\n256", b"sweep\n1", b"sweep\nx\na\nb", b"\xff\n\n\n"] {
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
