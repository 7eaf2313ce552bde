//! The tables of a book: which version they are of, and how an earlier version becomes the latest one.
//!
//! A file is a book only if its schema has the tables of a version and nothing else: no view, trigger, index or other
//! table, and no column with another type, default or constraint. That is known before any of them is read.

use super::rows::{ENGINE, EXPANSION, POSITION, ROOT};
use super::state::{BOOK_VERSION, BookState};
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::collections::BTreeSet;

/// The tables. [`super::rows`] and [`super::values`] say what checksums are of.
pub const SCHEMA: &str = "\
CREATE TABLE book (
    version INTEGER NOT NULL,  -- of this layout
    rules TEXT NOT NULL,       -- their name: awari
    settings TEXT,             -- of all expansions; NULL if they differ
    engines INTEGER NOT NULL,  -- rows of the other tables
    positions INTEGER NOT NULL,
    roots INTEGER NOT NULL,
    expansions INTEGER NOT NULL,
    facts INTEGER NOT NULL,    -- sum of their checksums
    valued INTEGER,            -- rows of value, if they follow from all facts
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE engine (
    id INTEGER PRIMARY KEY,
    version TEXT NOT NULL,     -- of the program
    limits TEXT NOT NULL,      -- of a search: depth=N or nodes=N
    databases TEXT NOT NULL,   -- the numbers of stones whose scores it looked up: 0..24
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE position (
    number INTEGER PRIMARY KEY, -- in the order of entry
    pits BLOB NOT NULL,        -- twelve bytes: the stones in A to F of the player to move, then in a to f
    low INTEGER NOT NULL,      -- proved lower bound of the value, in hundredths of a stone
    high INTEGER NOT NULL,     -- proved upper bound
    estimate INTEGER NOT NULL,
    depth INTEGER NOT NULL,    -- of the search; 0 if the value is from a database or the rules
    nodes INTEGER NOT NULL,    -- the positions searched
    engine INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE root (
    number INTEGER PRIMARY KEY,
    pits BLOB NOT NULL,        -- as in position
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE expansion (
    number INTEGER PRIMARY KEY,
    pits BLOB NOT NULL,        -- as in position; all different
    chosen INTEGER,            -- the number of rows of this table when the position was chosen
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE value (
    pits BLOB PRIMARY KEY,     -- as in position
    low INTEGER NOT NULL,      -- proved lower bound, with what follows from moves in the book
    high INTEGER NOT NULL,     -- proved upper bound
    estimate INTEGER NOT NULL,
    moves INTEGER NOT NULL,    -- in the book: all legal moves, or 0
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The tables of version 1.
const FIRST_SCHEMA: &str = "\
CREATE TABLE book (version INTEGER NOT NULL, rules TEXT NOT NULL) STRICT;
CREATE TABLE engine (id INTEGER PRIMARY KEY, version TEXT NOT NULL, limits TEXT NOT NULL, databases TEXT NOT NULL) STRICT;
CREATE TABLE position (pits BLOB PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, estimate INTEGER NOT NULL,
    depth INTEGER NOT NULL, nodes INTEGER NOT NULL, engine INTEGER NOT NULL REFERENCES engine (id)) STRICT, WITHOUT ROWID;
CREATE TABLE root (number INTEGER PRIMARY KEY, pits BLOB NOT NULL UNIQUE REFERENCES position (pits)) STRICT;
CREATE TABLE expansion (number INTEGER PRIMARY KEY, pits BLOB NOT NULL UNIQUE REFERENCES position (pits)) STRICT;
";

/// `UPGRADES[n - 1]` turns version n into n + 1. From version 4 on, [`add_checksums`] does.
const UPGRADES: [&str; 3] = [
    "ALTER TABLE book ADD COLUMN settings TEXT; \
     ALTER TABLE expansion ADD COLUMN chosen INTEGER;",
    "CREATE TABLE value (pits BLOB PRIMARY KEY, low INTEGER NOT NULL, high INTEGER NOT NULL, \
         estimate INTEGER NOT NULL, moves INTEGER NOT NULL) STRICT, WITHOUT ROWID; \
     CREATE TABLE derivation (positions INTEGER NOT NULL, expansions INTEGER NOT NULL) STRICT;",
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
     ALTER TABLE new_position RENAME TO position;",
];

/// The type, name, table and normalized text of each entry of a schema.
type Entries = BTreeSet<[String; 4]>;

/// Returns the version whose tables a file has; `None` if it is no book.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let found = entries(connection)?;
    if found == entries_of(SCHEMA)? {
        return Ok(Some(BOOK_VERSION));
    }
    let mut earlier = empty(FIRST_SCHEMA)?;
    for version in 1..BOOK_VERSION {
        if found == entries(&earlier)? {
            return Ok(Some(version));
        }
        if let Some(upgrade) = UPGRADES.get(version as usize - 1) {
            let transaction = earlier.transaction()?;
            transaction.execute_batch(upgrade)?;
            transaction.commit()?;
        }
    }
    Ok(None)
}

/// Makes a database in memory that has tables without rows.
fn empty(schema: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch("PRAGMA foreign_keys = OFF")?;
    connection.execute_batch(schema)?;
    Ok(connection)
}

fn entries_of(schema: &str) -> rusqlite::Result<Entries> {
    entries(&empty(schema)?)
}

fn entries(connection: &Connection) -> rusqlite::Result<Entries> {
    let mut statement = connection.prepare("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema")?;
    let entry =
        |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?, normalized(&row.get::<_, String>(3)?)]);
    statement.query_map([], entry)?.collect()
}

/// Returns the text of a table without comments, quotes of names, and differences of white space.
fn normalized(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split_once("--").map_or(line, |(code, _)| code));
    let mut text = lines.collect::<Vec<_>>().join(" ").replace('"', "");
    for sign in ["(", ")", ","] {
        text = text.replace(sign, &format!(" {sign} "));
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Makes a book of an earlier version one of the latest, in a transaction.
pub(super) fn upgrade(connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for upgrade in UPGRADES.iter().skip(version as usize - 1) {
        transaction.execute_batch(upgrade)?;
    }
    add_checksums(&transaction)?;
    transaction.commit()
}

/// Makes a book of version 4 one of version 5. Its values, which have no checksums, are not kept.
fn add_checksums(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    for table in ["book", "engine", "position", "root", "expansion"] {
        transaction.execute_batch(&format!("ALTER TABLE {table} RENAME TO old_{table}"))?;
    }
    transaction.execute_batch("DROP TABLE value; DROP TABLE derivation;")?;
    transaction.execute_batch(SCHEMA)?;
    let book = "SELECT rules, settings FROM old_book LIMIT 1";
    let book = transaction.query_row(book, [], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    let (rules, settings) = book.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let mut facts = 0i64;
    let counts = [ENGINE, POSITION, ROOT, EXPANSION].map(|table| {
        let (count, sum) = table.copy_from(&format!("old_{}", table.name), transaction)?;
        facts = facts.wrapping_add(sum);
        Ok::<u64, rusqlite::Error>(count)
    });
    let [engines, positions, roots, expansions] = counts;
    let state = BookState {
        settings,
        engines: engines?,
        positions: positions?,
        roots: roots?,
        expansions: expansions?,
        facts,
        valued: None,
    };
    state.enter(transaction, &rules)?;
    // Positions refer to engines, so engines are the last.
    for table in ["expansion", "root", "position", "engine", "book"] {
        transaction.execute_batch(&format!("DROP TABLE old_{table}"))?;
    }
    Ok(())
}
