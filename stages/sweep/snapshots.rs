//! Snapshots of `sweep`: a file `part-RANK-of-RANKS` for each rank, of any moment.

use super::Sweep;
use crate::distributed::limits::RANKS_MAX;
use crate::files;
use crate::solving::SolveRank;
use pipeline::StageResult as Result;
use solvers::sweep::RankScores;
use solvers::sweep::ranks::ScorePartition;
use std::path::Path;
use store::{Codec, FileKind, Identity, Scores, Shape, SlabShape, Writer};

/// Columns of a row of a snapshot.
const SNAPSHOT_COLUMNS: u32 = 1 << 16;

/// The snapshots of one rank.
pub(super) struct PartSnapshots<'a> {
    rank: &'a SolveRank<'a, Sweep>,
    identity: Identity,
}

impl<'a> PartSnapshots<'a> {
    pub(super) fn new(rank: &'a SolveRank<'a, Sweep>) -> PartSnapshots<'a> {
        let (settings, index) = (rank.member.settings(), &rank.member.index);
        let identity = files::identity(settings.rules.name, settings.set, FileKind::Snapshot, index.stones());
        PartSnapshots { rank, identity }
    }

    /// Reads all scores of this rank that any snapshots in a directory have.
    pub(super) fn restore(&self, directory: &Path, scores: &mut RankScores) -> Result<()> {
        for path in self.rank.member.disk.list(directory)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((rank, ranks)) = numbers(name) else { continue };
            let partition = ScorePartition::new(&self.rank.tables, self.rank.member.index.slabs(), ranks);
            if partition.positions(rank) == 0 {
                continue;
            }
            let read = Scores::open_windowed(self.rank.member.disk, &path)
                .and_then(|file| file.expect(&self.identity, &shape(partition.positions(rank))))
                .and_then(|file| scores.take_over(&partition, rank, |positions, to| file.read_range(positions, to)));
            if let Err(error) = read {
                tracing::warn!("ignoring the rest of a snapshot: {error}");
                files::ignore_snapshot(directory, error)?;
            }
        }
        Ok(())
    }

    /// Writes the scores of this rank.
    pub(super) fn save(&self, directory: &Path, scores: &RankScores) -> store::Result<()> {
        if scores.positions() == 0 {
            return Ok(());
        }
        let path = directory.join(format!("part-{}-of-{}", scores.rank(), scores.partition().ranks()));
        let range = files::range(FileKind::Snapshot, self.rank.member.index.stones());
        let shape = shape(scores.positions());
        let mut writer = Writer::create(self.rank.member.disk, &path, &self.identity, &shape, range, Codec::Packed)?;
        scores.runs().try_for_each(|run| writer.append(run))?;
        writer.finish()?;
        tracing::info!("snapshot of rank {}", scores.rank());
        Ok(())
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
