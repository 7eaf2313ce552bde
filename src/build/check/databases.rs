//! The databases that checks read: 0 to n stones of one rule set and one position set.
//!
//! A check reads single scores and runs of consecutive scores, both in canonical order (slabs ascending,
//! `OpponentMajor`, row by row). Files ([`CachedScores`]) and vectors, which tests use, are sources of scores.

use crate::error::{CheckError, Result};
use game::{Board, Index, Orientation, PositionSet, Rules, Score};
use std::path::Path;
use std::sync::Arc;
use store::{CachedScores, StoreError};

/// The orientation of finished databases.
pub(crate) const ORIENTATION: Orientation = Orientation::OpponentMajor;

/// The scores of one database, in canonical order.
pub trait ScoreSource: Sync {
    /// Returns the number of scores.
    fn positions(&self) -> u64;

    /// Returns the score of one position, below [`ScoreSource::positions`].
    fn score(&self, position: u64) -> Result<Score>;

    /// Reads the scores of ascending positions. A file that is not read in place decodes each block once.
    fn scores(&self, positions: &[u64], out: &mut [Score]) -> Result<()> {
        for (&position, score) in positions.iter().zip(out) {
            *score = self.score(position)?;
        }
        Ok(())
    }

    /// Reads the scores from `first` on, as many as `out` holds; `first + out.len()` does not exceed
    /// [`ScoreSource::positions`].
    fn read(&self, first: u64, out: &mut [Score]) -> Result<()>;

    /// Returns the edition of the file, which changes when another process changes the file.
    fn edition(&self) -> u64 {
        0
    }

    /// Returns the path of the file.
    fn path(&self) -> &Path {
        Path::new("")
    }
}

/// Sources of any kind. Checks work on these: a check that is generic over its sources would be compiled in
/// the crate that calls it, with the optimisation of that crate.
pub(crate) type AnyScores<'a> = &'a dyn ScoreSource;

impl ScoreSource for AnyScores<'_> {
    fn positions(&self) -> u64 {
        (**self).positions()
    }

    fn score(&self, position: u64) -> Result<Score> {
        (**self).score(position)
    }

    fn scores(&self, positions: &[u64], out: &mut [Score]) -> Result<()> {
        (**self).scores(positions, out)
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<()> {
        (**self).read(first, out)
    }

    fn edition(&self) -> u64 {
        (**self).edition()
    }

    fn path(&self) -> &Path {
        (**self).path()
    }
}

/// Borrowed scores in memory.
impl ScoreSource for &[Score] {
    fn positions(&self) -> u64 {
        self.len() as u64
    }

    fn score(&self, position: u64) -> Result<Score> {
        Ok(self[position as usize])
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<()> {
        let first = first as usize;
        out.copy_from_slice(&self[first..first + out.len()]);
        Ok(())
    }
}

/// Scores in memory.
impl ScoreSource for Vec<Score> {
    fn positions(&self) -> u64 {
        self.as_slice().positions()
    }

    fn score(&self, position: u64) -> Result<Score> {
        self.as_slice().score(position)
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<()> {
        self.as_slice().read(first, out)
    }
}

/// A file of any codec, with a bounded cache of decoded blocks if its scores cannot be read in place.
impl ScoreSource for CachedScores {
    fn positions(&self) -> u64 {
        CachedScores::positions(self)
    }

    fn score(&self, position: u64) -> Result<Score> {
        Ok(self.get(position)?)
    }

    fn scores(&self, positions: &[u64], out: &mut [Score]) -> Result<()> {
        if self.scores().is_in_place() {
            for (&position, score) in positions.iter().zip(out) {
                *score = self.get(position)?;
            }
            return Ok(());
        }
        Ok(self.gather(positions, out)?)
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<()> {
        Ok(self.read_range(first..first + out.len() as u64, out)?)
    }

    fn edition(&self) -> u64 {
        self.scores().latest_edition()
    }

    fn path(&self) -> &Path {
        self.scores().path()
    }
}

/// Databases of the same rules and position set, at most one for each number of stones.
#[derive(Debug)]
pub struct Databases<L> {
    rules: Rules,
    set: PositionSet,
    by_stones: Vec<Option<Database<L>>>,
}

/// A database with its index.
#[derive(Debug)]
pub struct Database<L> {
    index: Arc<Index>,
    scores: L,
}

impl<L: ScoreSource> Databases<L> {
    /// Makes an empty set of databases.
    pub fn new(rules: Rules, set: PositionSet) -> Databases<L> {
        Databases { rules, set, by_stones: Vec::new() }
    }

    /// Adds or replaces the database with `stones` stones.
    pub fn insert(&mut self, stones: u32, scores: L) -> Result<()> {
        let expected = self.set.positions(stones);
        let found = scores.positions();
        if found != expected {
            return Err(CheckError::Size { stones, set: self.set, expected, found });
        }
        let at = stones as usize;
        if self.by_stones.len() <= at {
            self.by_stones.resize_with(at + 1, || None);
        }
        self.by_stones[at] = Some(Database { index: Arc::new(Index::new(stones, self.set)), scores });
        Ok(())
    }

    /// Returns the database with `stones` stones.
    pub fn get(&self, stones: u32) -> Result<&Database<L>> {
        self.by_stones.get(stones as usize).and_then(Option::as_ref).ok_or(CheckError::Missing { stones })
    }

    /// Returns the same databases, whatever their sources.
    pub(crate) fn of_any(&self) -> Databases<AnyScores<'_>> {
        let by_stones = self.by_stones.iter().map(|database| database.as_ref().map(Database::of_any)).collect();
        Databases { rules: self.rules, set: self.set, by_stones }
    }

    /// Returns the editions of all databases, for [`unchanged`](Self::unchanged).
    pub fn editions(&self) -> Vec<u64> {
        let edition =
            |database: &Option<Database<L>>| database.as_ref().map_or(0, |database| database.scores.edition());
        self.by_stones.iter().map(edition).collect()
    }

    /// Checks that no database has changed since it had these editions.
    ///
    /// # Errors
    /// [`StoreError::Changing`] with the first changed database, about which findings may be wrong.
    pub fn unchanged(&self, editions: &[u64]) -> Result<()> {
        let changed = self.editions().iter().zip(editions).position(|(now, before)| now != before);
        match changed.and_then(|at| self.by_stones[at].as_ref()) {
            Some(database) => Err(StoreError::Changing { path: database.scores.path().to_owned() }.into()),
            None => Ok(()),
        }
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the position set.
    pub fn set(&self) -> PositionSet {
        self.set
    }
}

impl<L: ScoreSource> Database<L> {
    /// Returns the same database, whatever its source.
    pub(crate) fn of_any(&self) -> Database<AnyScores<'_>> {
        Database { index: Arc::clone(&self.index), scores: &self.scores }
    }

    /// Returns the index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the scores.
    pub fn scores(&self) -> &L {
        &self.scores
    }

    /// Returns the number of positions.
    pub fn positions(&self) -> u64 {
        self.index.positions()
    }

    /// Returns the position of a board.
    ///
    /// # Errors
    /// [`CheckError::Outside`] if the board is not in the position set, which no child of a position may be.
    pub fn position(&self, board: &Board) -> Result<u64> {
        self.index.rank(board, ORIENTATION).ok_or(CheckError::Outside { board: *board, set: self.index.set() })
    }

    /// Returns the board of a position.
    pub fn board(&self, position: u64) -> Board {
        self.index.unrank(position, ORIENTATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The score of the empty board, in a file whose edition is set by the test.
    struct ChangingFile<'a>(&'a AtomicU64);

    impl ScoreSource for ChangingFile<'_> {
        fn positions(&self) -> u64 {
            1
        }

        fn score(&self, _: u64) -> Result<Score> {
            Ok(0)
        }

        fn read(&self, _: u64, out: &mut [Score]) -> Result<()> {
            out.fill(0);
            Ok(())
        }

        fn edition(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn path(&self) -> &Path {
            Path::new("00.awari")
        }
    }

    #[test]
    fn a_change_of_a_file_is_reported() {
        let edition = AtomicU64::new(3);
        let mut databases = Databases::new(Rules::AWARI, PositionSet::All);
        databases.insert(0, ChangingFile(&edition)).unwrap();
        let editions = databases.editions();
        assert_eq!(editions, [3]);
        databases.unchanged(&editions).unwrap();
        edition.store(4, Ordering::Relaxed);
        let error = databases.unchanged(&editions).unwrap_err();
        assert!(error.to_string().contains("00.awari"), "{error}");
    }
}
