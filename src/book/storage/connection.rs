//! Connections of SQLite, and the empty file of a new book.

use super::error::{BookError, failed};
use super::image::{BOOK_BYTES_MAX, PAGE_BYTES, beside};
use super::schema::SCHEMA;
use super::state::BookState;
use disk::{Disk, Staged};
use game::Rules;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use std::path::Path;

/// The longest row or statement.
const ROW_BYTES_MAX: i32 = 100_000;

/// Forbids what no book needs, whatever the schema and the statements.
pub(super) fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    use DbConfig::{
        SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_ENABLE_FKEY, SQLITE_DBCONFIG_ENABLE_TRIGGER,
        SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA,
    };
    let settings = [
        (SQLITE_DBCONFIG_DEFENSIVE, true),
        (SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (SQLITE_DBCONFIG_ENABLE_FKEY, false),
        (SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ];
    for (setting, value) in settings {
        connection.set_db_config(setting, value)?;
    }
    let limits = [
        (Limit::SQLITE_LIMIT_LENGTH, ROW_BYTES_MAX),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, ROW_BYTES_MAX),
        (Limit::SQLITE_LIMIT_COLUMN, 32),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 50),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
    ];
    for (limit, value) in limits {
        connection.set_limit(limit, value)?;
    }
    connection.execute_batch("PRAGMA cell_size_check = ON")
}

/// Opens a file that a reader has found to be a book.
pub(super) fn open_for_writing(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // SQLite would refuse links to directories too, by which a user may keep a run directory on another drive.
    let folder = path.parent().map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    let named = folder.zip(path.file_name()).map_or_else(|| path.to_path_buf(), |(folder, name)| folder.join(name));
    let connection = Connection::open_with_flags(named, flags)?;
    restrict(&connection)?;
    // A log that is synced at checkpoints: a loss of power may lose the last transactions, but damages nothing.
    let pages_max = BOOK_BYTES_MAX / PAGE_BYTES as u64;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; \
        PRAGMA max_page_count = {pages_max};"
    ))?;
    Ok(connection)
}

/// Publishes a book without facts, whole, so that a process that is killed leaves no part of one.
pub(super) fn publish_empty(disk: &dyn Disk, path: &Path, rules: &Rules) -> Result<(), BookError> {
    let made = Connection::open_in_memory().and_then(|mut connection| {
        connection.execute_batch(SCHEMA)?;
        BookState::default().enter(&connection, rules.name)?;
        connection.serialize(MAIN_DB).map(|bytes| bytes.to_vec())
    });
    let mut bytes = made.map_err(|source| failed(path, source))?;
    // The versions of the format that say that there may be a log, which SQLite would change otherwise.
    (bytes[18], bytes[19]) = (2, 2);
    // The files of a book that was removed.
    for end in ["-wal", "-shm", "-journal"] {
        disk.remove(&beside(path, end))?;
    }
    let mut staged = Staged::create(disk, path, bytes.len() as u64)?;
    staged.write(&bytes)?;
    staged.publish()?;
    Ok(())
}
