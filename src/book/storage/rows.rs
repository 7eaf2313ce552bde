//! Rows of facts, each with a checksum that is compared before the row is used.
//!
//! The checksum is the last column: XXH3 with a seed, the first eight bytes of the BLAKE3 of the name of the
//! table, of all other columns in order. A column is a byte for its type and its bytes: 0 is NULL; 1 a
//! number, eight bytes; 2 a text and 3 a blob, the length as eight bytes first. Numbers have the least
//! significant byte first. The rows of a table have the numbers 1, 2, 3 and so on.

use disk::Digest;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, Statement, params_from_iter};

/// A table of facts.
pub(super) struct FactTable {
    pub(super) name: &'static str,
    /// The columns but the checksum, the number of the row first.
    columns: &'static [&'static str],
}

/// What was made of the rows of a table.
pub(super) struct CheckedRows<T> {
    pub(super) rows: Vec<T>,
    /// The sum of their checksums, modulo 2^64.
    pub(super) sum: i64,
}

pub(super) const ENGINE: FactTable = FactTable { name: "engine", columns: &["id", "version", "limits", "databases"] };
pub(super) const POSITION: FactTable =
    FactTable { name: "position", columns: &["number", "pits", "low", "high", "estimate", "depth", "nodes", "engine"] };
pub(super) const ROOT: FactTable = FactTable { name: "root", columns: &["number", "pits"] };
pub(super) const EXPANSION: FactTable = FactTable { name: "expansion", columns: &["number", "pits", "chosen"] };

/// Computes checksums of the rows of a table.
pub(super) struct RowChecksums(Digest);

impl RowChecksums {
    pub(super) fn of_table(name: &str) -> RowChecksums {
        RowChecksums(Digest::of(name.as_bytes()))
    }

    /// Returns the checksum of the columns of a row.
    pub(super) fn of<'a>(&self, columns: impl IntoIterator<Item = ValueRef<'a>>) -> i64 {
        let mut bytes = Vec::with_capacity(128);
        for column in columns {
            let (kind, text) = match column {
                ValueRef::Null => (0, None),
                ValueRef::Integer(number) => {
                    bytes.push(1);
                    bytes.extend(number.to_le_bytes());
                    continue;
                }
                ValueRef::Real(number) => {
                    // No column holds one, so no checksum is right.
                    bytes.push(4);
                    bytes.extend(number.to_le_bytes());
                    continue;
                }
                ValueRef::Text(text) => (2, Some(text)),
                ValueRef::Blob(blob) => (3, Some(blob)),
            };
            bytes.push(kind);
            if let Some(text) = text {
                bytes.extend((text.len() as u64).to_le_bytes());
                bytes.extend(text);
            }
        }
        self.0.checksum(&bytes) as i64
    }

    /// Compares the checksum of a row, which is in the column after the others.
    pub(super) fn check(&self, row: &Row<'_>, columns: usize) -> rusqlite::Result<()> {
        let all = (0..columns).map(|at| row.get_ref(at)).collect::<rusqlite::Result<Vec<_>>>()?;
        if row.get::<_, i64>(columns)? == self.of(all) {
            Ok(())
        } else {
            Err(impossible(columns, "its checksum is not that of the row"))
        }
    }
}

/// Returns the error of a column whose content is impossible.
pub(super) fn impossible(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Null, what.into())
}

impl FactTable {
    fn list(&self) -> String {
        self.columns.join(", ")
    }

    /// Reads all rows, of which there are a number.
    pub(super) fn read<T>(
        &self,
        connection: &Connection,
        count: u64,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<CheckedRows<T>> {
        let query = format!("SELECT {}, checksum FROM {} ORDER BY {}", self.list(), self.name, self.columns[0]);
        let checksums = RowChecksums::of_table(self.name);
        let (mut found, mut sum) = (Vec::new(), 0i64);
        let mut statement = connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let number = found.len() as u64 + 1;
            let mut read_row = || {
                if row.get::<_, i64>(0)? != number as i64 {
                    return Err(impossible(0, "it has another number"));
                }
                checksums.check(row, self.columns.len())?;
                sum = sum.wrapping_add(row.get(self.columns.len())?);
                read(row)
            };
            found.push(read_row().map_err(|error| self.in_row(number, error))?);
        }
        if found.len() as u64 == count {
            Ok(CheckedRows { rows: found, sum })
        } else {
            Err(impossible(0, &format!("{} has {} rows, expected {count}", self.name, found.len())))
        }
    }

    fn in_row(&self, number: u64, error: rusqlite::Error) -> rusqlite::Error {
        let what = match error {
            rusqlite::Error::FromSqlConversionFailure(_, _, what) => what.to_string(),
            error if error.sqlite_error_code().is_some() => return error,
            error => error.to_string(),
        };
        impossible(0, &format!("row {number} of {}: {what}", self.name))
    }

    /// Prepares what enters rows.
    pub(super) fn writer<'c>(&self, connection: &'c Connection) -> rusqlite::Result<RowWriter<'c>> {
        let places = vec!["?"; self.columns.len() + 1].join(", ");
        let statement = connection.prepare(&format!("INSERT INTO {} VALUES ({places})", self.name))?;
        Ok(RowWriter { statement, checksums: RowChecksums::of_table(self.name) })
    }

    /// Copies all rows of a table that has the same columns without checksums. Returns their number and the sum of the
    /// checksums.
    pub(super) fn copy_from(&self, other: &str, connection: &Connection) -> rusqlite::Result<(u64, i64)> {
        let query = format!("SELECT {} FROM {other} ORDER BY {}", self.list(), self.columns[0]);
        let mut statement = connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        let mut writer = self.writer(connection)?;
        let (mut count, mut sum) = (0, 0i64);
        while let Some(row) = rows.next()? {
            let columns = (0..self.columns.len()).map(|at| row.get_ref(at)).collect::<rusqlite::Result<Vec<_>>>()?;
            sum = sum.wrapping_add(writer.enter(&columns)?);
            count += 1;
        }
        Ok((count, sum))
    }

    /// Returns the statement that replaces a row, whose number is the first parameter.
    pub(super) fn replacement(&self) -> String {
        let columns = self.columns.iter().chain(&["checksum"]).enumerate().skip(1);
        let set: Vec<String> = columns.map(|(at, column)| format!("{column} = ?{}", at + 1)).collect();
        format!("UPDATE {} SET {} WHERE {} = ?1", self.name, set.join(", "), self.columns[0])
    }
}

/// Enters rows into a table, or replaces them.
pub(super) struct RowWriter<'c> {
    statement: Statement<'c>,
    checksums: RowChecksums,
}

impl<'c> RowWriter<'c> {
    /// Makes a writer of a statement whose parameters are the columns and the checksum.
    pub(super) fn of(statement: Statement<'c>, table: &str) -> RowWriter<'c> {
        RowWriter { statement, checksums: RowChecksums::of_table(table) }
    }

    /// Enters a row. Returns its checksum.
    pub(super) fn enter(&mut self, columns: &[ValueRef<'_>]) -> rusqlite::Result<i64> {
        let checksum = self.checksums.of(columns.iter().copied());
        let all = columns.iter().copied().chain([ValueRef::Integer(checksum)]);
        self.statement.execute(params_from_iter(all.map(ToSqlOutput::Borrowed)))?;
        Ok(checksum)
    }
}
