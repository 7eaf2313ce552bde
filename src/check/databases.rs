//! Where checks look scores up: databases of 0 to n stones of one rule set and one position set.
//!
//! A check needs two ways of reading and no more: one score by its position, and a run of consecutive ones. Both are in
//! canonical order (slabs ascending, `OpponentMajor`, row by row). Files have them ([`CachedScores`]), and so does a
//! plain vector, which is how tests bring scores of their own.

use crate::CheckError;
use game::{Board, Index, Orientation, PositionSet, Rules, Score};
use std::path::Path;
use store::{BLOCK_POSITIONS, CachedScores, StoreError};

/// The order in which finished databases hold their positions.
pub(crate) const ORIENTATION: Orientation = Orientation::OpponentMajor;

/// Ascending positions that lie in one such run are read together; a run crosses at most one border of blocks but for
/// the shortest slabs.
const RUN_POSITIONS: u64 = BLOCK_POSITIONS as u64;

/// The scores of one database, in canonical order.
pub trait ScoreSource: Sync {
    /// How many there are.
    fn positions(&self) -> u64;

    /// The score of one position, below [`ScoreSource::positions`].
    fn score(&self, position: u64) -> Result<Score, CheckError>;

    /// The scores of ascending positions. A file that is not read in place decodes each block once.
    fn scores(&self, positions: &[u64], out: &mut [Score]) -> Result<(), CheckError> {
        for (&position, score) in positions.iter().zip(out) {
            *score = self.score(position)?;
        }
        Ok(())
    }

    /// The scores from `first` on, as many as `out` holds; `first + out.len()` does not exceed [`ScoreSource::positions`].
    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError>;

    /// The edition of the file: another one after others have changed it. What is no file does not change.
    fn edition(&self) -> u64 {
        0
    }

    /// The file.
    fn path(&self) -> &Path {
        Path::new("")
    }
}

/// Scores in memory that somebody else holds.
impl ScoreSource for &[Score] {
    fn positions(&self) -> u64 {
        self.len() as u64
    }

    fn score(&self, position: u64) -> Result<Score, CheckError> {
        Ok(self[position as usize])
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError> {
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

    fn score(&self, position: u64) -> Result<Score, CheckError> {
        self.as_slice().score(position)
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError> {
        self.as_slice().read(first, out)
    }
}

/// A file, whatever its codec, with a bounded cache of decoded blocks where its scores cannot be read in place.
impl ScoreSource for CachedScores {
    fn positions(&self) -> u64 {
        self.scores().shape().positions()
    }

    fn score(&self, position: u64) -> Result<Score, CheckError> {
        Ok(self.get(position)?)
    }

    fn scores(&self, positions: &[u64], out: &mut [Score]) -> Result<(), CheckError> {
        if self.scores().is_in_place() {
            for (&position, score) in positions.iter().zip(out) {
                *score = self.get(position)?;
            }
            return Ok(());
        }
        // Going to the cache for each score would cost more than the copy of what lies between them.
        let mut out = out.iter_mut();
        let mut between = Vec::new();
        for in_block in positions.chunk_by(|&a, &b| a / RUN_POSITIONS == b / RUN_POSITIONS) {
            let (first, last) = (in_block[0], in_block[in_block.len() - 1]);
            between.resize((last - first + 1) as usize, 0);
            self.read(first, &mut between)?;
            for (position, score) in in_block.iter().zip(&mut out) {
                *score = between[(position - first) as usize];
            }
        }
        Ok(())
    }

    fn read(&self, first: u64, out: &mut [Score]) -> Result<(), CheckError> {
        Ok(self.read_range(first..first + out.len() as u64, out)?)
    }

    fn edition(&self) -> u64 {
        self.scores().latest_edition()
    }

    fn path(&self) -> &Path {
        self.scores().path()
    }
}

/// Databases that refer to each other: same rules, same position set, at most one a number of stones.
#[derive(Debug)]
pub struct Databases<L> {
    rules: Rules,
    set: PositionSet,
    by_stones: Vec<Option<Database<L>>>,
}

/// One of them, with its index.
#[derive(Debug)]
pub struct Database<L> {
    index: Index,
    scores: L,
}

impl<L: ScoreSource> Databases<L> {
    /// None yet.
    pub fn new(rules: Rules, set: PositionSet) -> Databases<L> {
        Databases { rules, set, by_stones: Vec::new() }
    }

    /// Adds the database with `stones` stones, or replaces it.
    ///
    /// Fails where it does not hold as many scores as there are positions.
    pub fn insert(&mut self, stones: u32, scores: L) -> Result<(), CheckError> {
        let expected = self.set.positions(stones);
        let found = scores.positions();
        if found != expected {
            return Err(CheckError::Size { stones, set: self.set, expected, found });
        }
        let at = stones as usize;
        if self.by_stones.len() <= at {
            self.by_stones.resize_with(at + 1, || None);
        }
        self.by_stones[at] = Some(Database { index: Index::new(stones, self.set), scores });
        Ok(())
    }

    /// The database with `stones` stones.
    pub fn get(&self, stones: u32) -> Result<&Database<L>, CheckError> {
        self.by_stones.get(stones as usize).and_then(Option::as_ref).ok_or(CheckError::Missing { stones })
    }

    /// The editions of all databases, to be compared by [`unchanged`](Self::unchanged) once they were read.
    pub fn editions(&self) -> Vec<u64> {
        let edition =
            |database: &Option<Database<L>>| database.as_ref().map_or(0, |database| database.scores.edition());
        self.by_stones.iter().map(edition).collect()
    }

    /// Whether no database was changed since it had these editions. What was found of one that was, may be wrong.
    ///
    /// # Errors
    /// [`StoreError::Changing`] with the first that was.
    pub fn unchanged(&self, editions: &[u64]) -> Result<(), CheckError> {
        let changed = self.editions().iter().zip(editions).position(|(now, before)| now != before);
        match changed.and_then(|at| self.by_stones[at].as_ref()) {
            Some(database) => Err(StoreError::Changing { path: database.scores.path().to_owned() }.into()),
            None => Ok(()),
        }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The position set.
    pub fn set(&self) -> PositionSet {
        self.set
    }
}

impl<L: ScoreSource> Database<L> {
    /// The index of its positions.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Its scores.
    pub fn scores(&self) -> &L {
        &self.scores
    }

    /// Number of positions.
    pub fn positions(&self) -> u64 {
        self.index.positions()
    }

    /// The position of a board.
    ///
    /// Fails where the position set does not have it: no child of a position may be so.
    pub fn position(&self, board: &Board) -> Result<u64, CheckError> {
        self.index.rank(board, ORIENTATION).ok_or(CheckError::Outside { board: *board, set: self.index.set() })
    }

    /// The board of a position.
    pub fn board(&self, position: u64) -> Board {
        self.index.unrank(position, ORIENTATION)
    }
}
