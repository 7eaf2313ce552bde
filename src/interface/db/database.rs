//! One database: the scores, or the bounds, of all positions with some number of stones.

use crate::error::Error;
use crate::position::Position;
use game::{Index, Orientation, Rules};
use std::ops::Range;
use store::{CachedScores, MappedScores};

/// The scores of all positions with one number of stones, in canonical order; by rules without scores their bounds.
///
/// The order is that of the file: slabs ascending by the stones of the player to move; in a slab a row for each
/// opponent's half, and in a row a column for each mover's half.
#[derive(Clone, Copy, Debug)]
pub struct Database<'a> {
    rules: &'a Rules,
    index: &'a Index,
    /// Scores, or lower bounds.
    low: &'a CachedScores,
    /// The upper bounds, if positions have no scores.
    high: Option<&'a CachedScores>,
}

/// The positions in which the player to move has some number of stones: a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slab {
    /// The stones of the player to move.
    pub mover_stones: u32,
    /// The rows: the halves of the opponent.
    pub rows: u32,
    /// The columns: the halves of the player to move.
    pub columns: u32,
    /// The number of its first position.
    pub first: u64,
}

/// Reads of more scores than this decode on all threads; reads of fewer keep decoded blocks in a cache.
const CACHED_SCORES_MAX: u64 = 1 << 20;

impl<'a> Database<'a> {
    pub(crate) fn new(
        rules: &'a Rules,
        index: &'a Index,
        low: &'a CachedScores,
        high: Option<&'a CachedScores>,
    ) -> Database<'a> {
        Database { rules, index, low, high }
    }

    /// Returns the number of stones on the board.
    pub fn stones(&self) -> u32 {
        self.index.stones()
    }

    /// Returns the number of positions.
    pub fn positions(&self) -> u64 {
        self.low.positions()
    }

    /// Returns the slabs, in the order of their positions. The last one of the database of all stones of the
    /// game has the opening position alone, if positions without an empty pit of the opponent are left out
    /// otherwise.
    pub fn slabs(&self) -> impl Iterator<Item = Slab> + 'a {
        let slabs = self.index.slabs().iter().map(|slab| Slab {
            mover_stones: slab.mover_stones,
            rows: slab.opponent_halves,
            columns: slab.mover_halves,
            first: slab.offset,
        });
        let first = self.index.slab_positions();
        let opening = self.index.opening();
        let opening = opening.map(|opening| Slab { mover_stones: opening.stones() / 2, rows: 1, columns: 1, first });
        slabs.chain(opening)
    }

    /// Returns the number of a position in canonical order.
    ///
    /// # Errors
    /// [`Error::Position`] if it has another number of stones; [`Error::NotContained`] if the database does not contain
    /// it.
    pub fn number(&self, position: &Position) -> Result<u64, Error> {
        if position.stones() != self.stones() {
            return Err(Error::Position(format!("expected {} stones, found {}", self.stones(), position.stones())));
        }
        let number = self.index.rank(&position.0, Orientation::OpponentMajor);
        number.ok_or_else(|| Error::NotContained(position.to_string()))
    }

    /// Returns the position of a number.
    ///
    /// # Panics
    /// If `number` is not below [`positions`](Self::positions).
    pub fn position(&self, number: u64) -> Position {
        assert!(number < self.positions(), "position {number} of {}", self.positions());
        Position(self.index.unrank(number, Orientation::OpponentMajor))
    }

    /// Reads the scores of consecutive positions, with the feature `threads` many on all threads.
    ///
    /// # Errors
    /// [`Error::NoScores`] if positions have two bounds by the rules; [`Error::Damaged`] if a block is damaged,
    /// [`Error::Io`] if it cannot be read; `scores` then holds anything.
    ///
    /// # Panics
    /// If `positions` exceeds [`positions`](Self::positions), or `scores` has another length.
    pub fn read(&self, positions: Range<u64>, scores: &mut [i8]) -> Result<(), Error> {
        self.require_scores()?;
        read_section(self.low, positions, scores)
    }

    /// Reads the bounds of consecutive positions, with the feature `threads` many on all threads: what the
    /// player to move can force, and to what the opponent can hold that player. By rules where positions have
    /// scores, both are the score.
    ///
    /// ```
    /// use awari_db::Databases;
    ///
    /// # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/example");
    /// let databases = Databases::open(directory)?;
    /// let database = databases.database(4)?;
    /// let positions = database.positions();
    /// let (mut low, mut high) = (vec![0; positions as usize], vec![0; positions as usize]);
    /// database.read_bounds(0..positions, &mut low, &mut high)?;
    /// let exact = low.iter().zip(&high).filter(|(low, high)| low == high).count();
    /// assert_eq!(exact == low.len(), databases.has_scores());
    /// # Ok::<(), awari_db::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`] if a block is damaged, or a lower bound exceeds the upper one; [`Error::Io`] if a
    /// block cannot be read; the slices then hold anything.
    ///
    /// # Panics
    /// If `positions` exceeds [`positions`](Self::positions), or a slice has another length.
    pub fn read_bounds(&self, positions: Range<u64>, low: &mut [i8], high: &mut [i8]) -> Result<(), Error> {
        let first = positions.start;
        read_section(self.low, positions.clone(), low)?;
        let Some(section) = self.high else {
            high.copy_from_slice(low);
            return Ok(());
        };
        read_section(section, positions, high)?;
        Ok(section.scores().check_bounds(first, low, high)?)
    }

    /// Returns the scores of all positions without a copy, if the codec of the database is `raw`; otherwise `None`. The
    /// first call reads the whole file and compares its checksums.
    ///
    /// ```
    /// use awari_db::Databases;
    ///
    /// # let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/example");
    /// let databases = Databases::open(directory)?;
    /// let database = databases.database(4)?;
    /// let positions = database.positions() as usize;
    /// let won = match database.mapped()? {
    ///     Some(scores) => scores.iter().filter(|&&score| score > 0).count(),
    ///     None => {
    ///         let mut scores = vec![0; positions];
    ///         database.read(0..database.positions(), &mut scores)?;
    ///         scores.iter().filter(|&&score| score > 0).count()
    ///     }
    /// };
    /// assert!(won < positions);
    /// # Ok::<(), awari_db::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn mapped(&self) -> Result<Option<MappedScores>, Error> {
        self.require_scores()?;
        Ok(self.low.scores().mapped()?)
    }

    fn require_scores(&self) -> Result<(), Error> {
        match self.high {
            None => Ok(()),
            Some(_) => Err(Error::NoScores(self.rules.name)),
        }
    }
}

/// Reads consecutive values of a file, or of one section of a file of pairs.
fn read_section(section: &CachedScores, positions: Range<u64>, values: &mut [i8]) -> Result<(), Error> {
    let count = section.positions();
    assert!(positions.end <= count, "positions {} to {} of {count}", positions.start, positions.end);
    if positions.end.saturating_sub(positions.start) > CACHED_SCORES_MAX {
        let first = section.first();
        return Ok(section.scores().read_range(first + positions.start..first + positions.end, values)?);
    }
    Ok(section.read_range(positions, values)?)
}
