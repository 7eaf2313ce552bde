//! Values of all positions beside the facts that they follow from, so that a player need not derive them.
//!
//! The table `value` is replaced as a whole, in one transaction, at the end of an expansion, which enters its
//! number of rows into `book.valued`. The transaction that enters the next fact removes that number. So
//! values are used only while they are those that deriving gives, at whatever moment a process was killed.
//!
//! The checksum of a row is that of [`super::rows`] of `book.facts`, the columns, and the position of the
//! next row in the order of positions, which after the last row is the first. So a row of other facts is
//! noticed, and two neighbours prove that the file has no position between them.

use super::error::BookError;
use super::rows::{RowChecksums, impossible};
use super::{BookFile, failed, position_of};
use crate::awari::AwariGame;
use crate::expand::Book;
use crate::game::{Assessment, BookGame};
use crate::graph::NodeId;
use game::Board;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};

const TABLE: &str = "value";

/// The number of columns before the checksum.
const COLUMNS: usize = 5;

/// What is stored of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredValue {
    pub(crate) value: Assessment,
    /// The number of moves in the book: all legal ones, or none.
    pub(crate) moves: u8,
}

impl BookFile {
    /// Returns the number of positions whose values are stored; `None` if they do not follow from all facts.
    pub fn stored_positions(&self) -> Option<u64> {
        self.state.valued
    }

    /// Stores the values of a book, whose facts are those of the file.
    ///
    /// # Errors
    /// What SQLite reports.
    ///
    /// # Panics
    /// If the book has more or fewer expansions than the file.
    pub fn store_values(&mut self, book: &Book<AwariGame>) -> Result<(), BookError> {
        if self.state.valued.is_some() {
            return Ok(());
        }
        assert_eq!(self.state.expansions, book.expansions(), "the book has the facts of the file");
        let graph = book.graph();
        let mut order: Vec<([u8; 12], NodeId)> =
            graph.ids().map(|id| (AwariGame::board(graph.node(id).key).0, id)).collect();
        // Rows in the order of their keys fill pages.
        order.sort_unstable();
        let checks = self.value_checks();
        self.write(|facts| {
            let connection = facts.connection;
            connection.execute_batch("DELETE FROM value")?;
            let mut insert = connection.prepare("INSERT INTO value VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
            let nexts = order.iter().cycle().skip(1);
            for ((pits, id), (next, _)) in order.iter().zip(nexts) {
                let row = ValueRow::of(*pits, stored(book, *id));
                let [low, high, estimate, moves] = row.numbers;
                insert.execute(params![pits, low, high, estimate, moves, checks.checksum(&row, next)])?;
            }
            facts.state.valued = Some(order.len() as u64);
            Ok(())
        })
    }

    /// Compares stored values with those of a book that was derived from the facts of the file. Returns the
    /// number of positions whose values are stored, and descriptions of wrong ones; `None` if values do not
    /// follow from all facts.
    ///
    /// # Errors
    /// What SQLite reports; damage if a row is impossible.
    pub fn check_values(&self, book: &Book<AwariGame>) -> Result<Option<(u64, Vec<String>)>, BookError> {
        let Some(marked) = self.state.valued else { return Ok(None) };
        let (game, graph) = (book.game(), book.graph());
        let mut wrong = Vec::new();
        let rows = self.all_values()?;
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

    /// Reads all stored values.
    fn all_values(&self) -> Result<Vec<(u64, StoredValue)>, BookError> {
        self.begin();
        let read = || {
            let mut statement = self.connection.prepare(&format!("{SELECT} ORDER BY pits"))?;
            let (mut rows, mut found) = (statement.query([])?, Vec::<ValueRow>::new());
            while let Some(row) = rows.next()? {
                let row = ValueRow::read(row)?;
                if found.last().is_some_and(|before| before.pits >= row.pits) {
                    return Err(impossible(0, "the values are not in order"));
                }
                found.push(row);
            }
            let checks = self.value_checks();
            let nexts = found.iter().cycle().skip(1);
            found.iter().zip(nexts).map(|(row, next)| checks.check(row, &next.pits)).collect()
        };
        read().map_err(|source| failed(&self.path, source))
    }

    fn value_checks(&self) -> ValueChecks {
        ValueChecks { game: self.game(), checksums: RowChecksums::of_table(TABLE), facts: self.state.facts }
    }

    /// Returns the root of stored values.
    pub(crate) fn first_root(&self) -> Result<Option<u64>, BookError> {
        Ok(self.read_roots()?.rows.first().copied())
    }

    /// Returns the stored values of positions.
    pub(crate) fn values_of(&self, boards: &[Board]) -> Result<Vec<Option<StoredValue>>, BookError> {
        self.begin();
        let read = || {
            let checks = self.value_checks();
            let mut at = self.connection.prepare(&format!("{SELECT} WHERE pits <= ?1 ORDER BY pits DESC LIMIT 1"))?;
            let mut after = self.connection.prepare("SELECT pits FROM value WHERE pits > ?1 ORDER BY pits LIMIT 1")?;
            let mut find = |board: &Board| {
                let mut row_at = |pits: &[u8]| at.query_row([pits], ValueRow::read).optional();
                let mut pits_after = |pits: &[u8]| after.query_row([pits], |row| row.get::<_, Vec<u8>>(0)).optional();
                let pits = &board.0[..];
                let row = row_at(pits)?.map_or_else(|| row_at(&AFTER_ALL), |row| Ok(Some(row)))?;
                let next = pits_after(pits)?.map_or_else(|| pits_after(&[]), |next| Ok(Some(next)))?;
                let (Some(row), Some(next)) = (row, next) else { return Err(impossible(0, "there are no values")) };
                let (_, value) = checks.check(&row, &next)?;
                match row.pits == pits {
                    true => Ok(Some(value)),
                    false if row.is_before(pits, &next) => Ok(None),
                    false => Err(impossible(0, "the values are not in order")),
                }
            };
            boards.iter().map(&mut find).collect::<rusqlite::Result<_>>()
        };
        read().map_err(|source| failed(&self.path, source))
    }
}

/// More than every position.
const AFTER_ALL: [u8; 1] = [u8::MAX];

const SELECT: &str = "SELECT pits, low, high, estimate, moves, checksum FROM value";

/// A row whose checksum is not compared yet.
struct ValueRow {
    pits: Vec<u8>,
    /// Low, high, estimate, moves.
    numbers: [i64; 4],
    checksum: i64,
}

impl ValueRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<ValueRow> {
        let numbers = [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        Ok(ValueRow { pits: row.get(0)?, numbers, checksum: row.get(5)? })
    }

    /// Returns the row of a stored value.
    fn of(pits: [u8; 12], stored: StoredValue) -> ValueRow {
        let StoredValue { value: Assessment { low, high, estimate }, moves } = stored;
        ValueRow { pits: pits.to_vec(), numbers: [low.into(), high.into(), estimate.into(), moves.into()], checksum: 0 }
    }

    /// Whether a position is between this row and the one after it, which after the last row is the first.
    fn is_before(&self, pits: &[u8], next: &[u8]) -> bool {
        let own = &self.pits[..];
        if own < next { own < pits && pits < next } else { pits > own || pits < next }
    }
}

/// Compares checksums of values, and computes them.
struct ValueChecks {
    game: AwariGame,
    checksums: RowChecksums,
    facts: i64,
}

impl ValueChecks {
    fn checksum(&self, row: &ValueRow, next: &[u8]) -> i64 {
        let numbers = row.numbers.map(ValueRef::Integer);
        let before = [ValueRef::Integer(self.facts), ValueRef::Blob(&row.pits)];
        self.checksums.of(before.into_iter().chain(numbers).chain([ValueRef::Blob(next)]))
    }

    /// Returns the position of a row, and its value.
    fn check(&self, row: &ValueRow, next: &[u8]) -> rusqlite::Result<(u64, StoredValue)> {
        if row.checksum != self.checksum(row, next) {
            return Err(impossible(COLUMNS, "its checksum is not that of the row"));
        }
        let key = position_of(&row.pits).map_err(|what| impossible(0, what))?;
        let [low, high, estimate, moves] = row.numbers.map(i16::try_from);
        let wrong = |_| impossible(1, "bounds, estimate and moves are impossible");
        let value =
            Assessment { low: low.map_err(wrong)?, high: high.map_err(wrong)?, estimate: estimate.map_err(wrong)? };
        let moves = moves.map_err(wrong)?;
        let all = AwariGame::board(key).moves(self.game.rules()).count() as i16;
        if value.is_possible(self.game.value_max(key)) && (moves == 0 || moves == all) {
            Ok((key, StoredValue { value, moves: moves as u8 }))
        } else {
            Err(impossible(1, "bounds, estimate and moves are impossible"))
        }
    }
}

/// Returns what is stored of a position.
pub(crate) fn stored(book: &Book<AwariGame>, id: NodeId) -> StoredValue {
    StoredValue { value: book.graph().value(id), moves: book.graph().moves(id).len() as u8 }
}
