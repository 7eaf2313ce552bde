//! Snapshots of `counting`, which all ranks take at the same moment, without updates in flight.
//!
//! A *set* has a file for each rank, `counts-SINCE-PROCESS-NUMBER-RANK-of-RANKS-by-PROCESSORS`: the start of the job,
//! the process of its leader, the number of the set in that job, and the distribution of the database. Counts of
//! different moments are inconsistent, so a job resumes from a whole set: the leader chooses the latest complete one;
//! if each rank has a directory of its own, the ranks choose the latest set for which each rank finds its files. A rank
//! removes a file of its own once the next set is complete, so a complete set exists unless writes fail. Units of
//! positions do not depend on the distribution, so any number of ranks can resume.

use crate::distributed::limits::{PROCESSORS_MAX, RANKS_MAX};
use crate::distributed::{RankResult, agree, message};
use crate::files::{self, CountsFormat};
use disk::{Disk, DiskError, is_leftover};
use game::Index;
use messaging::Communicator;
use pipeline::StageResult as Result;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use solvers::counting::ranks::{RankValues, runs};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use store::{Shape, SlabShape};

/// Positions of a slab of a file, in one row; 49 slabs exceed the memory of any machine.
const COLUMNS_MAX: u64 = 1 << 30;

/// Content of the messages between ranks.
const EXPECTED: &str = "sets of counts";

/// Sets of files that a rank can resume from.
type SnapshotSets = BTreeSet<SnapshotSet>;

/// Identity of a job that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct CountingJob {
    /// Seconds since 1970.
    since: u64,
    process: u32,
}

/// Identity of a set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SnapshotSet {
    source: CountingJob,
    number: u64,
    ranks: usize,
    processors: usize,
}

/// Identity of a job, and the set that it resumes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResumePlan {
    own: CountingJob,
    saved: Option<SnapshotSet>,
}

/// Snapshots that this rank writes.
#[derive(Debug)]
pub(super) struct SnapshotSeries {
    plan: ResumePlan,
    next: AtomicU64,
    /// Whether the last write failed: then the set before is the last complete one.
    failed: AtomicBool,
}

impl SnapshotSet {
    fn file(&self, directory: &Path, rank: usize) -> PathBuf {
        let SnapshotSet { source: CountingJob { since, process }, number, ranks, processors } = self;
        directory.join(format!("counts-{since}-{process}-{number}-{rank}-of-{ranks}-by-{processors}"))
    }

    /// Returns the set and the rank of a file.
    fn of(path: &Path) -> Option<(SnapshotSet, usize)> {
        let words: Vec<&str> = path.file_name()?.to_str()?.split('-').collect();
        let ["counts", since, process, number, rank, "of", ranks, "by", processors] = *words else { return None };
        let source = CountingJob { since: since.parse().ok()?, process: process.parse().ok()? };
        let (ranks, processors) = (ranks.parse().ok()?, processors.parse().ok()?);
        let set = SnapshotSet { source, number: number.parse().ok()?, ranks, processors };
        let rank = rank.parse().ok()?;
        (rank < ranks && set.is_valid()).then_some((set, rank))
    }

    fn is_valid(&self) -> bool {
        (1..=RANKS_MAX).contains(&self.ranks) && (1..=PROCESSORS_MAX).contains(&self.processors)
    }
}

impl ResumePlan {
    /// Returns the plan of the leader: resumes from the latest complete set, and removes all others.
    pub(super) fn lead(disk: &dyn Disk, directory: &Path) -> Result<ResumePlan, DiskError> {
        let files = disk.list(directory)?;
        let saved = sets(&files).into_iter().rev().find(|(set, ranks)| ranks.len() == set.ranks).map(|(set, _)| set);
        let plan = ResumePlan::on_local_disks(disk).resuming(saved);
        plan.remove_others(disk, files)?;
        Ok(plan)
    }

    /// Returns the plan of the leader if each rank has a directory of its own, to be completed by
    /// [`settle`](Self::settle).
    pub(super) fn on_local_disks(disk: &dyn Disk) -> ResumePlan {
        let since = disk.clock().utc().as_secs();
        ResumePlan { own: CountingJob { since, process: std::process::id() }, saved: None }
    }

    /// Returns the plan to resume from a set. The sets of this job are later ones, whatever the clock says.
    fn resuming(self, saved: Option<SnapshotSet>) -> ResumePlan {
        let since = saved.map_or(0, |set| set.source.since.saturating_add(1)).max(self.own.since);
        ResumePlan { own: CountingJob { since, ..self.own }, saved }
    }

    /// Agrees with all ranks on the latest set of which each finds its files in its directory, and removes all others
    /// there.
    pub(super) fn settle(
        self,
        disk: &dyn Disk,
        directory: &Path,
        processors: usize,
        communicator: &mut dyn Communicator,
    ) -> RankResult<ResumePlan> {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let files = agree(communicator, disk.list(directory))?;
        // In the same distribution, each rank reads the file that it wrote.
        let suffices = |set: &SnapshotSet, seen: &BTreeSet<usize>| {
            if (set.ranks, set.processors) == (ranks, processors) {
                seen.contains(&rank)
            } else {
                seen.len() == set.ranks
            }
        };
        let seen = sets(&files).into_iter().filter(|(set, seen)| suffices(set, seen));
        let seen: SnapshotSets = seen.map(|(set, _)| set).collect();
        let chosen = match communicator.gather(0, message::encode(&seen))? {
            Some(gathered) => {
                let sets = |(rank, bytes): (usize, &Vec<u8>)| {
                    let is_valid = |sets: &SnapshotSets| sets.iter().all(SnapshotSet::is_valid);
                    message::decode(bytes, rank, EXPECTED, is_valid)
                };
                let all = gathered.iter().enumerate().map(sets).collect::<Result<Vec<_>, _>>()?;
                let common = all.into_iter().reduce(|some, more| &some & &more);
                let saved = common.and_then(|sets| sets.last().copied());
                Some(message::encode(&self.resuming(saved)))
            }
            None => None,
        };
        let chosen = communicator.broadcast(0, chosen)?;
        let plan = message::decode(&chosen, 0, EXPECTED, ResumePlan::is_valid)?;
        agree(communicator, plan.remove_others(disk, files))?;
        Ok(plan)
    }

    pub(super) fn is_valid(&self) -> bool {
        self.saved.as_ref().is_none_or(SnapshotSet::is_valid)
    }

    /// Removes files of other sets, and temporary files of dead processes.
    fn remove_others(&self, disk: &dyn Disk, files: Vec<PathBuf>) -> Result<(), DiskError> {
        let is_other = |path: &Path| SnapshotSet::of(path).is_some_and(|(set, _)| Some(set) != self.saved);
        files.iter().filter(|path| is_other(path) || is_leftover(path)).try_for_each(|path| disk.remove(path))
    }
}

/// Returns the ranks with a file, by set.
fn sets(files: &[PathBuf]) -> BTreeMap<SnapshotSet, BTreeSet<usize>> {
    let mut sets: BTreeMap<SnapshotSet, BTreeSet<usize>> = BTreeMap::new();
    for (set, rank) in files.iter().filter_map(|path| SnapshotSet::of(path)) {
        sets.entry(set).or_default().insert(rank);
    }
    sets
}

impl SnapshotSeries {
    pub(super) fn new(plan: ResumePlan) -> SnapshotSeries {
        SnapshotSeries { plan, next: AtomicU64::new(0), failed: AtomicBool::new(false) }
    }

    /// Reads the saved counts into `rank_values`, which are zeros. Returns false, and leaves zeros, if there
    /// are none or they cannot be read.
    ///
    /// # Errors
    /// If the disk failed: the snapshot may be intact.
    pub(super) fn restore(
        &self,
        disk: &dyn Disk,
        directory: &Path,
        format: &CountsFormat,
        index: &Index,
        rank_values: &mut RankValues,
    ) -> Result<bool> {
        let Some(set) = self.plan.saved else { return Ok(false) };
        match read(disk, directory, format, &set, index, rank_values) {
            Ok(()) => Ok(true),
            Err(error) => {
                tracing::warn!("ignoring a snapshot: {error}");
                files::ignore_snapshot(directory, error)?;
                rank_values.values_mut().fill(0);
                Ok(false)
            }
        }
    }

    /// Saves the counts of this rank. All ranks call it between the same two supersteps.
    pub(super) fn save(
        &self,
        disk: &dyn Disk,
        directory: &Path,
        format: &CountsFormat,
        rank_values: &RankValues,
    ) -> store::Result<()> {
        let number = self.next.fetch_add(1, Relaxed);
        let (ranks, processors) = (rank_values.ranks(), rank_values.processors());
        let set = |number| SnapshotSet { source: self.plan.own, number, ranks, processors };
        // All ranks are at this call, so all have written the previous set.
        if !self.failed.load(Relaxed) {
            self.remove_before(disk, directory, rank_values, number, set);
        }
        let path = set(number).file(directory, rank_values.rank());
        // A file cannot be empty.
        let values = if rank_values.values().is_empty() { &[0] } else { rank_values.values() };
        let written = shape(values.len() as u64).and_then(|shape| format.write(disk, &path, &shape, values));
        self.failed.store(written.is_err(), Relaxed);
        written?;
        tracing::info!("snapshot {number} of rank {}", rank_values.rank());
        Ok(())
    }

    /// Removes files that the last complete set, the one before `number`, replaces.
    fn remove_before(
        &self,
        disk: &dyn Disk,
        directory: &Path,
        rank_values: &RankValues,
        number: u64,
        set: impl Fn(u64) -> SnapshotSet,
    ) {
        let needless = match (number, self.plan.saved) {
            (0, _) | (1, None) => Vec::new(),
            // Files of another job, which may have had more ranks.
            (1, Some(saved)) => {
                let ranks = (rank_values.rank()..saved.ranks).step_by(rank_values.ranks());
                ranks.map(|rank| saved.file(directory, rank)).collect()
            }
            _ => vec![set(number - 2).file(directory, rank_values.rank())],
        };
        for path in needless {
            if let Err(error) = disk.remove(&path) {
                tracing::warn!("cannot remove an old snapshot: {error}");
            }
        }
    }
}

/// Reads the values of a rank from a set.
fn read(
    disk: &dyn Disk,
    directory: &Path,
    format: &CountsFormat,
    set: &SnapshotSet,
    index: &Index,
    rank_values: &mut RankValues,
) -> store::Result<()> {
    // By first position of a run: its rank, and its offset in the file of that rank.
    let mut offsets: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
    let mut positions = Vec::new();
    for (rank, runs) in runs(index, set.ranks, set.processors).into_iter().enumerate() {
        let mut offset = 0;
        for run in runs {
            offsets.insert(run.start, (rank, offset));
            offset += run.end - run.start;
        }
        positions.push(offset);
    }
    let wanted: Vec<Range<u64>> = rank_values.runs().collect();
    let mut rest = rank_values.values_mut();
    let mut by_rank: BTreeMap<usize, Vec<(u64, &mut [i8])>> = BTreeMap::new();
    for run in wanted {
        let to = rest.split_off_mut(..(run.end - run.start) as usize).expect("a rank has values for all its runs");
        let &(rank, offset) = offsets.get(&run.start).expect("units do not depend on the distribution");
        by_rank.entry(rank).or_default().push((offset, to));
    }
    for (rank, runs) in by_rank {
        let file = format.open(disk, &set.file(directory, rank), &shape(positions[rank])?)?;
        let read = |(offset, to): (u64, &mut [i8])| file.read_range(offset..offset + to.len() as u64, to);
        runs.into_par_iter().try_for_each(read)?;
    }
    Ok(())
}

/// Returns the shape for this many positions, at least one.
fn shape(positions: u64) -> store::Result<Shape> {
    let positions = positions.max(1);
    let slab = |first| SlabShape { rows: 1, columns: COLUMNS_MAX.min(positions - first) as u32 };
    Shape::new((0..positions).step_by(COLUMNS_MAX as usize).map(slab).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::MemoryDisk;
    use game::PositionSet;
    use solvers::counting::Distribution;

    const DIRECTORY: &str = "snapshots/counting-9";

    fn plan(since: u64, saved: Option<SnapshotSet>) -> ResumePlan {
        ResumePlan { own: CountingJob { since, process: 7 }, saved }
    }

    /// Returns a value that differs from those of neighbouring positions.
    fn value(position: u64) -> i8 {
        (position % 23) as i8 - 12
    }

    fn rank_values(index: &Index, ranks: usize, rank: usize, processors: usize) -> RankValues {
        let mut rank_values = RankValues::zeroed(index, ranks, rank, Distribution::new(processors)).unwrap();
        let positions: Vec<u64> = rank_values.runs().flatten().collect();
        rank_values.values_mut().iter_mut().zip(positions).for_each(|(to, position)| *to = value(position));
        rank_values
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
    fn any_number_of_ranks_resumes_from_a_set() {
        let index = Index::new(9, PositionSet::REACHABLE);
        let format = CountsFormat::new("awari", &index);
        let directory = Path::new(DIRECTORY);
        for (ranks, processors) in [(1, 1), (3, 2), (5, 1)] {
            let disk = MemoryDisk::new();
            for rank in 0..ranks {
                let series = SnapshotSeries::new(plan(5, None));
                series.save(&disk, directory, &format, &rank_values(&index, ranks, rank, processors)).unwrap();
            }
            let found = ResumePlan::lead(&disk, directory).unwrap();
            let saved = found.saved.unwrap();
            assert_eq!((saved.number, saved.ranks, saved.processors), (0, ranks, processors));
            for (ranks, processors) in [(1, 1), (2, 1), (2, 3), (4, 2)] {
                for rank in 0..ranks {
                    let mut found = RankValues::zeroed(&index, ranks, rank, Distribution::new(processors)).unwrap();
                    let series = SnapshotSeries::new(plan(6, Some(saved)));
                    assert!(series.restore(&disk, directory, &format, &index, &mut found).unwrap());
                    assert!(found.values() == rank_values(&index, ranks, rank, processors).values());
                }
            }
            let mut nothing = RankValues::zeroed(&index, 1, 0, Distribution::new(1)).unwrap();
            assert!(
                !SnapshotSeries::new(plan(6, None)).restore(&disk, directory, &format, &index, &mut nothing).unwrap()
            );
        }
    }

    #[test]
    fn a_complete_set_always_exists() {
        const RANKS: usize = 3;
        let index = Index::new(7, PositionSet::All);
        let format = CountsFormat::new("awari", &index);
        let (disk, directory) = (MemoryDisk::new(), Path::new(DIRECTORY));
        let mut saved = None;
        for since in [5, 6] {
            let series: Vec<SnapshotSeries> = (0..RANKS).map(|_| SnapshotSeries::new(plan(since, saved))).collect();
            for number in 0..4 {
                for (rank, series) in series.iter().enumerate() {
                    series.save(&disk, directory, &format, &rank_values(&index, RANKS, rank, 1)).unwrap();
                    let whole = ResumePlan::lead(&copy(&disk), directory).unwrap().saved;
                    let latest =
                        SnapshotSet { source: CountingJob { since, process: 7 }, number, ranks: RANKS, processors: 1 };
                    let is_done = rank == RANKS - 1;
                    assert_eq!(whole == Some(latest), is_done, "rank {rank}, set {number}");
                    assert!(whole.is_some() || (since, number) == (5, 0), "rank {rank}, set {number}");
                }
                assert!(disk.paths().len() <= 2 * RANKS, "{:?}", names(&disk));
            }
            saved = ResumePlan::lead(&disk, directory).unwrap().saved;
            assert_eq!(disk.paths().len(), RANKS, "only the latest stays");
        }
    }

    /// Files of different jobs are never mixed.
    #[test]
    fn incomplete_sets_are_not_used() {
        let index = Index::new(7, PositionSet::All);
        let format = CountsFormat::new("awari", &index);
        let (disk, directory) = (MemoryDisk::new(), Path::new(DIRECTORY));
        SnapshotSeries::new(plan(5, None)).save(&disk, directory, &format, &rank_values(&index, 2, 0, 1)).unwrap();
        SnapshotSeries::new(plan(6, None)).save(&disk, directory, &format, &rank_values(&index, 2, 1, 1)).unwrap();
        disk.put(&directory.join(".counts-1.tmp-12"), b"half");
        disk.put(&directory.join("fingerprint"), b"of something");
        assert_eq!(ResumePlan::lead(&disk, directory).unwrap().saved, None);
        assert_eq!(names(&disk), ["fingerprint"]);
        // Damaged files and those of another database are not used.
        let other = Index::new(7, PositionSet::REACHABLE);
        for (damaged, index) in [(true, &index), (false, &other)] {
            let set = SnapshotSet { source: CountingJob { since: 5, process: 7 }, number: 0, ranks: 1, processors: 1 };
            SnapshotSeries::new(plan(5, None))
                .save(&disk, directory, &format, &rank_values(&Index::new(7, PositionSet::All), 1, 0, 1))
                .unwrap();
            if damaged {
                let path = set.file(directory, 0);
                let mut bytes = disk.peek(&path).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                disk.put(&path, &bytes);
            }
            let series = SnapshotSeries::new(plan(6, Some(set)));
            let mut found = RankValues::zeroed(index, 2, 0, Distribution::new(1)).unwrap();
            assert!(!series.restore(&disk, directory, &CountsFormat::new("awari", index), index, &mut found).unwrap());
        }
    }

    /// With directories of their own, the same number of ranks resumes if each finds its own file, another if each
    /// finds all.
    #[test]
    fn ranks_agree_on_a_common_set() {
        let index = Index::new(9, PositionSet::All);
        let format = CountsFormat::new("awari", &index);
        let directory = Path::new(DIRECTORY);
        // Ranks that saved, their machines, ranks that resume, and whether they can.
        for (ranks, machines, back, resumes) in
            [(3, 3, 3, true), (3, 1, 3, true), (3, 1, 2, true), (3, 3, 2, false), (3, 2, 3, true), (2, 1, 4, true)]
        {
            for is_newer_torn in [false, true] {
                let disks: Vec<MemoryDisk> = (0..machines).map(|_| MemoryDisk::new()).collect();
                for since in [5, 6] {
                    for rank in 0..ranks - usize::from(is_newer_torn && since == 6) {
                        let rank_values = rank_values(&index, ranks, rank, 1);
                        SnapshotSeries::new(plan(since, None))
                            .save(&disks[rank % machines], directory, &format, &rank_values)
                            .unwrap();
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
                let set = SnapshotSet { source: CountingJob { since, process: 7 }, number: 0, ranks, processors: 1 };
                let expected = plan(9, resumes.then_some(set));
                assert!(settled.iter().all(|plan| *plan == expected), "{settled:?}, {expected:?}");
                let names: Vec<_> = disks.iter().take(back).flat_map(names).collect();
                let others = names.iter().filter(|name| !resumes || !name.starts_with(&format!("counts-{since}-7-0-")));
                assert_eq!(others.count(), 0, "{names:?}");
            }
        }
    }

    #[test]
    fn names_are_decoded() {
        let set = SnapshotSet {
            source: CountingJob { since: 1_700_000_000, process: 41 },
            number: 3,
            ranks: 4,
            processors: 2,
        };
        let file = set.file(Path::new("d"), 1);
        assert_eq!(file, Path::new("d/counts-1700000000-41-3-1-of-4-by-2"));
        assert_eq!(SnapshotSet::of(&file), Some((set, 1)));
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
            assert_eq!(SnapshotSet::of(Path::new(name)), None, "{name}");
        }
    }
}
