//! The file of a book: a database of SQLite with the facts of a book, from which everything else is derived.
//!
//! Layout (version 5; [`SCHEMA`] is the definition, the formats guide explains it): `book` has one row with
//! the version, the rules, how the book is expanded, and what the other rows add up to ([`state`]); `engine`
//! a row for each engine; `position` a row for each position with the result of its search; `root` and
//! `expansion` the roots and the expanded positions, in order. These are the facts. `value` holds values that
//! follow from them ([`values`]). Each row has a checksum ([`rows`]), which versions 1 to 4 did not have
//! ([`schema`]).
//!
//! Each expansion is one transaction, so a killed process loses at most the search under way. Facts are only
//! appended, and have no index by position: a transaction changes the last pages of two tables, and the row
//! of `book`.
//!
//! The lock file beside the book admits one writer. A reader reads the bytes of the file and of its log as of
//! one moment ([`image`]), and never writes, waits or follows a link. A writer opens a file only after a
//! reader has found a book in it, or makes it whole under a temporary name.

mod connection;
mod error;
mod fact_writer;
mod facts;
mod image;
mod rows;
mod schema;
mod state;
mod values;

pub use error::BookError;
pub use schema::SCHEMA;
pub use state::BOOK_VERSION;
pub(crate) use values::{StoredValue, stored};

use crate::assess::Assessed;
use crate::awari::AwariGame;
use crate::game::{Assessment, BookGame, Hundredths};
use connection::{open_for_writing, publish_empty, restrict};
use disk::{Disk, Lock, RealDisk};
use error::failed;
use fact_writer::FactWriter;
use game::{Board, Rules, STONES_MAX};
use image::{PAGE_BYTES, beside};
use rows::{CheckedRows, ENGINE, POSITION, impossible};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB};
use state::BookState;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Steps of SQLite's machine between two looks at the limit.
const STEPS_AT_ONCE: i32 = 1_000;

/// The most steps of an operation of a reader: a constant, and a number for each page. A page has at most
/// some hundred rows, and reading or copying a row takes some 50.
const STEPS_MAX: i64 = 1_000_000;
const STEPS_PER_PAGE: i64 = 50_000;

/// The longest text of a column that a program shows.
const TEXT_BYTES_MAX: usize = 1_000;

/// The file of a book.
#[derive(Debug)]
pub struct BookFile {
    path: PathBuf,
    connection: Connection,
    rules: Rules,
    state: BookState,
    /// The engine of new results.
    engine: i64,
    /// The steps that a reader may still take.
    steps: Arc<AtomicI64>,
    /// The steps of an operation.
    steps_max: i64,
    /// Held by a writer.
    _lock: Option<Lock>,
}

/// A row of `position`.
struct PositionRow {
    key: u64,
    /// The number of a row of `engine`.
    engine: i64,
    assessed: Assessed,
}

/// What assesses the positions that are entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookEngine {
    /// The version of the program: see [`engine_version`].
    pub version: String,
    /// The limits of a search.
    pub limits: String,
    /// The numbers of stones whose scores it looks up.
    pub databases: String,
}

/// Returns the version of this program as an engine, with the signature of its searches by the rules.
///
/// # Errors
/// If the system refuses the memory of a small table.
pub fn engine_version(rules: &Rules) -> io::Result<String> {
    Ok(format!("{} {:08x}", env!("CARGO_PKG_VERSION"), search::signature(rules)?))
}

/// The results of an engine.
#[derive(Clone, Debug)]
pub struct EngineResults {
    /// The engine.
    pub engine: BookEngine,
    /// Positions, each with what was found of it.
    pub results: Vec<(u64, Assessed)>,
}

impl BookFile {
    /// Opens a book for reading.
    ///
    /// # Errors
    /// [`BookError::Missing`], [`BookError::Foreign`], or what SQLite reports.
    pub fn open(path: &Path, rules: &Rules) -> Result<BookFile, BookError> {
        BookFile::open_by(path, Some(rules))
    }

    /// Opens a book for reading, by any rules.
    ///
    /// # Errors
    /// As [`open`](BookFile::open).
    pub fn open_any(path: &Path) -> Result<BookFile, BookError> {
        BookFile::open_by(path, None)
    }

    fn open_by(path: &Path, rules: Option<&Rules>) -> Result<BookFile, BookError> {
        BookFile::read(&RealDisk::default(), path, rules).map(|(file, _)| file)
    }

    /// Opens a book for reading. Returns the version of the file with it; an earlier one is upgraded in memory.
    fn read(disk: &dyn Disk, path: &Path, expected: Option<&Rules>) -> Result<(BookFile, i64), BookError> {
        let image = image::read(disk, path)?;
        let pages = (image.len() / PAGE_BYTES) as i64;
        let steps_max = STEPS_MAX + STEPS_PER_PAGE * pages;
        let steps = Arc::new(AtomicI64::new(steps_max));
        let opened = Connection::open_in_memory().and_then(|mut connection| {
            connection.deserialize_read_exact(MAIN_DB, &image[..], image.len(), false)?;
            restrict(&connection)?;
            let left = Arc::clone(&steps);
            let is_over = move || left.fetch_sub(STEPS_AT_ONCE.into(), Ordering::Relaxed) < 0;
            connection.progress_handler(STEPS_AT_ONCE, Some(is_over))?;
            let Some(version) = schema::version(&connection)? else { return Ok(None) };
            if version < BOOK_VERSION {
                let pages_max = 4 * pages + 64;
                connection.query_row(&format!("PRAGMA max_page_count = {pages_max}"), [], |_| Ok(()))?;
                schema::upgrade(&mut connection, version)?;
            }
            connection.execute_batch("PRAGMA query_only = ON")?;
            let (latest, rules, state) = BookState::read(&connection)?;
            Ok(Some((connection, version, latest, rules, state)))
        });
        let refused = |what: String| BookError::NotABook { path: path.to_path_buf(), what };
        let (connection, version, latest, name, state) = match opened {
            Ok(Some(opened)) => opened,
            Ok(None) => {
                let what = format!("its tables are not those of a book of version 1 to {BOOK_VERSION}");
                return Err(refused(what));
            }
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OutOfMemory) => {
                return Err(failed(path, error));
            }
            Err(error) => match failed(path, error) {
                BookError::Sqlite { source, .. } => return Err(refused(source.to_string())),
                damaged => return Err(damaged),
            },
        };
        let known = Rules::by_name(&name).filter(|known| known.has_scores() && latest == BOOK_VERSION);
        let Some(rules) = known else {
            return Err(refused(format!("it says version {latest} with the rules {:.40?}", name)));
        };
        if let Some(expected) = expected.filter(|&expected| *expected != rules) {
            let (path, found) = (path.to_path_buf(), rules.name.to_owned());
            return Err(BookError::Foreign { path, rules: format!("the rules {}", expected.name), found });
        }
        let file =
            BookFile { path: path.to_path_buf(), connection, rules, state, engine: 0, steps, steps_max, _lock: None };
        Ok((file, version))
    }

    /// Opens a book for writing, and makes it if it does not exist.
    ///
    /// # Errors
    /// [`BookError::NoScores`]; [`DiskError::Locked`] if another process writes to it; otherwise as [`BookFile::open`].
    pub fn create(disk: &dyn Disk, path: &Path, rules: &Rules, engine: &BookEngine) -> Result<BookFile, BookError> {
        if !rules.has_scores() {
            return Err(BookError::NoScores(rules.name));
        }
        let lock =
            disk.lock(&path.with_extension("lock"), &format!("awari book expand, process {}", std::process::id()))?;
        let version = match BookFile::read(disk, path, Some(rules)) {
            Ok((_, version)) => version,
            Err(BookError::Missing(_)) => {
                publish_empty(disk, path, rules)?;
                BOOK_VERSION
            }
            Err(error) => return Err(error),
        };
        // SQLite would say no more than that it cannot open the book.
        image::open(disk, &beside(path, "-shm"))?;
        let opened = open_for_writing(path).and_then(|mut connection| {
            if version < BOOK_VERSION {
                schema::upgrade(&mut connection, version)?;
            }
            let (_, _, state) = BookState::read(&connection)?;
            Ok((connection, state))
        });
        let (connection, state) = opened.map_err(|source| failed(path, source))?;
        let (path, steps) = (path.to_path_buf(), Arc::default());
        let mut file =
            BookFile { path, connection, rules: *rules, state, engine: 0, steps, steps_max: 0, _lock: Some(lock) };
        file.engine = file.enter_engine(engine)?;
        Ok(file)
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the game.
    pub(crate) fn game(&self) -> AwariGame {
        AwariGame::new(self.rules)
    }

    /// Makes writes fail once the file has a number of pages, as on a full disk.
    #[cfg(test)]
    pub(crate) fn fail_beyond(&self, pages: u32) {
        let limited = self.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()));
        limited.unwrap();
    }

    /// Copies the log into the book whenever it has a number of pages.
    #[cfg(test)]
    pub(crate) fn checkpoint_every(&self, pages: u32) {
        let set = self.connection.query_row(&format!("PRAGMA wal_autocheckpoint = {pages}"), [], |_| Ok(()));
        set.unwrap();
    }

    /// Returns the number of pages of the file.
    #[cfg(test)]
    pub(crate) fn pages(&self) -> u32 {
        self.one("PRAGMA page_count").unwrap()
    }

    fn enter_engine(&mut self, engine: &BookEngine) -> Result<i64, BookError> {
        let engines = self.read_engines()?.rows;
        if let Some(known) = engines.iter().position(|known| known == engine) {
            return Ok(known as i64 + 1);
        }
        let id = engines.len() as i64 + 1;
        self.enter_facts(|facts| {
            let BookEngine { version, limits, databases } = engine;
            let texts = [version, limits, databases].map(|text| ValueRef::Text(text.as_bytes()));
            let [version, limits, databases] = texts;
            let row = [ValueRef::Integer(id), version, limits, databases];
            let sum = ENGINE.writer(facts.connection)?.enter(&row)?;
            facts.count(sum, |state| &mut state.engines);
            Ok(())
        })?;
        Ok(id)
    }

    /// Allows an operation its steps.
    fn begin(&self) {
        self.steps.store(self.steps_max, Ordering::Relaxed);
    }

    #[cfg(test)]
    fn one<T: rusqlite::types::FromSql>(&self, query: &str) -> Result<T, BookError> {
        self.connection.query_row(query, [], |row| row.get(0)).map_err(|source| failed(&self.path, source))
    }

    /// Enters a root. One that the book has stays as it is.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn enter_root(&mut self, key: u64, assessed: &Assessed) -> Result<(), BookError> {
        self.enter_facts(|facts| facts.enter_root(key, assessed))
    }

    /// Enters an expansion: the position, the number of expansions entered when the strategy chose it (`None` if it was
    /// expanded on request), and the results of its new successors, which are all different.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn enter_expansion(
        &mut self,
        key: u64,
        chosen: Option<u64>,
        successors: &[(u64, Assessed)],
    ) -> Result<(), BookError> {
        self.enter_facts(|facts| facts.enter_expansion(key, chosen, successors))
    }

    /// Enters a root and expansions, each with the results of its new successors, all in one transaction. Returns the
    /// number of expansions.
    ///
    /// # Errors
    /// What SQLite reports.
    pub(crate) fn enter_book(
        &mut self,
        root: u64,
        assessed: &Assessed,
        expansions: impl Iterator<Item = (u64, Vec<(u64, Assessed)>)>,
    ) -> Result<u64, BookError> {
        let mut entered = 0;
        self.enter_facts(|facts| {
            facts.enter_root(root, assessed)?;
            for (key, successors) in expansions {
                facts.enter_expansion(key, Some(entered), &successors)?;
                entered += 1;
            }
            Ok(())
        })?;
        Ok(entered)
    }

    /// Replaces the results of positions.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn replace(&mut self, positions: &[(u64, Assessed)]) -> Result<(), BookError> {
        self.enter_facts(|facts| facts.replace(positions))
    }

    /// Enters facts in a transaction, from which on stored values are those of fewer facts.
    fn enter_facts(
        &mut self,
        enter: impl FnOnce(&mut FactWriter<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), BookError> {
        self.write(|facts| {
            facts.state.valued = None;
            enter(facts)
        })
    }

    /// Changes the book in a transaction.
    fn write(&mut self, change: impl FnOnce(&mut FactWriter<'_>) -> rusqlite::Result<()>) -> Result<(), BookError> {
        let (engine, rules, mut state) = (self.engine, self.rules.name, self.state.clone());
        let written = self.connection.transaction().and_then(|transaction| {
            change(&mut FactWriter { connection: &transaction, engine, state: &mut state, writers: None })?;
            state.replace(&transaction, rules)?;
            transaction.commit()
        });
        written.map_err(|source| failed(&self.path, source))?;
        self.state = state;
        Ok(())
    }

    /// Returns whether the book has a root. One that was never finished has none.
    pub fn has_root(&self) -> bool {
        self.state.roots > 0
    }

    /// Returns whether all expansions have these settings. A book without expansions takes them.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn has_settings(&mut self, settings: &str) -> Result<bool, BookError> {
        if self.state.expansions == 0 {
            self.set_settings(Some(settings))?;
        }
        Ok(self.state.settings.as_deref() == Some(settings))
    }

    /// Records the settings of all expansions; `None` if they differ.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn set_settings(&mut self, settings: Option<&str>) -> Result<(), BookError> {
        if self.state.settings.as_deref() == settings {
            return Ok(());
        }
        self.write(|facts| {
            facts.state.settings = settings.map(str::to_owned);
            Ok(())
        })
    }

    pub(crate) fn damaged(&self, what: String) -> BookError {
        BookError::Damaged { path: self.path.clone(), what }
    }

    fn read_engines(&self) -> Result<CheckedRows<BookEngine>, BookError> {
        self.begin();
        let read = ENGINE.read(&self.connection, self.state.engines, |row| {
            Ok(BookEngine { version: text_of(row, 1)?, limits: text_of(row, 2)?, databases: text_of(row, 3)? })
        });
        read.map_err(|source| failed(&self.path, source))
    }

    fn read_positions(&self) -> Result<CheckedRows<PositionRow>, BookError> {
        self.begin();
        let (game, engines) = (self.game(), self.state.engines as i64);
        let read = POSITION.read(&self.connection, self.state.positions, |row| {
            let key = key_of(row, 1)?;
            let (depth, nodes, engine) = (row.get(5)?, row.get::<_, i64>(6)?, row.get(7)?);
            let nodes = u64::try_from(nodes).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(6, nodes))?;
            if !(1..=engines).contains(&engine) {
                return Err(impossible(7, &format!("there is no engine {engine}")));
            }
            let assessed = Assessed { assessment: assessment_of(row, 2, game.value_max(key))?, depth, nodes };
            Ok(PositionRow { key, engine, assessed })
        });
        read.map_err(|source| failed(&self.path, source))
    }

    /// Returns the engines of the results, with the number of results of each.
    ///
    /// # Errors
    /// As [`results`](BookFile::results).
    pub fn engines(&self) -> Result<Vec<(BookEngine, u64)>, BookError> {
        let count = |found: EngineResults| (found.engine, found.results.len() as u64);
        Ok(self.results()?.into_iter().map(count).collect())
    }

    /// Returns what each engine found.
    ///
    /// # Errors
    /// What SQLite reports; damage if a row is impossible.
    pub fn results(&self) -> Result<Vec<EngineResults>, BookError> {
        let engines = self.read_engines()?.rows.into_iter();
        let mut found: Vec<EngineResults> =
            engines.map(|engine| EngineResults { engine, results: Vec::new() }).collect();
        for PositionRow { key, engine, assessed } in self.read_positions()?.rows {
            found[engine as usize - 1].results.push((key, assessed));
        }
        Ok(found)
    }

    /// Returns the number of positions that all searches together visited.
    ///
    /// # Errors
    /// As [`results`](BookFile::results).
    pub fn searched(&self) -> Result<u64, BookError> {
        let nodes = self.read_positions()?.rows.into_iter().map(|row| row.assessed.nodes);
        Ok(nodes.fold(0, u64::saturating_add))
    }
}

/// Reads bounds and estimate from three columns, of a position whose value has a limit.
fn assessment_of(row: &rusqlite::Row<'_>, first: usize, most: Hundredths) -> rusqlite::Result<Assessment> {
    let found = Assessment { low: row.get(first)?, high: row.get(first + 1)?, estimate: row.get(first + 2)? };
    if found.is_possible(most) { Ok(found) } else { Err(impossible(first, "bounds and estimate are impossible")) }
}

/// Reads a position.
fn key_of(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    position_of(row.get_ref(column)?.as_blob()?).map_err(|what| impossible(column, what))
}

/// Returns the position of twelve bytes.
fn position_of(pits: &[u8]) -> Result<u64, &'static str> {
    let pits: [u8; 12] = pits.try_into().map_err(|_| "a position has twelve bytes")?;
    if pits.iter().map(|&stones| u32::from(stones)).sum::<u32>() <= STONES_MAX {
        Ok(AwariGame::key(&Board(pits)))
    } else {
        Err("a position has at most 48 stones")
    }
}

/// Reads a text that can be shown.
fn text_of(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<String> {
    let text: String = row.get(column)?;
    if text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control) {
        Ok(text)
    } else {
        Err(impossible(column, "the text is too long, or has control characters"))
    }
}
