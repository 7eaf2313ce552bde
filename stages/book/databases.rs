//! The databases of a run directory as exact scores, for searches and books.

use crate::files;
use check::{CheckError, Databases};
use disk::Disk;
use game::{Board, Index, STONES_MAX, Score};
use pipeline::{ArtifactName, StageError};
use planner::Settings;
use search::ExactScores;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use store::{BlockCache, CachedScores, FileKind};

/// Cache of decoded blocks of compressed databases.
const CACHE_BYTES: u64 = 64 << 20;

/// Databases whose scores a book looks up. The first error of a look-up is kept, and ends the work.
///
/// Every score counts as ready ([`ExactScores::ready_score`]), also of a compressed database: so a book does
/// not depend on the codec. It costs nothing either: looking up all scores, a search of a given length takes
/// two to five times as long, and is as good as one of four times the length without those of compressed
/// databases. (100 random positions of 30 stones with databases 0..24, searches of 5,000 and of 20,000
/// positions: 0.49 and 0.47 s, mean errors of 0.280 and 0.285 stones.)
pub struct BookDatabases {
    databases: Option<Databases<CachedScores>>,
    known: [bool; STONES_MAX as usize + 1],
    failure: Mutex<Option<CheckError>>,
}

impl BookDatabases {
    /// Opens the databases of the build.
    pub(crate) fn of_build(
        settings: &Settings,
        disk: &dyn Disk,
        path: impl Fn(&ArtifactName) -> PathBuf,
    ) -> Result<BookDatabases, StageError> {
        let cache = BlockCache::new(CACHE_BYTES);
        let mut databases = Databases::new(settings.rules, settings.set);
        for stones in settings.stones() {
            let (index, path) = (Index::new(stones, settings.set), path(&files::database(stones)));
            let scores = files::open(disk, &path, settings, FileKind::Database, &index)?;
            databases.insert(stones, CachedScores::sharing(scores, Arc::clone(&cache))).map_err(StageError::failed)?;
        }
        Ok(BookDatabases::new(Some(databases), |_| true))
    }

    /// Takes the databases of those numbers of stones for which `wants` is true; none without databases.
    pub fn new(databases: Option<Databases<CachedScores>>, wants: impl Fn(u32) -> bool) -> BookDatabases {
        let has = |stones| databases.as_ref().is_some_and(|databases| databases.get(stones).is_ok());
        let known = std::array::from_fn(|stones| wants(stones as u32) && has(stones as u32));
        BookDatabases { databases, known, failure: Mutex::new(None) }
    }

    /// Takes the databases of at most `stones_max` stones.
    #[must_use]
    pub fn up_to(mut self, stones_max: u32) -> BookDatabases {
        self.known[stones_max as usize + 1..].fill(false);
        self
    }

    /// Returns the numbers of stones of the databases, as `0..16` or `0..9 11`.
    pub fn text(&self) -> String {
        let known: Vec<usize> = (0..self.known.len()).filter(|&stones| self.known[stones]).collect();
        let ranges = known.chunk_by(|before, after| before + 1 == *after).map(|range| match range {
            [stones] => stones.to_string(),
            _ => format!("{}..{}", range[0], range[range.len() - 1]),
        });
        let ranges: Vec<String> = ranges.collect();
        if ranges.is_empty() { "none".to_owned() } else { ranges.join(" ") }
    }

    /// Returns those that a text of [`text`](BookDatabases::text) names; `None` if one of them is missing.
    pub fn named(&self, text: &str) -> Option<NamedDatabases<'_>> {
        let mut named = [false; STONES_MAX as usize + 1];
        for range in text.split(' ').filter(|_| text != "none") {
            let (first, last) = range.split_once("..").unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            named.get_mut(first..=last)?.fill(true);
        }
        let has_all = named.iter().zip(self.known).all(|(&named, known)| known || !named);
        has_all.then_some(NamedDatabases { all: self, named })
    }

    /// Returns the error of a look-up that failed.
    ///
    /// # Errors
    /// That one.
    pub fn failure(&self) -> Result<(), CheckError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }

    fn look_up(&self, board: &Board) -> Result<Option<Score>, CheckError> {
        let Some(databases) = self.databases.as_ref().filter(|databases| databases.set().contains(board)) else {
            return Ok(None);
        };
        let database = databases.get(board.stones())?;
        Ok(Some(database.scores().get(database.position(board)?)?))
    }
}

/// Some of the databases of a directory.
pub struct NamedDatabases<'a> {
    all: &'a BookDatabases,
    named: [bool; STONES_MAX as usize + 1],
}

impl ExactScores for NamedDatabases<'_> {
    fn knows(&self, stones: u32) -> bool {
        self.named.get(stones as usize).copied().unwrap_or(false)
    }

    fn score(&self, board: &Board) -> Option<Score> {
        self.all.score(board)
    }
}

impl ExactScores for BookDatabases {
    fn knows(&self, stones: u32) -> bool {
        self.known.get(stones as usize).copied().unwrap_or(false)
    }

    fn score(&self, board: &Board) -> Option<Score> {
        match self.look_up(board) {
            Ok(score) => score,
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                None
            }
        }
    }
}
