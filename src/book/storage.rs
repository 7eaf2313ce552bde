//! The file of a book: a database of SQLite with the facts of a book, from which everything else is derived.
//!
//! Layout (version 2; [`SCHEMA`] is the definition, the formats guide explains it): `book` has one row with the version,
//! the rules and how the book is expanded; `engine` a row for each engine; `position` a row for each position with the
//! result of its search; `root` and `expansion` the roots and the expanded positions, in order. Version 1 had neither
//! `book.settings` nor `expansion.chosen`; a writer adds them.
//!
//! Each expansion is one transaction, so a killed process loses at most the search under way. The lock file beside the
//! book admits one writer; readers need no lock, and see whole transactions.

use crate::{Assessed, Assessment, AwariGame, Book, BookGame, BookSides, Hundredths, NodeId, Strategy};
use disk::{Disk, DiskError, Lock};
use game::{Board, Rules, STONES_MAX};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// The version of the layout.
pub const BOOK_VERSION: i64 = 2;

/// The tables.
pub const SCHEMA: &str = "\
CREATE TABLE book (
    version INTEGER NOT NULL,  -- of this layout
    rules TEXT NOT NULL,       -- awari
    settings TEXT              -- of all expansions; NULL if they differ
) STRICT;
CREATE TABLE engine (
    id INTEGER PRIMARY KEY,
    version TEXT NOT NULL,     -- of the program
    limits TEXT NOT NULL,      -- of a search: depth=N or nodes=N
    databases TEXT NOT NULL    -- the numbers of stones whose scores it looked up: 0..24
) STRICT;
CREATE TABLE position (
    pits BLOB PRIMARY KEY,     -- twelve bytes: the stones in A to F of the player to move, then in a to f
    low INTEGER NOT NULL,      -- proved lower bound of the value, in hundredths of a stone
    high INTEGER NOT NULL,     -- proved upper bound
    estimate INTEGER NOT NULL, -- estimate of the value
    depth INTEGER NOT NULL,    -- of the search; 0 if the value is from a database or the rules
    nodes INTEGER NOT NULL,    -- the positions searched
    engine INTEGER NOT NULL REFERENCES engine (id)
) STRICT, WITHOUT ROWID;
CREATE TABLE root (
    number INTEGER PRIMARY KEY,
    pits BLOB NOT NULL UNIQUE REFERENCES position (pits)
) STRICT;
CREATE TABLE expansion (
    number INTEGER PRIMARY KEY,
    pits BLOB NOT NULL UNIQUE REFERENCES position (pits),
    chosen INTEGER             -- the number of rows of this table when the position was chosen
) STRICT;
";

/// Makes version 2 of version 1.
const UPGRADE: &str = "\
ALTER TABLE book ADD COLUMN settings TEXT;
ALTER TABLE expansion ADD COLUMN chosen INTEGER;
UPDATE book SET version = 2;
";

/// The file of a book.
#[derive(Debug)]
pub struct BookFile {
    path: PathBuf,
    connection: Connection,
    /// The engine of new results.
    engine: i64,
    /// Held by a writer.
    _lock: Option<Lock>,
}

/// What assesses the positions that are entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookEngine {
    /// The version of the program.
    pub version: String,
    /// The limits of a search.
    pub limits: String,
    /// The numbers of stones whose scores it looks up.
    pub databases: String,
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
    #[error("{}: expected a book of version {BOOK_VERSION} with the rules {rules}, found {found}; use the program that wrote it",
        path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The expected rules.
        rules: &'static str,
        /// What the file says.
        found: String,
    },
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
        if !path.is_file() {
            return Err(BookError::Missing(path.to_path_buf()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let read = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // A reader of a log needs to write its index; in a read-only directory there is no writer, and no log.
        let opened = Connection::open_with_flags(path, flags).or_else(|_| Connection::open_with_flags(path, read));
        let connection = opened.map_err(|source| failed(path, source))?;
        let file = BookFile { path: path.to_path_buf(), connection, engine: 0, _lock: None };
        file.prepare()?;
        file.expect(rules)?;
        Ok(file)
    }

    /// Opens a book for writing, and makes it if it does not exist.
    ///
    /// # Errors
    /// [`DiskError::Locked`] if another process writes to it; otherwise as [`BookFile::open`].
    pub fn create(disk: &dyn Disk, path: &Path, rules: &Rules, engine: &BookEngine) -> Result<BookFile, BookError> {
        let lock =
            disk.lock(&path.with_extension("lock"), &format!("awari book expand, process {}", std::process::id()))?;
        let connection = Connection::open(path).map_err(|source| failed(path, source))?;
        let mut file = BookFile { path: path.to_path_buf(), connection, engine: 0, _lock: Some(lock) };
        file.prepare()?;
        let is_new: i64 = file.one("SELECT count(*) FROM sqlite_schema", [])?;
        if is_new == 0 {
            let made = file.connection.transaction().and_then(|transaction| {
                transaction.execute_batch(SCHEMA)?;
                let insert = "INSERT INTO book (version, rules) VALUES (?1, ?2)";
                transaction.execute(insert, params![BOOK_VERSION, rules.name])?;
                transaction.commit()
            });
            made.map_err(|source| failed(path, source))?;
        }
        if file.expect(rules)? < BOOK_VERSION {
            let upgraded = file.connection.transaction().and_then(|transaction| {
                transaction.execute_batch(UPGRADE)?;
                transaction.commit()
            });
            upgraded.map_err(|source| failed(path, source))?;
        }
        file.engine = file.enter_engine(engine)?;
        Ok(file)
    }

    /// Makes writes fail once the file has a number of pages, as on a full disk.
    #[cfg(test)]
    pub(crate) fn fail_beyond(&self, pages: u32) {
        let limited = self.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()));
        limited.unwrap();
    }

    /// Returns the number of pages of the file.
    #[cfg(test)]
    pub(crate) fn pages(&self) -> u32 {
        self.one("PRAGMA page_count", []).unwrap()
    }

    fn prepare(&self) -> Result<(), BookError> {
        // A log that is synced at checkpoints: a loss of power may lose the last transactions, but damages nothing.
        let prepared = self.connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; PRAGMA trusted_schema = OFF;",
        );
        match prepared {
            // A read-only database keeps its mode.
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) => Ok(()),
            other => other.map_err(|source| failed(&self.path, source)),
        }
    }

    /// Returns the version, after a check of it and of the rules.
    fn expect(&self, rules: &Rules) -> Result<i64, BookError> {
        let found = self.connection.query_row("SELECT version, rules FROM book", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        });
        let (version, name) = found.map_err(|source| failed(&self.path, source))?;
        if (1..=BOOK_VERSION).contains(&version) && name == rules.name {
            return Ok(version);
        }
        let found = format!("version {version} with the rules {name}");
        Err(BookError::Foreign { path: self.path.clone(), rules: rules.name, found })
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

    /// Enters a root.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn enter_root(&mut self, key: u64, assessed: &Assessed) -> Result<(), BookError> {
        let path = self.path.clone();
        let entered = self.connection.transaction().and_then(|transaction| {
            enter(&transaction, self.engine, key, assessed)?;
            transaction.execute("INSERT OR IGNORE INTO root (pits) VALUES (?1)", [AwariGame::board(key).0])?;
            transaction.commit()
        });
        entered.map_err(|source| failed(&path, source))
    }

    /// Enters an expansion: the position, the number of expansions entered when it was chosen, and the results of its
    /// new successors.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn enter_expansion(&mut self, key: u64, chosen: u64, successors: &[(u64, Assessed)]) -> Result<(), BookError> {
        let path = self.path.clone();
        let entered = self.connection.transaction().and_then(|transaction| {
            for (successor, assessed) in successors {
                enter(&transaction, self.engine, *successor, assessed)?;
            }
            let insert = "INSERT INTO expansion (pits, chosen) VALUES (?1, ?2)";
            transaction.prepare(insert)?.execute(params![AwariGame::board(key).0, chosen as i64])?;
            transaction.commit()
        });
        entered.map_err(|source| failed(&path, source))
    }

    /// Replaces the results of positions.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn replace(&mut self, positions: &[(u64, Assessed)]) -> Result<(), BookError> {
        let path = self.path.clone();
        let update = "UPDATE position SET low = ?2, high = ?3, estimate = ?4, depth = ?5, nodes = ?6, engine = ?7 \
            WHERE pits = ?1";
        let entered = self.connection.transaction().and_then(|transaction| {
            let mut statement = transaction.prepare(update)?;
            for (key, assessed) in positions {
                let Assessed { assessment: Assessment { low, high, estimate }, depth, nodes } = *assessed;
                let pits = AwariGame::board(*key).0;
                statement.execute(params![pits, low, high, estimate, depth, nodes as i64, self.engine])?;
            }
            drop(statement);
            transaction.commit()
        });
        entered.map_err(|source| failed(&path, source))
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

    /// Reads the book, and derives everything from its facts.
    ///
    /// # Errors
    /// [`BookError::Damaged`] if the facts contradict each other, or what SQLite reports.
    pub fn load(&self, rules: Rules, strategy: Strategy, sides: BookSides) -> Result<Book<AwariGame>, BookError> {
        let facts = self.facts(&AwariGame::new(rules))?;
        let mut book = self.restored(&facts, rules, strategy, sides, facts.expansions.len(), usize::MAX)?;
        if book.graph().len() != facts.assessments.len() {
            let (all, found) = (facts.assessments.len(), book.graph().len());
            return Err(self.damaged(format!("{all} positions, of which roots and expansions give {found}")));
        }
        book.derive();
        Ok(book)
    }

    /// Reads the book as it was when it first had a number of positions. Results that databases replaced later are the
    /// later ones.
    ///
    /// # Errors
    /// As [`load`](BookFile::load).
    pub fn load_first(
        &self,
        rules: Rules,
        strategy: Strategy,
        sides: BookSides,
        positions: usize,
    ) -> Result<Book<AwariGame>, BookError> {
        let facts = self.facts(&AwariGame::new(rules))?;
        let mut book = self.restored(&facts, rules, strategy, sides, facts.expansions.len(), positions)?;
        book.derive();
        Ok(book)
    }

    /// Reads a book that goes on, with the queue of its builder: the leaves chosen but not expanded, and the number of
    /// positions that were expanded when each was chosen.
    ///
    /// A leaf is entered at most `look_ahead` expansions after it was chosen. So the choices of the queue are repeated
    /// in the book as it was that many expansions ago. A book that was expanded with other settings makes others:
    /// then its queue begins empty.
    ///
    /// # Errors
    /// As [`load`](BookFile::load).
    pub(crate) fn resume(
        &self,
        rules: Rules,
        strategy: Strategy,
        sides: BookSides,
        look_ahead: usize,
    ) -> Result<(Book<AwariGame>, ChosenLeaves), BookError> {
        let whole = self.load(rules, strategy, sides)?;
        if look_ahead <= 1 {
            return Ok((whole, Vec::new()));
        }
        let facts = self.facts(whole.game())?;
        let all = facts.expansions.len();
        let first = all.saturating_sub(look_ahead - 1);
        let mut book = self.restored(&facts, rules, strategy, sides, first, usize::MAX)?;
        let mut queue = VecDeque::new();
        for (key, chosen) in &facts.expansions[first..] {
            match (chosen, book.graph().find(*key)) {
                (Some(chosen), Some(leaf)) if *chosen < first as u64 => queue.push_back((leaf, *chosen)),
                (Some(_), _) => {}
                (None, _) => return Ok((whole, Vec::new())),
            }
        }
        book.wait_for(queue.iter().map(|&(leaf, _)| leaf));
        book.derive();
        for entered in first..all {
            while queue.len() < look_ahead
                && let Some(leaf) = book.choose()
            {
                queue.push_back((leaf, entered as u64));
            }
            let (key, chosen) = facts.expansions[entered];
            let Some((leaf, at)) = queue.pop_front() else { return Ok((whole, Vec::new())) };
            if book.graph().node(leaf).key != key || chosen != Some(at) {
                return Ok((whole, Vec::new()));
            }
            let known = |key: u64| facts.assessments.get(&key).copied().ok_or_else(|| self.missing(&rules, key));
            book.expand(leaf, known)?;
        }
        Ok((book, queue.into()))
    }

    fn damaged(&self, what: String) -> BookError {
        BookError::Damaged { path: self.path.clone(), what }
    }

    fn missing(&self, rules: &Rules, key: u64) -> BookError {
        self.damaged(format!("the position {} is missing", AwariGame::new(*rules).text(key)))
    }

    /// Reads all facts.
    fn facts(&self, game: &AwariGame) -> Result<BookFacts, BookError> {
        let positions = self.rows("SELECT pits, low, high, estimate FROM position", |row| {
            let key = key_of(row)?;
            let number = |at| -> rusqlite::Result<Hundredths> { row.get(at) };
            let assessment = Assessment { low: number(1)?, high: number(2)?, estimate: number(3)? };
            Ok((key, assessment))
        })?;
        for (key, found) in &positions {
            let most = game.value_max(*key);
            let is_sound =
                found.low <= found.estimate && found.estimate <= found.high && -most <= found.low && found.high <= most;
            if !is_sound {
                return Err(self.damaged(format!("the bounds of {} are impossible", game.text(*key))));
            }
        }
        let roots = self.rows("SELECT pits FROM root ORDER BY number", key_of)?;
        let has_choices: i64 =
            self.one("SELECT count(*) FROM pragma_table_info('expansion') WHERE name = 'chosen'", [])?;
        let query = match has_choices {
            0 => "SELECT pits, NULL FROM expansion ORDER BY number",
            _ => "SELECT pits, chosen FROM expansion ORDER BY number",
        };
        let expansions = self.rows(query, |row| {
            let chosen: Option<i64> = row.get(1)?;
            Ok((key_of(row)?, chosen.and_then(|chosen| u64::try_from(chosen).ok())))
        })?;
        Ok(BookFacts { assessments: positions.into_iter().collect(), roots, expansions })
    }

    /// Enters roots and the first expansions, until the book has a number of positions. Nothing is derived.
    fn restored(
        &self,
        facts: &BookFacts,
        rules: Rules,
        strategy: Strategy,
        sides: BookSides,
        expansions: usize,
        positions: usize,
    ) -> Result<Book<AwariGame>, BookError> {
        let game = AwariGame::new(rules);
        let mut book = Book::new(game, strategy, sides);
        for &key in &facts.roots {
            let assessment = facts.assessments.get(&key).ok_or_else(|| self.missing(&rules, key))?;
            book.add_root(key, *assessment);
        }
        for &(key, _) in &facts.expansions[..expansions] {
            if book.graph().len() >= positions {
                break;
            }
            let leaf = book.graph().find(key);
            let leaf =
                leaf.ok_or_else(|| self.damaged(format!("no move leads to the expanded position {}", game.text(key))))?;
            let restored = book.restore(leaf, |key| facts.assessments.get(&key).copied());
            restored.map_err(|key| self.missing(&rules, key))?;
        }
        Ok(book)
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

    /// Returns the number of positions that all searches together visited.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn searched(&self) -> Result<u64, BookError> {
        self.one::<i64>("SELECT coalesce(sum(nodes), 0) FROM position", []).map(|nodes| nodes as u64)
    }
}

/// Leaves that wait for their expansion, each with the number of expansions before it was chosen.
pub(crate) type ChosenLeaves = Vec<(NodeId, u64)>;

/// The facts of a book, as they are in its file.
struct BookFacts {
    assessments: HashMap<u64, Assessment>,
    roots: Vec<u64>,
    /// Expanded positions in order, each with the number of expansions before it was chosen.
    expansions: Vec<(u64, Option<u64>)>,
}

fn failed(path: &Path, source: rusqlite::Error) -> BookError {
    BookError::Sqlite { path: path.to_path_buf(), source }
}

fn enter(connection: &Connection, engine: i64, key: u64, assessed: &Assessed) -> rusqlite::Result<()> {
    let Assessed { assessment: Assessment { low, high, estimate }, depth, nodes } = *assessed;
    let insert = "INSERT OR IGNORE INTO position VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut statement = connection.prepare(insert)?;
    statement.execute(params![AwariGame::board(key).0, low, high, estimate, depth, nodes as i64, engine])?;
    Ok(())
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
