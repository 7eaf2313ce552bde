//! The file of a book: a database of SQLite with the facts of a book, from which everything else is derived.
//!
//! Layout (version 4; [`SCHEMA`] is the definition, the formats guide explains it): `book` has one row with the version,
//! the rules and how the book is expanded; `engine` a row for each engine; `position` a row for each position with the
//! result of its search; `root` and `expansion` the roots and the expanded positions, in order. These are the facts.
//! `value` and `derivation` hold values that follow from them ([`values`]). Version 1 had neither `book.settings` nor
//! `expansion.chosen`, version 2 no values, and up to version 3 the facts had indexes by position; a writer upgrades them.
//!
//! Each expansion is one transaction, so a killed process loses at most the search under way. Facts are only appended, and
//! have no index by position: a transaction changes the last pages of two tables. The lock file beside the
//! book admits one writer; readers need no lock, and see whole transactions.

mod facts;
mod values;

pub(crate) use values::{StoredValue, stored};

use crate::{Assessed, Assessment, AwariGame};
use disk::{Disk, DiskError, Lock};
use game::{Board, Rules, STONES_MAX};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// The version of the layout.
pub const BOOK_VERSION: i64 = 4;

/// The tables.
pub const SCHEMA: &str = "\
CREATE TABLE book (
    version INTEGER NOT NULL,  -- of this layout
    rules TEXT NOT NULL,       -- their name: awari
    settings TEXT              -- of all expansions; NULL if they differ
) STRICT;
CREATE TABLE engine (
    id INTEGER PRIMARY KEY,
    version TEXT NOT NULL,     -- of the program
    limits TEXT NOT NULL,      -- of a search: depth=N or nodes=N
    databases TEXT NOT NULL    -- the numbers of stones whose scores it looked up: 0..24
) STRICT;
CREATE TABLE position (
    number INTEGER PRIMARY KEY, -- in the order of entry
    pits BLOB NOT NULL,        -- twelve bytes: the stones in A to F of the player to move, then in a to f; all different
    low INTEGER NOT NULL,      -- proved lower bound of the value, in hundredths of a stone
    high INTEGER NOT NULL,     -- proved upper bound
    estimate INTEGER NOT NULL, -- estimate of the value
    depth INTEGER NOT NULL,    -- of the search; 0 if the value is from a database or the rules
    nodes INTEGER NOT NULL,    -- the positions searched
    engine INTEGER NOT NULL REFERENCES engine (id)
) STRICT;
CREATE TABLE root (
    number INTEGER PRIMARY KEY,
    pits BLOB NOT NULL         -- as in position
) STRICT;
CREATE TABLE expansion (
    number INTEGER PRIMARY KEY,
    pits BLOB NOT NULL,        -- as in position; all different
    chosen INTEGER             -- the number of rows of this table when the position was chosen
) STRICT;
CREATE TABLE value (
    pits BLOB PRIMARY KEY,     -- as in position
    low INTEGER NOT NULL,      -- proved lower bound, with what follows from moves in the book
    high INTEGER NOT NULL,     -- proved upper bound
    estimate INTEGER NOT NULL, -- estimate
    moves INTEGER NOT NULL     -- the number of its moves in the book: all legal moves, or 0
) STRICT, WITHOUT ROWID;
CREATE TABLE derivation (      -- one row while the table value follows from all facts, otherwise none
    positions INTEGER NOT NULL,
    expansions INTEGER NOT NULL
) STRICT;
";

/// Make each version of the one before it, from version 2 on.
const UPGRADES: [&str; BOOK_VERSION as usize - 1] = [
    "ALTER TABLE book ADD COLUMN settings TEXT; \
     ALTER TABLE expansion ADD COLUMN chosen INTEGER; \
     UPDATE book SET version = 2;",
    "CREATE TABLE value (pits BLOB PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, \
         estimate INTEGER NOT NULL, moves INTEGER NOT NULL) STRICT, WITHOUT ROWID; \
     CREATE TABLE derivation (positions INTEGER NOT NULL, expansions INTEGER NOT NULL) STRICT; \
     UPDATE book SET version = 3;",
    "CREATE TABLE new_root (number INTEGER PRIMARY KEY, pits BLOB NOT NULL) STRICT; \
     INSERT INTO new_root SELECT number, pits FROM root; \
     DROP TABLE root; \
     ALTER TABLE new_root RENAME TO root; \
     CREATE TABLE new_expansion (number INTEGER PRIMARY KEY, pits BLOB NOT NULL, chosen INTEGER) STRICT; \
     INSERT INTO new_expansion SELECT number, pits, chosen FROM expansion; \
     DROP TABLE expansion; \
     ALTER TABLE new_expansion RENAME TO expansion; \
     CREATE TABLE new_position (number INTEGER PRIMARY KEY, pits BLOB NOT NULL, low INTEGER NOT NULL, \
         high INTEGER NOT NULL, estimate INTEGER NOT NULL, depth INTEGER NOT NULL, nodes INTEGER NOT NULL, \
         engine INTEGER NOT NULL REFERENCES engine (id)) STRICT; \
     INSERT INTO new_position (pits, low, high, estimate, depth, nodes, engine) \
         SELECT pits, low, high, estimate, depth, nodes, engine FROM position; \
     DROP TABLE position; \
     ALTER TABLE new_position RENAME TO position; \
     UPDATE book SET version = 4;",
];

/// The file of a book.
#[derive(Debug)]
pub struct BookFile {
    path: PathBuf,
    connection: Connection,
    rules: Rules,
    version: i64,
    /// The engine of new results.
    engine: i64,
    /// Of a writer.
    counts: FactCounts,
    /// Whether the table `value` may follow from all facts, and must be marked when a fact is entered.
    has_values: bool,
    /// Held by a writer.
    _lock: Option<Lock>,
}

/// The numbers of the last rows of the facts.
#[derive(Clone, Copy, Debug, Default)]
struct FactCounts {
    positions: i64,
    expansions: i64,
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

/// An error of the file of a book.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// SQLite failed.
    #[error("{}: {source}{}", path.display(), remedy(source))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What failed.
        source: rusqlite::Error,
    },
    /// There is no book.
    #[error("there is no book {}; `awari book expand` makes one", .0.display())]
    Missing(PathBuf),
    /// The file is of another version, or for other rules.
    #[error("{}: expected a book of version 1 to {BOOK_VERSION} with {rules}, found {found}; use the program that wrote it, or \
        another book", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The expected rules.
        rules: String,
        /// What the file says.
        found: String,
    },
    /// The rules give no scores.
    #[error(
        "no book can have the rules {0}: a repetition gives each player the stones on the own side, so a position has \
        two values, and a book holds one; choose the databases of other rules"
    )]
    NoScores(&'static str),
    /// A row is impossible.
    #[error("{}: {what}; the file is damaged: restore it from a copy, or remove it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The lock or the directory cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl BookError {
    /// Whether the file is damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            BookError::Damaged { .. } => true,
            BookError::Sqlite { source, .. } => matches!(
                source.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
            ),
            _ => false,
        }
    }
}

fn remedy(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => "; the file is damaged: restore it from a copy, or remove it",
        Some(DatabaseBusy) => "; another program writes to it, try again",
        Some(DiskFull) => "; free some space",
        Some(ReadOnly) => "; the directory must be writable",
        _ => "",
    }
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
        if !path.is_file() {
            return Err(BookError::Missing(path.to_path_buf()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).map_err(|source| failed(path, source));
        let opened = opened.and_then(|connection| {
            prepare(path, &connection)?;
            Ok((expect(path, &connection, rules)?, connection))
        });
        let ((version, rules), connection) = match opened {
            Err(BookError::Sqlite { source, .. }) if needs_writing(&source) && !has_log(path) => {
                // A reader of a log writes its index, also if the log is empty. So in a directory that cannot be written
                // the file is read as one that does not change.
                let flags =
                    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
                let connection = Connection::open_with_flags(unchanging(path), flags);
                let connection = connection.map_err(|source| failed(path, source))?;
                (expect(path, &connection, rules)?, connection)
            }
            opened => opened?,
        };
        let (path, counts) = (path.to_path_buf(), FactCounts::default());
        Ok(BookFile { path, connection, rules, version, engine: 0, counts, has_values: false, _lock: None })
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
        let mut connection = Connection::open(path).map_err(|source| failed(path, source))?;
        prepare(path, &connection)?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
        if tables.map_err(|source| failed(path, source))? == 0 {
            let made = connection.transaction().and_then(|transaction| {
                transaction.execute_batch(SCHEMA)?;
                let insert = "INSERT INTO book (version, rules) VALUES (?1, ?2)";
                transaction.execute(insert, params![BOOK_VERSION, rules.name])?;
                transaction.commit()
            });
            made.map_err(|source| failed(path, source))?;
        }
        let (version, rules) = expect(path, &connection, Some(rules))?;
        for upgrade in &UPGRADES[version as usize - 1..] {
            let upgraded = connection.transaction().and_then(|transaction| {
                transaction.execute_batch(upgrade)?;
                transaction.commit()
            });
            upgraded.map_err(|source| failed(path, source))?;
        }
        let mut file = BookFile {
            path: path.to_path_buf(),
            connection,
            rules,
            version: BOOK_VERSION,
            engine: 0,
            counts: FactCounts::default(),
            has_values: true,
            _lock: Some(lock),
        };
        file.engine = file.enter_engine(engine)?;
        let last = |table| file.one(&format!("SELECT coalesce(max(number), 0) FROM {table}"), []);
        file.counts = FactCounts { positions: last("position")?, expansions: last("expansion")? };
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
        self.one("PRAGMA page_count", []).unwrap()
    }

    fn enter_engine(&self, engine: &BookEngine) -> Result<i64, BookError> {
        let BookEngine { version, limits, databases } = engine;
        let same = "SELECT id FROM engine WHERE version = ?1 AND limits = ?2 AND databases = ?3";
        let found = self.connection.query_row(same, params![version, limits, databases], |row| row.get(0)).optional();
        if let Some(id) = found.map_err(|source| failed(&self.path, source))? {
            return Ok(id);
        }
        let new = "INSERT INTO engine (version, limits, databases) VALUES (?1, ?2, ?3)";
        let added = self.connection.execute(new, params![version, limits, databases]);
        added.map_err(|source| failed(&self.path, source))?;
        Ok(self.connection.last_insert_rowid())
    }

    fn one<T: rusqlite::types::FromSql>(&self, query: &str, given: impl rusqlite::Params) -> Result<T, BookError> {
        self.connection.query_row(query, given, |row| row.get(0)).map_err(|source| failed(&self.path, source))
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

    /// Enters facts in a transaction, which also marks stored values as those of fewer facts.
    fn enter_facts(
        &mut self,
        enter: impl FnOnce(&mut FactWriter<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), BookError> {
        let (engine, counts) = (self.engine, self.counts);
        let entered = self.connection.transaction().and_then(|transaction| {
            if self.has_values {
                transaction.execute("DELETE FROM derivation", [])?;
            }
            let mut facts = FactWriter { connection: &transaction, engine, counts };
            enter(&mut facts)?;
            let counts = facts.counts;
            transaction.commit().map(|()| counts)
        });
        self.counts = entered.map_err(|source| failed(&self.path, source))?;
        self.has_values = false;
        Ok(())
    }

    /// Returns whether the book has a root. One that was never finished has none.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn has_root(&self) -> Result<bool, BookError> {
        self.one::<i64>("SELECT count(*) FROM root", []).map(|roots| roots > 0)
    }

    /// Returns whether all expansions have these settings. A book without expansions takes them.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn has_settings(&self, settings: &str) -> Result<bool, BookError> {
        if self.one::<i64>("SELECT count(*) FROM (SELECT 1 FROM expansion LIMIT 1)", [])? == 0 {
            self.set_settings(Some(settings))?;
            return Ok(true);
        }
        Ok(self.one::<Option<String>>("SELECT settings FROM book", [])?.as_deref() == Some(settings))
    }

    /// Records the settings of all expansions; `None` if they differ.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn set_settings(&self, settings: Option<&str>) -> Result<(), BookError> {
        let updated = self.connection.execute("UPDATE book SET settings = ?1", [settings]);
        updated.map(drop).map_err(|source| failed(&self.path, source))
    }

    /// Begins to read as of one moment, until the returned transaction is dropped.
    fn moment(&self) -> Result<Transaction<'_>, BookError> {
        self.connection.unchecked_transaction().map_err(|source| failed(&self.path, source))
    }

    pub(crate) fn damaged(&self, what: String) -> BookError {
        BookError::Damaged { path: self.path.clone(), what }
    }

    fn rows<T>(
        &self,
        query: &str,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, BookError> {
        let read = self.connection.prepare(query).and_then(|mut statement| statement.query_map([], read)?.collect());
        read.map_err(|source| failed(&self.path, source))
    }

    /// Returns the engines of the results, with the number of results of each.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn engines(&self) -> Result<Vec<(BookEngine, u64)>, BookError> {
        let query = "SELECT version, limits, databases, \
            (SELECT count(*) FROM position WHERE position.engine = engine.id) FROM engine ORDER BY id";
        self.rows(query, |row| {
            let engine = BookEngine { version: row.get(0)?, limits: row.get(1)?, databases: row.get(2)? };
            Ok((engine, row.get::<_, i64>(3)? as u64))
        })
    }

    /// Returns what each engine found.
    ///
    /// # Errors
    /// [`BookError::Damaged`] if a position has no engine, or what SQLite reports.
    pub fn results(&self) -> Result<Vec<EngineResults>, BookError> {
        let _moment = self.moment()?;
        let engines = self.engines()?.into_iter();
        let mut found: Vec<EngineResults> =
            engines.map(|(engine, _)| EngineResults { engine, results: Vec::new() }).collect();
        let ids: Vec<i64> = self.rows("SELECT id FROM engine ORDER BY id", |row| row.get(0))?;
        let query = "SELECT pits, low, high, estimate, depth, nodes, engine FROM position";
        let rows = self.rows(query, |row| {
            let (depth, nodes) = (row.get(4)?, row.get::<_, i64>(5)?);
            let nodes = u64::try_from(nodes).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(5, nodes))?;
            let assessed = Assessed { assessment: assessment_of(row)?, depth, nodes };
            Ok((row.get::<_, i64>(6)?, (key_of(row)?, assessed)))
        })?;
        for (id, result) in rows {
            let place = ids.binary_search(&id).map_err(|_| self.damaged(format!("there is no engine {id}")))?;
            found[place].results.push(result);
        }
        Ok(found)
    }

    /// Returns the number of positions that all searches together visited.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn searched(&self) -> Result<u64, BookError> {
        self.one::<i64>("SELECT coalesce(sum(nodes), 0) FROM position", []).map(|nodes| nodes as u64)
    }
}

fn prepare(path: &Path, connection: &Connection) -> Result<(), BookError> {
    // A log that is synced at checkpoints: a loss of power may lose the last transactions, but damages nothing.
    let prepared = connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; PRAGMA trusted_schema = OFF;",
    );
    match prepared {
        // A read-only database keeps its mode.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) => Ok(()),
        other => other.map_err(|source| failed(path, source)),
    }
}

/// Returns the version and the rules, after a check of both.
fn expect(path: &Path, connection: &Connection, rules: Option<&Rules>) -> Result<(i64, Rules), BookError> {
    let found = connection
        .query_row("SELECT version, rules FROM book", [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)));
    let (version, name) = found.map_err(|source| failed(path, source))?;
    let known = Rules::by_name(&name).filter(|known| known.has_scores() && rules.is_none_or(|rules| rules == known));
    if let Some(known) = known.filter(|_| (1..=BOOK_VERSION).contains(&version)) {
        return Ok((version, known));
    }
    let rules = rules.map_or_else(|| "known rules".to_owned(), |rules| format!("the rules {}", rules.name));
    let found = format!("version {version} with the rules {name}");
    Err(BookError::Foreign { path: path.to_path_buf(), rules, found })
}

/// Whether a reader failed since it may not write.
fn needs_writing(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly))
}

/// Whether a file has a log that is not copied into it yet.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log).metadata().is_ok_and(|log| log.len() > 0)
}

/// Returns the address by which SQLite reads a file without locks and without a log (RFC 8089).
fn unchanging(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let byte = |byte: &u8| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    let bytes: String = path.as_os_str().as_encoded_bytes().iter().map(byte).collect();
    format!("file://{bytes}?immutable=1")
}

fn failed(path: &Path, source: rusqlite::Error) -> BookError {
    BookError::Sqlite { path: path.to_path_buf(), source }
}

/// Facts that are entered in a transaction.
struct FactWriter<'a> {
    connection: &'a Connection,
    engine: i64,
    counts: FactCounts,
}

impl FactWriter<'_> {
    fn enter_root(&mut self, key: u64, assessed: &Assessed) -> rusqlite::Result<()> {
        let pits = AwariGame::board(key).0;
        let has = |table| {
            let query = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE pits = ?1)");
            self.connection.query_row(&query, [pits], |row| row.get::<_, bool>(0))
        };
        if has("root")? {
            return Ok(());
        }
        if !has("position")? {
            self.enter(&[(key, *assessed)])?;
        }
        self.connection.execute("INSERT INTO root (pits) VALUES (?1)", [pits]).map(drop)
    }

    /// Numbers are those that the writer counts. So an expansion is not entered twice, also if its first transaction was
    /// committed in spite of an error.
    fn enter_expansion(
        &mut self,
        key: u64,
        chosen: Option<u64>,
        successors: &[(u64, Assessed)],
    ) -> rusqlite::Result<()> {
        self.enter(successors)?;
        let mut statement = self.connection.prepare("INSERT INTO expansion VALUES (?1, ?2, ?3)")?;
        self.counts.expansions += 1;
        let (number, pits) = (self.counts.expansions, AwariGame::board(key).0);
        statement.execute(params![number, pits, chosen.map(|chosen| chosen as i64)]).map(drop)
    }

    fn enter(&mut self, positions: &[(u64, Assessed)]) -> rusqlite::Result<()> {
        let insert = "INSERT INTO position VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let mut statement = self.connection.prepare(insert)?;
        for (key, assessed) in positions {
            let Assessed { assessment: Assessment { low, high, estimate }, depth, nodes } = *assessed;
            let (pits, engine) = (AwariGame::board(*key).0, self.engine);
            self.counts.positions += 1;
            let number = self.counts.positions;
            statement.execute(params![number, pits, low, high, estimate, depth, nodes as i64, engine])?;
        }
        Ok(())
    }

    fn replace(&self, positions: &[(u64, Assessed)]) -> rusqlite::Result<()> {
        let mut rows = self.connection.prepare("SELECT pits, number FROM position")?;
        let numbers = rows.query_map([], |row| Ok((key_of(row)?, row.get(1)?)))?;
        let numbers: HashMap<u64, i64> = numbers.collect::<rusqlite::Result<_>>()?;
        let update = "UPDATE position SET low = ?2, high = ?3, estimate = ?4, depth = ?5, nodes = ?6, engine = ?7 \
            WHERE number = ?1";
        let mut statement = self.connection.prepare(update)?;
        for (key, assessed) in positions {
            let Assessed { assessment: Assessment { low, high, estimate }, depth, nodes } = *assessed;
            let number = numbers.get(key);
            statement.execute(params![number, low, high, estimate, depth, nodes as i64, self.engine])?;
        }
        Ok(())
    }
}

/// Reads bounds and estimate from the columns after the first, which has the position.
fn assessment_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Assessment> {
    Ok(Assessment { low: row.get(1)?, high: row.get(2)?, estimate: row.get(3)? })
}

/// Reads the position in the first column.
fn key_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<u64> {
    let wrong = |what: &str| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Blob, what.into());
    let pits = row.get_ref(0)?.as_blob()?;
    let pits: [u8; 12] = pits.try_into().map_err(|_| wrong("a position has twelve bytes"))?;
    let stones: u32 = pits.iter().map(|&stones| u32::from(stones)).sum();
    if stones > STONES_MAX {
        return Err(wrong("a position has at most 48 stones"));
    }
    Ok(AwariGame::key(&Board(pits)))
}
