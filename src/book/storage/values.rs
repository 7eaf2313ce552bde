//! Values of all positions beside the facts that they follow from, so that a player need not derive them.
//!
//! The table `value` is replaced as a whole, in one transaction, at the end of an expansion. The row of `derivation` says
//! that it follows from all facts; the transaction that enters the next fact removes that row. So values are used only
//! while they are those that deriving gives, at whatever moment a process was killed. A player that has opened them goes
//! on with them, or with those that replace them, while the book grows.

use super::{BookError, BookFile, assessment_of, failed, key_of};
use crate::{Assessment, AwariGame, Book, BookGame, NodeId};
use game::Board;
use rusqlite::{OptionalExtension, params};

/// The version of the layout from which files have the tables.
const VALUES_SINCE: i64 = 3;

/// The most positions of a query: a position, and one after each of six moves.
const QUERIED_MAX: usize = 7;

/// What is stored of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredValue {
    pub(crate) value: Assessment,
    /// The number of moves in the book: all legal ones, or none.
    pub(crate) moves: u8,
}

impl BookFile {
    /// Returns the number of positions whose values are stored; `None` if they do not follow from all facts.
    ///
    /// # Errors
    /// What SQLite reports.
    pub fn stored_positions(&self) -> Result<Option<u64>, BookError> {
        if self.version < VALUES_SINCE {
            return Ok(None);
        }
        // Another program may have entered rows.
        let query = "SELECT positions FROM derivation \
            WHERE expansions = (SELECT coalesce(max(number), 0) FROM expansion)";
        let found = self.connection.query_row(query, [], |row| row.get::<_, i64>(0)).optional();
        Ok(found.map_err(|source| failed(&self.path, source))?.map(|positions| positions.max(0) as u64))
    }

    /// Stores the values of a book, whose facts are those of the file.
    ///
    /// # Errors
    /// What SQLite reports.
    ///
    /// # Panics
    /// If the book has more or fewer expansions than the file.
    pub fn store_values(&mut self, book: &Book<AwariGame>) -> Result<(), BookError> {
        if self.stored_positions()?.is_some() {
            return Ok(());
        }
        let expansions: i64 = self.one("SELECT coalesce(max(number), 0) FROM expansion", [])?;
        assert_eq!(expansions as u64, book.expansions(), "the book has the facts of the file");
        let graph = book.graph();
        let mut order: Vec<([u8; 12], NodeId)> =
            graph.ids().map(|id| (AwariGame::board(graph.node(id).key).0, id)).collect();
        // Rows in the order of their keys fill pages.
        order.sort_unstable();
        let stored = self.connection.transaction().and_then(|transaction| {
            transaction.execute_batch("DELETE FROM derivation; DELETE FROM value;")?;
            let mut insert = transaction.prepare("INSERT INTO value VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for (pits, id) in &order {
                let Assessment { low, high, estimate } = graph.value(*id);
                insert.execute(params![pits, low, high, estimate, graph.moves(*id).len() as i64])?;
            }
            drop(insert);
            let mark = "INSERT INTO derivation VALUES (?1, ?2)";
            transaction.execute(mark, params![order.len() as i64, expansions])?;
            transaction.commit()
        });
        stored.map_err(|source| failed(&self.path, source))?;
        self.has_values = true;
        Ok(())
    }

    /// Compares stored values with those of a book that was derived from the facts of the file. Returns the number of
    /// positions whose values are stored, and descriptions of wrong ones; `None` if values do not follow from all facts.
    ///
    /// # Errors
    /// [`BookError::Damaged`] if a row is impossible, or what SQLite reports.
    pub fn check_values(&self, book: &Book<AwariGame>) -> Result<Option<(u64, Vec<String>)>, BookError> {
        let _moment = self.moment()?;
        let Some(marked) = self.stored_positions()? else { return Ok(None) };
        if self.one::<i64>("SELECT count(*) FROM expansion", [])? as u64 != book.expansions() {
            // Another process has entered more since the book was read.
            return Ok(None);
        }
        let (game, graph) = (book.game(), book.graph());
        let mut wrong = Vec::new();
        let rows =
            self.rows("SELECT pits, low, high, estimate, moves FROM value", |row| Ok((key_of(row)?, read(row)?)))?;
        for (key, found) in &rows {
            let derived = graph.find(*key).map(|id| stored(book, id));
            if derived != Some(*found) {
                wrong.push(format!("{}: stored is {found:?}, but derived {derived:?}", game.text(*key)));
            }
        }
        let all = graph.len() as u64;
        if (rows.len() as u64, marked) != (all, all) {
            wrong.push(format!("{} values are stored of {all}, and marked are {marked}", rows.len()));
        }
        Ok(Some((all, wrong)))
    }

    /// Returns the root of stored values.
    pub(crate) fn first_root(&self) -> Result<Option<u64>, BookError> {
        let found = self.connection.query_row("SELECT pits FROM root ORDER BY number LIMIT 1", [], key_of).optional();
        found.map_err(|source| failed(&self.path, source))
    }

    /// Returns the stored values of positions, at most seven, all as of one moment.
    pub(crate) fn values_of(&self, boards: &[Board]) -> Result<Vec<Option<StoredValue>>, BookError> {
        assert!(boards.len() <= QUERIED_MAX, "a position has at most six moves");
        let query = "SELECT pits, low, high, estimate, moves FROM value WHERE pits IN (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let given: [Option<[u8; 12]>; QUERIED_MAX] = std::array::from_fn(|at| boards.get(at).map(|board| board.0));
        let found = self.connection.prepare(query).and_then(|mut statement| {
            let rows = statement.query_map(given, |row| Ok((key_of(row)?, read(row)?)))?;
            rows.collect::<rusqlite::Result<Vec<(u64, StoredValue)>>>()
        });
        let found = found.map_err(|source| failed(&self.path, source))?;
        let game = self.game();
        for &(key, StoredValue { value, .. }) in &found {
            if !value.is_possible(game.value_max(key)) {
                return Err(self.damaged(format!("the stored bounds of {} are impossible", game.text(key))));
            }
        }
        let of = |board: &Board| {
            let key = AwariGame::key(board);
            found.iter().find(|(found, _)| *found == key).map(|&(_, value)| value)
        };
        Ok(boards.iter().map(of).collect())
    }
}

/// Returns what is stored of a position.
pub(crate) fn stored(book: &Book<AwariGame>, id: NodeId) -> StoredValue {
    StoredValue { value: book.graph().value(id), moves: book.graph().moves(id).len() as u8 }
}

/// Reads bounds, estimate and moves from the columns after the first, which has the position.
fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredValue> {
    Ok(StoredValue { value: assessment_of(row)?, moves: row.get(4)? })
}
