//! Snapshots of `counting` by ranks: what each rank has, all of one moment in which no update was on its way.
//!
//! A *set* is a file a rank, `counts-SINCE-PROCESS-NUMBER-RANK-of-RANKS-by-PROCESSORS`: when the job began to count, the
//! process that led it, the number of the set in that job, and how the database was dealt. Counts of different moments do
//! not go together, so a set is taken up whole or not at all: the leader picks the latest of which all files are there,
//! before it tells the others; where each rank has a directory of its own, all pick the latest of which each sees what
//! it needs. A set is removed by those who wrote it, one set after the next one was complete, so where
//! no write fails there always is one. Units of positions are the same however they are dealt, so any ranks can go on.

use super::{Failure, PROCESSORS_MAX, RANKS_MAX, agree};
use crate::files;
use disk::{Disk, DiskError, clock, is_leftover};
use engines::counting::checkpoint_range;
use engines::counting::distributed::{RankValues, runs};
use game::Index;
use messaging::{CommunicationError, Communicator};
use pipeline::StageError;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use store::{Codec, FileOrientation, Identity, Scores, Shape, SlabShape, StoreError, ValueRange, Writer};

/// Positions of a slab of a file, which has one row; with 49 slabs more than any machine holds.
const COLUMNS_MAX: u64 = 1 << 30;

/// A job that counts, apart from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Source {
    /// Seconds since 1970.
    since: u64,
    process: u32,
}

/// A set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Set {
    source: Source,
    number: u64,
    ranks: usize,
    processors: usize,
}

/// What a job saves as, and goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    own: Source,
    saved: Option<Set>,
}

/// What snapshots are of: identity and range of their files.
pub(super) struct Kind {
    identity: Identity,
    range: ValueRange,
}

/// The snapshots that this rank writes.
#[derive(Debug)]
pub(super) struct Series {
    plan: Plan,
    next: AtomicU64,
    /// Whether the last one could not be written: then the one before is the last complete one.
    failed: AtomicBool,
}

impl Set {
    fn file(&self, directory: &Path, rank: usize) -> PathBuf {
        let Set { source: Source { since, process }, number, ranks, processors } = self;
        directory.join(format!("counts-{since}-{process}-{number}-{rank}-of-{ranks}-by-{processors}"))
    }

    /// The set and the rank of a file.
    fn of(path: &Path) -> Option<(Set, usize)> {
        let words: Vec<&str> = path.file_name()?.to_str()?.split('-').collect();
        let ["counts", since, process, number, rank, "of", ranks, "by", processors] = *words else { return None };
        let source = Source { since: since.parse().ok()?, process: process.parse().ok()? };
        let (ranks, processors) = (ranks.parse().ok()?, processors.parse().ok()?);
        let set = Set { source, number: number.parse().ok()?, ranks, processors };
        let rank = rank.parse().ok()?;
        (rank < ranks && ranks <= RANKS_MAX && (1..=PROCESSORS_MAX).contains(&processors)).then_some((set, rank))
    }
}

impl Plan {
    /// What this process leads: it goes on from the latest set that is whole, and removes all else.
    pub(super) fn lead(disk: &dyn Disk, directory: &Path) -> Result<Plan, DiskError> {
        let files = disk.list(directory)?;
        let saved = sets(&files).into_iter().rev().find(|(set, ranks)| ranks.len() == set.ranks).map(|(set, _)| set);
        let plan = Plan { saved, ..Plan::apart() };
        plan.remove_others(disk, files)?;
        Ok(plan)
    }

    /// What this process leads where each rank has a directory of its own: see [`settle`](Self::settle).
    pub(super) fn apart() -> Plan {
        Plan { own: Source { since: clock::now_seconds(), process: std::process::id() }, saved: None }
    }

    /// Goes on from the latest set of which every rank sees in its directory what it needs, and removes all else there.
    /// For so many processors a rank.
    pub(super) fn settle(
        self,
        disk: &dyn Disk,
        directory: &Path,
        processors: usize,
        communicator: &mut dyn Communicator,
    ) -> Result<Plan, Failure> {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let files = agree(communicator, disk.list(directory).map_err(StageError::Disk))?;
        // Dealt as it was, each reads what it wrote.
        let suffices = |set: &Set, seen: &BTreeSet<usize>| match (set.ranks, set.processors) == (ranks, processors) {
            true => seen.contains(&rank),
            false => seen.len() == set.ranks,
        };
        let seen = sets(&files).into_iter().filter(|(set, seen)| suffices(set, seen));
        let lines: Vec<String> = seen.map(|(set, _)| Plan { saved: Some(set), ..self }.to_string()).collect();
        let told = communicator.gather(0, lines.join("\n").into_bytes()).map_err(Failure::lost)?;
        let chosen = match told {
            Some(told) => {
                let all = (0..).zip(&told).map(|(rank, lines)| plans(rank, lines)).collect::<Result<Vec<_>, _>>();
                let common = all.map_err(Failure::lost)?.into_iter().reduce(|some, more| &some & &more);
                let saved = common.and_then(|sets| sets.last().copied());
                Some(Plan { saved, ..self }.to_string().into_bytes())
            }
            None => None,
        };
        let chosen = communicator.broadcast(0, chosen).map_err(Failure::lost)?;
        let text = String::from_utf8_lossy(&chosen);
        let plan: Plan = text.parse().map_err(|()| Failure::lost(unexpected(0, &text)))?;
        agree(communicator, plan.remove_others(disk, files).map_err(StageError::Disk))?;
        Ok(plan)
    }

    /// Of some files, those of other sets, and what a dead process did not finish.
    fn remove_others(&self, disk: &dyn Disk, files: Vec<PathBuf>) -> Result<(), DiskError> {
        let is_other = |path: &Path| Set::of(path).is_some_and(|(set, _)| Some(set) != self.saved);
        files.iter().filter(|path| is_other(path) || is_leftover(path)).try_for_each(|path| disk.remove(path))
    }
}

/// By set, the ranks whose files there are.
fn sets(files: &[PathBuf]) -> BTreeMap<Set, BTreeSet<usize>> {
    let mut sets: BTreeMap<Set, BTreeSet<usize>> = BTreeMap::new();
    for (set, rank) in files.iter().filter_map(|path| Set::of(path)) {
        sets.entry(set).or_default().insert(rank);
    }
    sets
}

/// The sets that a rank could go on from.
fn plans(rank: usize, lines: &[u8]) -> Result<BTreeSet<Set>, CommunicationError> {
    let text = String::from_utf8_lossy(lines);
    let set = |line: &str| line.parse::<Plan>().ok()?.saved;
    let sets: Option<_> = text.split('\n').filter(|line| !line.is_empty()).map(set).collect();
    sets.ok_or_else(|| unexpected(rank, &text))
}

fn unexpected(rank: usize, text: &str) -> CommunicationError {
    CommunicationError::Unexpected { rank, expected: "sets of counts".to_owned(), found: format!("{text:?}") }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.own.since, self.own.process)?;
        match self.saved {
            Some(Set { source: Source { since, process }, number, ranks, processors }) => {
                write!(f, " {since} {process} {number} {ranks} {processors}")
            }
            None => Ok(()),
        }
    }
}

impl FromStr for Plan {
    type Err = ();

    fn from_str(text: &str) -> Result<Plan, ()> {
        let numbers = text.split(' ').map(|word| word.parse().map_err(drop)).collect::<Result<Vec<u64>, ()>>()?;
        let source = |since, process: u64| Ok(Source { since, process: process.try_into().map_err(drop)? });
        let (own, saved) = match *numbers {
            [since, process] => (source(since, process)?, None),
            [since, process, of, by, number, ranks, processors] => {
                let [ranks, processors] = [(ranks, RANKS_MAX), (processors, PROCESSORS_MAX)]
                    .map(|(many, max)| usize::try_from(many).ok().filter(|many| (1..=max).contains(many)).ok_or(()));
                let set = Set { source: source(of, by)?, number, ranks: ranks?, processors: processors? };
                (source(since, process)?, Some(set))
            }
            _ => return Err(()),
        };
        Ok(Plan { own, saved })
    }
}

impl Kind {
    /// Of the database of `index`.
    pub(super) fn new(rules: &str, index: &Index) -> Kind {
        let identity = files::identity(rules, index.set(), store::FileKind::Snapshot, index.stones());
        let (low, high) = checkpoint_range(index.stones());
        Kind {
            identity: Identity { orientation: FileOrientation::MoverMajor, ..identity },
            range: ValueRange::new(low, high),
        }
    }

    fn open(&self, disk: &dyn Disk, path: &Path, positions: u64) -> Result<Scores, StoreError> {
        let file = Scores::open_windowed(disk, path)?;
        let (expected, found) = (self.range, file.range());
        if found != expected {
            let (expected, found) = (format!("values in {expected}"), format!("values in {found}"));
            return Err(StoreError::Mismatch { path: path.to_path_buf(), expected, found });
        }
        file.expect(&self.identity, &shape(positions)?)
    }
}

impl Series {
    pub(super) fn new(plan: Plan) -> Series {
        Series { plan, next: AtomicU64::new(0), failed: AtomicBool::new(false) }
    }

    /// Puts the counts that were saved into a hand of zeros. Whether there were any, and they could be read; if not, the
    /// hand holds anything.
    ///
    /// # Errors
    /// Where the disk failed: they may be whole.
    pub(super) fn restore(
        &self,
        disk: &dyn Disk,
        directory: &Path,
        kind: &Kind,
        index: &Index,
        hand: &mut RankValues,
    ) -> Result<bool, StageError> {
        let Some(set) = self.plan.saved else { return Ok(false) };
        match read(disk, directory, kind, &set, index, hand) {
            Ok(()) => Ok(true),
            Err(error) => {
                tracing::warn!("ignoring a snapshot: {error}");
                files::begin_anew(directory, error)?;
                Ok(false)
            }
        }
    }

    /// Publishes what a rank has: all call this at the same moment.
    pub(super) fn save(&self, disk: &dyn Disk, directory: &Path, kind: &Kind, hand: &RankValues) {
        let number = self.next.fetch_add(1, Relaxed);
        let (ranks, processors) = (hand.ranks(), hand.processors());
        let set = |number| Set { source: self.plan.own, number, ranks, processors };
        // All ranks are here, so all have written the set before this one.
        if !self.failed.load(Relaxed) {
            self.remove_before(disk, directory, hand, number, set);
        }
        let written = write(disk, &set(number).file(directory, hand.rank()), kind, hand.values());
        self.failed.store(written.is_err(), Relaxed);
        match written {
            Ok(()) => tracing::info!("snapshot {number} of rank {}", hand.rank()),
            // Without a snapshot a crash costs more time, and that is all: no reason to give up the work.
            Err(error) => tracing::warn!("ignoring snapshot {number}: {error}"),
        }
    }

    /// Removes what the last complete set, the one before `number`, makes needless.
    fn remove_before(
        &self,
        disk: &dyn Disk,
        directory: &Path,
        hand: &RankValues,
        number: u64,
        set: impl Fn(u64) -> Set,
    ) {
        let needless = match (number, self.plan.saved) {
            (0, _) | (1, None) => Vec::new(),
            // What another job left, which may have had more ranks.
            (1, Some(saved)) => {
                let ranks = (hand.rank()..saved.ranks).step_by(hand.ranks());
                ranks.map(|rank| saved.file(directory, rank)).collect()
            }
            _ => vec![set(number - 2).file(directory, hand.rank())],
        };
        for path in needless {
            if let Err(error) = disk.remove(&path) {
                tracing::warn!("cannot remove an old snapshot: {error}");
            }
        }
    }
}

/// Reads what a set has of a hand.
fn read(
    disk: &dyn Disk,
    directory: &Path,
    kind: &Kind,
    set: &Set,
    index: &Index,
    hand: &mut RankValues,
) -> Result<(), StoreError> {
    // By first position of a run: whose it was, and its place in that file.
    let mut places: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
    let mut positions = Vec::new();
    for (rank, runs) in runs(index, set.ranks, set.processors).into_iter().enumerate() {
        let mut place = 0;
        for run in runs {
            places.insert(run.start, (rank, place));
            place += run.end - run.start;
        }
        positions.push(place);
    }
    let wanted: Vec<Range<u64>> = hand.runs().collect();
    let mut rest = hand.values_mut();
    let mut by_rank: BTreeMap<usize, Vec<(u64, &mut [i8])>> = BTreeMap::new();
    for run in wanted {
        let to = rest.split_off_mut(..(run.end - run.start) as usize).expect("the hand has all its runs");
        let &(rank, place) = places.get(&run.start).expect("units are the same however they are dealt");
        by_rank.entry(rank).or_default().push((place, to));
    }
    for (rank, runs) in by_rank {
        let file = kind.open(disk, &set.file(directory, rank), positions[rank])?;
        let read = |(place, to): (u64, &mut [i8])| file.read_range(place..place + to.len() as u64, to);
        runs.into_par_iter().try_for_each(read)?;
    }
    Ok(())
}

fn write(disk: &dyn Disk, path: &Path, kind: &Kind, values: &[i8]) -> Result<(), StoreError> {
    let shape = shape(values.len() as u64)?;
    let mut writer = Writer::create(disk, path, &kind.identity, &shape, kind.range, Codec::Packed)?;
    // No file has nothing in it.
    writer.append(if values.is_empty() { &[0] } else { values })?;
    writer.finish().map(drop)
}

/// So many positions, at least one.
fn shape(positions: u64) -> Result<Shape, StoreError> {
    let positions = positions.max(1);
    let slab = |first| SlabShape { rows: 1, columns: COLUMNS_MAX.min(positions - first) as u32 };
    Shape::new((0..positions).step_by(COLUMNS_MAX as usize).map(slab).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;
    use game::PositionSet;

    const DIRECTORY: &str = "snapshots/counting-9";

    fn plan(since: u64, saved: Option<Set>) -> Plan {
        Plan { own: Source { since, process: 7 }, saved }
    }

    /// What is saved of a position: anything in range that tells it from its neighbours.
    fn value(position: u64) -> i8 {
        (position % 23) as i8 - 12
    }

    fn hand(index: &Index, ranks: usize, rank: usize, processors: usize) -> RankValues {
        let mut hand = RankValues::zeroed(index, ranks, rank, processors).unwrap();
        let positions: Vec<u64> = hand.runs().flatten().collect();
        hand.values_mut().iter_mut().zip(positions).for_each(|(to, position)| *to = value(position));
        hand
    }

    fn names(disk: &MemoryDisk) -> Vec<String> {
        disk.paths().iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn copy(disk: &MemoryDisk) -> MemoryDisk {
        let copy = MemoryDisk::new();
        disk.paths().iter().for_each(|path| copy.put(path, &disk.peek(path).unwrap()));
        copy
    }

    #[test]
    fn any_ranks_go_on_from_a_set() {
        let index = Index::new(9, PositionSet::Reachable);
        let kind = Kind::new("awari", &index);
        let directory = Path::new(DIRECTORY);
        for (ranks, processors) in [(1, 1), (3, 2), (5, 1)] {
            let disk = MemoryDisk::new();
            for rank in 0..ranks {
                let series = Series::new(plan(5, None));
                series.save(&disk, directory, &kind, &hand(&index, ranks, rank, processors));
            }
            let found = Plan::lead(&disk, directory).unwrap();
            let saved = found.saved.unwrap();
            assert_eq!((saved.number, saved.ranks, saved.processors), (0, ranks, processors));
            for (ranks, processors) in [(1, 1), (2, 1), (2, 3), (4, 2)] {
                for rank in 0..ranks {
                    let mut found = RankValues::zeroed(&index, ranks, rank, processors).unwrap();
                    let series = Series::new(plan(6, Some(saved)));
                    assert!(series.restore(&disk, directory, &kind, &index, &mut found).unwrap());
                    assert!(found.values() == hand(&index, ranks, rank, processors).values());
                }
            }
            let mut nothing = RankValues::zeroed(&index, 1, 0, 1).unwrap();
            assert!(!Series::new(plan(6, None)).restore(&disk, directory, &kind, &index, &mut nothing).unwrap());
        }
    }

    #[test]
    fn there_always_is_a_whole_set() {
        const RANKS: usize = 3;
        let index = Index::new(7, PositionSet::All);
        let kind = Kind::new("awari", &index);
        let (disk, directory) = (MemoryDisk::new(), Path::new(DIRECTORY));
        let mut saved = None;
        for since in [5, 6] {
            let series: Vec<Series> = (0..RANKS).map(|_| Series::new(plan(since, saved))).collect();
            for number in 0..4 {
                for (rank, series) in series.iter().enumerate() {
                    series.save(&disk, directory, &kind, &hand(&index, RANKS, rank, 1));
                    let whole = Plan::lead(&copy(&disk), directory).unwrap().saved;
                    let latest = Set { source: Source { since, process: 7 }, number, ranks: RANKS, processors: 1 };
                    let is_done = rank == RANKS - 1;
                    assert_eq!(whole == Some(latest), is_done, "rank {rank}, set {number}");
                    assert!(whole.is_some() || (since, number) == (5, 0), "rank {rank}, set {number}");
                }
                assert!(disk.paths().len() <= 2 * RANKS, "{:?}", names(&disk));
            }
            saved = Plan::lead(&disk, directory).unwrap().saved;
            assert_eq!(disk.paths().len(), RANKS, "only the latest stays");
        }
    }

    /// Files of a job that was cut off, or comes back from the dead, are never mixed with others.
    #[test]
    fn what_is_not_whole_is_not_used() {
        let index = Index::new(7, PositionSet::All);
        let kind = Kind::new("awari", &index);
        let (disk, directory) = (MemoryDisk::new(), Path::new(DIRECTORY));
        Series::new(plan(5, None)).save(&disk, directory, &kind, &hand(&index, 2, 0, 1));
        Series::new(plan(6, None)).save(&disk, directory, &kind, &hand(&index, 2, 1, 1));
        disk.put(&directory.join(".counts-1.tmp-12"), b"half");
        disk.put(&directory.join("fingerprint"), b"of something");
        assert_eq!(Plan::lead(&disk, directory).unwrap().saved, None);
        assert_eq!(names(&disk), ["fingerprint"]);
        // Nor what is damaged, or of another database.
        let other = Index::new(7, PositionSet::Reachable);
        for (damaged, index) in [(true, &index), (false, &other)] {
            let set = Set { source: Source { since: 5, process: 7 }, number: 0, ranks: 1, processors: 1 };
            Series::new(plan(5, None)).save(&disk, directory, &kind, &hand(&Index::new(7, PositionSet::All), 1, 0, 1));
            if damaged {
                let path = set.file(directory, 0);
                let mut bytes = disk.peek(&path).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                disk.put(&path, &bytes);
            }
            let series = Series::new(plan(6, Some(set)));
            let mut found = RankValues::zeroed(index, 2, 0, 1).unwrap();
            assert!(!series.restore(&disk, directory, &Kind::new("awari", index), index, &mut found).unwrap());
        }
    }

    /// Directories of their own: as many ranks go on where each finds its own file, others where each finds all.
    #[test]
    fn ranks_settle_on_what_all_have() {
        let index = Index::new(9, PositionSet::All);
        let kind = Kind::new("awari", &index);
        let directory = Path::new(DIRECTORY);
        // Ranks that saved, on how many machines, who comes back, and whether they go on.
        for (ranks, machines, back, goes_on) in
            [(3, 3, 3, true), (3, 1, 3, true), (3, 1, 2, true), (3, 3, 2, false), (3, 2, 3, true), (2, 1, 4, true)]
        {
            for is_newer_torn in [false, true] {
                let disks: Vec<MemoryDisk> = (0..machines).map(|_| MemoryDisk::new()).collect();
                for since in [5, 6] {
                    for rank in 0..ranks - usize::from(is_newer_torn && since == 6) {
                        let hand = hand(&index, ranks, rank, 1);
                        Series::new(plan(since, None)).save(&disks[rank % machines], directory, &kind, &hand);
                    }
                }
                let ends = messaging::ThreadCommunicator::job(back, messaging::NetworkFaults::none());
                let settled: Vec<_> = std::thread::scope(|scope| {
                    let settle = |mut end: messaging::ThreadCommunicator| {
                        let disk = &disks[end.rank() % machines];
                        scope.spawn(move || plan(9, None).settle(disk, directory, 1, &mut end).unwrap())
                    };
                    let running: Vec<_> = ends.into_iter().map(settle).collect();
                    running.into_iter().map(|rank| rank.join().unwrap()).collect()
                });
                let since = if is_newer_torn { 5 } else { 6 };
                let set = Set { source: Source { since, process: 7 }, number: 0, ranks, processors: 1 };
                let expected = plan(9, goes_on.then_some(set));
                assert!(settled.iter().all(|plan| *plan == expected), "{settled:?}, {expected:?}");
                let names: Vec<_> = disks.iter().take(back).flat_map(names).collect();
                let others = names.iter().filter(|name| !goes_on || !name.starts_with(&format!("counts-{since}-7-0-")));
                assert_eq!(others.count(), 0, "{names:?}");
            }
        }
    }

    #[test]
    fn other_sets_are_refused() {
        let set = Set { source: Source { since: 5, process: 7 }, number: 0, ranks: 2, processors: 1 };
        let line = plan(9, Some(set)).to_string();
        assert_eq!(plans(1, line.as_bytes()).unwrap(), BTreeSet::from([set]));
        assert_eq!(plans(1, b"").unwrap(), BTreeSet::new());
        for lines in ["x", "9 7", &format!("{line}\nx"), "9 7 5 7 0 2 0"] {
            assert!(plans(1, lines.as_bytes()).is_err(), "{lines}");
        }
    }

    #[test]
    fn names_and_plans_are_understood() {
        let set = Set { source: Source { since: 1_700_000_000, process: 41 }, number: 3, ranks: 4, processors: 2 };
        let file = set.file(Path::new("d"), 1);
        assert_eq!(file, Path::new("d/counts-1700000000-41-3-1-of-4-by-2"));
        assert_eq!(Set::of(&file), Some((set, 1)));
        for name in [
            "counts",
            "fingerprint",
            "counts-1-2-3-4-of-4-by-1",
            "counts-1-2-3-0-of-0-by-1",
            "counts-1-2-3-0-of-1-by-0",
            "counts-1-2-3-0-of-9999999-by-1",
            "counts-1-2-3-0-of-1-by-9999999",
            "counts-1-2--3-0-of-1-by-1",
        ] {
            assert_eq!(Set::of(Path::new(name)), None, "{name}");
        }
        for plan in [plan(1, None), plan(1, Some(set))] {
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
        for text in ["", "1", "1 x", "1 4294967296", "1 2 3", "1 2 3 4 5 0 1", "1 2 3 4 5 1 65537", "1 2 3 4 5 6 7 8"] {
            assert_eq!(text.parse::<Plan>(), Err(()), "{text:?}");
        }
    }
}
