//! Right checksums for changed books: a second implementation, written from the description of the format.

use disk::Digest;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;

/// Returns the checksum of the columns of a row.
fn checksum(table: &str, columns: &[Value]) -> i64 {
    let mut bytes = Vec::new();
    for column in columns {
        match column {
            Value::Null => bytes.push(0),
            Value::Integer(number) => {
                bytes.push(1);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            Value::Real(_) => bytes.push(9),
            Value::Text(text) => {
                bytes.push(2);
                bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
            Value::Blob(blob) => {
                bytes.push(3);
                bytes.extend_from_slice(&(blob.len() as u64).to_le_bytes());
                bytes.extend_from_slice(blob);
            }
        }
    }
    let seed = Digest::of(table.as_bytes());
    seed.checksum(&bytes) as i64
}

/// Reads all rows of a table, without their checksums, which are the last columns.
fn rows(connection: &Connection, table: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1")).unwrap();
    let columns = statement.column_count() - 1;
    let found = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect()).unwrap();
    found.map(Result::unwrap).collect()
}

/// Gives all rows of a book the right checksums, and counts them in `book`.
pub(super) fn seal(path: &Path) {
    let connection = Connection::open(path).unwrap();
    let count =
        |table: &str| connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
    let counts = ["engine", "position", "root", "expansion"].map(count);
    seal_with(&connection, counts);
}

/// As [`seal`], with the counts given.
pub(super) fn seal_with(connection: &Connection, counts: [i64; 4]) {
    let transaction = connection.unchecked_transaction().unwrap();
    let mut facts = 0i64;
    for (table, key) in [("engine", "id"), ("position", "number"), ("root", "number"), ("expansion", "number")] {
        for row in rows(connection, table) {
            let sum = checksum(table, &row);
            facts = facts.wrapping_add(sum);
            let update = format!("UPDATE {table} SET checksum = ?1 WHERE {key} = ?2");
            connection.execute(&update, rusqlite::params![sum, row[0]]).unwrap();
        }
    }
    let [engines, positions, roots, expansions] = counts;
    let update = "UPDATE book SET engines = ?1, positions = ?2, roots = ?3, expansions = ?4, facts = ?5";
    connection.execute(update, [engines, positions, roots, expansions, facts]).unwrap();
    for row in rows(connection, "book") {
        connection.execute("UPDATE book SET checksum = ?1", [checksum("book", &row)]).unwrap();
    }
    let values = rows(connection, "value");
    for (at, row) in values.iter().enumerate() {
        let next = &values[(at + 1) % values.len()][0];
        let all: Vec<Value> = [&[Value::Integer(facts)], &row[..], std::slice::from_ref(next)].concat();
        let update = "UPDATE value SET checksum = ?1 WHERE pits = ?2";
        connection.execute(update, rusqlite::params![checksum("value", &all), row[0]]).unwrap();
    }
    transaction.commit().unwrap();
}
