//! The databases of a directory.

use crate::{Database, Error, Position};
use disk::{Disk, RealDisk};
use game::{Pit, PositionSet};
use oracle::{Library, Oracle};
use std::path::{Path, PathBuf};
use store::Scores;

/// The databases of a run directory, all of one rule set and one position set.
#[derive(Debug)]
pub struct Databases {
    oracle: Oracle,
}

/// A legal move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Move {
    /// The pit sown from, `A` to `F`.
    pub pit: char,
    /// The captured stones.
    pub captured: u8,
    /// The value for the player to move: the captured stones, minus the score of the position after the move.
    pub value: i8,
    /// The position after the move, seen from the opponent, who moves next.
    pub child: Position,
}

/// Memory for decoded blocks of compressed databases.
const CACHE_BYTES_MAX: u64 = 256 << 20;

impl Databases {
    /// Opens the databases of a run directory, its files `databases/NN.awari`, or of that folder itself.
    ///
    /// A damaged file is an error only for the questions that need it.
    ///
    /// # Errors
    /// [`Error::NoDatabases`] if there are none; [`Error::Damaged`] if the files are of several kinds, or are not what
    /// their names say; [`Error::Io`] if the directory cannot be read.
    pub fn open(directory: impl AsRef<Path>) -> Result<Databases, Error> {
        let (disk, directory) = (RealDisk::default(), directory.as_ref());
        let mut paths = database_paths(&disk, &directory.join("databases"))?;
        if paths.is_empty() {
            paths = database_paths(&disk, directory)?;
        }
        if paths.is_empty() {
            return Err(Error::NoDatabases(directory.to_path_buf()));
        }
        let library = Library::new(paths.into_iter().map(|path| (path.clone(), Scores::open(&disk, &path))))?;
        Ok(Databases { oracle: Oracle::new(library, CACHE_BYTES_MAX) })
    }

    /// Returns the stones of the databases, ascending.
    pub fn stones(&self) -> impl Iterator<Item = u32> + '_ {
        self.oracle.stones()
    }

    /// Whether the databases hold only positions whose opponent has an empty pit, which are those that a move can lead
    /// to. [`score`](Self::score) also answers for the others.
    pub fn is_reachable_only(&self) -> bool {
        self.oracle.set() != PositionSet::All
    }

    /// Returns the database of all positions with `stones` stones. By rules where positions have two bounds, it has the lower
    /// ones.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none; [`Error::Damaged`] if its header or block index is damaged.
    pub fn database(&self, stones: u32) -> Result<Database<'_>, Error> {
        let (index, scores) = self.oracle.indexed(stones)?;
        Ok(Database::new(index, scores))
    }

    /// Returns the score of a position. Without a database for its stones, a short search may still decide it.
    ///
    /// # Errors
    /// [`Error::Bounds`] if it has none by the rules; [`Error::Missing`] if the score needs a database that is not there; [`Error::Damaged`] or [`Error::Io`] if one
    /// that it needs is damaged, contradicts the rules, or cannot be read.
    pub fn score(&self, position: &Position) -> Result<i8, Error> {
        let bounds = self.oracle.answer(&position.0)?.score;
        bounds.score().ok_or_else(|| self.no_score(position.stones(), bounds))
    }

    /// Returns the bounds of a position: what the player to move can force, and to what the opponent can hold that player. By
    /// rules where a position has a score, both are the score if it is known.
    ///
    /// # Errors
    /// As [`score`](Self::score).
    pub fn bounds(&self, position: &Position) -> Result<(i8, i8), Error> {
        let bounds = self.oracle.answer(&position.0)?.score;
        Ok((bounds.low(), bounds.high()))
    }

    fn no_score(&self, stones: u32, bounds: oracle::Bounds) -> Error {
        match self.oracle.upper(stones) {
            Some(_) => Error::Bounds { low: bounds.low(), high: bounds.high() },
            None => Error::Missing(stones),
        }
    }

    /// Returns the legal moves, `A` to `F`, with their values. There are none if the player to move cannot move; the
    /// opponent then takes the remaining stones.
    ///
    /// # Errors
    /// As [`score`](Self::score).
    pub fn moves(&self, position: &Position) -> Result<Vec<Move>, Error> {
        let answer = self.oracle.answer(&position.0)?;
        let exact = |value: oracle::ValuedMove| {
            Ok(Move {
                pit: pit_letter(value.pit),
                captured: value.captured,
                value: value.value.score().ok_or_else(|| self.no_score(value.child.stones(), value.value))?,
                child: Position(value.child),
            })
        };
        answer.moves.into_iter().map(exact).collect()
    }

    /// Returns the moves of the highest value, `A` to `F`.
    ///
    /// # Errors
    /// As [`score`](Self::score).
    pub fn best_moves(&self, position: &Position) -> Result<Vec<Move>, Error> {
        let mut moves = self.moves(position)?;
        let best = moves.iter().map(|played| played.value).max();
        moves.retain(|played| Some(played.value) == best);
        Ok(moves)
    }
}

/// Returns the files of a folder that are named as databases are.
fn database_paths(disk: &RealDisk, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = disk.list(folder).map_err(|error| Error::Io(error.to_string()))?;
    paths.retain(|path| Library::stones_of(path).is_some());
    Ok(paths)
}

fn pit_letter(pit: Pit) -> char {
    (b'A' + pit.number() as u8) as char
}
