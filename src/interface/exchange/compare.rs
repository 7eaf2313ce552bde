//! Comparison of a database with a file of scores in lexicographic order.

use crate::error::ExchangeError;
use crate::lexicographic::{Lexicographic, file_of, require_scores};
use disk::{Disk, signed_of};
use game::notation::PositionText;
use game::{Board, Index, Score};
use rayon::prelude::*;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Scores;

/// Scores compared in one parallel unit.
const UNIT_POSITIONS: usize = 1 << 18;

/// The most differences that are listed; all are counted.
const NAMED_MAX: usize = 10;

/// The result of comparing a file with a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoreComparison {
    /// The number of positions compared: all reachable ones.
    pub positions: u64,
    /// The number of positions with different scores.
    pub differing: u64,
    /// The number of bytes of the file that are not a valid score; included in `differing`.
    pub senseless: u64,
    /// The first differences, in the order of the file.
    pub first: Vec<ScoreDifference>,
}

/// A position with different scores in the file and the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreDifference {
    /// The position.
    pub board: Board,
    /// The score in the file.
    pub file: Score,
    /// The score in the database.
    pub database: Score,
}

/// Compares a database with `scores.N` of a directory, entry by entry; of a database of all positions only the
/// reachable ones. Holds at most `memory_bytes` of scores of either side.
///
/// # Errors
/// [`ExchangeError::Missing`] and [`ExchangeError::Length`] before anything is read;
/// [`ExchangeError::Unsupported`] for 48 stones and for a database of pairs; [`ExchangeError::Stopped`] once
/// `stop` is raised; [`ExchangeError::Store`] and [`ExchangeError::Disk`].
///
/// # Panics
/// When the database is not of this index.
pub fn compare(
    disk: &dyn Disk,
    scores: &Scores,
    index: &Index,
    directory: &Path,
    memory_bytes: u64,
    stop: &AtomicBool,
) -> Result<ScoreComparison, ExchangeError> {
    require_scores(scores)?;
    let order = Lexicographic::new(index)?;
    let stones = index.stones();
    let path = directory.join(file_of(stones));
    let expected = order.positions();
    match disk.bytes(&path)? {
        None => return Err(ExchangeError::Missing { path, stones, expected }),
        Some(found) if found != expected => return Err(ExchangeError::Length { path, stones, expected, found }),
        Some(_) => {}
    }
    let file = disk.open(&path)?;
    let mut comparison = ScoreComparison { positions: expected, ..ScoreComparison::default() };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for part in order.parts(memory_bytes) {
        if stop.load(Ordering::Relaxed) {
            return Err(ExchangeError::Stopped);
        }
        let positions = part.positions();
        let count = (positions.end - positions.start) as usize;
        ours.resize(count, 0);
        theirs.resize(count, 0);
        order.fill(scores, &part, &mut ours)?;
        file.read_at(positions.start, &mut theirs)?;
        let theirs = signed_of(&theirs);
        let units = ours.par_chunks(UNIT_POSITIONS).zip(theirs.par_chunks(UNIT_POSITIONS)).enumerate();
        let units: Vec<ScoreComparison> = units
            .map(|(unit, (ours, theirs))| {
                let first = positions.start + (unit * UNIT_POSITIONS) as u64;
                compare_unit(&order, first, ours, theirs, stones as Score)
            })
            .collect();
        for unit in units {
            comparison.differing += unit.differing;
            comparison.senseless += unit.senseless;
            comparison.first.extend(unit.first.into_iter().take(NAMED_MAX - comparison.first.len()));
        }
    }
    Ok(comparison)
}

/// Compares consecutive positions from `first` on.
fn compare_unit(
    order: &Lexicographic<'_>,
    first: u64,
    ours: &[Score],
    theirs: &[Score],
    score_max: Score,
) -> ScoreComparison {
    let mut comparison = ScoreComparison::default();
    if ours == theirs {
        return comparison;
    }
    for (number, (&database, &file)) in (first..).zip(ours.iter().zip(theirs)) {
        if database == file {
            continue;
        }
        comparison.differing += 1;
        comparison.senseless += u64::from(!(-score_max..=score_max).contains(&file));
        if comparison.first.len() < NAMED_MAX {
            comparison.first.push(ScoreDifference { board: order.unrank(number), file, database });
        }
    }
    comparison
}

impl fmt::Display for ScoreDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = PositionText::of_board(self.board);
        write!(f, "position {position}: {} in the file, {} in the database", self.file, self.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::solved;
    use crate::{Format, Options, export};
    use disk::MemoryDisk;
    use game::PositionSet;
    use store::Codec;

    #[test]
    fn an_exported_file_equals_and_changes_are_listed() {
        let stop = AtomicBool::new(false);
        let disk = MemoryDisk::new();
        let (scores, index) = solved(6, PositionSet::All, Codec::Packed);
        let directory = Path::new("out");
        let options = Options { format: Format::Vu, force: false, memory_bytes: 1 << 10, stop: &stop };
        let files = export(&disk, &scores, &index, directory, &options).unwrap();
        assert_eq!((files.len(), files[0].bytes, files[0].is_new), (1, 12_375, true));
        assert!(!export(&disk, &scores, &index, directory, &options).unwrap()[0].is_new);

        let (reachable, reachable_index) = solved(6, PositionSet::REACHABLE, Codec::Zstd);
        let compare = |disk| compare(disk, &reachable, &reachable_index, directory, 1 << 10, &stop);
        let same = ScoreComparison { positions: 12_375, ..ScoreComparison::default() };
        assert_eq!(compare(&disk).unwrap(), same);

        let path = directory.join("scores.6");
        let right = disk.peek(&path).unwrap();
        let mut bytes = right.clone();
        let order = Lexicographic::new(&index).unwrap();
        for (count, number) in (0..12_u64).map(|at| at * 1_000 + 5).enumerate() {
            bytes[number as usize] = if count == 3 { 100 } else { u8::from(right[number as usize] == 0) };
        }
        disk.put(&path, &bytes);
        let found = compare(&disk).unwrap();
        assert_eq!((found.differing, found.senseless, found.first.len()), (12, 1, NAMED_MAX));
        for (difference, number) in found.first.iter().zip((0..).map(|at| at * 1_000 + 5)) {
            assert_eq!(difference.board, order.unrank(number));
            assert_eq!(
                (difference.file, difference.database),
                (bytes[number as usize] as i8, right[number as usize] as i8)
            );
        }

        disk.put(&path, &right[1..]);
        let error = compare(&disk).unwrap_err();
        assert!(matches!(error, ExchangeError::Length { expected: 12_375, found: 12_374, .. }), "{error}");
        disk.remove(&path).unwrap();
        let error = compare(&disk).unwrap_err();
        assert!(matches!(error, ExchangeError::Missing { stones: 6, .. }), "{error}");
        stop.store(true, Ordering::Relaxed);
        disk.put(&path, &right);
        assert!(matches!(super::compare(&disk, &scores, &index, directory, 1, &stop), Err(ExchangeError::Stopped)));
    }
}
