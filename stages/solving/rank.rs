//! One rank of the team that solves a database: its inputs, its snapshots, and its part of the file.

use super::counting_snapshots::SnapshotSeries;
use super::task::{SolveTask, SolvingMethod};
use crate::build_context::BuildContext;
use crate::distributed::limits::RANKS_MAX;
use crate::distributed::{LocalScratch, RankResult};
use crate::files::{self, CountsFormat};
use crate::solver::{DatabaseOutput, DatabaseWriter, read_captures};
use crate::team::TeamMember;
use disk::Digest;
use messaging::Communicator;
use pipeline::StageResult as Result;
use pipeline::{Snapshots, StageContext, StageError};
use rayon::prelude::*;
use solvers::counting::ranks::processors_a_rank;
use solvers::counting::{Distribution, RankValues};
use solvers::ranks::{ScoreShare, collect};
use solvers::sweep::RankScores;
use solvers::sweep::ranks::ScorePartition;
use solvers::{Bytes, ScoreRows, Tables};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Codec, FileKind, Identity, Scores, Shape, SlabShape, StoreError, Writer};

/// Columns of a row of a snapshot.
const SNAPSHOT_COLUMNS: u32 = 1 << 16;

/// One rank: its task, its inputs, and where it saves snapshots.
pub(super) struct SolveRank<'a> {
    pub(super) member: &'a TeamMember<'a, SolveTask>,
    pub(super) tables: Arc<Tables>,
    /// The context of the stage, alone or on rank 0.
    pub(super) leader: Option<&'a StageContext<'a>>,
    /// Directory of snapshots; `None` if solving again is faster than saving.
    snapshots: Option<PathBuf>,
    /// Snapshots of counting.
    series: Option<SnapshotSeries>,
    /// Rank-local scratch directory, and its snapshots.
    scratch: Option<(PathBuf, Snapshots<'a>)>,
}

/// The best captures of a rank, and their digest in the file.
pub(super) struct RankCaptures {
    pub(super) values: Bytes,
    pub(super) digest: Digest,
}

impl<'a> SolveRank<'a> {
    pub(super) fn new(
        member: &'a TeamMember<'a, SolveTask>,
        leader: Option<&'a StageContext<'a>>,
        communicator: &mut dyn Communicator,
    ) -> RankResult<SolveRank<'a>> {
        let (settings, disk, task) = (member.settings(), member.disk, member.task);
        let SolveTask { by, stones, ref snapshots, counts, ref scratch, .. } = *task;
        let claim = |scratch: &LocalScratch| scratch.claim(settings, disk, stones, communicator);
        let scratch = scratch.as_ref().map(claim).transpose()?;
        let directory = scratch.as_ref().map(|(directory, _)| directory.clone());
        let snapshots = snapshots.as_ref().map(|shared| directory.unwrap_or_else(|| shared.clone()));
        let counts = match (counts, &snapshots, &scratch, by) {
            (Some(plan), Some(directory), Some(_), SolvingMethod::Counting { processors }) => {
                let processors = processors_a_rank(&member.index, communicator.size(), processors);
                Some(plan.settle(disk, directory, processors, communicator)?)
            }
            _ => counts,
        };
        let (tables, series) = (member.build.tables(), counts.map(SnapshotSeries::new));
        Ok(SolveRank { member, tables, leader, snapshots, series, scratch })
    }

    /// Returns build and context if this machine is alone: then the stage cache has captures and arrays.
    pub(super) fn alone(&self) -> Option<(&'a BuildContext, &'a StageContext<'a>)> {
        let build = self.member.build;
        self.leader.filter(|_| build.job().is_none()).map(|context| (build, context))
    }

    /// Removes the files in the rank-local directory, once the database is published.
    pub(super) fn remove_local_snapshots(&self) {
        if let Some((_, snapshots)) = &self.scratch
            && let Err(error) = snapshots.remove()
        {
            tracing::warn!("cannot remove old snapshots: {error}");
        }
    }

    /// Begins to write the database with the other ranks.
    fn writer(&self, communicator: &mut dyn Communicator) -> RankResult<DatabaseWriter<'a>> {
        let TeamMember { disk, ref index, task, .. } = *self.member;
        let scratch = self.scratch.as_ref().map(|(directory, _)| &**directory);
        let SolveTask { ref database, opening_capture, .. } = *task;
        let settings = self.member.settings();
        let progress = self.leader.map(|context| context.progress());
        let output = DatabaseOutput { settings, disk, index, path: database, scratch, opening_capture, progress };
        DatabaseWriter::begin(&output, communicator)
    }

    /// Writes the database of a machine alone, whose rows are in the order of the file, and returns the digest.
    pub(super) fn write_rows(&self, rows: &ScoreRows, communicator: &mut dyn Communicator) -> RankResult<Digest> {
        let mut writer = self.writer(communicator)?;
        let appended = rows.runs().try_for_each(|run| writer.append(run));
        Ok(writer.finish_with(appended, communicator)?.expect("rank 0 has the digest"))
    }

    /// Writes the database with the other ranks.
    pub(super) fn write(&self, part: &dyn ScoreShare, communicator: &mut dyn Communicator) -> RankResult<()> {
        let mut writer = self.writer(communicator)?;
        let (ranges, mut appended) = (writer.positions_of_all(), Ok(()));
        let mut append = |scores: &[i8]| {
            appended = writer.append(scores);
            if appended.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        if !collect(part, &ranges, communicator, &mut append)? && appended.is_ok() {
            // The rank that stopped the collection reports the error.
            appended = Err(StageError::Stopped);
        }
        writer.finish_with(appended, communicator).map(drop)
    }

    /// Returns the counts of this rank, its captures, and whether the counts come from a snapshot.
    pub(super) fn values(
        &self,
        processors: usize,
        communicator: &dyn Communicator,
    ) -> Result<(RankValues, Bytes, bool)> {
        let TeamMember { disk, ref index, .. } = *self.member;
        let distribution = Distribution::new(processors);
        let values = RankValues::zeroed(index, communicator.size(), communicator.rank(), distribution);
        let mut values = values.map_err(StageError::failed)?;
        let resumed = match (&self.series, &self.snapshots) {
            (Some(series), Some(directory)) => {
                series.restore(disk, directory, &self.counts_format(), index, &mut values)?
            }
            _ => false,
        };
        if let Some((build, context)) = self.alone() {
            let (captures, _) = read_captures(build, index, context)?;
            return Ok((values, captures, resumed));
        }
        let mut captures = Bytes::zeroed(values.values().len()).map_err(StageError::failed)?;
        let file = self.captures()?;
        let mut rest = &mut captures[..];
        let run = |positions: Range<u64>| {
            let length = (positions.end - positions.start) as usize;
            (positions, rest.split_off_mut(..length).expect("there is room for the captures of all runs"))
        };
        let runs: Vec<_> = values.runs().map(run).collect();
        let read = runs.into_par_iter().try_for_each(|(positions, to)| file.read_range(positions, to));
        read.map_err(|error| files::unreadable(&files::capture(index.stones()), error))?;
        Ok((values, captures, resumed))
    }

    /// Returns the scores of this rank, from a snapshot or all zeros, and its captures.
    pub(super) fn scores(&self, communicator: &dyn Communicator) -> Result<(RankScores, RankCaptures)> {
        let index = &self.member.index;
        if let Some((build, context)) = self.alone() {
            let (captures, digest) = read_captures(build, index, context)?;
            let rows = build.stage_cache().rows(build.plans(), index)?;
            let mut scores = RankScores::alone(&self.tables, index, rows);
            if context.snapshots().saved().is_some() {
                self.restore(&mut scores)?;
            }
            return Ok((scores, RankCaptures { values: captures, digest }));
        }
        let partition = Arc::new(ScorePartition::new(&self.tables, index.slabs(), communicator.size()));
        let scores = RankScores::zeroed(&self.tables, partition, communicator.rank());
        let mut scores = scores.map_err(StageError::failed)?;
        self.restore(&mut scores)?;
        let file = self.captures()?;
        let read = |positions, to: &mut [i8]| file.read_range(positions, to).map_err(Unprepared::Captures);
        match scores.captures(read) {
            Ok(values) => Ok((scores, RankCaptures { values, digest: file.digest() })),
            Err(Unprepared::Memory(error)) => Err(StageError::failed(error)),
            Err(Unprepared::Captures(error)) => Err(files::unreadable(&files::capture(index.stones()), error)),
        }
    }

    /// Opens the file of captures.
    fn captures(&self) -> Result<Scores> {
        let TeamMember { disk, ref index, task, .. } = *self.member;
        let file = files::open_windowed(disk, &task.captures, self.member.settings(), FileKind::Capture, index);
        file.map_err(|error| files::unreadable(&files::capture(index.stones()), error))
    }

    /// Whether the stage saves snapshots.
    pub(super) fn has_snapshots(&self) -> bool {
        self.snapshots.is_some()
    }

    /// Saves the values of this rank.
    pub(super) fn save(&self, part: &impl Checkpoint) -> Result<()> {
        let Some(directory) = &self.snapshots else { return Ok(()) };
        if let Some((_, context)) = self.alone() {
            context.snapshots().prepare()?;
        }
        part.save(self, directory).map_err(files::unwritable)
    }

    /// Reads all scores of this rank that any snapshots have.
    fn restore(&self, scores: &mut RankScores) -> Result<()> {
        let (disk, Some(directory)) = (self.member.disk, &self.snapshots) else { return Ok(()) };
        for path in disk.list(directory)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((rank, ranks)) = numbers(name) else { continue };
            let partition = ScorePartition::new(&self.tables, self.member.index.slabs(), ranks);
            if partition.positions(rank) == 0 {
                continue;
            }
            let (identity, shape) = (self.identity(), shape(partition.positions(rank)));
            let read = Scores::open_windowed(disk, &path)
                .and_then(|file| file.expect(&identity, &shape))
                .and_then(|file| scores.take_over(&partition, rank, |positions, to| file.read_range(positions, to)));
            if let Err(error) = read {
                tracing::warn!("ignoring the rest of a snapshot: {error}");
                files::ignore_snapshot(directory, error)?;
            }
        }
        Ok(())
    }

    fn identity(&self) -> Identity {
        let settings = self.member.settings();
        files::identity(settings.rules.name, settings.set, FileKind::Snapshot, self.member.index.stones())
    }

    /// Returns the format of snapshots of counting.
    fn counts_format(&self) -> CountsFormat {
        CountsFormat::new(self.member.settings().rules.name, &self.member.index)
    }
}

/// Values of a rank that a snapshot saves.
pub(super) trait Checkpoint {
    fn save(&self, rank: &SolveRank, directory: &Path) -> store::Result<()>;
}

impl Checkpoint for RankScores {
    fn save(&self, rank: &SolveRank, directory: &Path) -> store::Result<()> {
        if self.positions() == 0 {
            return Ok(());
        }
        let path = directory.join(format!("part-{}-of-{}", self.rank(), self.partition().ranks()));
        let (identity, shape) = (rank.identity(), shape(self.positions()));
        let range = files::range(FileKind::Snapshot, rank.member.index.stones());
        let mut writer = Writer::create(rank.member.disk, &path, &identity, &shape, range, Codec::Packed)?;
        self.runs().try_for_each(|run| writer.append(run))?;
        writer.finish()?;
        tracing::info!("snapshot of rank {}", self.rank());
        Ok(())
    }
}

impl Checkpoint for RankValues {
    /// All ranks save between the same two supersteps.
    fn save(&self, rank: &SolveRank, directory: &Path) -> store::Result<()> {
        let Some(series) = &rank.series else { return Ok(()) };
        series.save(rank.member.disk, directory, &rank.counts_format(), self)
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
