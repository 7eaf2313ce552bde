//! The databases of a directory.

use crate::database::Database;
use crate::error::Error;
use crate::position::{Position, pit_letter};
use crate::storage::{Storage, StoredInput, unreadable};
use disk::{Disk, RealDisk};
use game::{PositionSet, Rules};
use oracle::{Answer, AnswerSource, Bounds, Library, Oracle, ValuedMove};
use std::path::{Path, PathBuf};
use store::Scores;

/// The databases of a run directory, all of one rule set and one position set.
#[derive(Debug)]
pub struct Databases {
    oracle: Oracle,
    /// The directory that was opened; none of a [`Storage`].
    #[cfg(feature = "engine")]
    directory: Option<PathBuf>,
}

/// A legal move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Move {
    /// The pit sown from, `A` to `F`.
    pub pit: char,
    /// The captured stones.
    pub captured: u8,
    /// The value for the player to move: the captured stones, minus the score of the position after the move,
    /// or minus its upper and its lower bound.
    pub value: Bounds,
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
    /// [`Error::NoDatabases`] if there are none; [`Error::Mixed`] if they are of different rules, position
    /// sets or games, or not what their names say; [`Error::Unknown`] if their rules are; [`Error::Io`] if
    /// the directory cannot be read.
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
        Ok(Databases {
            oracle: Oracle::new(library, CACHE_BYTES_MAX),
            #[cfg(feature = "engine")]
            directory: Some(directory.to_path_buf()),
        })
    }

    /// Opens the databases of a storage, which may be anything that has files with names. Blocks are read as
    /// questions need them, and kept decoded in a cache of 256 MiB.
    ///
    /// ```
    /// use awari_db::{Databases, Storage};
    /// use std::collections::HashMap;
    /// use std::io;
    /// use std::path::{Path, PathBuf};
    ///
    /// struct Memory(HashMap<PathBuf, &'static [u8]>);
    ///
    /// impl Storage for Memory {
    ///     type File = &'static [u8];
    ///
    ///     fn files(&self) -> io::Result<Vec<PathBuf>> {
    ///         Ok(self.0.keys().cloned().collect())
    ///     }
    ///
    ///     fn open(&self, name: &Path) -> io::Result<&'static [u8]> {
    ///         self.0.get(name).copied().ok_or(io::ErrorKind::NotFound.into())
    ///     }
    /// }
    ///
    /// let file: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/example/databases/04.awari"));
    /// let databases = Databases::open_in(&Memory(HashMap::from([("04.awari".into(), file)])))?;
    /// assert_eq!(databases.stones().collect::<Vec<_>>(), [4]);
    /// assert_eq!(databases.score(&"1 0 0 0 0 0 1 1 1 0 0 0".parse()?)?, -4);
    /// # Ok::<(), awari_db::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in<S: Storage>(storage: &S) -> Result<Databases, Error> {
        let mut names = storage.files().map_err(|error| Error::from(&unreadable(Path::new("the storage"), error)))?;
        names.retain(|name| Library::stones_of(name).is_some());
        if names.is_empty() {
            return Err(Error::NoDatabases("the storage".into()));
        }
        names.sort_unstable();
        let open = |name: PathBuf| {
            let opened = match storage.open(&name) {
                Ok(file) => Scores::open_input(&name, Box::new(StoredInput { name: name.clone(), file })),
                Err(error) => Err(unreadable(&name, error).into()),
            };
            (name, opened)
        };
        let library = Library::new(names.into_iter().map(open))?;
        Ok(Databases {
            oracle: Oracle::new(library, CACHE_BYTES_MAX),
            #[cfg(feature = "engine")]
            directory: None,
        })
    }

    #[cfg(feature = "engine")]
    pub(crate) fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// Returns the directory that was opened.
    #[cfg(feature = "engine")]
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the stones of the databases, ascending.
    pub fn stones(&self) -> impl Iterator<Item = u32> + '_ {
        self.oracle.stones()
    }

    /// Returns the name of the rules, as in manifests: `awari`, `oware` and so on.
    pub fn rules(&self) -> &'static str {
        self.oracle.rules().name
    }

    /// Returns the rules, for the moves of a [`Position`].
    pub fn rule_set(&self) -> &Rules {
        self.oracle.rules()
    }

    /// Whether positions have scores by the rules. By others, those of oware, a position has two bounds, of
    /// which a score is known only where they are equal.
    pub fn has_scores(&self) -> bool {
        self.oracle.rules().has_scores()
    }

    /// Whether the databases hold only positions whose opponent has an empty pit, which are those that a move can lead
    /// to. [`score`](Self::score) also answers for the others.
    pub fn is_reachable_only(&self) -> bool {
        self.oracle.set() != PositionSet::All
    }

    /// Returns the database of all positions with `stones` stones.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none; [`Error::Damaged`] if its header or block index is damaged.
    pub fn database(&self, stones: u32) -> Result<Database<'_>, Error> {
        let (index, low) = self.oracle.indexed(stones)?;
        Ok(Database::new(self.oracle.rules(), index, low, self.oracle.upper(stones)))
    }

    /// Returns the score of a position. Without a database for its stones, its moves may still decide
    /// it, or with the feature `engine` a short search.
    ///
    /// # Errors
    /// [`Error::Bounds`] if by the rules it has two bounds, and they differ; [`Error::Missing`] if the score
    /// needs a database that is not there; [`Error::Damaged`] or [`Error::Io`] if one that it needs is
    /// damaged, contradicts the rules, or cannot be read.
    pub fn score(&self, position: &Position) -> Result<i8, Error> {
        let answer = self.oracle.answer(&position.0)?;
        if let Some(score) = answer.score.score() {
            return Ok(score);
        }
        match answer.source {
            AnswerSource::Search => return Err(Error::Missing(position.stones())),
            AnswerSource::Children => drop(self.moves_of(&answer)?),
            AnswerSource::Database | AnswerSource::Rules => {}
        }
        Err(Error::Bounds { low: answer.score.low(), high: answer.score.high() })
    }

    /// Returns the bounds of a position: what the player to move can force, and to what the opponent can hold
    /// that player. By rules where a position has a score, both are the score. Without a database for its
    /// stones, they follow from those of its moves, or with the feature `engine` from a short search.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::Io`] if a database that it needs is damaged, contradicts the rules, or
    /// cannot be read.
    pub fn bounds(&self, position: &Position) -> Result<Bounds, Error> {
        Ok(self.oracle.answer(&position.0)?.score)
    }

    /// Returns the legal moves, `A` to `F`, with their values. There are none if the player to move cannot
    /// move; the game is then over.
    ///
    /// # Errors
    /// [`Error::Missing`] if the value of a move needs a database that is not there; [`Error::Damaged`] or
    /// [`Error::Io`] as [`score`](Self::score).
    pub fn moves(&self, position: &Position) -> Result<Vec<Move>, Error> {
        self.moves_of(&self.oracle.answer(&position.0)?)
    }

    /// Returns the moves of the highest value, `A` to `F`: those that no other move can exceed. Where values
    /// are bounds, no move may be known to be best.
    ///
    /// # Errors
    /// As [`moves`](Self::moves).
    pub fn best_moves(&self, position: &Position) -> Result<Vec<Move>, Error> {
        let answer = self.oracle.answer(&position.0)?;
        let moves = self.moves_of(&answer)?.into_iter().zip(&answer.moves);
        Ok(moves.filter(|(_, valued)| valued.is_best).map(|(played, _)| played).collect())
    }

    fn moves_of(&self, answer: &Answer) -> Result<Vec<Move>, Error> {
        let settled = |valued: &ValuedMove| {
            let &ValuedMove { pit, captured, value, child, .. } = valued;
            // Other bounds are what a search has proved without a database.
            if value.score().is_some() || self.oracle.upper(child.stones()).is_some() {
                Ok(Move { pit: pit_letter(pit), captured, value, child: Position(child) })
            } else {
                Err(Error::Missing(child.stones()))
            }
        };
        answer.moves.iter().map(settled).collect()
    }
}

/// Returns the files of a folder that are named as databases are.
fn database_paths(disk: &RealDisk, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = disk.list(folder).map_err(|error| Error::from(&error))?;
    paths.retain(|path| Library::stones_of(path).is_some());
    Ok(paths)
}
