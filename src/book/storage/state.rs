//! The row of the table `book`: what all other rows must add up to.

use super::rows::{RowChecksums, RowWriter, impossible};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// The version of the layout.
pub const BOOK_VERSION: i64 = 5;

/// Numbers of rows and the sum of the checksums of all facts. It is written by each transaction, so that a row that is
/// missing, or that is of another moment, is noticed.
#[derive(Clone, Debug, Default)]
pub(super) struct BookState {
    /// The settings of all expansions; `None` if they differ.
    pub(super) settings: Option<String>,
    pub(super) engines: u64,
    pub(super) positions: u64,
    pub(super) roots: u64,
    pub(super) expansions: u64,
    /// The sum of the checksums of all rows of facts, modulo 2^64.
    pub(super) facts: i64,
    /// The number of stored values, if they follow from all facts.
    pub(super) valued: Option<u64>,
}

const TABLE: &str = "book";

/// The number of columns before the checksum.
const COLUMNS: usize = 9;

impl BookState {
    /// Reads the row. Returns the version and the name of the rules with it.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<(i64, String, BookState)> {
        let query = "SELECT version, rules, settings, engines, positions, roots, expansions, facts, valued, checksum \
            FROM book LIMIT 2";
        let mut statement = connection.prepare(query)?;
        let mut rows = statement.query([])?;
        let row = rows.next()?.ok_or_else(|| impossible(0, "the table book has no row"))?;
        RowChecksums::of_table(TABLE).check(row, COLUMNS)?;
        let count = |at| {
            let count: i64 = row.get(at)?;
            u64::try_from(count).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, count))
        };
        let valued = match row.get_ref(8)? {
            ValueRef::Null => None,
            _ => Some(count(8)?),
        };
        let state = BookState {
            settings: row.get(2)?,
            engines: count(3)?,
            positions: count(4)?,
            roots: count(5)?,
            expansions: count(6)?,
            facts: row.get(7)?,
            valued,
        };
        let found = (row.get(0)?, row.get(1)?, state);
        match rows.next()? {
            None => Ok(found),
            Some(_) => Err(impossible(0, "the table book has more than a row")),
        }
    }

    /// Enters the row of a book without one.
    pub(super) fn enter(&self, connection: &Connection, rules: &str) -> rusqlite::Result<()> {
        self.write(connection, rules, "INSERT INTO book VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")
    }

    /// Replaces the row.
    pub(super) fn replace(&self, connection: &Connection, rules: &str) -> rusqlite::Result<()> {
        self.write(
            connection,
            rules,
            "UPDATE book SET version = ?1, rules = ?2, settings = ?3, engines = ?4, positions = ?5, roots = ?6, \
                expansions = ?7, facts = ?8, valued = ?9, checksum = ?10",
        )
    }

    fn write(&self, connection: &Connection, rules: &str, statement: &str) -> rusqlite::Result<()> {
        let BookState { settings, engines, positions, roots, expansions, facts, valued } = self;
        let number = |count: u64| ValueRef::Integer(count as i64);
        let columns: [ValueRef<'_>; COLUMNS] = [
            ValueRef::Integer(BOOK_VERSION),
            ValueRef::Text(rules.as_bytes()),
            settings.as_ref().map_or(ValueRef::Null, |settings| ValueRef::Text(settings.as_bytes())),
            number(*engines),
            number(*positions),
            number(*roots),
            number(*expansions),
            ValueRef::Integer(*facts),
            valued.map_or(ValueRef::Null, number),
        ];
        RowWriter::of(connection.prepare(statement)?, TABLE).enter(&columns).map(drop)
    }
}
