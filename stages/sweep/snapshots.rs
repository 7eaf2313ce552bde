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

/// Reads all scores of a rank that any snapshots in a directory have.
pub(super) fn restore(rank: &SolveRank<Sweep>, directory: &Path, scores: &mut RankScores) -> Result<()> {
    let (disk, identity) = (rank.member.disk, identity_of(rank));
    for path in disk.list(directory)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((number, ranks)) = numbers(name) else { continue };
        let partition = ScorePartition::new(&rank.tables, rank.member.index.slabs(), ranks);
        if partition.positions(number) == 0 {
            continue;
        }
        let read = Scores::open_windowed(disk, &path)
            .and_then(|file| file.expect(&identity, &shape(partition.positions(number))))
            .and_then(|file| scores.take_over(&partition, number, |positions, to| file.read_range(positions, to)));
        if let Err(error) = read {
            tracing::warn!("ignoring the rest of a snapshot: {error}");
            files::ignore_snapshot(directory, error)?;
        }
    }
    Ok(())
}

/// Writes the scores of a rank.
pub(super) fn save(rank: &SolveRank<Sweep>, directory: &Path, scores: &RankScores) -> store::Result<()> {
    if scores.positions() == 0 {
        return Ok(());
    }
    let path = directory.join(format!("part-{}-of-{}", scores.rank(), scores.partition().ranks()));
    let range = files::range(FileKind::Snapshot, rank.member.index.stones());
    let (identity, shape) = (identity_of(rank), shape(scores.positions()));
    let mut writer = Writer::create(rank.member.disk, &path, &identity, &shape, range, Codec::Packed)?;
    scores.runs().try_for_each(|run| writer.append(run))?;
    writer.finish()?;
    tracing::info!("snapshot of rank {}", scores.rank());
    Ok(())
}

fn identity_of(rank: &SolveRank<Sweep>) -> Identity {
    let settings = rank.member.settings();
    files::identity(settings.rules.name, settings.set, FileKind::Snapshot, rank.member.index.stones())
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
